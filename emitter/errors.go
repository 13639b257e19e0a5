package emitter

import (
	"errors"
	"fmt"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// ErrShared is why an [Intake] does not read: another one reads under its name,
// with the same store id. It is tried again, and taken up when the other has gone.
var ErrShared = errors.New("another daemon reads with the same store id; is this a copy of its data?")

// ErrLogin: the broker answers [Connect], and does not take user, password or
// credentials.
var ErrLogin = errors.New("the broker refuses this login")

// ErrNotReadable: the broker lets us not subscribe to receipts.
var ErrNotReadable = errors.New("no permission to subscribe")

// These errors can be returned by a [Publisher]'s calls, wrapped. Unless it
// says otherwise the event was not stored, and the publisher goes on.
var (
	// ErrNoStream: nothing takes the subject, for as long as an election of the
	// stream's leader may last. The daemon has not created the stream yet, or
	// JetStream is down. The event stays first in line.
	ErrNoStream = errors.New("no stream takes evidence events")
	// ErrWrongStream: another stream than the configured one took the event.
	ErrWrongStream = errors.New("another stream took the event")
	// ErrDenied: the broker refused the subject. The event stays first in line.
	ErrDenied = errors.New("publish permission denied")
	// ErrNoReplies: the broker lets us publish, perhaps, but not hear its answers:
	// the connection needs an inbox prefix that its user may subscribe to. The
	// event may have been stored; it stays first in line.
	ErrNoReplies = errors.New("the broker's answers cannot be received; the inbox prefix is missing or wrong")
	// ErrOtherWriter: somebody else wrote to the chain, so that this
	// publisher's numbers and head are no longer the chain's. It sends nothing more; Resume.
	ErrOtherWriter = errors.New("the chain has another writer")
	// ErrTakenBack: the stream no longer holds what it acknowledged of the chain,
	// and holds less: the broker's store is an older one. The publisher sends
	// nothing more. Resume with [PublisherConfig.LastSent], so that no number is
	// given twice and the chain does not pass for complete if the daemon had not
	// taken what was lost.
	ErrTakenBack = errors.New("the stream has lost acknowledged events of the chain")
	// ErrExists: Begin's chain has events already, and the first of them is not
	// the one being published; Resume it or pick another name.
	ErrExists = errors.New("the chain exists already")
	// ErrNothingSent: Wait has nothing to wait for.
	ErrNothingSent = errors.New("no event was sent")
	// ErrEnded: the chain's last seal has been sent.
	ErrEnded = errors.New("the chain has ended")
	// ErrClosed: the publisher or its connection is closed.
	ErrClosed = errors.New("publisher is closed")
	// ErrUnsent is returned by Close when it cannot be told whether the last
	// event was stored: Resume the chain, or publish the event again.
	ErrUnsent = errors.New("the last event may not have been stored")
	// ErrTooLarge is matched by every [TooLargeError].
	ErrTooLarge = errors.New("event is too large")
	// ErrRejected is matched by every [RejectedError].
	ErrRejected = errors.New("event was rejected")
	// ErrTimeout is matched by every [TimeoutError].
	ErrTimeout = errors.New("no answer in time")
)

// InvalidError is an event that the daemon would have rejected from its bytes
// alone. It was not sent and has no number.
type InvalidError struct{ Fault events.Fault }

func (e *InvalidError) Error() string {
	return fmt.Sprintf("check event: %s: %s", e.Fault.Class, e.Fault.Detail)
}

// TooLargeError is an event over the size limit. It was not sent and has no number.
type TooLargeError struct{ Size, Limit int } // bytes of the payload

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("check event: %d bytes exceed the limit of %d: leave the preimage out and send its digest, or a short text with digest and size in its place", e.Size, e.Limit)
}

// Is makes every TooLargeError match [ErrTooLarge].
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }

// RejectedError is an event that is durable as a rejection, or as late: its
// chain goes on without it, and says so.
type RejectedError struct {
	EventID   string
	StreamSeq uint64
	Late      bool         // it came after the end of its chain and is kept as an addendum
	Class     events.Class // "" when late
	Detail    string
	Existing  *segments.Digest // conflict: the digest that holds the id
}

func (e *RejectedError) Error() string {
	if e.Late {
		return fmt.Sprintf("event %s: the chain had ended before it came", e.EventID)
	}
	return fmt.Sprintf("event %s was rejected: %s: %s", e.EventID, e.Class, e.Detail)
}

// Is makes every RejectedError match [ErrRejected].
func (e *RejectedError) Is(target error) bool { return target == ErrRejected }

// TimeoutError says that an answer did not come while the context lasted. The
// event may be stored or not. It stays first in line: the next call sends the same bytes again before anything else.
type TimeoutError struct {
	EventID string
	For     string // "acknowledgement" of the broker or "receipt" of the daemon
	Cause   error  // the context's error, or the last one of the broker
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("wait for %s of event %s: %v", e.For, e.EventID, e.Cause)
}

// Is makes every TimeoutError match [ErrTimeout].
func (e *TimeoutError) Is(target error) bool { return target == ErrTimeout }

// Unwrap returns the cause.
func (e *TimeoutError) Unwrap() error { return e.Cause }

// RefusedError is a publish that the stream refused (it is full, sealed, out
// of resources). The event stays first in line.
type RefusedError struct {
	Code        int // JetStream error code
	Description string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("publish event: the stream refused it: %s (%d)", e.Description, e.Code)
}

// HeadError says that the daemon's chain is not the one that the publisher
// computed: an event of it was rejected unseen, or somebody else wrote.
type HeadError struct {
	EventID   string
	Want, Got string // 64 hex digits; "": no segment
}

func (e *HeadError) Error() string {
	return fmt.Sprintf("compare heads after event %s: the chain has %q, the publisher computed %q", e.EventID, e.Got, e.Want)
}
