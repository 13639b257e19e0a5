package verifier

import (
	"bytes"

	"github.com/chaind/chaind/segments"
)

// original compares the bytes of a file with what section 4 of the format
// writes for the decoded bundle, while both pass by. It holds what was read
// ahead of the segments looked at, and nothing more once they differ.
//
// In a file as written, segments follow a fixed start, one comma apart, and are
// followed by a fixed end; only the scope, which is decoded but not handed out
// before the end, is kept as read until then.
type original struct {
	differs bool
	start   []byte // the file up to the first segment
	ahead   []byte // the file from base on, as far as it was read
	base    int64
	end     int64 // of the last segment looked at
}

// fileStart is how a bundle begins.
const fileStart = `{"scope":{`

var beforeSegments = []byte(`,"chain":{"segments":[`)

func (o *original) feed(p []byte) {
	if o.differs {
		return
	}
	// Only when at least half is done with, so that a byte is moved once.
	if done := int(o.end - o.base); 2*done > len(o.ahead) {
		o.ahead = o.ahead[:copy(o.ahead, o.ahead[done:])]
		o.base = o.end
	}
	o.ahead = append(o.ahead, p...)
	if len(o.ahead) > maxAhead || o.start == nil && !begins(o.ahead) {
		o.differ()
	}
}

// begins tells whether a file, as far as it was read, may be as written.
func begins(file []byte) bool {
	n := min(len(file), len(fileStart))
	return string(file[:n]) == fileStart[:n]
}

func (o *original) segment(s *segments.Scanned, index uint64) {
	if o.differs {
		return
	}
	if index == 0 {
		o.begin()
	} else {
		o.end++ // the comma: nothing else fits between two segments in one byte
	}
	if o.differs || !s.Written || s.Offset != o.end {
		o.differ()
		return
	}
	o.end += s.Length
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
	o.end = int64(len(o.start))
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
	return bytes.Equal(o.ahead[o.end-o.base:], whole[at:])
}
