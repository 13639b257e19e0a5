package sealer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chaind/chaind/events"
)

// sent makes events of one chain, at stream sequences of one's choice.
type sent struct {
	t     *testing.T
	chain string
	lim   events.Limits
}

const zeroes = "0000000000000000000000000000000000000000000000000000000000000000"

// sealsRun and surprise are further members of an event: a run seal's, and one that nobody knows.
const (
	sealsRun = `,"kind":{"kind":"run_sealed","run_id":"pr` + zeroes + `","run_bundle_digest":"` + zeroes + `"}`
	surprise = `,"surprise":1`
)

func (s sent) key() events.Key {
	return events.Key{PromptHash: testPrompt, Session: testSession, Chain: s.chain}
}

// event has the kind of its verb, unless further members bring one or have it rejected.
func (s sent) event(id string, verb events.Verb, seq uint64, further string) *events.Event {
	kind := map[events.Verb]string{
		events.VerbIntent: `,"kind":{"kind":"intent_bound","intent_digest":"` + zeroes + `","intent_len":2}`,
		events.VerbStep:   `,"kind":{"kind":"step_executed","step_id":"a","step_index":0,"request_fingerprints":[],"source_line":"x","parsed_expr_digest":"` + zeroes + `"}`,
	}[verb]
	if strings.Contains(further, `"kind"`) || strings.Contains(further, `"surprise"`) {
		kind = ""
	}
	payload := fmt.Sprintf(`{"v":1,"event_id":%q,"scope":{"schema_version":1,"tenant_id":"","prompt_hash":%q,"execute_session_id":%q,"catalog_cgs_hash":%q,"domain_revision":1,"entry_id":"e"}%s%s}`,
		id, testPrompt, testSession, zeroes, kind, further)
	return events.Decode(events.Message{Subject: s.key().Subject(verb), Payload: []byte(payload), StreamSeq: seq, BrokerMS: 1_790_000_000_000}, s.lim)
}

// check seals the chain that the list makes, and holds the bundle against the record,
// which must say what is wanted of its coverage.
func (s sent) check(list []*events.Event, batch int, want events.Coverage) {
	s.t.Helper()
	db := openStore(s.t, s.t.TempDir())
	feed(s.t, db, list, batch)
	record, err := db.Chain(s.key())
	if err != nil {
		s.t.Fatal(err)
	}
	if got, why := record.Coverage(); got != want {
		s.t.Errorf("%s: the record says %s %v, want %s", s.chain, got, why, want)
	}
	text, _, err := Pack(s.t.Context(), db, record, nil, nil)
	if err != nil {
		s.t.Fatalf("%s: %v", s.chain, err)
	}
	checkBundle(s.t, record, text)
}

// headOf gives the head to which the list leads, as the member of its last event.
func (s sent) headOf(list []*events.Event) string {
	s.t.Helper()
	db := openStore(s.t, s.t.TempDir())
	feed(s.t, db, list, 50)
	record, err := db.Chain(s.key())
	if err != nil {
		s.t.Fatal(err)
	}
	return `,"producer_head":"` + record.State.Head.String() + `"`
}

// TestNumberOfALargeRejectedEvent: of a rejected payload above 1 MiB the end is not
// kept. Its producer's number counts all the same, as it was read at intake: where
// the numbers are whole, and where they have a hole.
func TestNumberOfALargeRejectedEvent(t *testing.T) {
	t.Parallel()
	large := `,"surprise":"` + strings.Repeat("x", 2<<20) + `"`
	s := sent{t: t, chain: "large", lim: events.Limits{MaxBytes: 8 << 20}}
	s.check([]*events.Event{
		s.event("i", events.VerbIntent, 1, `,"producer_seq":0`),
		s.event("r", events.VerbStep, 2, `,"producer_seq":1`+large),
		s.event("end", events.VerbSeal, 3, `,"producer_seq":2`),
	}, 1, events.Complete)
	s.chain = "large-hole"
	build := func(head string) []*events.Event {
		return []*events.Event{
			s.event("i", events.VerbIntent, 1, `,"producer_seq":0`),
			s.event("r", events.VerbStep, 2, `,"producer_seq":2`+large),
			s.event("end", events.VerbSeal, 3, head+sealsRun),
		}
	}
	s.check(build(s.headOf(build(""))), 1, events.Incomplete)
}

// TestRejectedOutOfOrder: an event is rejected at a sequence that was recorded as lost
// and is delivered after all, so that the rejected events do not come in stream order.
// The chain is sealed, and its bundle has them in order.
func TestRejectedOutOfOrder(t *testing.T) {
	t.Parallel()
	s := sent{t: t, chain: "late"}
	s.check([]*events.Event{
		s.event("i", events.VerbIntent, 6, `,"producer_seq":0`),
		s.event("r", events.VerbStep, 7, `,"producer_seq":1`+surprise),
		s.event("q", events.VerbStep, 5, `,"producer_seq":2`+surprise),
		s.event("end", events.VerbSeal, 8, `,"producer_seq":3`),
	}, 1, events.Complete)
}

// TestCountBeforeManyRejections: a count that was declared before more events were
// rejected than are packaged covers those up to it, and not those that came later:
// neither do they make up for an event that was lost, nor are they one too many.
func TestCountBeforeManyRejections(t *testing.T) {
	t.Parallel()
	s := sent{t: t, chain: "later", lim: events.DefaultLimits}
	build := func(counted int, numbered bool, head string) (list []*events.Event) {
		add := func(id string, verb events.Verb, further string) {
			n := len(list)
			if numbered {
				further += fmt.Sprintf(`,"producer_seq":%d`, n)
			}
			list = append(list, s.event(id, verb, uint64(n+1), further))
		}
		add("i", events.VerbIntent, "")
		add("m", events.VerbSeal, fmt.Sprintf(`,"more":true,"event_count":%d`, counted)+sealsRun)
		for i := range 101 { // one more than is packaged
			add(fmt.Sprint("r", i), events.VerbStep, surprise)
		}
		add("end", events.VerbSeal, head+sealsRun)
		return list
	}
	s.check(build(2, true, ""), 50, events.Complete)
	s.check(build(3, false, s.headOf(build(3, false, ""))), 50, events.Incomplete)
}
