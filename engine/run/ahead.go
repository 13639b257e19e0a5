package run

import (
	"runtime"
	"sync"

	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/segments"
)

// segmentNode is what one segment's node says, and what can be judged of it
// without the others. Without readable nothing holds; formed demands canonical.
type segmentNode struct {
	Segment        // Kind is nil when it cannot be read
	readable  bool // all attributes are there and in their form
	digested  bool // the digest that it states is its own
	canonical bool // the text of the kind is the one that is hashed
	formed    bool // the node is the one that the segment makes
}

// aheadPiece is how many nodes are read in one go.
const aheadPiece = 512

// readAhead reads the nodes of segments, in their order, on all cores: nothing in
// one depends on another.
func readAhead(all []engine.Node, f form) []segmentNode {
	var nodes []*engine.Node
	for i := range all {
		if all[i].Kind == kindSegment {
			nodes = append(nodes, &all[i])
		}
	}
	n := len(nodes)
	out := make([]segmentNode, n)
	pieces := make(chan int, (n+aheadPiece-1)/aheadPiece)
	for at := 0; at < n; at += aheadPiece {
		pieces <- at
	}
	close(pieces)
	work := func() {
		var s nodeScratch
		for at := range pieces {
			for i := at; i < min(at+aheadPiece, n); i++ {
				out[i] = s.read(nodes[i], f)
			}
		}
	}
	workers := min(runtime.GOMAXPROCS(0), cap(pieces))
	if workers <= 1 {
		work()
		return out
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(work)
	}
	wg.Wait()
	return out
}

// nodeScratch is memory that reading one node leaves to the next.
type nodeScratch struct {
	jcs        []byte
	attributes attributes
}

func (t *nodeScratch) read(node *engine.Node, f form) (out segmentNode) {
	n := &reader{Node: node}
	s := &out.Segment
	s.Event = n.event("", f.home)
	s.Seq, s.Prev, s.EmittedAtMS = n.number("seq"), n.someDigest("prev"), n.someNumber("at_ms")
	stated, text := n.digest("digest"), n.text("kind_jcs")
	kind, deviations, err := segments.DecodeKindText(text)
	if err == nil {
		s.Kind = kind
	}
	if n.bad || err != nil || len(deviations) > 0 {
		return out
	}
	out.readable = true
	digest := s.Digest()
	out.digested = digest == stated
	t.jcs = segments.AppendKindJCS(t.jcs[:0], kind)
	if out.canonical = string(t.jcs) == text; !out.canonical {
		return out
	}
	made := f.segment(t.attributes[:0], s, digest, text)
	t.attributes = made.Attributes
	out.formed = equal(node, &made)
	return out
}
