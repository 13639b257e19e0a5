package run_test

import (
	"strings"
	"testing"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/naive"
	"github.com/chaind/chaind/engine/run"
)

// document edits the decoded form of a bundle.
type document struct {
	tb  testing.TB
	doc map[string]any
}

func (d document) nodes() []any {
	return naive.At(d.doc, "evidence_closure", "graph", "nodes").([]any)
}

func (d document) setNodes(nodes []any) {
	naive.Put(d.doc, nodes, "evidence_closure", "graph", "nodes")
}

func (d document) position(id string) int {
	for i, n := range d.nodes() {
		if naive.At(n, "record", "id") == id {
			return i
		}
	}
	d.tb.Fatalf("no node %q", id)
	return -1
}

func (d document) node(id string) map[string]any {
	return d.nodes()[d.position(id)].(map[string]any)
}

// idOf is the id of the first node of a kind.
func (d document) idOf(kind string) string {
	for _, n := range d.nodes() {
		if naive.At(n, "kind") == kind {
			return naive.At(n, "record", "id").(string)
		}
	}
	d.tb.Fatalf("no node of kind %q", kind)
	return ""
}

func (d document) attributes(id string) []any { return d.node(id)["attributes"].([]any) }

// attr changes the value of an attribute; a new key is added at the end.
func (d document) attr(id, key, value string) {
	for _, p := range d.attributes(id) {
		if pair := p.([]any); pair[0] == key {
			pair[1] = value
			return
		}
	}
	d.node(id)["attributes"] = append(d.attributes(id), []any{key, value})
}

func (d document) value(id, key string) string {
	for _, p := range d.attributes(id) {
		if pair := p.([]any); pair[0] == key {
			return pair[1].(string)
		}
	}
	d.tb.Fatalf("node %q has no %q", id, key)
	return ""
}

func (d document) dropAttr(id, key string) {
	var kept []any
	for _, p := range d.attributes(id) {
		if p.([]any)[0] != key {
			kept = append(kept, p)
		}
	}
	d.node(id)["attributes"] = kept
}

// drop removes a node, its record and its edges.
func (d document) drop(id string) {
	i := d.position(id)
	naive.Remove(d.doc, "evidence_closure", "graph", "nodes", i)
	naive.Remove(d.doc, "evidence_closure", "kb", "records", i)
	var edges []any
	for _, e := range naive.At(d.doc, "evidence_closure", "graph", "edges").([]any) {
		if naive.At(e, "src") != id && naive.At(e, "dst") != id {
			edges = append(edges, e)
		}
	}
	naive.Put(d.doc, edges, "evidence_closure", "graph", "edges")
}

// text changes the text of a node in graph, kb and support.
func (d document) text(id, text string) {
	i := d.position(id)
	naive.Put(d.doc, text, "evidence_closure", "graph", "nodes", i, "record", "text")
	naive.Put(d.doc, text, "evidence_closure", "kb", "records", i, "text")
	for _, c := range d.claims() {
		for _, s := range naive.At(c, "support").([]any) {
			if naive.At(s, "id") == id {
				naive.Put(s, text, "text")
			}
		}
	}
}

func (d document) claims() []any { return naive.At(d.doc, "result", "claims").([]any) }

// claim finds a claim by its label.
func (d document) claim(label string) map[string]any {
	for _, c := range d.claims() {
		if strings.HasPrefix(naive.At(c, "text").(string), label+": ") {
			return c.(map[string]any)
		}
	}
	d.tb.Fatalf("no claim %q", label)
	return nil
}

func (d document) edges() []any { return naive.At(d.doc, "evidence_closure", "graph", "edges").([]any) }

func (d document) replaceText(label, old, new string) {
	c := d.claim(label)
	changed := strings.Replace(c["text"].(string), old, new, 1)
	if changed == c["text"] {
		d.tb.Fatalf("claim %q has no %q", label, old)
	}
	c["text"] = changed
}

