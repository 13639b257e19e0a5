// Package sidecar keeps evidence bundles and run snapshots under names from
// which readers of the reference and ours find them.
//
// # Names
//
// Below the root of a store of blobs, for one execute session ([Place]) and
// with the prefix tenants/{tenant}/ when the tenant is not empty:
//
//	execute/{prompt_hash}/{session}/evidence/heads/{head}.evidence.json          conforming chains
//	execute/{prompt_hash}/{session}/evidence/unplanned/{head}.evidence.json      chains without a plan
//	execute/{prompt_hash}/{session}/evidence/nonconforming/{head}.evidence.json  chains that broke their plan
//	execute/{prompt_hash}/{session}/evidence/run-heads/{run_id}.head             pointer: 64 hex digits, no newline
//	execute/{prompt_hash}/{session}/evidence/run-heads/{run_id}/{head}           history: "{epoch} {stream_seq}\n" of the seal
//	execute/{prompt_hash}/{session}/evidence/{run_id}.evidence.json              legacy, read only
//	execute/{prompt_hash}/{session}/{64 hex}.artifact                            framed run snapshot
//
// For every chain that has ended, of whatever class, below the root:
//
//	bundles/{root}.tsb                                                   its trust bundle
//	bundles/by-chain/{tenant}/{prompt_hash}/{session}/{chain}.root       pointer: 64 hex digits, no newline
//	bundles/by-chain/{tenant}/{prompt_hash}/{session}/{chain}/{root}     history: empty
//
// There the tenant "_" is the empty one, and root is the 64 hex digits of the
// bundle's root. A root covers the chain's name, so no two chains share one.
//
// prompt_hash and head are 64, session is 32 lower-case hex digits, run_id is
// "pr" and 64 lower-case hex digits, tenant is [A-Za-z0-9_-]{1,64} but not "_",
// which spells the empty tenant in subjects. Anything else is refused with
// [ErrName]; no name is ever folded or escaped, so two names never become one.
//
// Of our own, for no other reader: .chaind/owner (the id of the store that
// writes here), .chaind/lock (directory back end only) and .chaind/snapshots/
// followed by the name of a snapshot that we wrote (two lines: Unix seconds of
// the writing, SHA-256 of the blob).
//
// # Writing
//
// The file of a head is written before anything that points to it, and is
// written once: the first bytes stand, whatever signature a later seal of the
// same head would carry. Bytes under a head that are not a bundle with that
// head in that place (damaged, emptied, replaced) are no first bytes and are
// replaced. Pointers and history are completed on every write, also for run ids
// that a known head did not have before.
//
// Only conforming chains get pointers: the reference follows a pointer into
// heads/ only, and everything that it finds there must verify. Runs of the
// others are found through the store, which knows chain, class and head.
//
// The pointer is the reference's and names the head that was sealed last in the
// order of the stream, whatever the order of the writes; so sealing again after
// a crash never turns it back. The history keeps every head that the run id ever
// had; one that the reference wrote (position 0 0) is entered before its pointer
// is replaced.
//
// A trust bundle is written in the same way: the file of a root once, whatever
// signature later bytes of the same root would carry, unless what stands there is
// no bundle with that root; then the history, then the pointer. The history keeps
// every root that the chain ever had. There is one at a time but for evidence
// that had to be signed anew with another key: the root covers that signature.
//
// Evidence and the trust bundle made over it are written together
// ([Sidecars.WriteBoth]) where the directory has neither yet: the bytes of all files
// under temporary names, then the names of head and root, then histories and
// pointers, each of the three durable before the next. A back end without groups
// puts one blob after the other in that order.
//
// Evidence format, sections 13 and 14.
package sidecar
