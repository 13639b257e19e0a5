package engine_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/naive"
)

// drawText gives words that questions meet, beside any characters at all.
func drawText(t *rapid.T, name string) string {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"", "pump failed", "Überdruck \"pump\"", "the site's pump\n", "\x00\x1b[2K\u2028\u202e\x7f", "🚰 failed"}),
		rapid.String(),
	).Draw(t, name)
}

func drawRecord(t *rapid.T, id string) engine.Record {
	r := engine.Record{ID: id, Source: drawText(t, "source"), IngestedAt: drawText(t, "ingested"), Text: drawText(t, "text")}
	r.Locator.Kind = drawText(t, "locator kind")
	for range rapid.IntRange(0, 3).Draw(t, "parts") {
		r.Locator.Parts = append(r.Locator.Parts, engine.Pair{drawText(t, "label"), drawText(t, "value")})
	}
	return r
}

func drawEvidence(t *rapid.T) (*engine.Graph, []engine.Record) {
	var nodes []engine.Node
	var kb []engine.Record
	for i, id := range rapid.SliceOfNDistinct(rapid.String(), 1, 6, rapid.ID[string]).Draw(t, "ids") {
		n := engine.Node{Record: drawRecord(t, id), Kind: drawText(t, "kind"), Named: i%2 == 0}
		if n.Named {
			n.Name = drawText(t, "name")
		}
		for range rapid.IntRange(0, 3).Draw(t, "attributes") {
			n.Attributes = append(n.Attributes, engine.Pair{drawText(t, "key"), drawText(t, "value")})
		}
		nodes = append(nodes, n)
		kb = append(kb, n.Record)
	}
	id := rapid.Custom(func(t *rapid.T) string { return rapid.SampledFrom(nodes).Draw(t, "node").ID })
	number := rapid.Custom(func(t *rapid.T) engine.Number {
		return engine.NumberOf(rapid.Float64Range(-1e300, 1e300).Draw(t, "f"))
	})
	var edges []engine.Edge
	var resolutions []engine.Resolution
	var mentions []engine.Mention
	for range rapid.IntRange(0, 4).Draw(t, "links") {
		edges = append(edges, engine.Edge{Src: id.Draw(t, "src"), Dst: id.Draw(t, "dst"), Relation: drawText(t, "relation")})
		resolutions = append(resolutions, engine.Resolution{NodeA: id.Draw(t, "a"), NodeB: id.Draw(t, "b"), Score: number.Draw(t, "score"), Confidence: number.Draw(t, "confidence"), Reason: drawText(t, "reason")})
		mentions = append(mentions, engine.Mention{Chunk: id.Draw(t, "chunk"), Node: id.Draw(t, "of"), Confidence: number.Draw(t, "confidence"), Reason: drawText(t, "reason")})
	}
	return engine.NewGraph(nodes, edges, resolutions, mentions), kb
}

// TestWhatIsSealedVerifies: whatever the evidence and the question, the bundle
// is canonical, another reader accepts its envelope, it is never worse than
// degraded, and its evidence is read back as it was. So is a chain over it.
func TestWhatIsSealedVerifies(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g, kb := drawEvidence(rt)
		text := seal(t, demo(), drawText(rt, "question"), g, kb)
		b := mustParse(t, text)
		j := mustJudge(t, text)
		unverified := slices.ContainsFunc(j.Claims, func(c engine.ClaimCheck) bool { return !c.Rederived })
		if j.Failed() || !b.Canonical || j.Answer != engine.AnswerRederives || (j.Verdict() == engine.Degraded) != unverified {
			rt.Fatalf("%s: %s", j.Verdict(), j.Cause())
		}
		c := mustClosure(t, b)
		if diff := cmp.Diff(g, c.Graph, cmpopts.IgnoreUnexported(engine.Graph{}), cmpopts.EquateEmpty()); diff != "" {
			rt.Fatalf("graph (-sealed +read):\n%s", diff)
		}
		if diff := cmp.Diff(kb, c.KB, cmpopts.EquateEmpty()); diff != "" {
			rt.Fatalf("kb (-sealed +read):\n%s", diff)
		}
		if j.Verdict() != engine.Pass || len(j.Claims) == 0 {
			return
		}
		if chain := mustJudge(t, chainOf(t, drawText(rt, "chain question"), text)); chain.Failed() {
			rt.Fatalf("chain: %s", chain.Cause())
		}
	})
}

