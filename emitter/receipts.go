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

// receiptsOf makes the receipts of a durable batch: per chain, in the order in
// which the chains first occur, one receipt for every 64 events. Events of no
// chain have none.
func receiptsOf(b *events.Batch, effects []events.Effect) []*Receipt {
	var all []*Receipt
	open := make(map[events.Key]*Receipt)
	for i, e := range b.Events {
		if !e.Attributed || i >= len(effects) {
			continue
		}
		r := open[e.Key]
		if r == nil || len(r.Events) == maxReceiptEvents {
			r = newReceipt(ReceiptApplied, e.Key, b.Stream.Name)
			open[e.Key] = r
			all = append(all, r)
		}
		r.add(e, &effects[i])
	}
	return all
}

func newReceipt(kind string, key events.Key, stream string) *Receipt {
	return &Receipt{V: 1, Type: kind, Tenant: key.Tenant, PromptHash: key.PromptHash,
		Session: key.Session, Chain: key.Chain, Stream: stream}
}

func (r *Receipt) add(e *events.Event, f *events.Effect) {
	a := EventReceipt{EventID: e.ID, SHA256: e.Sum.String(), StreamSeq: e.StreamSeq,
		Verdict: f.Verdict, Existing: hexOf(f.Existing), Head: hexOf(f.Head)}
	if f.Verdict == events.Rejected && f.Fault != nil {
		a.Class, a.Detail = f.Fault.Class, f.Fault.Detail
	}
	r.Events = append(r.Events, a)
	r.StreamSeq, r.LastEventID, r.ProducerSeq = e.StreamSeq, e.ID, e.ProducerSeq
	if f.Head != nil {
		r.Head = a.Head
	}
	if f.Verdict == events.Finished {
		r.Outcome = e.Outcome
	}
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
