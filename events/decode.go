package events

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/chaind/chaind/segments"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode reads one message. It never fails: what is wrong with the message is
// in the event's Fault, and the event carries all that could be read before
// it (nothing but the sum and what the subject tells, when the fault ranks up
// to bad_id). Raw preimages alias m.Payload, which must not change while the
// event is in use; the event's strings share one piece of memory, so clone
// those that outlive the event.
func Decode(m Message, lim Limits) *Event { return (&Decoder{lim: lim.withDefaults()}).Decode(m) }

// Decoder decodes messages one after the other, reusing its buffers. Events of up
// to 4 KiB are made some at a time, and their strings, too: who keeps one of them
// keeps its neighbours, 80 KiB with their payloads. It is not safe for concurrent use.
type Decoder struct {
	lim    Limits
	strict jsontext.Decoder
	buffer bytes.Buffer
	prover prover
	parser parser
	events []Event          // to be used, by small ones
	shared strings.Builder  // strings of small events
	own    strings.Builder  // strings of the last event, when it is large
	known  map[string]place // what subjects say, of maxKnownSubjects at most; nil: for one message only
}

// place is what a well-formed subject says.
type place struct {
	key  Key
	verb Verb
}

// NewDecoder returns a decoder under the limits.
func NewDecoder(lim Limits) *Decoder {
	return &Decoder{lim: lim.withDefaults(), known: make(map[string]place)}
}

// Decode is the same as [Decode].
func (d *Decoder) Decode(m Message) *Event {
	e := d.event(len(m.Payload))
	e.Message, e.Sum = m, segments.Sum(m.Payload)
	d.subject(e)
	if e.Fault == nil {
		e.Fault = d.payload(e)
	}
	return e
}

// shares: an event with so many bytes of payload is made together with others.
func (d *Decoder) shares(payload int) bool { return d.known != nil && payload <= maxShared }

// event gives a new event. A few of them at a time take a fifth of what each on its
// own does. Large ones are by themselves: a neighbour that lives on holds on to their
// payloads.
func (d *Decoder) event(payload int) *Event {
	if !d.shares(payload) {
		return new(Event)
	}
	if len(d.events) == 0 {
		d.events = make([]Event, eventsAtOnce)
	}
	e := &d.events[0]
	d.events = d.events[1:]
	return e
}

// subject reads a subject once as long as it is among those that came last: the
// events of a chain share theirs, and then the strings of its key, too.
func (d *Decoder) subject(e *Event) {
	if p, known := d.known[e.Subject]; known {
		e.Key, e.Verb, e.Attributed = p.key, p.verb, true
		return
	}
	e.Key, e.Verb, e.Attributed, e.Fault = ParseSubject(e.Subject)
	if e.Fault != nil || d.known == nil {
		return
	}
	if len(d.known) >= maxKnownSubjects {
		clear(d.known)
	}
	d.known[e.Subject] = place{e.Key, e.Verb}
}

// payload fills the event from its payload. The text is proven first, so
// that the parser only ever sees strict JSON within the limits.
func (d *Decoder) payload(e *Event) *Fault {
	if fault := d.text(e.Payload); fault != nil {
		return fault
	}
	p := &d.parser
	p.reset(e.Payload, d.prover.marks)
	d.makeRoom(len(e.Payload))
	p.envelope(e)
	if p.verdict.fault == nil && e.ProducerSignature != nil && e.Scope != nil {
		e.signed = pointer(e.soundlySigned(e.Scope)) // here rather than in the store's transaction
	}
	if p.verdict.rank <= rankID { // drop what was read of an event without an id
		*e = Event{Message: e.Message, Sum: e.Sum, Key: e.Key, Attributed: e.Attributed, Verb: e.Verb}
	}
	return p.verdict.fault
}

// makeRoom makes room for the strings of one event, which have no more bytes than
// its payload.
func (d *Decoder) makeRoom(payload int) {
	d.own = strings.Builder{}
	if !d.shares(payload) {
		d.own.Grow(payload)
		d.parser.strung = &d.own
		return
	}
	if d.shared.Cap()-d.shared.Len() < payload {
		d.shared = strings.Builder{}
		d.shared.Grow(stringsAtOnce)
	}
	d.parser.strung = &d.shared
}

// text checks a payload up to its nesting: quickly where that settles it, and
// with jsontext, whose word counts, everywhere else.
func (d *Decoder) text(text []byte) *Fault {
	if len(text) > d.lim.MaxBytes {
		return &Fault{TooLarge, "the payload has more bytes than the limit"}
	}
	d.prover.reset(text)
	if d.prover.prove(d.lim) {
		return nil
	}
	d.prover.reset(nil) // what it has marked is not for the parser
	most := measure(text)
	if err := d.oneObject(text); err != nil && most.depth <= readerDepth {
		return textFault(err)
	}
	switch {
	case most.members > d.lim.MaxMembers:
		return &Fault{TooLarge, "an object has more members than the limit"}
	case most.depth > d.lim.MaxDepth:
		return &Fault{TooDeep, "the text is nested deeper than the limit"}
	}
	return nil
}

// readerDepth is jsontext's own bound on nesting, behind which it cannot say
// whether a text is JSON.
const readerDepth = 10_000

var errNoObject = errors.New("not one JSON object")

// oneObject proves that the text is one strict JSON object; names standing
// twice are left to the parser, which sees them all anyway.
func (d *Decoder) oneObject(text []byte) error {
	d.buffer = *bytes.NewBuffer(text)
	d.strict.Reset(&d.buffer, jsontext.AllowDuplicateNames(true))
	if d.strict.PeekKind() != '{' {
		return errNoObject
	}
	if _, err := d.strict.ReadValue(); err != nil {
		return err
	}
	if _, err := d.strict.ReadToken(); err != io.EOF {
		return errNoObject
	}
	return nil
}

// textFault words a reader's error without the payload's bytes.
func textFault(err error) *Fault {
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return &Fault{Malformed, "the payload is no JSON text from byte " + strconv.FormatInt(syntactic.ByteOffset, 10) + " on"}
	}
	return &Fault{Malformed, "the payload is not one JSON object"}
}
