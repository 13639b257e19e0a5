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
