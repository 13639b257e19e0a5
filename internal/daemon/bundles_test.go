package daemon

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
	"github.com/chaind/chaind/verifier"
)

// compareBundle wants one trust bundle for a chain that has ended, which
// verifies as the contract says: 0 for a complete record that is re-derived,
// however the run ended; 3 for one that is nonconforming, incomplete, not
// declared, empty, or contradicted by its producer. Its name is entered in seen.
func compareBundle(t *testing.T, s *store.Store, dir string, key events.Key, seen map[string]bool) {
	t.Helper()
	record, err := s.Chain(key)
	if err != nil {
		t.Fatal(err)
	}
	if record.State.Outcome == events.Open {
		return
	}
	if record.Seal == nil || record.Seal.BundlePath != sidecar.BundlePath(record.Seal.BundleRoot) {
		t.Errorf("chain %s: sealed %+v", key.Chain, record.Seal)
		return
	}
	text, err := os.ReadFile(filepath.Join(dir, "artifacts", record.Seal.BundlePath))
	if err != nil || segments.Sum(text) != record.Seal.BundleSHA256 {
		t.Errorf("chain %s: %v, %d bytes", key.Chain, err, len(text))
		return
	}
	seen[record.Seal.BundlePath] = true
	r := verifier.TrustBundle(t.Context(), bytes.NewReader(text), verifier.Options{})
	run := r.Content.Run
	if run == nil || run.Chain != key.Chain || run.Tenant != key.Tenant || string(run.Outcome) != string(record.State.Outcome) {
		t.Errorf("chain %s: %s, %+v", key.Chain, r.Summary, run)
		return
	}
	// Some snapshots of the vectors name requests of no executed step, on purpose.
	foreign := slices.ContainsFunc(run.Unmet, func(s string) bool { return strings.Contains(s, "are of no executed step") })
	want := 3
	coverage, _ := (&store.ChainRecord{State: record.Fixed.State, Lost: record.Lost}).Coverage()
	conformity, _ := record.Fixed.State.Conformity()
	if conformity != events.Nonconforming && coverage == events.Complete && record.State.Segments > 0 &&
		record.State.ProducerSignature != events.SignatureInvalid && !foreign {
		want = 0
	}
	if r.ExitCode != want || !strings.HasPrefix(r.Summary, run.Word+": ") {
		t.Errorf("chain %s: exit %d, want %d: %s", key.Chain, r.ExitCode, want, r.Summary)
	}
}

// bundleFiles lists the trust bundles below dir.
func bundleFiles(t *testing.T, dir string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for name := range tree(t, filepath.Join(dir, "artifacts")) {
		if strings.HasSuffix(name, ".tsb") {
			found[name] = true
		}
	}
	return found
}
