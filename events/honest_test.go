package events

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chaind/chaind/segments"
)

var testKey = Key{Tenant: "acme", PromptHash: strings.Repeat("ab", 32), Session: strings.Repeat("cd", 16), Chain: "01HONEST"}

const testScope = `{"schema_version":1,"tenant_id":"acme","prompt_hash":"abababababababababababababababababababababababababababababababab",` +
	`"execute_session_id":"cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd","catalog_cgs_hash":"cafe","domain_revision":3,"entry_id":"tracker"}`

const (
	testComp     = `{"version":2,"steps":{"a":{"kind":"query","limit":1.0}},"bind":{"topo":["a","b"]},"return":{"step":"b"}}`
	testArtifact = `{"entry_id":"tracker","parsed_preimage":{"op":"x","n":1.5},"display_lines":["do it "],"request_fingerprints":["f2","f1"]}`
)

func message(v Verb, payload string) Message {
	return Message{Subject: testKey.Subject(v), Payload: []byte(payload), StreamSeq: 1, BrokerMS: 1_780_000_000_000}
}

// honest are well-formed messages of every verb and phase, all of one chain.
func honest(t testing.TB) []Message {
	t.Helper()
	scope := parseScope(t)
	intent, n := segments.IntentDigest("Close the issue", scope.CatalogCGSHash, scope.EntryID, nil)
	plan, err := segments.PlanDigest([]byte(testComp))
	if err != nil {
		t.Fatal(err)
	}
	run := testRunDigest(t)
	head := strings.Repeat("0f", 32)
	return []Message{
		message(VerbIntent, fmt.Sprintf(`{"v":1,"event_id":"e1","scope":%s,"at_ms":1780000000001,"producer_seq":0,"kind":{"kind":"intent_bound","intent_digest":"%s","intent_len":%d},"preimage":{"text":" Close the issue\n"}}`, testScope, intent, n)),
		message(VerbCommit, fmt.Sprintf(`{"v":1,"event_id":"e2","producer_seq":1,"kind":{"kind":"comp_committed","plan_commit_id_hex":"%s","comp_semantic_sha256":"%s","step_topo":["a","b"]},"preimage":{"comp":%s}}`, plan, plan, testComp)),
		message(VerbStep, `{"v":1,"event_id":"e3","producer_seq":2,"phase":"begin","kind":{"kind":"step_executed","step_id":"a","step_index":0}}`),
		message(VerbStep, `{"v":1,"event_id":"e4","producer_seq":3,"phase":"failed","reason":"no \"net\"","kind":{"kind":"step_executed","step_id":"a","step_index":0}}`),
		message(VerbStep, `{"v":1,"event_id":"e5","producer_seq":4,"kind":{"kind":"step_executed","step_id":"a","step_index":0,"entry_id":"tracker","request_fingerprints":["f1","f2"],"source_line":"Issue(1).close()  "},"preimage":{"parsed":{"expr":{"op":"close"},"projection":null}},"anchors":{"plan_commit_ref":"pc1","trace_id":"01234567-89ab-cdef-0123-456789abcdef","plan_call_index":1}}`),
		message(VerbSeal, fmt.Sprintf(`{"v":1,"event_id":"e6","scope":%s,"producer_seq":5,"more":true,"kind":{"kind":"run_sealed","run_id":"pr%s","run_bundle_digest":"%s","step_id":"a","resource_index":0},"preimage":{"artifact":%s}}`, testScope, run, run, testArtifact)),
		message(VerbSeal, fmt.Sprintf(`{"v":1,"event_id":"e7","producer_seq":6,"outcome":"failed","reason":"b never ran","event_count":7,"producer_head":"%s","producer_signature":{"public_key_hex":"00","signature_hex":"11"}}`, head)),
	}
}

func testRunDigest(t testing.TB) segments.Digest {
	t.Helper()
	doc, err := segments.DecodeSealDocument([]byte(testArtifact))
	if err != nil {
		t.Fatal(err)
	}
	run, err := segments.RunDigest(parseScope(t), doc)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func parseScope(t testing.TB) *segments.Scope {
	t.Helper()
	e := Decode(message(VerbSeal, `{"v":1,"event_id":"s","scope":`+testScope+`}`), Limits{})
	if e.Fault != nil {
		t.Fatal(e.Fault)
	}
	return e.Scope
}

func TestHonestChain(t *testing.T) {
	t.Parallel()
	store := newMemory(DefaultLimits)
	want := []Verdict{Appended, Appended, Attempted, Attempted, Appended, Appended, Finished}
	for i, m := range honest(t) {
		if _, effect := store.deliver(m); effect.Verdict != want[i] {
			t.Errorf("event %d: %s (%+v), want %s", i, effect.Verdict, effect.Fault, want[i])
		}
	}
	s := store.states[testKey]
	if c, codes := s.Conformity(); c != Conforming || s.Segments != 4 || s.Outcome != Failed {
		t.Errorf("%s %v, %d segments, %s", c, codes, s.Segments, s.Outcome)
	}
	if c, why := s.Coverage(); c != Incomplete || len(why) != 1 || why[0] != WhyHead || s.ProducerSignature != SignatureInvalid {
		t.Errorf("coverage %s %v, signature %s", c, why, s.ProducerSignature)
	}
}

// Every proper prefix of an honest event is refused, and so is every event
// with something behind it.
func TestPrefixes(t *testing.T) {
	t.Parallel()
	for _, m := range honest(t) {
		whole := m.Payload
		for n := range whole {
			m.Payload = whole[:n]
			if e := Decode(m, DefaultLimits); e.Fault == nil || e.Fault.Class != Malformed {
				t.Fatalf("prefix of %d bytes: %+v", n, e.Fault)
			}
		}
		for _, tail := range []string{"x", "{}", "\x00", ",", "//", "\ufeff", "\u00a0", "1"} {
			m.Payload = append(whole[:len(whole):len(whole)], tail...)
			if e := Decode(m, DefaultLimits); e.Fault == nil || e.Fault.Class != Malformed {
				t.Errorf("with %q behind it: %+v", tail, e.Fault)
			}
		}
	}
}

// No flipped bit makes the decoder panic, or pass for the same event.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	for _, m := range honest(t) {
		sum := segments.Sum(m.Payload)
		for i := range m.Payload {
			for bit := range 8 {
				m.Payload[i] ^= 1 << bit
				if e := Decode(m, DefaultLimits); e.Fault == nil && e.Sum == sum {
					t.Fatalf("bit %d of byte %d does not count", bit, i)
				}
				m.Payload[i] ^= 1 << bit
			}
		}
	}
}

func planOf(k segments.Kind) string { return k.(*segments.CompCommitted).PlanCommitIDHex }
