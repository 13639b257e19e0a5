//go:build !race

// The race detector lets a sync.Pool forget, now and then.

package segments_test

import (
	"strings"
	"testing"

	"github.com/chaind/chaind/segments"
)

func TestEncodersDoNotAllocate(t *testing.T) {
	b := chainOf(honest(3))
	buf := make([]byte, 0, 64<<10)
	long := segments.Segment{Seq: 7, Kind: &segments.StepExecuted{SourceLine: strings.Repeat("x = list(\"open\")\n", 1<<10)}}
	for i, s := range append(b.Segments, long) {
		for what, encode := range map[string]func(){
			"preimage": func() { buf = segments.AppendPreimage(buf[:0], s.Seq, s.Prev, s.Kind) },
			"segment":  func() { buf = segments.AppendSegment(buf[:0], &s) },
			"digest":   func() { s.Digest() },
			"message":  func() { buf = segments.AppendHeadMessage(buf[:0], &b.Scope, *b.Head) },
		} {
			if n := testing.AllocsPerRun(100, encode); n != 0 {
				t.Errorf("%s of segment %d: %v allocations", what, i, n)
			}
		}
	}
}
