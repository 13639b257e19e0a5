package run_test

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chaind/chaind/engine/run"
	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

var (
	theKey = events.Key{Tenant: "acme", PromptHash: strings.Repeat("ab", 32), Session: strings.Repeat("5e", 16), Chain: "01JRUN"}

	theScope = segments.Scope{SchemaVersion: 1, TenantID: "acme", PromptHash: theKey.PromptHash, ExecuteSessionID: theKey.Session,
		CatalogCGSHash: strings.Repeat("c4", 32), DomainRevision: 7, EntryID: "issues"}

	// theProducer signs heads in these tests; it is seed 0x01…01.
	theProducer = ed25519.NewKeyFromSeed([]byte(strings.Repeat("\x01", 32)))
	// theOperator signs evidence bundles and trust bundles; it is seed 0x02…02.
	theOperator = ed25519.NewKeyFromSeed([]byte(strings.Repeat("\x02", 32)))
)

// script is a producer whose events reach the daemon one by one.
type script struct {
	tb     testing.TB
	at     *histories
	stream uint64       // sequence of the last message
	n      uint64       // events sent
	mute   bool         // neither numbers nor counts nor heads
	odd    func(object) // changes what is declared with an event; nil: nothing
}

func newScript(tb testing.TB) *script {
	return &script{tb: tb, at: newHistories(events.DefaultLimits), stream: 100}
}

func (s *script) history() *history { return s.at.byKey[theKey] }

type object = map[string]any

// send delivers an event; its id and number are added.
func (s *script) send(verb events.Verb, members object) {
	s.skip(verb, members)
	if s.odd != nil {
		s.odd(members)
	}
	s.deliver(verb, members)
}

// skip numbers an event and does not deliver it.
func (s *script) skip(_ events.Verb, members object) {
	members["v"], members["event_id"] = 1, fmt.Sprintf("e%d", s.n)
	if !s.mute {
		members["producer_seq"] = s.n
	}
	if members["at_ms"] == nil {
		members["at_ms"] = 1_780_000_000_000 + 250*s.n
	}
	s.n++
}

func (s *script) deliver(verb events.Verb, members object) {
	payload, err := json.Marshal(members)
	if err != nil {
		s.tb.Fatal(err)
	}
	s.stream++
	s.at.deliver(events.Message{Subject: theKey.Subject(verb), Payload: payload, StreamSeq: s.stream, BrokerMS: 1_780_000_000_500})
}

func scopeObject() object {
	return object{"schema_version": 1, "tenant_id": theScope.TenantID, "prompt_hash": theScope.PromptHash, "execute_session_id": theScope.ExecuteSessionID,
		"catalog_cgs_hash": theScope.CatalogCGSHash, "domain_revision": theScope.DomainRevision, "entry_id": theScope.EntryID}
}

const theIntent = "close the stalest open issue"

func (s *script) intent() {
	s.send("intent", object{"scope": scopeObject(), "kind": object{"kind": "intent_bound", "intent_len": len(theIntent)}, "preimage": object{"text": theIntent}})
}

func (s *script) commit(steps ...string) {
	comp := object{"version": 2, "name": "plan", "steps": len(steps), "bind": object{"topo": steps}, "return": "last"}
	s.send("commit", object{"scope": scopeObject(), "kind": object{"kind": "comp_committed", "step_topo": steps}, "preimage": object{"comp": comp}})
}

func (s *script) begin(id string) {
	s.send("step", object{"phase": "begin", "kind": object{"kind": "step_executed", "step_id": id, "step_index": 0}})
}

func (s *script) fails(id, reason string) {
	s.send("step", object{"phase": "failed", "reason": reason, "kind": object{"kind": "step_executed", "step_id": id, "step_index": 0}})
}

func stepEvent(id string, index, requests int) object {
	fingerprints := []string{}
	for i := range requests {
		fingerprints = append(fingerprints, fingerprint(id, i))
	}
	return object{"scope": scopeObject(), "kind": object{"kind": "step_executed", "step_id": id, "step_index": index, "request_fingerprints": fingerprints,
		"source_line": id + " = call(issues)"}, "preimage": object{"parsed": object{"expr": object{"op": "invoke", "step": id}, "projection": nil}}}
}

// step ends a step that issued some requests.
func (s *script) step(id string, index, requests int) { s.send("step", stepEvent(id, index, requests)) }

func fingerprint(id string, n int) string { return segments.Sum(fmt.Append(nil, id, n)).String() }

// artifact is a run snapshot with results, of which the seal needs a part.
func artifact(requests ...string) object {
	return object{"run_id": "x", "entry_id": "issues", "parsed_preimage": object{"expr": object{"op": "invoke"}, "projection": nil},
		"display_lines": []string{"last", "  it "}, "request_fingerprints": append([]string{}, requests...), "entities": []object{{"secret": "result"}}}
}

