package main

import (
	"context"
	"fmt"
	"time"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/verifier"
)

type closeCmd struct {
	Tenant     string `arg:"" help:"Tenant; _ is the empty one."`
	PromptHash string `arg:"" help:"64 hex digits."`
	Session    string `arg:"" help:"32 hex digits."`
	Chain      string `arg:"" help:"Name of the chain."`
	brokerFlags
	Outcome string        `help:"abandoned, cancelled or failed." default:"abandoned" enum:"abandoned,cancelled,failed"`
	New     bool          `help:"Close it although the stream holds no event of it: because they have been trimmed, or because it is to begin and end here."`
	Reason  string        `help:"Why, in your words; it becomes part of the record." default:"closed by the operator" placeholder:"TEXT"`
	Wait    time.Duration `help:"How long to wait for the daemon's receipt." default:"10s"`
	JSON    bool          `help:"Print JSON."`
}

func (c *closeCmd) Help() string {
	return `Publishes a seal event like a producer would, so that a replay of the stream gives the same chains. What the chain holds until
then is sealed as evidence. On a chain that has ended already the event is kept as an addendum (exit 2). A chain of which
the stream holds no event is refused, since that is what a mistyped name looks like (exit 1): see --new.

Example:
  chaind close acme 74cca950…6d50 5e55107a…107a 01JGD89KENDJW6TXZ75WW6EXEC --reason "runtime crashed"`
}

// closeEventID is the idempotency key of the event: closing twice with the
// same words is one event.
const closeEventID = "chaind:close"

type closeResult struct {
	StreamSeq uint64 `json:"stream_seq"`
	Verdict   string `json:"verdict"`
	Class     string `json:"class,omitempty"`
	Detail    string `json:"detail,omitempty"`
	Head      string `json:"head,omitempty"`
}

// remark adds what the verdict alone does not say. A chain that ends without a
// head held nothing, which a mistyped name does too.
func (r *closeResult) remark() string {
	switch {
	case r.Detail != "":
		return ": " + r.Detail
	case r.Verdict == string(events.Finished) && r.Head == "":
		return ", without any segment: is that its name?"
	}
	return ""
}

func (c *closeCmd) Run(a *app) error {
	key := events.Key{Tenant: c.Tenant, PromptHash: c.PromptHash, Session: c.Session, Chain: c.Chain}
	if key.Tenant == "_" {
		key.Tenant = ""
	}
	if err := key.Validate(); err != nil {
		return usageError("%w", err)
	}
	answer, err := c.send(a, key)
	if err != nil {
		return err
	}
	result := closeResult{answer.StreamSeq, string(answer.Verdict), string(answer.Class), answer.Detail, answer.Head}
	if c.JSON {
		err = a.printJSON(result)
	} else {
		err = a.printf("%s: %s at stream sequence %d%s\n", c.Chain, result.Verdict, result.StreamSeq, result.remark())
	}
	if err != nil {
		return err
	}
	if answer.Verdict == events.Rejected || answer.Verdict == events.Late {
		return silent(exitSemantic)
	}
	return nil
}

// send publishes the seal event and waits for its receipt.
func (c *closeCmd) send(a *app, key events.Key) (emitter.EventReceipt, error) {
	conn, err := emitter.Connect(c.config())
	if err != nil {
		return emitter.EventReceipt{}, cannot(err, brokerHint(err))
	}
	defer conn.Close()
	relay, err := emitter.NewRelay(conn, "")
	if err != nil {
		return emitter.EventReceipt{}, cannot(err, brokerHint(err))
	}
	if err := c.known(a, relay, key); err != nil {
		return emitter.EventReceipt{}, err
	}
	receipts := make(chan *emitter.Receipt, receiptQueue)
	stop, err := emitter.Receipts(a.ctx, conn, key.ReceiptSubject(), func(r *emitter.Receipt) { receipts <- r })
	if err != nil {
		return emitter.EventReceipt{}, cannot(err, brokerHint(err))
	}
	defer stop()
	seq, _, err := relay.Publish(a.ctx, key.Subject(events.VerbSeal), nil, c.payload())
	if err != nil {
		return emitter.EventReceipt{}, cannot(err, publishHint(key.Subject(events.VerbSeal), err))
	}
	patience := time.NewTimer(c.Wait)
	defer patience.Stop()
	for {
		select {
		case r := <-receipts:
			for _, e := range r.Events {
				if e.StreamSeq == seq {
					return e, nil
				}
			}
		case <-patience.C:
			return emitter.EventReceipt{}, cannot(fmt.Errorf("no receipt for stream sequence %d", seq), "the event is in the stream; is the daemon taking events in?")
		case <-a.ctx.Done():
			return emitter.EventReceipt{}, a.ctx.Err()
		}
	}
}

// known refuses a chain that nobody has written to.
func (c *closeCmd) known(a *app, relay *emitter.Relay, key events.Key) error {
	if c.New {
		return nil
	}
	ctx, cancel := context.WithTimeout(a.ctx, max(c.Wait, emitter.DefaultPublishTimeout))
	defer cancel()
	held, err := relay.Holds(ctx, key)
	if err != nil {
		return cannot(err, publishHint(key.Subject(events.VerbSeal), err))
	}
	if !held {
		return cannot(fmt.Errorf("the stream holds no event of chain %s", verifier.Escape(c.Chain)),
			"is that its name, and its tenant, prompt hash and session? `chaind runs` lists all; --new closes it all the same, for instance where its events have been trimmed")
	}
	return nil
}

func (c *closeCmd) payload() []byte {
	body := []byte(`{"v":1,"event_id":"` + closeEventID + `","outcome":"` + c.Outcome + `","reason":`)
	return append(segments.AppendString(body, c.Reason), '}')
}
