// Package sealer turns finished chains into evidence that lies beside the store:
// it works off the store's seal jobs.
//
// For each job, in this order:
//
//  1. The evidence bundle is made from the stored segments: scope (the bound
//     one, or what the subject says), segments, head, last anchors, and a
//     signature of the head message when a key is configured. The bytes are a
//     function of chain, key and nothing else.
//  2. The very bytes are read back and checked: links, numbers, head against
//     the store's, form, place, signature, and for a conforming chain the order
//     of kinds and its steps against the first and the last plan. A bundle that
//     fails is not written; the job stays and says so ([ErrContradiction]).
//  3. Run snapshots that came with seals are written, write-once.
//  4. The trust bundle is made (package engine/run: the chain as of its end, with
//     segments, attempts, kept plans and snapshots, rejected events and losses;
//     what arrived later is left out), and its root is signed with the same key. A
//     signature over a root is none over a head message, which begins otherwise.
//  5. Both are written as one group (package sidecar). The bytes of all files go to
//     the disk under temporary names, and meanwhile the very bytes of the trust
//     bundle are judged: the envelope must hold and the content must be re-derived.
//     Then the evidence has its name under class and head, and the trust bundle
//     under its root, and when those are durable, histories and pointers have theirs.
//  6. The job is finished in the store.
//
// That is three waits for the disk, and two more for the job. Where other evidence
// stands under the head, the trust bundle has to tell that one's signature: then, and
// for long chains and for a trust bundle that fails, the evidence is written first,
// and the trust bundle made and judged after that, with the names of the evidence
// written beside.
//
// A crash between any two steps leaves the job, which then runs again and finds
// the same bytes: every step can be repeated. Where another bundle with the same
// head or root was first (the key has changed since, say), it stands, and the job
// records what stands there; a trust bundle tells the signature of the evidence
// that stands. A chain that ended without a segment has no evidence bundle, and
// its job is finished with an empty class; it has a trust bundle as every chain
// has that ended, however it ended.
//
// A trust bundle's bytes are a function of chain, evidence signature and key: no
// clock enters, and nothing of how the events were batched.
//
// Evidence takes memory that does not grow with the chain: segments are read page
// by page, and only bundles up to a limit are kept as bytes between the check and
// the write. A trust bundle is in memory as a whole, since all of it is judged
// before any of it is written: 100,000 segments give 137 MB and take 600 MiB for
// ten seconds, so chains of more than 2,048 segments are packed one at a time.
//
// A job that fails is tried again after a pause that doubles from [FirstPause]
// to [LongestPause]; meanwhile other jobs go on. Nothing here is waited for by
// the intake.
package sealer

import "time"

// Limits of the room.
const (
	FirstPause   = 100 * time.Millisecond // after a job's first failure
	LongestPause = time.Minute

	DefaultWorkers = 64 // jobs at once; most of a job is waiting for the disk, which many share

	pageJobs     = 64      // seal jobs fetched at a time
	pageSegments = 512     // segments fetched at a time
	pageRejected = 100     // rejected events fetched at a time
	longChain    = 2048    // segments, rejected events and steps from which chains are packed one at a time
	maxKept      = 4 << 20 // bytes of a bundle that is not generated a second time
	maxFailing   = 1024    // failing jobs beyond which no further ones are begun
)
