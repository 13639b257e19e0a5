package verifier

import (
	"bytes"

	"github.com/chaind/chaind/segments"
)

// original compares the bytes of a file with what section 4 of the format
// writes for the decoded bundle, while both pass by. It holds what was read
// ahead of the decoder, and nothing more once they differ.
//
// In a file as written, segments follow a fixed start and are followed by a
// fixed end; only the scope, which is decoded but not handed out before the
// end, is kept as read until then.
type original struct {
	differs bool
	start   []byte // the file up to the first segment
	ahead   []byte // read; what follows pos is not yet compared
	pos     int
	scratch []byte
}

var beforeSegments = []byte(`,"chain":{"segments":[`)

func (o *original) feed(p []byte) {
	if o.differs {
		return
	}
	// Compacting here keeps the buffer at the size of the read-ahead.
	o.ahead = append(o.ahead[:copy(o.ahead, o.ahead[o.pos:])], p...)
	o.pos = 0
}

func (o *original) segment(s *segments.Segment, index uint64) {
	if o.differs {
		return
	}
	if index == 0 {
		o.begin()
	}
	o.scratch = o.scratch[:0]
	if index > 0 {
		o.scratch = append(o.scratch, ',')
	}
	o.scratch = segments.AppendSegment(o.scratch, s)
	o.match(o.scratch)
}

// begin finds the first segment. A string of the scope cannot hold the text
// looked for, since quotation marks in it are escaped.
func (o *original) begin() {
	at := bytes.Index(o.ahead, beforeSegments)
	if at < 0 {
		o.differ()
		return
	}
	o.start = bytes.Clone(o.ahead[:at+len(beforeSegments)])
	o.pos = len(o.start)
}

// match takes want off the bytes that were read.
func (o *original) match(want []byte) {
	if o.differs || !bytes.HasPrefix(o.ahead[o.pos:], want) {
		o.differ()
		return
	}
	o.pos += len(want)
}

func (o *original) differ() { *o = original{differs: true} }

// same reports, after the whole file was read, whether it was as written.
func (o *original) same(env *segments.Envelope, count uint64) bool {
	if count == 0 && !o.differs {
		o.begin()
	}
	whole := segments.AppendBundle(nil, &segments.Bundle{Envelope: *env})
	at := bytes.Index(whole, beforeSegments) + len(beforeSegments)
	if o.differs || !bytes.Equal(o.start, whole[:at]) {
		return false
	}
	return bytes.Equal(o.ahead[o.pos:], whole[at:])
}
