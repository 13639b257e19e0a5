package events

import (
	"bytes"
	"errors"
	"io"

	"github.com/chaind/chaind/segments"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode reads one message. It never fails: what is wrong with the message is
// in the event's Fault, and the event carries all that could be read before
// it (nothing but the sum and what the subject tells, when the fault ranks up
// to bad_id). Raw preimages and the message's payload alias m.Payload; the
// strings share one copy of it.
func Decode(m Message, lim Limits) *Event { return NewDecoder(lim).Decode(m) }

// Decoder decodes messages one after the other, reusing its buffers. It is
// not safe for concurrent use.
type Decoder struct {
	lim  Limits
	text parser
}

// NewDecoder returns a decoder under the limits.
func NewDecoder(lim Limits) *Decoder { return &Decoder{lim: lim.withDefaults()} }

// Decode is the same as [Decode].
func (d *Decoder) Decode(m Message) *Event {
	e := &Event{Message: m, Sum: segments.Sum(m.Payload)}
	e.Key, e.Verb, e.Attributed, e.Fault = ParseSubject(m.Subject)
	if e.Fault == nil {
		e.Fault = d.payload(e)
	}
	return e
}

// payload fills the event from its payload. Size and depth are looked at
// first, so that the reader's work is bounded.
func (d *Decoder) payload(e *Event) *Fault {
	if len(e.Payload) > d.lim.MaxBytes {
		return &Fault{TooLarge, "the payload has more bytes than the limit"}
	}
	if !within(e.Payload, d.lim) {
		most := measure(e.Payload)
		if most.members > d.lim.MaxMembers {
			return refused(e.Payload, rankSize, "an object has more members than the limit")
		}
		if most.depth > d.lim.MaxDepth {
			return refused(e.Payload, rankDepth, "the text is nested too deep")
		}
	}
	p := &d.text
	p.reset(e.Payload)
	p.envelope(e)
	if p.err != nil {
		clearFields(e)
		if errors.Is(p.err, jsontext.ErrDuplicateName) {
			return refused(e.Payload, rankDuplicate, "a name stands twice in one object")
		}
		return textFault(p.err)
	}
	if p.verdict.rank <= rankID {
		clearFields(e)
	}
	return p.verdict.fault
}

// clearFields drops what was read of an event whose id does not count.
func clearFields(e *Event) {
	*e = Event{Message: e.Message, Sum: e.Sum, Key: e.Key, Attributed: e.Attributed, Verb: e.Verb}
}

// refused judges a text that has a fault of the given rank for certain, but
// may not be JSON at all, which ranks before it.
func refused(text []byte, r rank, detail string) *Fault {
	dec := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))
	if dec.PeekKind() != '{' {
		return &Fault{Malformed, "the payload is not a JSON object"}
	}
	err := dec.SkipValue()
	if err == nil {
		if _, err = dec.ReadToken(); err == io.EOF {
			err = nil
		} else if err == nil {
			err = errTrailing
		}
	}
	if err != nil && !tooDeepToRead(text) {
		return textFault(err)
	}
	return &Fault{Class: rankClass[r], Detail: detail}
}

// tooDeepToRead tells of the reader's own bound on nesting, behind which it
// cannot say whether the text is JSON.
func tooDeepToRead(text []byte) bool { return measure(text).depth > readerDepth }

const readerDepth = 10_000

var errTrailing = errors.New("bytes after the object")

// textFault words a reader's error without the payload's bytes.
func textFault(err error) *Fault {
	detail := "the payload is not one JSON text"
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		detail += ", at byte " + itoa(syntactic.ByteOffset)
	}
	return &Fault{Malformed, detail}
}
