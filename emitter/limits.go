package emitter

import "time"

// Names and bounds of the room, in one place.
const (
	DefaultStream         = "EVIDENCE"
	DefaultRejectedStream = "EVIDENCE_REJECTED"
	DefaultDurable        = "chaind"

	// DefaultMaxEventBytes is the size limit of one event's payload.
	DefaultMaxEventBytes = 1 << 20
	// streamHeadroom is what a stream's message may be larger than the event
	// limit: headers, and payloads that are a little too large, which are
	// worth a recorded rejection.
	streamHeadroom = 64 << 10

	// DefaultBatchEvents and DefaultBatchBytes bound one Append.
	DefaultBatchEvents = 4096
	DefaultBatchBytes  = 8 << 20
	// DefaultBatchTime is how long a batch waits for messages that the
	// broker says are on their way.
	DefaultBatchTime = 2 * time.Millisecond

	// DefaultAckWait is when the broker delivers an unacknowledged message again.
	DefaultAckWait = 60 * time.Second
	// maxAckPending bounds delivered and unacknowledged messages, far above
	// what two batches and the client's buffer hold.
	maxAckPending = 1 << 16

	// DefaultCheckInterval is how often the intake compares the stream with
	// what it has applied.
	DefaultCheckInterval = 5 * time.Second
	// DefaultStopTimeout bounds the wait for the running Append at a stop.
	DefaultStopTimeout = 15 * time.Second

	// leaderTimeout bounds the wait for one message that is read directly.
	leaderTimeout = 5 * time.Second

	minBackoff = 20 * time.Millisecond
	maxBackoff = 5 * time.Second

	// maxReceiptEvents bounds the events listed in one receipt message.
	maxReceiptEvents = 64
	// maxReceiptBytes bounds a receipt that a publisher reads.
	maxReceiptBytes = 256 << 10

	// rejectedPage is how many rejections are taken from the outbox at once.
	rejectedPage = 64
	// rejectedHeaders is kept free for the headers of a rejected message.
	rejectedHeaders = 4 << 10
	// maxHeaderValue bounds one header of a rejected message.
	maxHeaderValue = 512

	// DefaultPublishTimeout bounds the wait for one acknowledgement of the broker.
	DefaultPublishTimeout = 5 * time.Second
	// absentTimeout bounds the question whether there is a stream that nobody
	// answered for.
	absentTimeout = 500 * time.Millisecond
	// DefaultReceiptTimeout is how long Wait waits before it sends the event again.
	DefaultReceiptTimeout = 10 * time.Second
	// readerLease is when the broker forgets a consumer that reads a chain back
	// and was left behind.
	readerLease = 30 * time.Second
	// maxUnconfirmed bounds the sent events whose receipt a publisher looks out for.
	maxUnconfirmed = 4096
	// publishHeadroom is kept free for the headers that a publish carries.
	publishHeadroom = 1 << 10
)
