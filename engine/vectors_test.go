package engine_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/naive"
)

func mustClosure(tb testing.TB, b *bundle.Bundle) *engine.Closure {
	tb.Helper()
	c, err := engine.ReadClosure(b)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

// TestBundleE1: appendix D.2 of the format, written anew from its evidence and
// verified.
func TestBundleE1(t *testing.T) {
	text := readFile(t, e1File)
	if len(text) != 4286 || sum(text) != "3fd1d6235b3ef9baca087c69f50d01c3795a4f89ff6711afa6b6e67b81725c56" {
		t.Fatal("the vector is not the published one")
	}
	c := mustClosure(t, mustParse(t, text))
	if got := seal(t, demo(), "Which pump failed?", c.Graph, c.KB); got != text {
		t.Errorf("wrote %s", got)
	}
	j := mustJudge(t, text)
	if j.Verdict() != engine.Pass || j.Cause() != "" || len(j.Claims) != 3 || j.Answer != engine.AnswerRederives || j.Taxonomy != engine.ReDerived {
		t.Errorf("%s, %s, answer %s, %d claims", j.Verdict(), j.Cause(), j.Answer, len(j.Claims))
	}
	r, err := engine.Retrieve("Which pump failed?", c.KB, 5)
	if err != nil {
		t.Fatal(err)
	}
	if want := []float64{0.9096821597030603, 0.14270530509490958, 0.1591012337653886}; !slices.Equal(r.Scores, want) || !slices.Equal(r.Hits, []int{0, 2, 1}) {
		t.Errorf("scores %v, hits %v", r.Scores, r.Hits)
	}
	for text, want := range map[string]string{
		"Which pump failed?": "pump failed",
		c.KB[0].Text:         "pump failed 2026 03 04 ueberdruck bar",
		c.KB[1].Text:         "pump passed pressure test",
		c.KB[2].Text:         "site hold pump",
	} {
		if got := strings.Join(engine.Tokens(text), " "); got != want {
			t.Errorf("tokens of %q: %q", text, got)
		}
	}
}

// TestRedactedE1: a claim that rests on withheld evidence is not evaluated, and
// the verdict says how much is withheld (case V13).
func TestRedactedE1(t *testing.T) {
	doc := naive.MustParse(readFile(t, e1File))
	naive.Put(doc, map[string]any{"redacted": true, "record": map[string]any{"id": "pump:P-9"}}, "evidence_closure", "graph", "nodes", 1)
	naive.Put(doc, map[string]any{"redacted": true}, "evidence_closure", "kb")
	j := mustJudge(t, naive.File(doc))
	if j.Verdict() != engine.Degraded || !slices.Equal(j.Withheld, []string{"pump:P-9", "kb"}) || j.Answer != engine.AnswerNotPerformed || len(j.Structural) > 0 {
		t.Errorf("%s, withheld %q, answer %s, %v", j.Verdict(), j.Withheld, j.Answer, j.Structural)
	}
	for i, c := range j.Claims {
		if c.Rederived != (i != 2) || c.Evaluated != (i != 2) || c.Cause != nil {
			t.Errorf("claim %d: %+v", i, c)
		}
	}
}

// TestChainE2: appendix D.3.
func TestChainE2(t *testing.T) {
	e1 := readFile(t, e1File)
	text := chainOf(t, "What failed at the pump site?", e1)
	if len(text) != 10171 || sum(text) != "8bed8ce73dad4d5c4085416bd0c4a36b092a8b7642c2061c43693a4452a20ce1" {
		t.Errorf("wrote %d bytes: %s", len(text), text)
	}
	leaves := naive.At(naive.MustParse(text), "integrity", "leaves")
	for name, want := range map[string]string{
		"engine":                     "22403143e796059e919abf80c26b974802657c2a80a0a14a67fd098564415380",
		"format":                     "f7a49d890cec3a195ddacd98886070d57dcfa72aa0c0723e09f2fab0f667d9f8",
		"closure.kind":               "ba563374dcddfa0cd7c92d4b4721ebecd5edd79b4fac130ad8262692588089b1",
		"kb":                         "e83d139c7c821de7e1a3434e7a7a860ebed97dd1096d2f01d85d553aa797e5c2",
		"node:chain:2228e74fb7c9:c0": "efa92522504d007039ab9f12cc0b89e08fe932d69196b3d07f8a0a7bbc4dac8c",
		"node:chain:2228e74fb7c9:c1": "9b790b782db567992081e086ac0d337791f12398ce8e8ccb678e3c2d8587416e",
		"node:chain:2228e74fb7c9:c2": "1cacae01f537c366e6aec063664cbfa45947565e79d7c0a0fc770cad74468720",
		"result":                     "bad16f676ecbf659fd2512d6ad6d472194431707f5c116f2f6c7b33fa75a7e2c",
		"upstream:sha256:2228e74fb7c9c1e766015cadb3e89b1b09db0c82cdc56f5bcf0d7103004a21fb": "0051bf10cf60c9f9eb3e91241555841a47db204400f5ef8301defe5b161d40cb",
		"action":      "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b",
		"graph.edges": "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945",
	} {
		if got := naive.At(leaves, name); got != "sha256:"+want {
			t.Errorf("leaf %s is %v", name, got)
		}
	}
	j := mustJudge(t, text)
	if j.Verdict() != engine.Pass || j.Integrity.Root != "sha256:125e66e9d4b3a837a44987f331875f9a9b6a638751096dfd13ace202b832d289" {
		t.Errorf("%s: %s, root %s", j.Verdict(), j.Cause(), j.Integrity.Root)
	}
	c := mustClosure(t, mustParse(t, text))
	r, err := engine.Retrieve("What failed at the pump site?", c.KB, 5)
	if want := []float64{0.9096821597030603, 1.327748854375105, 0.14270530509490958}; err != nil || !slices.Equal(r.Scores, want) {
		t.Errorf("scores %v, %v", r.Scores, err)
	}

	refusal := mustJudge(t, chainOf(t, "zebra quasar", e1))
	if refusal.Verdict() != engine.Pass || !refusal.Recorded.Refused || refusal.Integrity.Root != "sha256:07e66fc3026cf39b22b934edcfa0e8bd1b520465b2b3d5982a8635cab1e616c5" {
		t.Errorf("refusal: %s, root %s", refusal.Verdict(), refusal.Integrity.Root)
	}
}

// TestPublishedScores: appendix D.3, the scores of the published chain, ties
// included.
func TestPublishedScores(t *testing.T) {
	b := mustParse(t, readFile(t, vectors+"brief.tsb"))
	c := mustClosure(t, b)
	r, err := engine.Retrieve(b.Result.Get("question").Text(), c.KB, len(c.KB))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, i := range r.Hits {
		got[c.KB[i].ID] = r.Scores[i]
	}
	want := map[string]float64{
		"chain:5cc23099dccc:c2": 8.078568762538936, "chain:5cc23099dccc:c0": 6.6712088211115335, "chain:5cc23099dccc:c1": 6.6712088211115335,
		"chain:0ecaeaff0deb:c2": 5.1971736781637015, "chain:0ecaeaff0deb:c0": 2.6315732454761256, "chain:0ecaeaff0deb:c3": 2.6315732454761256,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("scores (-want +got):\n%s", diff)
	}
}

// TestTypedRoundTrip: what is decoded from the published bundles is written as
// it was.
func TestTypedRoundTrip(t *testing.T) {
	for _, name := range []string{"honest", "forged", "rca", "brief", "honest-public"} {
		b := mustParse(t, readFile(t, vectors+name+".tsb"))
		d, err := engine.ReadDecision(b.Result)
		if err != nil {
			t.Fatal(err)
		}
		if !b.Result.EqualCanonical(d.Append(nil)) {
			t.Errorf("%s: the result is written differently", name)
		}
		if name == "honest-public" {
			continue
		}
		c := mustClosure(t, b)
		draft := &bundle.Draft{
			Engine: b.Engine.AppendCanonical(nil), Result: d.Append(nil), Kind: b.Closure.Get("kind").Text(),
			Nodes: func(yield func(string, []byte) bool) {
				for i := range c.Graph.Nodes {
					_ = yield(c.Graph.Nodes[i].ID, c.Graph.Nodes[i].Append(nil))
				}
			},
			Edges:       seq(c.Graph.Edges, (*engine.Edge).Append),
			Mentions:    seq(c.Graph.Mentions, (*engine.Mention).Append),
			Resolutions: seq(c.Graph.Resolutions, (*engine.Resolution).Append),
			Records:     seq(c.KB, (*engine.Record).Append),
		}
		for _, up := range b.Upstream().Items() {
			u, err := bundle.Open(up)
			if err != nil {
				t.Fatal(err)
			}
			draft.Upstream = append(draft.Upstream, u)
		}
		var out bytes.Buffer
		if _, err := bundle.Write(&out, draft, nil); err != nil || out.String() != readFile(t, vectors+name+".tsb") {
			t.Errorf("%s: written differently, %v", name, err)
		}
	}
}

func seq[T any](list []T, appendTo func(*T, []byte) []byte) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for i := range list {
			if !yield(appendTo(&list[i], nil)) {
				return
			}
		}
	}
}