// sealed is the seal event of a run with an artifact, with all that the
// producer can declare.
func (s *script) sealed(outcome string, body object) object {
	raw, err := json.Marshal(body)
	if err != nil {
		s.tb.Fatal(err)
	}
	doc, err := segments.DecodeSealDocument(raw)
	if err != nil {
		s.tb.Fatal(err)
	}
	digest, err := segments.RunDigest(&theScope, doc)
	if err != nil {
		s.tb.Fatal(err)
	}
	kind := &segments.RunSealed{RunID: segments.RunID(digest), RunBundleDigest: digest}
	out := object{"outcome": outcome, "kind": object{"kind": "run_sealed", "run_id": kind.RunID}, "preimage": object{"artifact": body}}
	s.declare(out, kind)
	return out
}

// bare is a seal event without a run seal.
func (s *script) bare(outcome, reason string) object {
	out := object{"outcome": outcome, "reason": reason}
	s.declare(out, nil)
	return out
}

func (s *script) declare(seal object, kind segments.Kind) {
	if s.mute {
		return
	}
	seal["event_count"] = s.n + 1
	chain := segments.Builder{}
	if h := s.history(); h != nil {
		chain = segments.Builder{Next: h.state.Segments, Head: h.state.Head}
	}
	if kind != nil {
		chain.Append(kind, nil)
	}
	if chain.Head != nil {
		sig := segments.Sign(theProducer, &theScope, *chain.Head)
		seal["producer_head"] = chain.Head.String()
		seal["producer_signature"] = object{"public_key_hex": sig.PublicKeyHex, "signature_hex": sig.SignatureHex}
	}
}

// chain is what the sealer packages at the end, with a signed head.
func (s *script) chain() *run.Chain {
	c := s.history().chain()
	if c.Outcome != run.Open && c.Head != nil {
		c.Signature = segments.Sign(theOperator, &c.Scope, *c.Head)
	}
	return c
}

// honest is a run in which all went well.
func honest(tb testing.TB) *script {
	s := newScript(tb)
	s.intent()
	s.commit("list", "pick", "close")
	s.begin("list")
	s.step("list", 0, 3)
	s.begin("pick")
	s.step("pick", 1, 0)
	s.begin("close")
	s.step("close", 2, 1)
	s.send("seal", s.sealed("succeeded", artifact(fingerprint("list", 0), " "+fingerprint("close", 0))))
	return s
}

// scenarios are the frozen runs.
var scenarios = []struct {
	name    string
	chain   func(testing.TB) *run.Chain
	keep    run.Keep
	verdict string
	word    string
	unmet   string // labels of the claims that do not hold
}{
	{"succeeded", func(tb testing.TB) *run.Chain { return honest(tb).chain() }, run.Keep{Plans: true, Artifacts: true, Intents: true, Parsed: true}, "PASS", "succeeded", ""},
	{"succeeded-default", func(tb testing.TB) *run.Chain { return honest(tb).chain() }, run.DefaultKeep, "PASS", "succeeded", ""},
	{"failed", failedRun, run.DefaultKeep, "PASS", "failed", ""},
	{"cancelled", cancelledRun, run.DefaultKeep, "PASS", "cancelled", ""},
	{"abandoned", abandonedRun, run.DefaultKeep, "PASS", "abandoned", ""},
	{"unplanned", unplannedRun, run.DefaultKeep, "PASS", "cancelled", ""},
	{"nonconforming", nonconformingRun, run.DefaultKeep, "DEGRADED", "succeeded", "Steps"},
	{"open", openRun, run.DefaultKeep, "DEGRADED", "open", "Outcome Intake"},
	{"incomplete", incompleteRun, run.DefaultKeep, "DEGRADED", "succeeded", "Intake"},
	{"disagreeing", disagreeingRun, run.DefaultKeep, "DEGRADED", "succeeded", "Producer Intake"},
	{"empty", emptyRun, run.DefaultKeep, "DEGRADED", "empty", "Chain"},
	{"undeclared", undeclaredRun, run.DefaultKeep, "DEGRADED", "abandoned", "Intake"},
	{"lost", lostRun, run.DefaultKeep, "DEGRADED", "succeeded", "Intake"},
	{"rejections", rejectionsRun, run.DefaultKeep, "PASS", "succeeded", ""},
	{"evidence-only", evidenceOnly, run.DefaultKeep, "DEGRADED", "unrecorded", "Outcome Intake"},
}

func failedRun(tb testing.TB) *run.Chain {
	s := newScript(tb)
	s.intent()
	s.commit("list", "pick", "close", "tell")
	s.begin("list")
	s.step("list", 0, 2)
	s.begin("pick")
	s.fails("pick", "timeout after 30 s")
	s.begin("pick")
	s.fails("pick", "timeout after \"60\" s")
	s.begin("close")
	s.send("seal", s.bare("failed", "the tracker does not answer"))
	return s.chain()
}

// intentOnly is all that is left of a runtime that died before it had a plan.
func intentOnly(tb testing.TB) *run.Chain {
	s := newScript(tb)
	s.intent()
	s.send("seal", s.bare("abandoned", "no sign of life for an hour"))
	return s.chain()
}

