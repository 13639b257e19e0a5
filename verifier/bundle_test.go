package verifier

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/domains"
	"github.com/chaind/chaind/engine/naive"
	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
)

const (
	tesseraDir = "../testdata/tessera/"
	runDir     = "../engine/run/testdata/"
	e1Path     = "../bundle/testdata/e1.tsb"
)

func verifyBundle(text []byte, o Options) *Report {
	return TrustBundle(context.Background(), bytes.NewReader(text), o)
}

// withDemo are all domains, and the test domain of the format's appendix D,
// which only retrieves. Its file e1.tsb is small enough to be tried at every
// byte.
var withDemo = sync.OnceValue(func() engine.Registry {
	return append(domains.All(), &engine.Domain{
		Name: "demo", Version: "1.0.0",
		Route: func(question string, _ *engine.Graph, kb []engine.Record) (*engine.Answer, error) {
			return engine.Lookup(question, kb, 5, engine.Route{Kind: "lookup", Reason: fmt.Sprintf("lexical lookup over %d record(s)", len(kb))})
		},
	})
})

// forge edits a bundle and seals it again, as whoever holds the file can.
func forge(tb testing.TB, text []byte, edit func(doc map[string]any)) []byte {
	tb.Helper()
	doc := naive.MustParse(string(text))
	edit(doc)
	naive.Seal(doc)
	return []byte(naive.File(doc))
}

// tamper edits a bundle and leaves the seal as it was.
func tamper(text []byte, edit func(doc map[string]any)) []byte {
	doc := naive.MustParse(string(text))
	edit(doc)
	return []byte(naive.File(doc))
}

func put(v any, path ...any) func(map[string]any) {
	return func(doc map[string]any) { naive.Put(doc, v, path...) }
}

