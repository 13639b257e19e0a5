package keys

import (
	"os"
	"testing"
)

// A fuzz target whose committed seeds went missing would pass without trying
// anything.
func TestFuzzCorporaAreThere(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"FuzzParsePublicKey", "FuzzParseEnvironment"} {
		seeds, err := os.ReadDir("testdata/fuzz/" + target)
		if err != nil || len(seeds) == 0 {
			t.Errorf("%s: %d seeds, %v", target, len(seeds), err)
		}
	}
}