// planOnly is of one that died before it began a step.
func planOnly(tb testing.TB) *run.Chain {
	s := newScript(tb)
	s.intent()
	s.commit("list", "pick")
	s.send("seal", s.bare("abandoned", ""))
	return s.chain()
}

// answeredWithAnError had a tool that answered, and said no.
func answeredWithAnError(tb testing.TB) *run.Chain {
	s := newScript(tb)
	s.intent()
	s.commit("list")
	s.begin("list")
	s.fails("list", "200, and the body says quota exceeded")
	s.send("seal", s.bare("failed", "list"))
	return s.chain()
}

// cancelledRun is stopped between two steps of its plan.
func cancelledRun(tb testing.TB) *run.Chain {
	s := newScript(tb)
	s.intent()
	s.commit("list", "pick", "close")
	s.begin("list")
	s.step("list", 0, 2)
	s.send("seal", s.bare("cancelled", "the user pressed stop"))
	return s.chain()
}

// abandonedRun is given up by its runtime while a step is open.
func abandonedRun(tb testing.TB) *run.Chain {
	s := newScript(tb)
	s.intent()
	s.commit("list", "pick", "close")
	s.begin("list")
	s.step("list", 0, 2)
	s.begin("pick")
	s.send("seal", s.bare("abandoned", "no sign of life for an hour"))
	return s.chain()
}

func unplannedRun(tb testing.TB) *run.Chain {
	s := newScript(tb)
	s.intent()
	s.step("list", 0, 1)
	s.step("close", 1, 1)
	s.send("seal", s.bare("cancelled", ""))
	return s.chain()
}

func nonconformingRun(tb testing.TB) *run.Chain {
	s := newScript(tb)
	s.intent()
	s.commit("list", "pick", "close")
	s.step("pick", 1, 1)
	s.step("list", 0, 1)
	s.commit("list", "pick", "close")
	s.send("seal", s.sealed("succeeded", artifact(fingerprint("pick", 0))))
	return s.chain()
}

func openRun(tb testing.TB) *run.Chain {
	s := newScript(tb)
	s.intent()
	s.commit("list", "pick")
	s.begin("list")
	return s.chain()
}

func incompleteRun(tb testing.TB) *run.Chain {
	s := newScript(tb)
	s.intent()
	s.commit("list", "pick")
	s.step("list", 0, 1)
	s.skip("step", object{})
	seal := s.sealed("succeeded", artifact(fingerprint("list", 0)))
	delete(seal, "producer_head")
	delete(seal, "producer_signature")
	s.send("seal", seal)
	return s.chain()
}

func disagreeingRun(tb testing.TB) *run.Chain {
	s := newScript(tb)
	s.intent()
	s.commit("list")
	s.step("list", 0, 1)
	seal := s.sealed("succeeded", artifact(fingerprint("list", 0)))
	seal["producer_head"] = strings.Repeat("0d", 32)
	s.send("seal", seal)
	return s.chain()
}

func emptyRun(tb testing.TB) *run.Chain {
	s := newScript(tb)
	seal := s.bare("cancelled", "nothing to do")
	seal["scope"] = scopeObject()
	s.send("seal", seal)
	return s.chain()
}

func undeclaredRun(tb testing.TB) *run.Chain {
	s := newScript(tb)
	s.mute = true
	s.intent()
	s.commit("list")
	s.step("list", 0, 1)
	s.send("seal", s.bare("abandoned", ""))
	return s.chain()
}

func lostRun(tb testing.TB) *run.Chain {
	c := honest(tb).chain()
	c.Intake.Lost = []run.Lost{{Epoch: 1, From: 104, To: 106, Why: "gap"}, {Epoch: 1, From: 108, To: 108, Why: "purged by hand"}}
	c.Intake.Weak = []string{"memory_storage", "one_replica"}
	return c
}

// rejectionsRun has more rejected events than are packaged: conflicts, events
// that cannot be read, and events with numbers of their own.
func rejectionsRun(tb testing.TB) *run.Chain {
	s := newScript(tb)
	s.intent()
	for i := range 150 {
		bad := stepEvent("list", 0, 1)
		bad["surprise"] = i
		s.send("step", bad)
		if i%10 == 0 {
			s.deliver("step", object{"v": 1, "event_id": "e0", "producer_seq": 0})
			s.deliver("step", object{"v": 1})
		}
	}
	s.commit("list")
	s.step("list", 0, 1)
	s.send("seal", s.sealed("succeeded", artifact(fingerprint("list", 0))))
	return s.chain()
}

// evidenceOnly is what can be told from an evidence bundle and files beside it.
func evidenceOnly(tb testing.TB) *run.Chain {
	from := honest(tb)
	c := from.chain()
	c.Name, c.Outcome, c.End, c.Intake, c.Declared, c.Producer, c.Attempts, c.Rejected = "", run.Unrecorded, nil, nil, nil, nil, nil, nil
	var bare []run.Segment
	for _, s := range from.history().segments {
		s.Event = nil
		bare = append(bare, s)
	}
	c.Segments = seq(bare)
	return c
}
