// Command torture tries to make chaind lose or forge an event, and proves
// afterwards, from the producers' own records, that it did not.
//
//	go run ./internal/torture -d 5m -seed 1
//
// Four producers, a NATS server and the daemon run as processes of their own,
// connected through a TCP proxy. The producers write down what they are about
// to send, what was acknowledged and what the daemon's receipts called durable,
// before and after each event; some of it is repeated, conflicting, malformed or
// late on purpose. Meanwhile one trouble after the other, chosen by the seed:
//
//	kill producer, broker or daemon (SIGKILL), and start it again
//	stop the daemon in order (SIGTERM) and start it again
//	pause broker or daemon (SIGSTOP, SIGCONT)
//	cut the connections, or slow them down
//	fill the disk of the daemon, and make room again
//	purge the stream while the daemon is down: a loss that must be named
//	give the broker an older copy of its store: sequences come again
//
// In the end everything is mended and settles, the daemon stops in order, and
// the checker reads the store and the evidence files. It wants:
//
//   - every acknowledged event exactly once in its chain, in the order in which
//     it was sent; or recorded as lost, rejected or late, where it is
//   - every event that a receipt called durable to be there, whatever the broker lost
//   - nothing in any chain that no producer sent, nothing with other bytes
//   - chains that lost something to say so, and undisturbed ones to be complete
//     and to agree with the head that their producer computed
//   - evidence for each chain that ended, which verifies and has the right head
//   - a trust bundle for each chain that ended, which verifies and says of outcome,
//     coverage, losses, epochs, rejections, counts, heads and every single event what
//     the store has and the producer wrote down, as of the end: what came later is
//     not in it
//   - all of these signed with the daemon's key, each where its name and the pointers
//     and histories say, and no other file beside them
//   - losses that are named in the epoch in which the event was acknowledged: a
//     broker that was rolled back gives sequences again
//   - no findings in a walk over the whole store
//
// The disk is a small tmpfs, which needs the right to mount; without it the disk
// is never filled, and the summary says so. -keep leaves the files of the run.
// Exit code 0: all of it holds, 1: it does not, or the run could not be done.
package main