// TestPublishedAreNotEvaluable: without their domains nothing is claimed about
// the content of the published bundles (case V05).
func TestPublishedAreNotEvaluable(t *testing.T) {
	for _, name := range []string{"honest", "forged", "rca", "honest-public"} {
		j := mustJudge(t, readFile(t, vectors+name+".tsb"))
		if j.Taxonomy != engine.NotEvaluable || j.Reason.Code != engine.UnknownDomain || j.Verdict() != engine.Degraded || len(j.Integrity.Findings) > 0 {
			t.Errorf("%s: %s, %s, %v", name, j.Verdict(), j.Taxonomy, j.Reason)
		}
		if len(j.Claims) > 0 || j.Answer != engine.AnswerNotPerformed {
			t.Errorf("%s: claims or answer were judged", name)
		}
	}
	j := mustJudge(t, readFile(t, vectors+"brief.tsb"))
	if j.Verdict() != engine.Fail || j.Taxonomy != engine.ReDerived || len(j.Integrity.Findings) > 0 || len(j.Upstreams) != 2 || j.Answer != engine.AnswerRederives {
		t.Errorf("brief: %s, %s, %d upstreams", j.Verdict(), j.Taxonomy, len(j.Upstreams))
	}
	for _, u := range j.Upstreams {
		if u.Verdict != engine.Degraded || u.Judgement.Taxonomy != engine.NotEvaluable || len(u.Judgement.Integrity.Findings) > 0 {
			t.Errorf("upstream %s: %s", u.Root, u.Verdict)
		}
	}
}
