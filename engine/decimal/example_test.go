package decimal_test

import (
	"fmt"

	"github.com/chaind/chaind/engine/decimal"
)

func Example() {
	var total decimal.Decimal
	for _, text := range []string{"24000.00", "22000", "3.85e4"} {
		amount, err := decimal.Parse(text)
		if err != nil {
			fmt.Println(err)
			return
		}
		total = total.Add(amount)
	}
	fmt.Println(total.Money())
	// Output: 84,500.00
}
