package keys_test

import (
	"fmt"

	"github.com/chaind/chaind/keys"
)

// A document signed by a key of the list, by one that was revoked, and not at
// all.
func ExampleJudge() {
	environment, err := keys.ParseEnvironment(" EA4A6C63E29C520ABEF5507B132EC5F9954776AEBEBE7B92421EEA691446D22C,\r\n")
	if err != nil {
		panic(err)
	}
	file, err := keys.ParseFile([]keys.FileEntry{{
		PublicKey: "fd1724385aa0c75b64fb78cd602fa1d991fdebf76b13c58ed702eac835e9f618",
		Comment:   "laptop stolen in May",
		Status:    "revoked",
	}})
	if err != nil {
		panic(err)
	}
	list, _, err := keys.Merge(environment, file)
	if err != nil {
		panic(err)
	}
	for _, signature := range []*keys.Checked{
		{Key: environment[0].PublicKey, Valid: true},
		{Key: file[0].PublicKey, Valid: true},
		nil,
	} {
		state := keys.Judge(signature, list)
		fmt.Println(state, state.Refused(list != nil, false))
	}
	// Output:
	// TRUSTED false
	// REVOKED true
	// UNSIGNED true
}