// signedBundle gives the bundle a signature by one of the test seeds.
func signedBundle(tb testing.TB, text []byte, seed ed25519.PrivateKey) []byte {
	tb.Helper()
	b, err := bundle.Parse(string(text))
	if err != nil {
		tb.Fatal(err)
	}
	var out bytes.Buffer
	if err := bundle.WriteSigned(&out, b, seed); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// verdicts lists the verdicts on the claims, by index.
func verdicts(r *Report) []ClaimVerdict {
	var out []ClaimVerdict
	if r.Content != nil {
		for _, c := range r.Content.Claims {
			out = append(out, c.Verdict)
		}
	}
	return out
}

// consistent holds verdict, exit code, checks and errors of one report together.
func consistent(tb testing.TB, name string, r *Report) {
	tb.Helper()
	failed := 0
	for _, c := range r.Checks {
		if c.Status == StatusFail {
			failed++
		}
		if c.Detail == "" {
			tb.Errorf("%s: check %s says nothing", name, c.Name)
		}
	}
	passes := r.ExitCode == ExitPass || r.ExitCode == ExitDegraded
	if passes != (len(r.Errors) == 0) || passes != (failed == 0) || (r.ExitCode == ExitPass) != (r.Verdict == Pass) || r.Summary == "" {
		tb.Errorf("%s: %s with exit code %d, %d errors, %d failed checks", name, r.Verdict, r.ExitCode, len(r.Errors), failed)
	}
	for _, v := range verdicts(r) {
		if r.ExitCode == ExitPass && v != ClaimRederived {
			tb.Errorf("%s passes with a claim %s", name, v)
		}
	}
}

// TestPublishedBundles: ours gives the files that Tessera published the verdict
// that Tessera gives them, and names exactly the claims that fail.
func TestPublishedBundles(t *testing.T) {
	t.Parallel()
	same := func(v ClaimVerdict, n int) []ClaimVerdict { return slices.Repeat([]ClaimVerdict{v}, n) }
	for _, test := range []struct {
		name     string
		exit     int
		verdict  Verdict
		claims   []ClaimVerdict
		withheld int
		said     string
	}{
		{"honest.tsb", 0, Pass, same(ClaimRederived, 3), 0, "3 of 3 claims re-derived, the answer re-derives, signature UNSIGNED"},
		{"rca.tsb", 0, Pass, same(ClaimRederived, 8), 0, "8 of 8 claims re-derived"},
		{"brief.tsb", 0, Pass, same(ClaimRederived, 5), 0, "5 of 5 claims re-derived"},
		{"forged.tsb", 2, Fail, []ClaimVerdict{ClaimUnsupported, ClaimRederived, ClaimUnsupported}, 0, "2 of 3 claims do not re-derive: 0, 2"},
		{"honest-public.tsb", 3, Degraded, same(ClaimRederived, 3), 337, "337 items withheld"},
	} {
		r := verifyBundle(readFile(t, tesseraDir+test.name), Options{})
		consistent(t, test.name, r)
		if r.ExitCode != test.exit || r.Verdict != test.verdict || !slices.Equal(verdicts(r), test.claims) || len(r.Content.Withheld) != test.withheld || !strings.Contains(r.Summary, test.said) {
			t.Errorf("%s: %s, exit %d, claims %v, %d withheld: %s", test.name, r.Verdict, r.ExitCode, verdicts(r), len(r.Content.Withheld), r.Summary)
		}
	}
	brief := verifyBundle(readFile(t, tesseraDir+"brief.tsb"), Options{})
	if len(brief.Content.Upstreams) != 2 || brief.Content.Upstreams[0].Verdict != engine.Pass || brief.Content.Upstreams[0].Signature != keys.StateUnsigned {
		t.Errorf("upstreams of brief.tsb: %+v", brief.Content.Upstreams)
	}
}

// TestRunBundles: the frozen bundles of runs end in the codes that the contract
// gives to how a run went, with its outcome as the first word.
func TestRunBundles(t *testing.T) {
	t.Parallel()
	want := map[string]struct {
		exit    int
		verdict Verdict
		said    string // beginning of the summary
	}{
		"succeeded.tsb":         {0, Pass, "succeeded: "},
		"succeeded-default.tsb": {0, Pass, "succeeded: "},
		"failed.tsb":            {0, Pass, "failed: "},
		"cancelled.tsb":         {0, Pass, "cancelled: "},
		"abandoned.tsb":         {0, Pass, "abandoned: "},
		"unplanned.tsb":         {0, Pass, "cancelled: "},
		"undeclared.tsb":        {3, Degraded, "abandoned: "},
		"open.tsb":              {3, Unsealed, "open: "},
		"nonconforming.tsb":     {3, Degraded, "succeeded: "},
		"incomplete.tsb":        {3, Degraded, "succeeded: "},
		"lost.tsb":              {3, Degraded, "succeeded: "},
		"disagreeing.tsb":       {3, Degraded, "succeeded: "},
		"rejections.tsb":        {0, Pass, "succeeded: "},
		"evidence-only.tsb":     {3, Degraded, "unrecorded: "},
		"empty.tsb":             {3, Empty, "empty: "},
		"midway-numbers.tsb":    {0, Pass, "succeeded: 10 of 10 claims re-derived, the answer re-derives, complete only as chaind-run-1 has it"},
		"midway-count.tsb":      {0, Pass, "succeeded: 10 of 10 claims re-derived, the answer re-derives, complete only as chaind-run-1 has it"},
		"2-succeeded.tsb":       {0, Pass, "succeeded: 10 of 10 claims re-derived, the answer re-derives, signature"},
		"2-numbers-stop.tsb":    {3, Degraded, "succeeded: "},
		"2-head.tsb":            {0, Pass, "succeeded: "},
		"2-head-attempts.tsb":   {3, Degraded, "succeeded: "},
	}
	entries, err := os.ReadDir(runDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".tsb") {
			continue
		}
		w, known := want[entry.Name()]
		if !known {
			t.Errorf("%s: nobody said what it should give", entry.Name())
		}
		r := verifyBundle(readFile(t, runDir+entry.Name()), Options{})
		consistent(t, entry.Name(), r)
		if r.ExitCode != w.exit || r.Verdict != w.verdict || !strings.HasPrefix(r.Summary, w.said) || r.Content.Run == nil {
			t.Errorf("%s: %s, exit %d: %s", entry.Name(), r.Verdict, r.ExitCode, r.Summary)
		}
		if warned := slices.Contains(Codes(r.Warnings), CodeMidway); warned != strings.HasPrefix(entry.Name(), "midway-") {
			t.Errorf("%s: the warning of the earlier rule is given: %v", entry.Name(), warned)
		}
		delete(want, entry.Name())
	}
	for name := range want {
		t.Errorf("%s is not there", name)
	}
}

func headOf(tb testing.TB, text string) *segments.Digest {
	tb.Helper()
	d, err := segments.ParseDigest(text)
	if err != nil {
		tb.Fatal(err)
	}
	return &d
}

// TestBundleReportGolden freezes the JSON of reports on trust bundles that
// between them have every member. See testdata/report/README.md.
func TestBundleReportGolden(t *testing.T) {
	t.Parallel()
	honest := readFile(t, tesseraDir+"honest.tsb")
	for name, text := range map[string][]byte{
		"forged": readFile(t, tesseraDir+"forged.tsb"), "brief": readFile(t, tesseraDir+"brief.tsb"), "incident": incident(t),
		"failed": readFile(t, runDir+"failed.tsb"), "open": readFile(t, runDir+"open.tsb"),
		"broken":  tamper(honest, put("x", "result", "question")),
		"version": forge(t, honest, put("9.9.9", "engine", "tessera_version")),
		"cut":     honest[:1000],
	} {
		pretty := jsontext.Value(verifyBundle(text, Options{}).AppendJSON(nil))
		if err := pretty.Indent(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		golden(t, "bundle-"+name+".json", append(pretty, '\n'))
	}
}
