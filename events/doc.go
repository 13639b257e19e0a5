// Package events is the event format of chaind: what an agent's runtime
// publishes while a run goes on, how it is read, and what each event does to
// the chain that it belongs to. It is pure: no clock, no network, no store.
//
// # Subjects
//
//	evidence.{tenant}.{prompt_hash}.{session}.{chain}.{verb}            an event
//	evidence-receipts.{tenant}.{prompt_hash}.{session}.{chain}          its receipts
//	evidence-rejected.{tenant}.{prompt_hash}.{session}.{chain}.{verb}   refused events
//	evidence-rejected.~unattributed                                     refused, of no chain
//
// Tenant and chain are 1 to 64 of [A-Za-z0-9_-], the tenant "_" being the empty
// tenant; the prompt hash is 64 and the session 32 lower-case hexadecimal
// digits; the verb is intent, commit, step or seal. An unknown verb that is no
// token of that alphabet is written "~" behind evidence-rejected.
//
// # Payload
//
// One JSON object (RFC 8259, UTF-8 without byte order mark, no lone
// surrogates), at most 1 MiB, nested at most 64 levels with the envelope as
// level 1, at most 4096 members in one object, no name twice in one object at
// any depth, also when spelled with escapes. The order of members is free.
// schemas/event.json says the same as JSON Schema, as far as that can.
//
//	member              in       value
//	v                   all      1
//	event_id            all      1 to 128 of [A-Za-z0-9_.:-]; idempotency key in the chain
//	scope               any      scope of the evidence format; the first one binds the chain
//	at_ms               any      Unix milliseconds; default: the broker's time
//	producer_seq        any      0, 1, 2, … per chain
//	kind                         segment payload; a seal has one when there is a run seal
//	phase               step     end (default), begin, failed
//	preimage            any      intent {"text"}, commit {"comp"}, step {"parsed"}, seal {"artifact"}
//	anchors             any      as in the evidence format; the last ones given win
//	outcome             seal     succeeded (default), failed, cancelled, abandoned
//	reason              seal, failed attempt   text
//	event_count         seal     distinct event ids sent in this chain, this one included
//	producer_head       seal     the head as the producer computed it
//	producer_signature  seal     {"public_key_hex","signature_hex"} over the message for producer_head
//	more                seal     true: further seals follow; such a seal has a run seal
//
// Integers are spelled with digits only and lie in 0 … 2^53-1 (u32 members in
// 0 … 2^32-1); digests are 64 lower-case digits and trace_id a hyphenated
// lower-case UUID; null is no value of any member. Preimages are kept and
// hashed as they stand, byte for byte. Their numbers follow the evidence
// format, but one that binary64 cannot hold (1e400), or holds only as zero
// (1e-400), is refused: two texts would share one canonical form.
//
// A member of kind that is a digest may be left out when the preimage supplies
// what it is computed from: intent_digest and run_bundle_digest (which also
// need a scope, the event's or one earlier in the chain),
// comp_semantic_sha256 and plan_commit_id_hex, parsed_expr_digest. Both there
// must agree; run ids and plan ids may be those of either spelling of large
// floats. The kind of a begun or failed attempt needs only kind, step_id and
// step_index.
//
// # Faults
//
// The first in this order counts; its class goes into the rejection:
//
//	bad_subject          a token outside its alphabet or length; an unknown verb (the chain is then known)
//	too_large            bytes, or members of one object
//	malformed            not one JSON text, not an object
//	too_deep             nesting
//	duplicate_name       a name twice in one object
//	bad_id               event_id missing, no string, outside its alphabet or length
//	                     (same id and same payload bytes: a duplicate, no fault)
//	unsafe_integer       an integer outside ±(2^53-1), preimage excepted
//	unknown_member       a name that its object does not know
//	malformed            a member missing, of the wrong type, outside its values, or of another verb
//	conflict             the id is held by other bytes
//	scope_contradiction  the scope differs from the subject or from the chain's
//	digest_mismatch      the preimage does not give the stated digest; plan id and comp digest differ
//	topo_mismatch        step_topo is not the comp's bind.topo
//	run_id_mismatch      run_id is not "pr" and the run bundle digest
//
// (The store adds chain_damaged, for events whose chain it cannot read.)
//
// An event whose fault comes before or at bad_id has no readable id.
// [Decode] finds what one message shows; conflict, the chain's scope and the
// digests that need it are found by [State.Apply]. An integer is told by its
// spelling: 1e20 is none, and is malformed where an integer is wanted.
//
// # Chains
//
// [State.Apply] takes the events of one chain in stream order:
//
//	same id, same bytes     duplicate: counted, nothing else, also after the end
//	fault                   rejected: binds no scope, takes no id
//	after the end           late: an addendum; takes its id
//	step begin, failed      attempt
//	seal with more false    finished, with or without a segment
//	anything else           appended: the next segment
//
// The state is the same however the events are grouped into batches. It is
// bounded: see the constants MaxTracked… for what is counted instead of kept.
//
// # Encoded state
//
// [State.AppendBinary] writes, without separators or padding:
//
//	byte      version, 2
//	text ×4   tenant, prompt hash, session, chain
//	optional  scope: schema version, domain revision, text ×5 (tenant, prompt hash, session,
//	          catalog hash, entry), optional text (logical session)
//	text ×2   outcome, reason
//	number    segments; optional digest: head
//	list      step tallies: text, begun, ended, failed
//	number ×3 begun, ended, failed of the step ids not kept
//	list      run ids; number: run seals whose id is not kept
//	optional  ×3 anchors: plan commit ref, trace id, plan call index
//	number ×4 seals, duplicates, late, rejected
//	order     number rank; flags misplaced, planned, same, forgotten, first broken, last broken,
//	          intended; lists first rest, last rest; list of numbers executed
//	facts     number ids; list of intervals (from, to); flag overflow; optional number declared;
//	          flag miscount; number declared segments; flags unnumbered, end counted, end headed
//	text ×2   producer head and signature verdicts; optional digest, optional signature
//	          (text ×2), number of segments they were given at
//	number ×4 first, last and end stream sequence, last at_ms
//	text      last event id; optional number: its producer_seq
//
// A number is an unsigned varint in its shortest form, a text its length in
// bytes and the bytes, a list its count and its items, a flag 0 or 1, an
// optional a flag and, after 1, the value; a digest is 32 bytes. A reader
// refuses another version and anything left over. A change of layout takes a
// new version, and readers keep the old ones. Version 1 has neither intended nor
// what follows miscount; its reader infers them, in doubt against completeness.
package events