// TestAccumulated pins the whole encoding by one digest over the bundles of a
// thousand generated corpora.
func TestAccumulated(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	words := []string{"pump", "failed", "Überdruck", "\"site\"", "3,500.00", "\u2028", "\t", "valve", "\U0001F6B0", "ok"}
	text := func() string {
		var out []string
		for range random.IntN(7) {
			out = append(out, words[random.IntN(len(words))])
		}
		return strings.Join(out, " ")
	}
	h := sha256.New()
	for range 1000 {
		var nodes []engine.Node
		var kb []engine.Record
		for i := range 1 + random.IntN(5) {
			r := engine.Record{ID: fmt.Sprint("n", i), Source: text(), IngestedAt: text(), Text: text(), Locator: engine.Locator{Kind: text(), Parts: []engine.Pair{{text(), text()}}}}
			nodes = append(nodes, engine.Node{Record: r, Kind: text(), Name: text(), Named: true, Attributes: []engine.Pair{{text(), text()}}})
			kb = append(kb, r)
		}
		f := engine.NumberOf(random.NormFloat64())
		g := engine.NewGraph(nodes, []engine.Edge{{Src: "n0", Dst: "n0", Relation: text()}}, []engine.Resolution{{NodeA: "n0", NodeB: "n0", Score: f, Confidence: f}}, []engine.Mention{{Chunk: "n0", Node: "n0", Confidence: f, Reason: text()}})
		h.Write([]byte(seal(t, demo(), text(), g, kb)))
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != accumulated {
		t.Errorf("the bundles have the digest %s, want %s", got, accumulated)
	}
}

// TestMessagesAreSafe: whatever a file says, no message carries it to a
// terminal unescaped or at any length (case V21).
func TestMessagesAreSafe(t *testing.T) {
	for _, evil := range []string{"\x1b[2K\x1b[1A VERIFIED", "line\nverdict: PASS", "\u202eSSAP", "\x1b]8;;http://x\x07", strings.Repeat("x", 5000)} {
		for name, text := range hostileBases(t) {
			honest := naive.MustParse(text)
			for n, path := range naive.Paths(honest) {
				if testing.Short() && n%9 > 0 {
					continue
				}
				if _, ok := naive.At(honest, path...).(string); !ok && n%3 > 0 || len(path) > 6 && n%5 > 0 {
					continue
				}
				doc := naive.Clone(honest)
				naive.Put(doc, evil, path...)
				naive.Put(doc, evil, evil)
				wantSafe(t, name, naive.File(doc))
				naive.Seal(doc)
				wantSafe(t, name, naive.File(doc))
			}
		}
	}
}

func wantSafe(t *testing.T, name, text string) {
	t.Helper()
	b, err := bundle.Parse(text)
	var messages []string
	if err == nil {
		var j *engine.Judgement
		if j, err = engine.Judge(b, known()); err == nil {
			messages = append(messages, j.Cause())
			for _, f := range slices.Concat(j.Integrity.Findings, j.Failures()) {
				messages = append(messages, f.Detail)
			}
			for _, u := range j.Upstreams {
				messages = append(messages, u.Cause)
			}
		}
	}
	if err != nil {
		messages = append(messages, err.Error())
	}
	for _, m := range messages {
		if len(m) > 1000 || strings.ContainsFunc(m, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("%s: message %.200q", name, m)
		}
	}
}

// accumulated changes only when the encoding does, which breaks every file.
const accumulated = "623d9690c426fa4868e246c58e84e0de299cb3e4de31c03eb9ce2c7afd53e8c6"
