package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

const (
	benchSession = "0123456789abcdef0123456789abcdef"
	firstMS      = 1_780_000_000_000
)

var (
	benchPrompt  = strings.Repeat("ab", 32)
	benchCatalog = strings.Repeat("cd", 32)
)

func chainKey(chain int) events.Key {
	return events.Key{Tenant: "bench", PromptHash: benchPrompt, Session: benchSession, Chain: "c" + strconv.Itoa(chain)}
}

func benchScope() *segments.Scope {
	return &segments.Scope{SchemaVersion: segments.ScopeSchemaVersion, TenantID: "bench", PromptHash: benchPrompt,
		ExecuteSessionID: benchSession, CatalogCGSHash: benchCatalog, DomainRevision: 1, EntryID: "bench"}
}

func eventID(n int) string { return "01JZ-bench-" + strconv.Itoa(n) }

// stepPayload is step number n, the one with producer_seq seq in its chain; the
// first one of a chain carries the scope, as an emitter's first event does. size
// pads the source line.
func stepPayload(n, seq, size int) []byte {
	b := fmt.Appendf(nil, `{"v":1,"event_id":"%s"`, eventID(n))
	if seq == 0 {
		b = segments.AppendScope(append(b, `,"scope":`...), benchScope())
	}
	b = fmt.Appendf(b, `,"at_ms":%d,"producer_seq":%d,"kind":`, firstMS+n, seq)
	kind := segments.StepExecuted{StepID: "list_open_issues", StepIndex: uint32(n % 16), RequestFingerprints: []string{"GET /repos/o/r/issues"},
		SourceLine:       `issues = repo.list_issues(state="open", sort="updated", page=` + strconv.Itoa(n) + ")",
		ParsedExprDigest: segments.Sum(strconv.AppendInt(nil, int64(n), 10))}
	if short := size - len(b) - 300; short > 0 {
		kind.SourceLine += strings.Repeat(" # padding", short/10)
	}
	return append(segments.AppendKind(b, &kind), '}')
}

// messages are n step events from number from on, spread over the chains, below
// the subject root; the first event of each chain carries the scope.
func messages(root string, from, n, chains, size int) []*nats.Msg {
	msgs := make([]*nats.Msg, n)
	for i := range msgs {
		no := from + i
		subject := chainKey(no % chains).Subject(events.VerbStep)
		msgs[i] = &nats.Msg{Subject: root + subject[len(events.SubjectRoot):], Data: stepPayload(no, no/chains, size)}
	}
	return msgs
}
