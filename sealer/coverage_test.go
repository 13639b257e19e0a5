package sealer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chaind/chaind/engine/run"
	"github.com/chaind/chaind/events"
)

// TestBundleKnowsWhereACountWasDeclared: a count covers the events up to the
// seal that it came with, in the bundle as in the record, whether it is right
// there, or only later.
func TestBundleKnowsWhereACountWasDeclared(t *testing.T) {
	t.Parallel()
	zero := strings.Repeat("0", 64)
	seal := `,"kind":{"kind":"run_sealed","run_id":"pr` + zero + `","run_bundle_digest":"` + zero + `"}`
	db := openStore(t, t.TempDir())
	seq := uint64(0)
	for chain, c := range map[string]struct {
		seals []string
		want  run.Coverage
	}{
		"midway":        {[]string{`,"more":true,"event_count":1` + seal, seal}, run.Unspecified},
		"midway-bare":   {[]string{`,"more":true,"event_count":1` + seal, ``}, run.Unspecified},
		"right-later":   {[]string{`,"more":true,"event_count":2` + seal, ``}, run.Incomplete},
		"right-later-2": {[]string{`,"more":true,"event_count":3` + seal, `,"more":true` + seal, seal}, run.Incomplete},
		"end":           {[]string{`,"more":true` + seal, `,"event_count":2`}, run.Complete},
		"end-of-two":    {[]string{`,"more":true,"event_count":1` + seal, seal + `,"event_count":2`}, run.Complete},
	} {
		key := events.Key{PromptHash: testPrompt, Session: testSession, Chain: chain}
		var list []*events.Event
		for i, rest := range c.seals {
			seq++
			payload := fmt.Sprintf(`{"v":1,"event_id":"s%d","scope":{"schema_version":1,"tenant_id":"","prompt_hash":%q,"execute_session_id":%q,"catalog_cgs_hash":%q,"domain_revision":1,"entry_id":"e"}%s}`,
				i, testPrompt, testSession, zero, rest)
			list = append(list, events.Decode(events.Message{Subject: key.Subject(events.VerbSeal), Payload: []byte(payload), StreamSeq: seq, BrokerMS: 1_790_000_000_000}, events.DefaultLimits))
		}
		feed(t, db, list, 1)
		record, err := db.Chain(key)
		if err != nil {
			t.Fatal(err)
		}
		if got, why := record.Coverage(); string(got) != string(c.want) {
			t.Errorf("%s: the record says %s %v, want %s", chain, got, why, c.want)
		}
		text, _, err := Pack(t.Context(), db, record, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		checkBundle(t, record, text)
	}
}

// TestIntentLostBeforeThePlan: messages were lost just before a chain's first event.
// Where that is a plan, or a step, what was lost may have been the chain's intent:
// chain and bundle say that it is incomplete. An intent is the beginning.
func TestIntentLostBeforeThePlan(t *testing.T) {
	t.Parallel()
	db := openStore(t, t.TempDir())
	digest := strings.Repeat("7", 64)
	send := func(chain string, seq uint64, verb events.Verb, rest string) {
		t.Helper()
		key := events.Key{PromptHash: testPrompt, Session: testSession, Chain: chain}
		payload := fmt.Sprintf(`{"v":1,"event_id":"e%d","scope":{"schema_version":1,"tenant_id":"","prompt_hash":%q,"execute_session_id":%q,"catalog_cgs_hash":%q,"domain_revision":1,"entry_id":"e"}%s}`,
			seq, testPrompt, testSession, digest, rest)
		e := events.Decode(events.Message{Subject: key.Subject(verb), Payload: []byte(payload), StreamSeq: seq, BrokerMS: 1_790_000_000_000}, events.DefaultLimits)
		if e.Fault != nil {
			t.Fatalf("%s: %+v", payload, e.Fault)
		}
		feed(t, db, []*events.Event{e}, 1)
	}
	intent := fmt.Sprintf(`,"kind":{"kind":"intent_bound","intent_digest":%q,"intent_len":2}`, digest)
	plan := fmt.Sprintf(`,"kind":{"kind":"comp_committed","plan_commit_id_hex":%q,"comp_semantic_sha256":%q,"step_topo":["a"]}`, digest, digest)
	step := fmt.Sprintf(`,"kind":{"kind":"step_executed","step_id":"a","step_index":0,"request_fingerprints":[],"source_line":"x","parsed_expr_digest":%q}`, digest)
	for i, c := range []struct {
		chain, first, rest string
		want               run.Coverage
	}{
		{"planned", string(events.VerbCommit), plan, run.Incomplete},
		{"stepped", string(events.VerbStep), step, run.Incomplete},
		{"intended", string(events.VerbIntent), intent, run.Unspecified},
	} {
		seq := uint64(10*i + 8) // the seven before it never come
		send(c.chain, seq, events.Verb(c.first), c.rest)
		send(c.chain, seq+1, events.VerbStep, step)
		send(c.chain, seq+2, events.VerbSeal, "")
		record, err := db.Chain(events.Key{PromptHash: testPrompt, Session: testSession, Chain: c.chain})
		if err != nil {
			t.Fatal(err)
		}
		if got, why := record.Coverage(); string(got) != string(c.want) {
			t.Errorf("%s: %s %v, want %s", c.chain, got, why, c.want)
		}
		text, _, err := Pack(t.Context(), db, record, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		checkBundle(t, record, text)
	}
}
