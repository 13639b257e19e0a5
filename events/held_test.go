package events

import (
	"runtime"
	"strings"
	"testing"
	"weak"
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
