package bundle_test

import (
	"fmt"
	"os"

	"github.com/chaind/chaind/bundle"
)

// Check the envelope of a file: that it is the file that was sealed. Whether
// its content follows from its evidence is package engine's to say.
func ExampleRead() {
	f, err := os.Open("testdata/e1.tsb")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	b, err := bundle.Read(f)
	if err != nil {
		fmt.Println("not a trust bundle:", err)
		return
	}
	integrity, err := b.CheckIntegrity()
	if err != nil {
		fmt.Println("envelope cannot be read:", err)
		return
	}
	signature, err := b.CheckSignature()
	if err != nil {
		fmt.Println("signature cannot be read:", err)
		return
	}
	fmt.Println(integrity.Root[:19], len(integrity.Findings), "findings; signed:", signature.Signed)
	// Output: sha256:2228e74fb7c9 0 findings; signed: false
}

// A record that was altered after sealing is named.
func ExampleBundle_CheckIntegrity() {
	text, err := os.ReadFile("testdata/e1.tsb")
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range text {
		if string(text[i:min(i+11, len(text))]) == "Pump P-9\",\"" {
			text[i+7] = '8' // the name of one node
			break
		}
	}
	b, err := bundle.Parse(string(text))
	if err != nil {
		fmt.Println(err)
		return
	}
	check, err := b.CheckIntegrity()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range check.Findings {
		fmt.Println(f.Code, f.Where)
	}
	// Output:
	// leaf_mismatch node:pump:P-9
	// root_mismatch root
}
