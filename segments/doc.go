// Package segments reads, writes, hashes and signs evidence bundles in the
// format of Plasm (docs/evidence-format.md; section numbers in this package
// are those of that format).
//
// # The file
//
// A bundle is one JSON object, file suffix ".evidence.json":
//
//	{"scope":{...},"chain":{"segments":[...],"head":"..."},"anchors":{...},"signature":{...}}
//
// Written (section 4) it is compact UTF-8 without a final newline, members in
// the order of the tables below, absent ones left out, integers in plain
// decimal, strings with the fewest escapes: \" \\ \b \f \n \r \t, other
// characters below U+0020 as \u00xx in lower case, everything else raw.
// A digest is 64 lower-case hexadecimal digits of a SHA-256.
//
//	scope      schema_version u32 (1), tenant_id? (left out when ""), logical_session_id?,
//	           prompt_hash, execute_session_id, catalog_cgs_hash, domain_revision u32, entry_id
//	chain      segments (array), head? (digest of the last segment; absent only when there is none)
//	segment    seq u64, prev? (digest of the segment before; absent in the first), kind, emitted_at_ms? u64
//	anchors    plan_commit_ref?, trace_id? (UUID), plan_call_index? u64; left out when empty
//	signature  public_key_hex (64 digits), signature_hex (128 digits)
//
//	kind       one of four, the tag first:
//	  "kind":"intent_bound"    intent_digest digest, intent_len u32
//	  "kind":"comp_committed"  plan_commit_id_hex, comp_semantic_sha256 digest, step_topo []string
//	  "kind":"step_executed"   step_id, step_index u32, entry_id?, request_fingerprints []string,
//	                           source_line, parsed_expr_digest digest
//	  "kind":"run_sealed"      run_id, step_id?, resource_index? u64, run_bundle_digest digest
//
// # What is hashed
//
// The digest of a segment is the SHA-256 of exactly these bytes (section 7),
// canonical JSON of RFC 8785:
//
//	{"kind":K,"prev":P,"schema_version":2,"seq":N}
//
// K is the kind with its members sorted by name, absent ones left out; P is
// null or the previous digest in quotes; N is seq. emitted_at_ms, scope,
// anchors, signature and the declared head are not in it. An integer above
// 2^53-1 is rounded to binary64, so 2^53 and 2^53+1 hash alike: the reference
// does so, and a reader must follow it to recompute its heads; strict callers
// refuse [UnsafeInteger], and emitters ask [Segment.Check] first.
//
// The first segment of a chain that binds the intent "close the stalest open
// issue" has the preimage (one line)
//
//	{"kind":{"intent_digest":"23c8dd4d172e59104116a3f1dfb5145cf6eb7f339a0616224ff8beaf8271937a",
//	"intent_len":28,"kind":"intent_bound"},"prev":null,"schema_version":2,"seq":0}
//
// and the digest 80e26c56acad11c3868a7eb214a6672b217fddc1424ce8457529439d0b7af5a6;
// the package example computes both.
//
// A head signature is Ed25519 (RFC 8032, pure) over canonical JSON of
//
//	{"chain_head":H,"schema_version":2,"scope":S}
//
// The content digests (intent, plan, parsed expression, run; section 9) are
// SHA-256 of another form, sorted serde JSON: see [AppendSortedJSON].
//
// # Reading
//
// [Read] takes what the reference takes (section 3) and reports each place
// where the text is not what section 4 would write for the decoded value as a
// [Deviation]; a strict caller refuses any deviation. It streams: a chain of
// any length is read in constant memory, within the limits of this package.
// What is hashed is the decoded value written anew, never the stored text.
//
// [Walk] recomputes the chain, [Order] judges the order of its kinds and its
// steps against the plan. Verdicts are the verifier's.
//
// # Compatibility
//
// The bundle has no version member. scope.schema_version is 1 and is read
// whatever it says; the 2 in the preimages is a constant. A compatible change
// could only add unhashed optional members, which older readers ignore and
// strict ones refuse; anything hashed that is new needs another constant.
//
// Functions with names of the form Append… append to dst and return it, and
// do not allocate when dst has room. Nothing here is safe for concurrent use
// of one value; distinct values are independent.
package segments
