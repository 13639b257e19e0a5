package emitter

import (
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

func hexOf(d *segments.Digest) string {
	if d == nil {
		return ""
	}
	return d.String()
}

func rejectedError(a *EventReceipt) *RejectedError {
	err := &RejectedError{EventID: a.EventID, StreamSeq: a.StreamSeq, Late: a.Verdict == events.Late, Class: a.Class, Detail: a.Detail}
	if d, e := segments.ParseDigest(a.Existing); e == nil {
		err.Existing = &d
	}
	return err
}

// receiptWriter writes the receipts of durable batches: per chain, in the order
// in which the chains first occur, one receipt for every 64 events. Events of no
// chain have none. It writes what appendReceipt would, straight from the events
// and into memory that is used again.
type receiptWriter struct {
	groups []receiptGroup
	open   map[events.Key]int // the group that a chain's next event goes to
	buf    []byte
}

// receiptGroup lists the events of one receipt, as places in the batch; never
// empty.
type receiptGroup struct{ at []int }

// write hands each receipt to send; the bytes are valid until it returns.
func (w *receiptWriter) write(b *events.Batch, effects []events.Effect, send func(subject string, receipt []byte) error) error {
	w.group(b, effects)
	for i := range w.groups {
		at := w.groups[i].at
		w.buf = appendApplied(w.buf[:0], b, effects, at)
		if err := send(b.Events[at[0]].Key.ReceiptSubject(), w.buf); err != nil {
			return err
		}
	}
	return nil
}

func (w *receiptWriter) group(b *events.Batch, effects []events.Effect) {
	if w.open == nil {
		w.open = make(map[events.Key]int)
	}
	clear(w.open)
	w.groups = w.groups[:0]
	for i, e := range b.Events {
		if !e.Attributed || i >= len(effects) {
			continue
		}
		g, ok := w.open[e.Key]
		if !ok || len(w.groups[g].at) == maxReceiptEvents {
			g = w.begin()
			w.open[e.Key] = g
		}
		w.groups[g].at = append(w.groups[g].at, i)
	}
}

// begin makes an empty group, in the memory of an earlier one if there was one.
func (w *receiptWriter) begin() int {
	n := len(w.groups)
	if n < cap(w.groups) {
		w.groups = w.groups[:n+1]
		w.groups[n].at = w.groups[n].at[:0]
	} else {
		w.groups = append(w.groups, receiptGroup{})
	}
	return n
}

// appendApplied writes the receipt of some events of one chain.
func appendApplied(dst []byte, b *events.Batch, effects []events.Effect, at []int) []byte {
	last := b.Events[at[len(at)-1]]
	dst = appendReceiptKey(append(dst, `{"v":1,"type":"applied"`...), last.Key, b.Stream.Name)
	dst = appendNumber(dst, "stream_seq", last.StreamSeq)
	dst = appendOptional(dst, "last_event_id", last.ID)
	if last.ProducerSeq != nil {
		dst = appendNumber(dst, "producer_seq", *last.ProducerSeq)
	}
	var outcome events.Outcome
	var head *segments.Digest
	for _, i := range at {
		if effects[i].Verdict == events.Finished {
			outcome = b.Events[i].Outcome
		}
		if effects[i].Head != nil {
			head = effects[i].Head
		}
	}
	dst = appendDigest(appendOptional(dst, "outcome", string(outcome)), "head", head)
	dst = append(dst, `,"events":`...)
	separator := byte('[')
	for _, i := range at {
		dst = appendAppliedEvent(append(dst, separator), b.Events[i], &effects[i])
		separator = ','
	}
	return append(dst, `]}`...)
}

func appendReceiptKey(dst []byte, key events.Key, stream string) []byte {
	dst = appendMember(dst, "tenant", key.Tenant)
	dst = appendMember(dst, "prompt_hash", key.PromptHash)
	dst = appendMember(dst, "session", key.Session)
	dst = appendMember(dst, "chain", key.Chain)
	return appendMember(dst, "stream", stream)
}

func appendAppliedEvent(dst []byte, e *events.Event, f *events.Effect) []byte {
	dst = e.Sum.AppendHex(append(dst, `{"sha256":"`...))
	dst = append(dst, '"')
	if e.ID != "" { // neither an id nor a verdict has anything to be escaped
		dst = append(append(append(dst, `,"event_id":"`...), e.ID...), '"')
	}
	dst = appendNumber(dst, "stream_seq", e.StreamSeq)
	dst = append(append(append(dst, `,"verdict":"`...), f.Verdict...), '"')
	if f.Verdict == events.Rejected && f.Fault != nil {
		dst = appendOptional(dst, "class", string(f.Fault.Class))
		dst = appendOptional(dst, "detail", f.Fault.Detail)
	}
	dst = appendDigest(dst, "existing_sha256", f.Existing)
	return append(appendDigest(dst, "head", f.Head), '}')
}

// appendDigest writes an optional digest in hexadecimal.
func appendDigest(dst []byte, name string, d *segments.Digest) []byte {
	if d == nil {
		return dst
	}
	return append(d.AppendHex(append(appendName(dst, name), '"')), '"')
}

func newReceipt(kind string, key events.Key, stream string) *Receipt {
	return &Receipt{V: 1, Type: kind, Tenant: key.Tenant, PromptHash: key.PromptHash,
		Session: key.Session, Chain: key.Chain, Stream: stream}
}

// Sealed describes the written evidence of a chain.
type Sealed struct {
	Key        events.Key
	Stream     string // name of the stream of events; "": DefaultStream
	StreamSeq  uint64 // of the seal event
	Outcome    events.Outcome
	Head       *segments.Digest // nil: no segment
	Path       string           // of the sidecar, below the sidecar root; "": none
	BundleRoot *segments.Digest // nil: no trust bundle was made
}

// PublishSealed publishes the receipt that says that a chain's evidence has
// been written. Like every receipt it may be lost.
func PublishSealed(nc *nats.Conn, s Sealed) error {
	r := newReceipt(ReceiptSealed, s.Key, orString(s.Stream, DefaultStream))
	r.StreamSeq, r.Outcome, r.Head = s.StreamSeq, s.Outcome, hexOf(s.Head)
	r.Sealed = &SealedReceipt{Path: s.Path, BundleRoot: hexOf(s.BundleRoot)}
	if err := nc.Publish(s.Key.ReceiptSubject(), appendReceipt(nil, r)); err != nil {
		return fmt.Errorf("publish sealed receipt: %w", err)
	}
	return nil
}
