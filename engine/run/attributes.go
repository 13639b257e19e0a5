package run

import (
	"strconv"

	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/segments"
)

// attributes builds the attribute list of a node in the order of the package
// doc. What is absent is left out.
type attributes []engine.Pair

func (a *attributes) text(key, value string) { *a = append(*a, engine.Pair{key, value}) }

func (a *attributes) some(key, value string) {
	if value != "" {
		a.text(key, value)
	}
}

func (a *attributes) number(key string, n uint64) { a.text(key, strconv.FormatUint(n, 10)) }

func (a *attributes) someNumber(key string, n *uint64) {
	if n != nil {
		a.number(key, *n)
	}
}

func (a *attributes) someDigest(key string, d *segments.Digest) {
	if d != nil {
		a.text(key, d.String())
	}
}

// position writes a stream sequence, after the epoch when that is not home.
func (a *attributes) position(prefix string, p Position, home uint32) {
	if p.Epoch != home {
		a.number(prefix+"epoch", uint64(p.Epoch))
	}
	a.number(prefix+"stream_seq", p.StreamSeq)
}

// event writes who brought something.
func (a *attributes) event(prefix string, e *Event, home uint32) {
	if e == nil {
		return
	}
	a.some(prefix+"event_id", e.ID)
	a.someNumber(prefix+"producer_seq", e.ProducerSeq)
	a.position(prefix, e.Position, home)
}

func (a *attributes) signature(prefix string, s *segments.Signature) {
	if s != nil {
		a.text(prefix+"public_key", s.PublicKeyHex)
		a.text(prefix+"signature", s.SignatureHex)
	}
}

// reader takes the attributes of a node back. It is lenient: whoever reads
// builds the node again and compares, so that a spelling that was not meant
// does not pass. bad is set when a value cannot be what it should.
type reader struct {
	*engine.Node
	bad bool
}

func (r *reader) text(key string) string {
	v, ok := r.Attr(key)
	r.bad = r.bad || !ok
	return v
}

func (r *reader) some(key string) string {
	v, _ := r.Attr(key)
	return v
}

func (r *reader) number(key string) uint64 {
	n := r.someNumber(key)
	if n == nil {
		r.bad = true
		return 0
	}
	return *n
}

func (r *reader) someNumber(key string) *uint64 {
	v, ok := r.Attr(key)
	if !ok {
		return nil
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		r.bad = true
		return nil
	}
	return &n
}

func (r *reader) small(key string) uint32 {
	n := r.number(key)
	r.bad = r.bad || n > 1<<32-1
	return uint32(n)
}

func (r *reader) someDigest(key string) *segments.Digest {
	v, ok := r.Attr(key)
	if !ok {
		return nil
	}
	d, err := segments.ParseDigest(v)
	if err != nil {
		r.bad = true
		return nil
	}
	return &d
}

func (r *reader) digest(key string) segments.Digest {
	d := r.someDigest(key)
	if d == nil {
		r.bad = true
		return segments.Digest{}
	}
	return *d
}

func (r *reader) position(prefix string, home uint32) Position {
	p := Position{Epoch: home, StreamSeq: r.number(prefix + "stream_seq")}
	if _, other := r.Attr(prefix + "epoch"); other {
		p.Epoch = r.small(prefix + "epoch")
	}
	return p
}

// event reads who brought something; nil: nobody is named.
func (r *reader) event(prefix string, home uint32) *Event {
	if _, ok := r.Attr(prefix + "stream_seq"); !ok {
		return nil
	}
	return &Event{ID: r.some(prefix + "event_id"), ProducerSeq: r.someNumber(prefix + "producer_seq"), Position: r.position(prefix, home)}
}

func (r *reader) signature(prefix string) *segments.Signature {
	if _, ok := r.Attr(prefix + "public_key"); !ok {
		return nil
	}
	return &segments.Signature{PublicKeyHex: r.text(prefix + "public_key"), SignatureHex: r.text(prefix + "signature")}
}

// all returns the values of a key that may repeat.
func (r *reader) all(key string) []string {
	var out []string
	for _, p := range r.Attributes {
		if p[0] == key {
			out = append(out, p[1])
		}
	}
	return out
}
