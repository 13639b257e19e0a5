package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/naive"
)

// judged judges whatever can be read, and checks what must hold of every
// judgement. Nil: nothing could be judged.
func judged(tb testing.TB, text string) *engine.Judgement {
	tb.Helper()
	b, err := bundle.Parse(text)
	if err != nil {
		return nil
	}
	j, err := engine.Judge(b, known())
	if err != nil {
		return nil
	}
	if j.Failed() != (len(j.Failures()) > 0) || (j.Verdict() == engine.Pass) != (j.Cause() == "") {
		tb.Errorf("the judgement contradicts itself: %s, %q, %v", j.Verdict(), j.Cause(), j.Failures())
	}
	if j.Verdict() == engine.Pass {
		wantOwnSealing(tb, b)
	}
	return j
}

// wantOwnSealing demands that a bundle that passes is what our own sealer makes
// of its evidence.
func wantOwnSealing(tb testing.TB, b *bundle.Bundle) {
	tb.Helper()
	closure, err := engine.ReadClosure(b)
	if err != nil {
		tb.Fatalf("a bundle passes whose evidence cannot be read: %v", err)
	}
	question := b.Result.Get("question").Text()
	for _, d := range known() {
		if d.Name != b.Engine.Get("domain").Text() || d.Version != b.Engine.Get("tessera_version").Text() {
			continue
		}
		decision, err := d.Decide(question, closure.Graph, closure.KB)
		if err != nil || !b.Result.EqualCanonical(decision.Append(nil)) {
			tb.Errorf("a bundle passes whose result is not what its evidence yields: %v", err)
		}
		return
	}
	tb.Error("a bundle of an unknown domain passes")
}

func hostileBases(tb testing.TB) map[string]string {
	return map[string]string{
		"toy":   sealToy(tb, "Which item is the heaviest?"),
		"heavy": sealToy(tb, heavy),
		"e1":    readFile(tb, e1File),
		"chain": chainOf(tb, pumps, readFile(tb, e1File)),
	}
}

// TestEveryMember: each value of a bundle deleted and replaced, sealed again
// and not (case V17): an answer, in time, and never a pass that is not earned.
func TestEveryMember(t *testing.T) {
	for name, text := range hostileBases(t) {
		honest := naive.MustParse(text)
		for n, path := range naive.Paths(honest) {
			if slices.ContainsFunc(path, func(step any) bool { i, ok := step.(int); return ok && i > 1 }) || len(path) > 7 && n%3 > 0 || testing.Short() && n%4 > 0 {
				continue // items of a list are alike
			}
			edits := map[string]func(d map[string]any){"removed": func(d map[string]any) { naive.Remove(d, path...) }}
			for _, v := range []any{nil, []any{}, map[string]any{}, "", naive.Number("-1"), naive.Number("1000000000"), []any{[]any{naive.Number("1000000000.0")}}, true} {
				edits["set to "+naive.Canon(v)] = func(d map[string]any) { naive.Put(d, v, path...) }
			}
			for edit, f := range edits {
				doc := naive.Clone(honest)
				f(doc)
				if edit == "removed" {
					j := judged(t, naive.File(doc))
					if j != nil && j.Verdict() == engine.Pass && naive.Canon(doc["integrity"]) != naive.Canon(honest["integrity"]) {
						t.Errorf("%s: %v %s passes", name, path, edit)
					}
				}
				naive.Seal(doc)
				judged(t, naive.File(doc))
			}
		}
	}
}

// mutate alters a document as a string of bytes says, three for each step:
// where, how, with what.
func mutate(doc map[string]any, program []byte) {
	for ; len(program) >= 4; program = program[4:] {
		paths := naive.Paths(doc)
		path := paths[(int(program[0])<<8|int(program[1]))%len(paths)]
		other := naive.Clone(naive.At(doc, paths[(int(program[3])*257)%len(paths)]...))
		switch program[2] % 8 {
		case 0:
			naive.Remove(doc, path...)
		case 1, 2:
			naive.Put(doc, other, path...)
		case 3:
			naive.Put(doc, strconv.Itoa(int(program[3])), path...)
		case 4:
			naive.Put(doc, map[string]any{"redacted": true, "record": map[string]any{"id": fmt.Sprint("item:", program[3]%6)}}, path...)
		case 5:
			if list, ok := naive.At(doc, path...).([]any); ok {
				naive.Put(doc, append(naive.Clone(list), other), path...)
			}
		case 6:
			naive.Put(doc, program[3]%2 == 0, path...)
		case 7:
			naive.Put(doc, map[string]any{}, path...)
		}
	}
}

// FuzzForgery alters the structure of a bundle and seals it again. It may pass
// only where the result is what our own sealer makes of the evidence.
func FuzzForgery(f *testing.F) {
	bases := hostileBases(f)
	f.Add("toy", []byte("\x00\x20\x02\x07"))
	f.Fuzz(func(t *testing.T, base string, program []byte) {
		text, ok := bases[base]
		if !ok || len(program) > 64 {
			return
		}
		doc := naive.MustParse(text)
		mutate(doc, program)
		if integrity := doc["integrity"]; integrity != nil {
			naive.Seal(doc)
		}
		judged(t, naive.File(doc))
	})
}

