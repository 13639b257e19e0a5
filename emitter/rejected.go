package emitter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// Headers of a message in the stream of rejected events. Its body is the
// rejected payload, as far as it fits.
const (
	HeaderClass       = "Chaind-Class"           // reason class, such as "malformed"
	HeaderDetail      = "Chaind-Detail"          // the reason in words
	HeaderSubject     = "Chaind-Subject"         // subject that the event came on
	HeaderStreamSeq   = "Chaind-Stream-Sequence" // its sequence in the stream of events
	HeaderBrokerMS    = "Chaind-Broker-Ms"       // the broker's timestamp, Unix milliseconds
	HeaderSHA256      = "Chaind-Sha256"          // of the whole payload
	HeaderEventID     = "Chaind-Event-Id"        // absent when it could not be read
	HeaderExisting    = "Chaind-Existing-Sha256" // conflict: the payload digest that holds the id
	HeaderAfterEnd    = "Chaind-After-End"       // "true" when the chain had ended; else absent
	HeaderTruncatedTo = "Chaind-Truncated-To"    // bytes kept of the payload; absent: all
)

// Outbox is the store's list of rejections that have not been published yet.
type Outbox interface {
	// PendingRejections lists them, oldest first.
	PendingRejections(limit int) ([]events.Rejection, error)
	// RejectionsPublished records that all up to this ID have been published.
	RejectionsPublished(ctx context.Context, upTo uint64) error
	// RejectionsAdded receives after commits that added rejections.
	RejectionsAdded() <-chan struct{}
}

// RejectedConfig says what a [RejectedPublisher] drains.
type RejectedConfig struct {
	JS     jetstream.JetStream // required
	Outbox Outbox              // required
	Stream string              // "": DefaultRejectedStream
	Logger *slog.Logger        // nil: nothing is logged
}

// RejectedPublisher publishes rejected events from an [Outbox], each at least
// once and, within the stream's duplicate window, at most once. It shares
// nothing with the intake and never holds it up.
type RejectedPublisher struct {
	cfg RejectedConfig
}

// NewRejectedPublisher checks the configuration; nothing starts yet.
func NewRejectedPublisher(cfg RejectedConfig) (*RejectedPublisher, error) {
	if cfg.JS == nil || cfg.Outbox == nil {
		return nil, errors.New("rejected publisher configuration: JS or Outbox is missing")
	}
	cfg.Stream = orString(cfg.Stream, DefaultRejectedStream)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &RejectedPublisher{cfg: cfg}, nil
}

// Run publishes until ctx ends; then it returns nil. Failures are tried again for ever.
func (r *RejectedPublisher) Run(ctx context.Context) error {
	wait := time.Duration(0)
	for ctx.Err() == nil {
		more, err := r.page(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			wait = nextBackoff(wait)
			r.cfg.Logger.Warn("rejected events wait", "err", err, "retry", wait)
			sleep(ctx, wait)
		case err == nil:
			wait = 0
			if !more {
				r.idle(ctx)
			}
		}
	}
	return nil
}

// idle waits for new rejections. The timer covers a wake-up that was lost.
func (r *RejectedPublisher) idle(ctx context.Context) {
	timer := time.NewTimer(DefaultCheckInterval)
	defer timer.Stop()
	select {
	case <-r.cfg.Outbox.RejectionsAdded():
	case <-timer.C:
	case <-ctx.Done():
	}
}

// page publishes the oldest rejections in order. A crash between the
// acknowledgement and the record publishes them again under the same message id.
func (r *RejectedPublisher) page(ctx context.Context) (more bool, err error) {
	pending, err := r.cfg.Outbox.PendingRejections(rejectedPage)
	if err != nil {
		return false, fmt.Errorf("list rejections: %w", err)
	}
	var done uint64
	for i := range pending {
		if err = r.publish(ctx, &pending[i]); err != nil {
			break
		}
		done = pending[i].ID
	}
	if done != 0 {
		if e := r.cfg.Outbox.RejectionsPublished(ctx, done); e != nil {
			return false, fmt.Errorf("record published rejections: %w", e)
		}
	}
	return err == nil && len(pending) == rejectedPage, err
}

func (r *RejectedPublisher) publish(ctx context.Context, rej *events.Rejection) error {
	ctx, cancel := context.WithTimeout(ctx, DefaultPublishTimeout)
	defer cancel()
	msg := rejectedMessage(rej, int(r.cfg.JS.Conn().MaxPayload()))
	ack, err := r.cfg.JS.PublishMsg(ctx, msg, jetstream.WithMsgID(rejectedID(rej)), jetstream.WithExpectStream(r.cfg.Stream))
	if err != nil {
		return fmt.Errorf("publish rejection %d: %w", rej.ID, err)
	}
	if ack.Stream != r.cfg.Stream {
		return fmt.Errorf("publish rejection %d: %w: %q", rej.ID, ErrWrongStream, ack.Stream)
	}
	return nil
}

// rejectedID names the delivery, not the record, so that it survives a rebuilt store.
func rejectedID(rej *events.Rejection) string {
	return strconv.FormatUint(rej.StreamSeq, 10) + "-" + strconv.FormatUint(rej.BrokerMS, 10) + "-" + rej.Sum.String()
}

func rejectedMessage(rej *events.Rejection, maxPayload int) *nats.Msg {
	h := nats.Header{}
	set := func(name, value string) {
		if value != "" {
			h.Set(name, headerText(value))
		}
	}
	set(HeaderClass, string(rej.Class))
	set(HeaderDetail, rej.Detail)
	set(HeaderSubject, rej.Subject)
	set(HeaderStreamSeq, strconv.FormatUint(rej.StreamSeq, 10))
	set(HeaderBrokerMS, strconv.FormatUint(rej.BrokerMS, 10))
	set(HeaderSHA256, rej.Sum.String())
	set(HeaderEventID, rej.EventID)
	set(HeaderExisting, hexOf(rej.Existing))
	if rej.AfterEnd {
		h.Set(HeaderAfterEnd, "true")
	}
	body := rej.Payload
	if room := maxPayload - rejectedHeaders; maxPayload > 0 && len(body) > room {
		body = body[:max(0, room)]
	}
	if len(body) < len(rej.Payload) || segments.Sum(body) != rej.Sum {
		h.Set(HeaderTruncatedTo, strconv.Itoa(len(body)))
	}
	return &nats.Msg{Subject: events.RejectedSubject(rej.Subject), Header: h, Data: body}
}

// headerText keeps a value on one line, in ASCII and short.
func headerText(s string) string {
	if len(s) > maxHeaderValue {
		s = s[:maxHeaderValue]
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			quoted := strconv.QuoteToASCII(s)
			return quoted[1 : len(quoted)-1]
		}
	}
	return s
}
