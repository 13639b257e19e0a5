// Package export is the format of an exported folder: evidence of some chains
// together with all that a stranger needs to check it, and a signed list of
// what belongs to it. A folder may also be packed as a ZIP file, with the same
// paths in it.
//
// # Layout
//
//	manifest.json              what belongs to the export
//	manifest.sig               signature of manifest.json; absent: unsigned
//	index.html                 the report, for people, printable
//	verify.html                the page that verifies in a browser
//	keys.json                  public keys as the exporting daemon lists them
//	chains/{n}-{chain}/        one directory for each chain, n counts from 0001
//	  chain.json               what the daemon knew about it
//	  {head}.evidence.json     its evidence bundle; absent while it is open or empty
//	  bundle.tsb               its trust bundle, when there is one
//	  {head}.evidence.refused.json, bundle.refused.json, chain.refused.json
//	                           the daemon's answer in the place of any of them, when
//	                           it has one that it cannot give: a damaged file or
//	                           record; without chain.json there is nothing else
//	  addenda.json             events that came after its end, when there are any
//	  rejected.json            rejected events, when there are any
//
// Only the two manifest files have fixed meaning for [Check]; every other file
// is what the manifest says it is. The keys are listed for people: a key is not
// trusted because the folder brings it.
//
// # manifest.json
//
// One JSON object (RFC 8259, UTF-8, no duplicate and no unknown names), written
// without white space, members in this order:
//
//	export        "chaind-export-1"
//	created_ms    Unix milliseconds of the exporting machine, a claim
//	selection     what was asked for, for people: {"what":text}
//	chains        [{tenant, prompt_hash, session, chain, outcome, conformity,
//	               segments, head, evidence, bundle}]
//	files         [{path, bytes, sha256, role}], by path, each path once
//
// head is 64 hex digits or null; evidence and bundle are paths of files or null.
// role is one of the Role constants. A path is slash-separated, relative, in
// lower-case letters, digits and . _ - besides the capitals of chain names, and
// differs from every other one also when case is ignored. manifest.json and
// manifest.sig do not list themselves.
//
// # manifest.sig
//
//	{"public_key_hex":64 hex digits,"signature_hex":128 hex digits}
//
// Ed25519 (RFC 8032) over these bytes: "chaind-export-1 manifest sha256:", the
// 64 lower-case hex digits of SHA-256(manifest.json), and a newline.
//
// # Checking
//
// [Check] reads every file once and reports, in the shape of package verifier,
// with kind "export": the manifest and its signature, files that are missing,
// altered, swapped or not listed, whether each piece of evidence is of the
// chain that it is listed for and bears out what the manifest says of it, and
// the verdict on each. What is no plain file is not opened, and what is too
// large by the size that it states is not read.
//
// [OpenZip] takes what any tool makes of the folder. It refuses archives with
// paths that could lead out of it, links, and names that occur twice, and bounds
// what is unpacked. What an archive holds besides its entries, from its first
// byte to its last, and what the header in front of a file says differently from
// the directory, is a finding.
//
// # Compatibility
//
// A later form that this package must not read has another name in "export".
package export