func (d document) replaceAttr(id, key, old, new string) {
	changed := strings.Replace(d.value(id, key), old, new, 1)
	if changed == d.value(id, key) {
		d.tb.Fatalf("%q of %q has no %q", key, id, old)
	}
	d.attr(id, key, changed)
}

func (d document) swap(i, j int, path ...any) {
	list := naive.At(d.doc, path...).([]any)
	list[i], list[j] = list[j], list[i]
}

const all = "Outcome Chain Intent Plan Steps Attempts Requests Runs Producer Intake"

// attacks are edits of the run that succeeded, with every preimage kept. fails
// are the labels of the claims that fail when it is sealed again, in order; a
// label stands for the claim at its place, whatever became of its text.
var attacks = []struct {
	name  string
	edit  func(document)
	fails string
}{
	// The chain node.
	{"outcome altered", func(d document) { d.attr("chain", "outcome", "failed") }, "Outcome"},
	{"outcome unknown", func(d document) { d.attr("chain", "outcome", "splendid") }, all},
	{"outcome open", func(d document) { d.attr("chain", "outcome", "open") }, "Outcome Intake"},
	{"reason added", func(d document) { d.attr("chain", "reason", "all well") }, "Outcome"},
	{"conformity altered", func(d document) { d.attr("chain", "conformity", "unplanned") }, "Outcome Steps"},
	{"tenant altered", func(d document) { d.attr("chain", "tenant", "other") }, "Outcome"},
	{"scope altered", func(d document) { d.replaceAttr("chain", "scope", `"domain_revision":7`, `"domain_revision":8`) }, "Chain Runs Producer"},
	{"scope of another tenant", func(d document) { d.replaceAttr("chain", "scope", `"acme"`, `"evil"`) }, "Outcome Chain Producer"},
	{"chain renamed", func(d document) { d.attr("chain", "chain", "01JOTHER") }, "Outcome Chain Intent Plan Steps Attempts Runs Intake"},
	{"count altered", func(d document) { d.attr("chain", "segments", "7") }, "Outcome Chain"},
	{"head altered", func(d document) { d.attr("chain", "head", strings.Repeat("00", 32)) }, "Chain"},
	{"head dropped", func(d document) { d.dropAttr("chain", "head") }, "Chain"},
	{"evidence signature altered", func(d document) { d.attr("chain", "signature", strings.Repeat("0", 128)) }, "Chain"},
	{"evidence signature of a weak key", func(d document) { d.attr("chain", "public_key", "01"+strings.Repeat("00", 31)) }, "Chain"},
	{"evidence signature dropped", func(d document) { d.dropAttr("chain", "public_key"); d.dropAttr("chain", "signature") }, "Chain"},
	{"producer head altered", func(d document) { d.attr("chain", "producer_head", strings.Repeat("00", 32)) }, "Producer Intake"},
	{"producer head moved", func(d document) { d.attr("chain", "producer_segments", "5") }, "Producer Intake"},
	{"producer signature altered", func(d document) { d.attr("chain", "producer_signature", strings.Repeat("0", 128)) }, "Producer"},
	{"producer key swapped", func(d document) { d.attr("chain", "producer_public_key", d.value("chain", "public_key")) }, "Producer"},
	{"end moved", func(d document) { d.attr("chain", "end_stream_seq", "108") }, "Outcome"},
	{"end of another event", func(d document) { d.attr("chain", "end_event_id", "e7") }, "Outcome Intake"},
	{"event count altered", func(d document) { d.attr("chain", "event_count", "8") }, "Intake"},
	{"event count dropped", func(d document) { d.dropAttr("chain", "event_count") }, "Outcome Intake"},
	{"attribute added", func(d document) { d.attr("chain", "approved", "yes") }, "Outcome"},
	{"attribute twice", func(d document) {
		d.node("chain")["attributes"] = append(d.attributes("chain"), []any{"outcome", "failed"})
	}, "Outcome"},

	// Segments.
	{"digit of a digest in a kind", func(d document) {
		d.replaceAttr("segment:2", "kind_jcs", fingerprint("list", 0), fingerprint("evil", 0))
	}, "Chain Runs"},
	{"kind not canonical", func(d document) { d.replaceAttr("segment:2", "kind_jcs", `{`, `{ `) }, "Chain"},
	{"kind no JSON", func(d document) { d.attr("segment:2", "kind_jcs", "{") }, "Chain Steps Attempts Requests Runs"},
	{"kind swapped", func(d document) { d.attr("segment:2", "kind_jcs", d.value("segment:3", "kind_jcs")) }, "Chain Steps Attempts Requests Runs"},
	{"digest altered", func(d document) { d.attr("segment:3", "digest", strings.Repeat("ee", 32)) }, "Chain"},
	{"link altered", func(d document) { d.attr("segment:3", "prev", strings.Repeat("ee", 32)) }, "Chain"},
	{"link dropped", func(d document) { d.dropAttr("segment:3", "prev") }, "Chain"},
	{"number altered", func(d document) { d.attr("segment:3", "seq", "9") }, "Chain"},
	{"event id altered", func(d document) { d.attr("segment:3", "event_id", "e4") }, "Intake"},
	{"producer number altered", func(d document) { d.attr("segment:3", "producer_seq", "77") }, "Intake"},
	{"stream sequence altered", func(d document) { d.attr("segment:3", "stream_seq", "104") }, "Attempts Intake"},
	{"time no number", func(d document) { d.attr("segment:3", "at_ms", "noon") }, "Chain"},
	{"flat member altered", func(d document) { d.attr("segment:3", "step_id", "harmless") }, "Chain"},
	{"tag altered", func(d document) { d.attr("segment:3", "kind", "run_sealed") }, "Chain"},
	{"segment dropped", func(d document) { d.drop("segment:3") }, "Outcome Chain Steps Attempts Requests Runs Producer Intake"},
	{"last segment dropped", func(d document) { d.drop("segment:5") }, all},
	{"segments out of order", func(d document) {
		d.swap(3, 4, "evidence_closure", "graph", "nodes")
	}, "Chain Steps Requests Intake"},
	{"segment added twice", func(d document) {
		extra := naive.Clone(d.node("segment:5"))
		naive.Put(extra, "segment:6", "record", "id")
		d.setNodes(append(append(append([]any{}, d.nodes()[:7]...), extra), d.nodes()[7:]...))
	}, "Outcome Chain Runs Producer Intake"},
	{"text of a segment", func(d document) { d.text("segment:3", "Segment 3 records that nothing happened.") }, "Chain"},
	{"name of a segment", func(d document) { d.node("segment:3")["name"] = "harmless" }, "Chain"},
	{"source of a segment", func(d document) { naive.Put(d.node("segment:3"), "elsewhere", "record", "origin", "source") }, "Chain"},
	{"locator of a segment", func(d document) {
		naive.Put(d.node("segment:3"), []any{[]any{"segment", "4"}}, "record", "origin", "locator", "parts")
	}, "Chain"},
	{"kind of a node", func(d document) { d.node("segment:3")["kind"] = "note" }, "Outcome Chain Steps Attempts Requests Runs Producer Intake"},

	// Attempts, intake, rejected events.
	{"attempt removed", func(d document) { d.drop("attempt:105") }, "Attempts Intake"},
	{"attempt removed and counted", func(d document) {
		d.drop("attempt:105")
		d.attr("intake", "attempts", "2")
		d.text("intake", "The daemon recorded 2 attempts, 0 rejections, 0 duplicates and 0 lost ranges on stream \"EVIDENCE\".")
	}, "Attempts Intake"},
	{"begin made a failure", func(d document) { d.attr("attempt:105", "phase", "failed") }, "Attempts"},
	{"attempt of another step", func(d document) { d.attr("attempt:105", "step_id", "list") }, "Attempts"},
	{"attempt with a reason", func(d document) { d.attr("attempt:105", "reason", "none") }, "Attempts"},
	{"rejections denied", func(d document) { d.attr("intake", "rejected", "1") }, "Intake"},
	{"duplicates altered", func(d document) { d.attr("intake", "duplicates", "4") }, "Intake"},
	{"stream renamed", func(d document) { d.attr("intake", "stream", "OTHER") }, "Intake"},
	{"epoch altered", func(d document) { d.attr("intake", "epoch", "2") }, "Intake"},
	{"loss added", func(d document) { d.attr("intake", "lost", "1:104-104 gap") }, "Intake"},
	{"loss that is none", func(d document) { d.attr("intake", "lost", "some") }, "Intake"},
	{"intake dropped", func(d document) { d.drop("intake") }, all},
	{"rejected event added", func(d document) {
		n := naive.Clone(d.node("intake"))
		naive.Put(n, "rejected:1", "record", "id")
		n["kind"] = "rejected"
		d.setNodes(append(d.nodes(), n))
	}, "Intake"},

	// Kept texts.
	{"plan swapped", func(d document) { d.replaceAttr(d.idOf("plan"), "json", `"last"`, `"none"`) }, "Plan"},
	{"plan no JSON", func(d document) { d.attr(d.idOf("plan"), "json", "x") }, "Plan"},
	{"intent swapped", func(d document) { d.replaceAttr(d.idOf("intent"), "json", "stalest", "newest") }, "Intent"},
	{"intent respelled", func(d document) { d.replaceAttr(d.idOf("intent"), "json", "close", `\u0063lose`) }, "Intent"},
	{"expression swapped", func(d document) { d.replaceAttr(d.idOf("parsed"), "json", "invoke", "delete") }, "Steps"},
	{"snapshot swapped", func(d document) { d.replaceAttr(d.idOf("artifact"), "json", "invoke", "delete") }, "Runs"},
	{"snapshot respelled", func(d document) { d.replaceAttr(d.idOf("artifact"), "json", `":["last"`, `": ["last"`) }, "Runs"},
	{"plan dropped", func(d document) { d.drop(d.idOf("plan")) }, all},
	{"texts out of order", func(d document) {
		i := d.position(d.idOf("plan"))
		d.swap(i, i+1, "evidence_closure", "graph", "nodes")
	}, "Chain"},
	{"text of nothing", func(d document) {
		n := naive.Clone(d.node(d.idOf("plan")))
		naive.Put(n, "plan:"+strings.Repeat("00", 32), "record", "id")
		i := d.position("intake")
		d.setNodes(append(append(append([]any{}, d.nodes()[:i]...), n), d.nodes()[i:]...))
	}, "Chain Plan"},

	// Lists beside the nodes.
	{"edge dropped", func(d document) { naive.Remove(d.doc, "evidence_closure", "graph", "edges", 4) }, "Chain"},
	{"edge altered", func(d document) { naive.Put(d.edges()[4], "seals", "relation") }, "Chain"},
	{"edge turned", func(d document) { naive.Put(d.edges()[3], "chain", "src") }, "Chain"},
	{"edge added", func(d document) {
		naive.Put(d.doc, append(d.edges(), map[string]any{"src": "intake", "dst": "chain", "relation": "in"}), "evidence_closure", "graph", "edges")
	}, "Chain"},
	{"edges reordered", func(d document) { d.swap(0, 1, "evidence_closure", "graph", "edges") }, "Chain"},
	{"resolution added", func(d document) {
		naive.Put(d.doc, []any{map[string]any{"node_a": "chain", "node_b": "intake", "score": naive.Number("1.0"), "confidence": naive.Number("1.0"), "reason": "same"}}, "evidence_closure", "graph", "resolutions")
	}, "Chain"},
	{"kb text altered", func(d document) { naive.Put(d.doc, "nothing", "evidence_closure", "kb", "records", 3, "text") }, ""},
	{"kb record dropped", func(d document) { naive.Remove(d.doc, "evidence_closure", "kb", "records", 3) }, ""},
	{"kb reordered", func(d document) { d.swap(0, 1, "evidence_closure", "kb", "records") }, ""},

	// The result.
	{"verdict flipped", func(d document) { d.claim("Plan")["verified"] = false }, ""},
	{"claim dropped", func(d document) { naive.Remove(d.doc, "result", "claims", 9) }, ""},
	{"claims reordered", func(d document) { d.swap(3, 4, "result", "claims") }, ""},
	{"claim reworded", func(d document) { d.replaceText("Requests", "4 issued", "3 issued") }, "Requests"},
	{"claim relabelled", func(d document) { d.replaceText("Requests", "Requests", "Demands") }, "Requests"},
	{"claim with a lie behind", func(d document) { d.replaceText("Steps", "order.", "order. All were approved.") }, "Steps"},
	{"support dropped", func(d document) { naive.Remove(d.claim("Chain"), "support", 2) }, "Chain"},
	{"support of another record", func(d document) {
		d.claim("Chain")["support"].([]any)[2] = naive.Clone(d.claim("Steps")["support"].([]any)[1])
	}, "Chain"},
	{"support text altered", func(d document) { naive.Put(d.claim("Chain"), "nothing", "support", 1, "text") }, ""},
	{"render altered", func(d document) { naive.Put(d.claim("Chain"), "page 1", "support", 1, "locator", "render") }, ""},
	{"question altered", func(d document) { naive.Put(d.doc, run.QuestionSteps, "result", "question") }, ""},
	{"route altered", func(d document) { naive.Put(d.doc, "recomputed", "result", "route", "reason") }, ""},
	{"summary altered", func(d document) { naive.Put(d.doc, false, "result", "all_verified") }, ""},
	{"member added", func(d document) { naive.Put(d.doc, "yes", "result", "approved") }, ""},
	{"action added", func(d document) { d.doc["action"] = map[string]any{"kind": "pay"} }, ""},
	{"closure relabelled", func(d document) { naive.Put(d.doc, "full", "evidence_closure", "kind") }, ""},
}

