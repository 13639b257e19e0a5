package run_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/naive"
	"github.com/chaind/chaind/engine/run"
)

// passes runs everything that reads a text, and says whether it passes.
func passes(text string) bool {
	b, err := bundle.Parse(text)
	if err != nil {
		return false
	}
	_, _ = run.Summarize(b)
	j, err := engine.Judge(b, known())
	return err == nil && j.Verdict() == engine.Pass
}

// TestEveryPrefix: no part of a bundle passes for the whole.
func TestEveryPrefix(t *testing.T) {
	t.Parallel()
	text := frozenRun(t)
	stride := 7
	if testing.Short() {
		stride = 101
	}
	for n := 0; n < len(text)-1; n += stride {
		if passes(text[:n]) {
			t.Errorf("the first %d bytes pass", n)
		}
	}
}

// TestFlippedBytes: no altered byte passes; sealed again, only where the bundle
// is what is made of the chain that it then packages.
func TestFlippedBytes(t *testing.T) {
	t.Parallel()
	text := frozenRun(t)
	stride := 61
	if testing.Short() {
		stride = 601
	}
	for at := 0; at < len(text)-1; at += stride {
		changed := []byte(text)
		changed[at] ^= 1 << (at % 7)
		if passes(string(changed)) {
			t.Errorf("byte %d altered passes", at)
		}
		doc, err := naive.Parse(string(changed))
		if err != nil || !sealable(doc) {
			continue
		}
		naive.Seal(doc)
		if again := naive.File(doc); passes(again) {
			repacked(t, again)
		}
	}
}

// sealable says that a forger's tool finds its way in the document.
func sealable(doc map[string]any) bool {
	closure, ok := doc["evidence_closure"].(map[string]any)
	return ok && closure["graph"] != nil
}

// TestEveryMember: each value deleted or replaced, sealed again, answered by
// the recorded result and anew. Nothing panics, and nothing passes that is not
// what is made of its chain.
func TestEveryMember(t *testing.T) {
	t.Parallel()
	text := frozenRun(t)
	paths := naive.Paths(naive.MustParse(text)["evidence_closure"])
	stride := 7
	if testing.Short() {
		stride = 97
	}
	values := []any{nil, "", "0", naive.Number("-1"), []any{}, map[string]any{}, true, strings.Repeat("9", 400)}
	for n := 0; n < len(paths); n += stride {
		path := append([]any{"evidence_closure"}, paths[n]...)
		doc := naive.MustParse(text)
		if n%2 == 0 {
			naive.Remove(doc, path...)
		} else {
			naive.Put(doc, values[n/2%len(values)], path...)
		}
		if sealable(doc) {
			tryForgery(t, doc)
		}
	}
}

// tryForgery seals a document again, with the recorded answer and a new one.
func tryForgery(tb testing.TB, doc map[string]any) {
	tb.Helper()
	naive.Seal(doc)
	text := naive.File(doc)
	if passes(text) {
		repacked(tb, text)
	}
	b, err := bundle.Parse(text)
	if err != nil {
		return
	}
	if _, err := engine.ReadClosure(b); err != nil {
		return
	}
	if again, ok := reanswered(tb, text); ok && passes(again) {
		repacked(tb, again)
	}
}

// mutate alters the evidence at places and in ways that the seed picks.
func mutate(doc map[string]any, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	graph := naive.At(doc, "evidence_closure", "graph").(map[string]any)
	for range 1 + r.IntN(3) {
		nodes := graph["nodes"].([]any)
		i, j := r.IntN(len(nodes)), r.IntN(len(nodes))
		switch r.IntN(7) {
		case 0:
			nodes[i], nodes[j] = nodes[j], nodes[i]
		case 1:
			naive.Remove(graph, "nodes", i)
		case 2:
			paths := naive.Paths(nodes[i])
			naive.Put(nodes[i], naive.At(nodes[j], "record", "text"), paths[r.IntN(len(paths))]...)
		case 3:
			attributes, _ := naive.At(nodes[i], "attributes").([]any)
			other, _ := naive.At(nodes[j], "attributes").([]any)
			if len(attributes) > 0 && len(other) > 0 {
				attributes[r.IntN(len(attributes))] = naive.Clone(other[r.IntN(len(other))])
			}
		case 4:
			edges, _ := graph["edges"].([]any)
			if len(edges) > 0 {
				naive.Remove(graph, "edges", r.IntN(len(edges)))
			}
		case 5:
			if pair, ok := naive.At(nodes[i], "attributes", r.IntN(12), 1).(string); ok {
				if n, err := strconv.ParseUint(pair, 10, 64); err == nil {
					attributes, _ := naive.At(nodes[i], "attributes").([]any)
					for _, p := range attributes {
						if naive.At(p, 1) == pair {
							naive.Put(p, strconv.FormatUint(n+uint64(r.IntN(3)), 10), 1)
						}
					}
				}
			}
		case 6:
			nodes[i] = naive.Clone(nodes[j])
		}
		if len(graph["nodes"].([]any)) == 0 {
			return
		}
	}
	if r.IntN(2) == 0 {
		mend(doc)
	}
}

// mend makes the kb the records of the nodes again.
func mend(doc map[string]any) {
	records := []any{}
	for _, n := range naive.At(doc, "evidence_closure", "graph", "nodes").([]any) {
		records = append(records, naive.Clone(naive.At(n, "record")))
	}
	naive.Put(doc, records, "evidence_closure", "kb", "records")
}

// FuzzForgery: whatever is altered, sealed again and answered anew, a bundle
// passes only where it is, byte for byte, what our own sealer makes of the
// chain that it packages.
func FuzzForgery(f *testing.F) {
	seeds, err := filepath.Glob("testdata/fuzz/FuzzForgery/*")
	if err != nil || len(seeds) == 0 {
		f.Fatal("no committed seeds")
	}
	texts := []string{frozenRun(f), write(f, failedRun(f), run.QuestionRun, run.DefaultKeep), write(f, lostRun(f), run.QuestionRun, run.DefaultKeep)}
	f.Fuzz(func(t *testing.T, which uint8, seed uint64) {
		doc := naive.MustParse(texts[int(which)%len(texts)])
		mutate(doc, seed)
		tryForgery(t, doc)
	})
}

// TestForgeryAtRandom runs the fuzz target over many seeds.
func TestForgeryAtRandom(t *testing.T) {
	t.Parallel()
	n := uint64(150)
	if testing.Short() {
		n = 40
	}
	text := write(t, failedRun(t), run.QuestionRun, run.DefaultKeep)
	for seed := range n {
		doc := naive.MustParse(text)
		mutate(doc, seed)
		tryForgery(t, doc)
	}
}

// FuzzRead: no text makes the domain panic.
func FuzzRead(f *testing.F) {
	seeds, err := filepath.Glob("testdata/fuzz/FuzzRead/*")
	if err != nil || len(seeds) == 0 {
		f.Fatal("no committed seeds")
	}
	for _, name := range []string{"empty", "open", "failed"} {
		raw, err := os.ReadFile(filepath.Join("testdata", name+".tsb"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(raw))
	}
	f.Fuzz(func(_ *testing.T, text string) { passes(text) })
}
