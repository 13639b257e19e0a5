package domains_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/enginetest"
	"github.com/chaind/chaind/engine/naive"
)

// TestAnswerLargerThanTheFile: evidence whose answer cites one long record again
// and again, a hundred times the size of the file, is not written to be
// compared. Not parallel: it counts all that is allocated meanwhile.
func TestAnswerLargerThanTheFile(t *testing.T) {
	doc := naive.MustParse(enginetest.Read(t, "rca.tsb"))
	graph := naive.At(doc, "evidence_closure", "graph").(map[string]any)
	var tickets, requests []string
	for _, n := range graph["nodes"].([]any) {
		id := naive.At(n, "record", "id").(string)
		switch naive.At(n, "kind") {
		case "Ticket":
			tickets = append(tickets, id)
			naive.Put(n, naive.At(n, "record", "text").(string)+strings.Repeat(" x", 50_000), "record", "text")
		case "PR":
			requests = append(requests, id)
		}
	}
	for i := range 4000 {
		edge := map[string]any{"src": requests[i%len(requests)], "dst": tickets[i%len(tickets)], "relation": "motivated_by"}
		graph["edges"] = append(graph["edges"].([]any), edge)
	}
	naive.Seal(doc)
	text := naive.File(doc)

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	j := judge(t, text)
	runtime.ReadMemStats(&after)
	used, limit := after.TotalAlloc-before.TotalAlloc, uint64(96<<20)
	t.Logf("%d bytes allocated for a file of %d", used, len(text))
	if j.Verdict() != engine.Fail || !slices.Contains(allCodes(j), engine.AnswerClaims) {
		t.Errorf("%s, %v", j.Verdict(), allCodes(j))
	}
	if used > limit {
		t.Errorf("limit %d", limit)
	}
}
