package natsobj

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Pauses between attempts. Longer outages are for the caller to wait through: a
// seal job stays until it succeeds.
const (
	attempts   = 5
	firstPause = 50 * time.Millisecond
)

var (
	// errRaced: somebody else wrote between our look and our write.
	errRaced = errors.New("written by somebody else meanwhile")
	// errOffline keeps messages out of the client's buffer, from which they
	// would be sent whenever a connection stands again.
	errOffline = errors.New("no connection to the broker")
)

// perCall hides a deadline: each question to the broker then has the client's
// own, shorter one, so that one lost answer does not use up all the time there
// is. The end of the context still ends the question.
type perCall struct{ context.Context }

// Deadline implements context.Context.
func (perCall) Deadline() (time.Time, bool) { return time.Time{}, false }

// retry calls op until it succeeds, fails for good, or has failed for a passing
// reason too often.
func (b *Bucket) retry(ctx context.Context, op func(context.Context) error) error {
	for n := 0; ; n++ {
		err := errOffline
		if b.js.Conn().IsConnected() {
			err = op(perCall{ctx})
		}
		if err == nil || n+1 == attempts || ctx.Err() != nil || !passing(err) {
			return errors.Join(ctx.Err(), err)
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(firstPause << n):
		}
	}
}

// passing tells failures that another attempt may not meet.
func passing(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return api.Code == 503
	}
	for _, known := range []error{
		errRaced, errOffline, context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected,
		jetstream.ErrNoStreamResponse,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// Codes of a server that found another last message than the publisher.
const (
	wrongLastSequence         = 10071
	wrongLastSequenceConstant = 10164
)

func isWrongLast(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (api.ErrorCode == wrongLastSequence || api.ErrorCode == wrongLastSequenceConstant)
}
