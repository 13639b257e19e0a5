package events

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"
	"weak"

	"github.com/chaind/chaind/segments"
	"github.com/google/go-cmp/cmp"
)

// Neither a decoder nor a small event that lives on holds on to a large one.
func TestLargeEventsAreByThemselves(t *testing.T) {
	d := NewDecoder(DefaultLimits)
	var small []*Event
	var large []weak.Pointer[Event]
	for n := range 3 * eventsAtOnce {
		small = append(small, d.Decode(guardedStep(2*n, "x = list()")))
		large = append(large, weak.Make(d.Decode(guardedStep(2*n+1, strings.Repeat("x", maxShared)))))
	}
	small = append(small, d.Decode(guardedStep(0, ""))) // the last one is the decoder's until the next
	runtime.GC()
	held := 0
	for _, w := range large {
		if w.Value() != nil {
			held++
		}
	}
	if held != 0 {
		t.Errorf("%d of %d large events are held", held, len(large))
	}
	if n := d.own.Cap(); n != 0 {
		t.Errorf("%d bytes of strings are kept for nothing", n)
	}
	runtime.KeepAlive(small)
}

// A state's scope is in memory of its own, also where one of its two texts is empty:
// otherwise each state would hold on to the strings of a whole event.
func TestScopeIsNotHeldByTheState(t *testing.T) {
	t.Parallel()
	for _, own := range [][2]string{{"c3", "e"}, {"", "e"}, {"c3", ""}, {"", ""}} {
		given := &segments.Scope{TenantID: "other", PromptHash: "p", ExecuteSessionID: "s", CatalogCGSHash: own[0], EntryID: own[1]}
		kept := cloneScope(given, &Key{Tenant: "t", PromptHash: "p", Session: "s"})
		if diff := cmp.Diff(given, kept); diff != "" {
			t.Errorf("%q (-given +kept):\n%s", own, diff)
		}
		for _, pair := range [][2]string{{given.TenantID, kept.TenantID}, {given.CatalogCGSHash, kept.CatalogCGSHash}, {given.EntryID, kept.EntryID}} {
			if pair[0] != "" && unsafe.StringData(pair[0]) == unsafe.StringData(pair[1]) {
				t.Errorf("%q: %q is in the event's memory", own, pair[0])
			}
		}
	}
}