func FuzzJudge(f *testing.F) {
	for _, text := range hostileBases(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { judged(t, text) })
}

// FuzzText runs the text primitives and the generic grammars.
func FuzzText(f *testing.F) {
	f.Add(`Recurring: "x" appears in 'a' and 'b'`, "What failed?")
	f.Fuzz(func(t *testing.T, claim, question string) {
		kb := []engine.Record{{ID: "a", Source: "a", Text: claim}, {ID: "b", Source: "b", Text: question}}
		d := demo()
		d.Grammars = engine.Chain("v").Grammars
		decision, err := d.Decide(question, engine.NewGraph(nil, nil, nil, nil), kb)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range decision.Claims {
			if !c.Verified && engine.Normalize(c.Text) != "" && c.Text == question {
				t.Fatalf("the claim %q quotes its record and is not verified", c.Text)
			}
		}
	})
}

func TestFuzzCorpora(t *testing.T) {
	for _, target := range []string{"FuzzForgery", "FuzzJudge", "FuzzText"} {
		seeds, err := os.ReadDir(filepath.Join("testdata", "fuzz", target))
		if err != nil || len(seeds) < 3 {
			t.Errorf("%s has %d seeds, %v", target, len(seeds), err)
		}
	}
}

// largeToy has n items and the edges, resolutions and mentions of a real corpus.
func largeToy(n int) (*engine.Graph, []engine.Record) {
	small, _ := toyGraph()
	nodes := make([]engine.Node, n)
	kb := make([]engine.Record, n)
	edges := make([]engine.Edge, n)
	for i := range nodes {
		nodes[i] = small.Nodes[i%5]
		nodes[i].ID = "item:" + strconv.Itoa(i)
		nodes[i].Text = fmt.Sprintf("Item %d is %s, has serial X%d0 and weighs %s kg.", i, nodes[i].Attributes[0][1], i, nodes[i].Attributes[1][1])
		kb[i] = nodes[i].Record
		edges[i] = engine.Edge{Src: nodes[i].ID, Dst: "item:0", Relation: "beside"}
	}
	return engine.NewGraph(nodes, edges, nil, nil), kb
}

// TestLargeBundle: time and memory grow with the file.
func TestLargeBundle(t *testing.T) {
	if testing.Short() {
		t.Skip("seals and verifies tens of megabytes")
	}
	const n = 100000
	g, kb := largeToy(n)
	for _, question := range []string{"find the serial X777770"} {
		draft, _, err := engine.NewDraft(toy(), question, g, kb)
		if err != nil {
			t.Fatal(err)
		}
		var out sizedBuffer
		if _, err := bundle.Write(&out, draft, nil); err != nil {
			t.Fatal(err)
		}
		text := string(out)
		start := time.Now()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		j := mustJudge(t, text)
		runtime.ReadMemStats(&after)
		if j.Verdict() != engine.Pass {
			t.Errorf("%q: %s", question, j.Cause())
		}
		if took, limit := time.Since(start), 20*time.Second; took > limit {
			t.Errorf("%q: %d bytes took %v", question, len(text), took)
		}
		if grown, limit := after.TotalAlloc-before.TotalAlloc, uint64(32<<20+5*len(text)); grown > limit {
			t.Errorf("%q: %d bytes took %d bytes of memory, limit %d", question, len(text), grown, limit)
		}
	}
}

type sizedBuffer []byte

func (b *sizedBuffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

// TestManyClaims: many claims over one record, each with its support.
func TestManyClaims(t *testing.T) {
	text := edited(t, sealToy(t, heavy), func(d map[string]any) {
		claims := naive.At(d, "result", "claims").([]any)
		for range 5000 {
			claims = append(claims, claims[1])
		}
		naive.Put(d, claims, "result", "claims")
	})
	if j := mustJudge(t, text); j.Verdict() != engine.Fail || len(j.Claims) != 5003 {
		t.Errorf("%s, %d claims", j.Verdict(), len(j.Claims))
	}
}

// TestManyQuotesOfALongRecord: short quotes of a long record in a redacted
// bundle do not cost the length of the record each.
func TestManyQuotesOfALongRecord(t *testing.T) {
	doc := redacted(sealToy(t, heavy), true)
	naive.Put(doc, strings.Repeat("long ", 1<<20), "evidence_closure", "graph", "nodes", 4, "record", "text")
	support := naive.At(doc, "result", "claims", 1, "support").([]any)
	for range 20000 {
		support = append(support, support[0])
	}
	naive.Put(doc, support, "result", "claims", 1, "support")
	naive.Seal(doc)
	start := time.Now()
	if j := mustJudge(t, naive.File(doc)); j.Verdict() != engine.Fail || j.Claims[1].Cause.Code != engine.SupportAltered {
		t.Errorf("%s: %s", j.Verdict(), j.Cause())
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}