func frozenRun(tb testing.TB) string {
	return write(tb, honest(tb).chain(), run.QuestionRun, run.Keep{Plans: true, Artifacts: true, Intents: true, Parsed: true})
}

// TestAttacks: every edit fails. Sealed again it fails by its content, and the
// claims that rested on what was altered are named; not sealed again, by its
// envelope. "verdict flipped" is also case V11.
func TestAttacks(t *testing.T) {
	t.Parallel()
	honest := frozenRun(t)
	if len(attacks) < 60 {
		t.Fatalf("%d attacks", len(attacks))
	}
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			edit := func(doc map[string]any) { a.edit(document{t, doc}) }
			text := edited(honest, edit)
			if text == honest {
				t.Fatal("nothing was altered")
			}
			j := judge(t, text)
			if len(j.Integrity.Findings) > 0 || j.Verdict() != engine.Fail {
				t.Errorf("sealed again it is %s: %s", j.Verdict(), j.Cause())
			}
			if got := failedPlaces(j); len(j.Claims) > 0 && got != a.fails {
				t.Errorf("fails %q, want %q", got, a.fails)
			}
			raw := naive.MustParse(honest)
			edit(raw)
			b, err := bundle.Parse(naive.File(raw))
			if err != nil {
				t.Fatal(err)
			}
			verdict := engine.Tampered
			if strings.HasSuffix(a.name, "out of order") { // of nodes, which no leaf covers
				verdict = engine.Fail
			}
			if j, err := engine.Judge(b, known()); err != nil || j.Verdict() != verdict {
				t.Errorf("not sealed again it is not %s: %v", verdict, err)
			}
		})
	}
}

// failedPlaces names the claims that are recorded as verified and do not
// re-derive, by the label that belongs to their place.
func failedPlaces(j *engine.Judgement) string {
	var out []string
	labels := strings.Fields(all)
	for i, c := range j.Claims {
		if c.Recorded && !c.Rederived && i < len(labels) {
			out = append(out, labels[i])
		}
	}
	return strings.Join(out, " ")
}
