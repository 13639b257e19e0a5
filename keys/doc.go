// Package keys holds the Ed25519 keys of evidence: public keys and their
// textual form, signing seeds, the list of keys that somebody trusts, and the
// one rule that turns a checked signature into a state. It is pure: no files,
// no environment, no network; callers bring the text.
//
// # Public keys
//
// The textual form is exactly 64 hexadecimal digits: the 32 bytes of RFC 8032
// section 5.1.2. White space around it is trimmed and upper case is folded,
// nothing else is tolerated. Three kinds of 32 bytes are refused by name:
// points of order 1, 2, 4 or 8 in any of their 14 encodings (one signature
// under such a key fits many messages), encodings whose y is not below
// 2^255-19 (a second spelling of a key would slip past a revocation), and
// values of y that belong to no point of the curve.
//
// # Seeds
//
// A seed is 32 bytes as 64 hexadecimal digits, or the 64 bytes "seed, then
// public key" as 128, in which case the halves must belong together. A [Signer]
// signs and verifies once before it is handed out, so that a key that cannot
// work stops the start of a program and not the end of a run. Neither a [Seed]
// nor a [Signer] can be printed: every formatting verb, slog and text
// marshalling give the same redacted word.
//
// # Trust
//
// A [TrustList] says which keys are accepted and how: active keys sign today,
// retired keys signed once and are still accepted, revoked keys are not. The
// nil *TrustList means that nobody said whom to trust ("unpinned"), which is
// another thing than an empty list: that one is an error ([ErrEmptyTrustList])
// wherever it would come from. [Judge] gives the state of a signature.
//
// A seed and a public key look alike. Therefore errors name the position of a
// bad entry and never its value, and lists print as key ids, which are digests.
package keys
