package domains

import (
	"fmt"
	"testing"
)

// TestAll: no two entries can be meant by one engine section, and each can
// answer.
func TestAll(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range All() {
		key := fmt.Sprintf("%q %q %q", d.Name, d.Version, d.Shapes())
		if seen[key] {
			t.Errorf("%s is listed twice", key)
		}
		seen[key] = true
		if d.Name == "" || d.Version == "" || d.Route == nil {
			t.Errorf("%s is incomplete", key)
		}
		for _, g := range d.Grammars {
			if g.ID == "" || g.Judge == nil {
				t.Errorf("%s has an incomplete grammar", key)
			}
		}
	}
	if len(seen) < 2 {
		t.Errorf("%d domains", len(seen))
	}
}
