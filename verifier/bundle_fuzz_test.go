package verifier

import (
	"testing"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
)

// FuzzTrustBundle holds what must be true of every report on a trust bundle,
// whatever the bytes: no panic, a verdict that agrees with itself and with the
// engine's own judgement, and JSON that is safe to print.
func FuzzTrustBundle(f *testing.F) {
	f.Add(readFile(f, e1Path))
	f.Add(readFile(f, runDir+"failed.tsb"))
	f.Add(readFile(f, runDir+"open.tsb"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := verifyBundle(text, Options{Domains: withDemo()})
		consistent(t, "fuzz", r)
		mustBeSafe(t, string(r.AppendJSON(nil)))
		b, err := bundle.Parse(string(text))
		if err != nil {
			if r.ExitCode != ExitEnvelope {
				t.Fatalf("exit %d for what is no bundle: %v", r.ExitCode, err)
			}
			return
		}
		j, err := engine.Judge(b, withDemo())
		if err != nil {
			if r.ExitCode != ExitEnvelope {
				t.Fatalf("exit %d for what cannot be judged: %v", r.ExitCode, err)
			}
			return
		}
		want := map[engine.Verdict]int{engine.Pass: ExitPass, engine.Degraded: ExitDegraded, engine.Fail: ExitSemantic, engine.Tampered: ExitEnvelope}[j.Verdict()]
		if r.ExitCode != want && (want != ExitPass || r.ExitCode != ExitDegraded) {
			t.Fatalf("exit %d, the engine says %s", r.ExitCode, j.Verdict())
		}
	})
}
