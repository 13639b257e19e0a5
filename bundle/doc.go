// Package bundle is the trust bundle format (.tsb), format major 1: canonical
// bytes, the strict reader, section sets, the manifest of leaves, the root,
// the signature, and a writer whose output depends on its input alone. What
// the content means, and whether it follows from its own evidence, is room
// engine's.
//
// # File
//
// A file is canon(document) followed by one byte 0x0A. The document is a JSON
// object with these members; no other is allowed:
//
//	format            {"name":"tessera-trust-bundle","major":1,"minor":0|1}
//	engine            {"tessera_version":string,"domain":string,"claim_shapes":[string…]}, more members allowed
//	result            the answer, see package engine
//	evidence_closure  {"kind":string,"graph":{"nodes":[…],"edges":[…],"resolutions":[…],"mentions":[…]},
//	                  "kb":{"records":[…]}} and, only when kind is "chain-snapshot", "upstream":[whole bundles…]
//	action            null or an object
//	integrity         {"canonicalization":"tessera-canonical-json-1","leaves":{name:digest…},"root":digest}
//	signature         null, absent, or {"algorithm":"ed25519","public_key":64 hex digits,"signature":128 hex digits}
//	anchor            null or absent: reserved
//
// The writer writes all eight. Minor is 1 for chains, 0 otherwise, and never
// checked.
//
// # Canonical bytes: tessera-canonical-json-1
//
// UTF-8 without white space. Object members are sorted by name as Unicode code
// points, which on UTF-8 is the order of the bytes (and not that of RFC 8785,
// which sorts UTF-16 units). In strings, names included, `"` and `\` are
// written `\"` and `\\`; U+0008, 0009, 000A, 000C, 000D are `\b` `\t` `\n` `\f`
// `\r`; every other character below U+0020 is `\u00` and two lower-case hex
// digits; everything else, DEL, U+2028, `/` and `<` included, is itself. A lone
// surrogate has no canonical form.
//
// A number keeps its text, and the text must be the one form that its value
// has: an integer (no `.`, `e`, `E`) as JSON has it, but not `-0`, of at most
// MaxDigits digits; anything else the shortest digits that give the same IEEE
// double, positional with at least one fraction digit when 1e-4 <= |x| < 1e16,
// or else d[.ddd]e±dd with at least two exponent digits; zero is `0.0` or
// `-0.0`. So `1` and `1.0` are two numbers and hash differently, and `1e5`,
// `1.50`, `1e400`, `-0` are refused (code number_form): other implementations
// would print another text for them and see another digest.
//
// digest(value) is "sha256:" and the 64 lower-case hex digits of
// SHA-256(canon(value)).
//
// # Leaves and root
//
//	format engine result action   digest of that section (null for no action)
//	closure.kind kb               digest of the kind string, of the kb object
//	graph.edges graph.mentions graph.resolutions   digest of that array
//	node:{record.id}              digest of each node object
//	upstream:{root}               digest of each embedded bundle, its integrity and signature included
//
// root is the digest of the leaves object. The order of nodes and of upstreams
// enters no leaf; package engine notices a changed order by its effect.
//
// # Withheld content
//
// A value is withheld when it is an object whose `redacted` is true, with no
// member besides `redacted` and `record`, and `record` is absent, null or
// exactly {"id":…}. For a withheld result, kb, edge, mention or resolution
// array, or node the stored leaf is taken in place of a computed one; for a
// withheld graph the three array leaves and all stored node leaves are. A
// withheld item without a stored leaf is a format error.
//
// # Signature
//
// Ed25519 (RFC 8032) over the 71 bytes of the root string. Hex is lower-case
// without blanks; a public key that is not the canonical encoding of its point,
// or whose point has an order of 8 or less, verifies nothing.
//
// # Reading
//
// RFC 8259 without leniency: UTF-8, no byte order mark, no duplicate names
// (compared after unescaping) at any depth, at most MaxDepth open arrays and
// objects, at most MaxBytes, at most MaxValues plus one value for each eight
// bytes. A text that differs from its canonical form only in layout is read,
// judged by its values, and Bundle.Canonical is false.
//
// A fault that leaves nothing to judge is a *FormatError. All other deviations
// of the envelope are Findings, collected by CheckIntegrity and CheckSignature.
//
// # Compatibility
//
// The format belongs to github.com/robert-vetter/tessera (MIT), version 1.0
// and, for chains, 1.1. Files written here have the envelope its verifier
// accepts. A later incompatible change raises major, which this package
// refuses.
package bundle
