// Package emitter is the NATS edge of chaind: the streams that carry events,
// the intake that makes them durable, the receipts that say so, and the
// [Publisher] that an agent runtime imports. What an event looks like is
// specified in package events.
//
// # Subjects
//
//	evidence.{tenant}.{prompt_hash}.{session}.{chain}.{verb}            events, stream EVIDENCE
//	evidence-rejected.{tenant}.{prompt_hash}.{session}.{chain}.{verb}   rejected events, stream EVIDENCE_REJECTED
//	evidence-receipts.{tenant}.{prompt_hash}.{session}.{chain}          receipts, core NATS, not stored
//
// # Order and durability
//
// The [Appender] is the truth: its watermark says which sequences are durable.
// Every session of the intake (one per start, reconnect or trouble) creates
// its durable pull consumer anew, right behind the watermark, and accepts
// exactly the next sequence: a redelivery lies below it and is dropped, and
// whatever lies above it is compared with the stream, so that a hole is either
// recorded as lost or ends the session, which then reads the hole. A batch
// that the Appender refused is given again, unchanged, until it is durable.
// So events reach the Appender in stream order, each once, none left out.
//
// The consumer acknowledges all that lies at or below a sequence at once
// (AckAll), and the acknowledgement is sent after the Appender returned: an
// acknowledged event is a durable one. An acknowledgement is never taken as a
// proof of anything; a lost one is repaired by the next.
//
// # Permissions of a runtime of tenant T
//
//	publish    evidence.T.>   (events; Resume also asks there what the chain's last message is, which stores nothing)
//	publish    $JS.API.CONSUMER.CREATE.EVIDENCE.*.evidence.T.>   (Resume, and a retry whose first answer got lost)
//	publish    $JS.API.CONSUMER.MSG.NEXT.EVIDENCE.*, $JS.API.CONSUMER.DELETE.EVIDENCE.*
//	subscribe  evidence-receipts.T.>
//	subscribe  _INBOX_T.>   (with [ConnConfig.InboxPrefix] set to "_INBOX_T")
//
// A publish-only user may still subscribe, so restrict both. Without an inbox
// prefix of its own a tenant either reads the others' replies or gets no
// acknowledgement though its messages are stored. The broker tells a refusal to
// the connection alone; publishing looks there while it waits, and fails with
// [ErrDenied] or [ErrNoReplies].
package emitter
