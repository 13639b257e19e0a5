// Package server is chaind's read side over HTTP. Nothing is ever written,
// nothing is served that was not verified for this answer or remembered as
// verified for exactly these bytes.
//
// # Routes
//
// GET and HEAD everywhere; every other method is 405.
//
//	/execute/{prompt_hash}/{session}/artifacts/{run_id}/evidence              evidence of a run, empty tenant
//	/tenants/{tenant}/execute/{prompt_hash}/{session}/artifacts/{run_id}/evidence
//	/execute/{prompt_hash}/{session}/evidence/heads/{head}                    evidence by chain head
//	/tenants/{tenant}/execute/{prompt_hash}/{session}/evidence/heads/{head}
//	/execute/{prompt_hash}/{session}/artifacts/{run_id}/bundle                trust bundle of a run, empty tenant
//	/tenants/{tenant}/execute/{prompt_hash}/{session}/artifacts/{run_id}/bundle
//	/v1/chains                                                                chains, filtered, in pages
//	/v1/chains/{tenant}/{prompt_hash}/{session}/{chain}                       one chain
//	/v1/chains/{tenant}/{prompt_hash}/{session}/{chain}/evidence              its evidence bundle, of any class
//	/v1/chains/{tenant}/{prompt_hash}/{session}/{chain}/bundle                its trust bundle, also while it is open
//	/v1/chains/{tenant}/{prompt_hash}/{session}/{chain}/addenda               what came after its end
//	/v1/chains/{tenant}/{prompt_hash}/{session}/{chain}/segments              its segments, also while it is open
//	/v1/chains/{tenant}/{prompt_hash}/{session}/{chain}/attempts              begins and failures of its steps
//	/v1/runs                                                                  (run id, chain) pairs
//	/v1/rejected                                                              rejected events, without their payloads
//	/v1/epochs                                                                histories of the stream: one more for each time the broker lost its own
//	/v1/lost                                                                  stream sequences that never came
//	/v1/keys                                                                  the signing key and the trust list: public keys and their status
//	/                                                                         the console, a page over this API
//	/verify                                                                   a page that verifies files in the browser
//	/verifier.wasm.gz                                                         the verifier that the console runs
//	/openapi.json                                                             this list for programs, with the shape of every answer
//	/healthz /readyz /metrics
//
// The first form is the evidence format's own (Plasm evidence format, section
// 15): prompt hash and session are folded to lower case, the run id is trimmed
// and its digits are folded. In /v1 paths the tenant "_" is the empty one.
//
// # Evidence
//
// An evidence answer is the stored bundle, decoded and written anew in the
// format's own member order, so that members unknown to the format are gone
// and hex is lower case. Before that it passed the format's "serve" check, or,
// for a run whose snapshot is at hand, "serve with run seal"; and strict
// verification in everything but spelling, so that a file under another head's
// or session's name, a run that the bundle does not seal, a weak or revoked
// key, and with a trust list a missing signature are refused too. An unplanned
// or nonconforming chain is served by chain only, and only what puts it into
// its class is forgiven. Answers carry
//
//	ETag               the SHA-256 of the bytes sent, strong
//	Repr-Digest        the same as RFC 9530 has it
//	Chaind-Head        head of the chain
//	Chaind-Class       heads, unplanned or nonconforming: where the bundle lies
//	Chaind-Signature   UNSIGNED, SIGNED-UNPINNED, TRUSTED or RETIRED
//	Chaind-Seal-Check  passed, artifact_absent, artifact_undecodable, or not_requested (no run was named)
//	Chaind-Record      matched, pending or unknown: whether these are the bytes that the store recorded at sealing
//	Content-Location   the address of exactly these bytes: by head, with ?sha256=
//
// Where the store has sealed a chain of the session with this head, the stored
// bytes must be those that it recorded then; where it has sealed the run that is
// asked for, the head must be of a chain that did, unless the daemon's own key
// signed the bundle (of a chain that a restored backup does not know). Anything
// else is refused with 422. "pending" is a chain that has ended and whose seal is
// not on record yet; "unknown" is evidence that the store knows nothing about:
// Plasm's own, of which only what it says itself was verified.
//
// Only that last address is cached without asking again. Conditional requests,
// Range and If-Range are RFC 9110's.
//
// # Trust bundles
//
// A trust bundle (docs/trust-bundles.md) is sent as it was sealed, byte for byte,
// as application/vnd.chaind.tsb+json. Before that it was verified as anybody can:
// what fails, and with a trust list what nobody on it signed, is refused (422); a
// degraded one is served and says itself what it does not establish. Answers
// carry ETag, Repr-Digest and Chaind-Signature as evidence does, and Chaind-Root.
// Their Content-Location, which holds ?sha256=, is cached without asking again.
//
// Every chain that ended has one, whatever its class and also without segments.
// That of an open chain is made for the answer as of the last event, whose epoch
// and stream sequence Chaind-As-Of tells ("1.42"); it is unsigned, also where
// there is a trust list, and its address is never cached without asking. A chain
// with more than 20,000 segments must have ended.
//
// A run id may stand in many chains. The bundle of a run is that of the conforming
// chain which ended last; else of the last one that ended; else of the last open
// one. Up to 31 others are in Link fields, rel="alternate".
//
// # Errors
//
// Every error is a problem document (RFC 9457): type, status, title, detail,
// in this order. For the evidence routes of the format these are 400 for a
// path parameter, 404, 422 when verification fails (detail as the format words
// it), 500 when the file does not decode. A run or chain that is unknown, one
// without segments and one that is not sealed yet have three different types.
//
//	urn:chaind:problem:run-open       404  the run's chain has not ended
//	urn:chaind:problem:run-nonconforming 404 the run's chain broke its plan or had none; see /v1/chains
//	urn:chaind:problem:unknown-chain  404
//	urn:chaind:problem:chain-open     409  the chain has not ended
//	urn:chaind:problem:chain-empty    409  the chain ended or stands without segments
//	urn:chaind:problem:bundle-none    404  the chain was sealed before there were trust bundles
//	urn:chaind:problem:seal-pending   503  the chain has ended, its evidence is being written
//	urn:chaind:problem:head-taken     409  the evidence of another scope stands under the chain's head
//	urn:chaind:problem:evidence-missing 500  the record names a file that is not there
//	urn:chaind:problem:header-too-long 431 target and header fields have more than 16 KiB
//	urn:chaind:problem:busy           503  all verifications are taken; Retry-After
//
// What net/http cannot read as a request it answers itself, in plain text, before
// anything here is asked: 400 (malformed, without Host, or plain HTTP where TLS is
// spoken), 417 (Expect), 431 (beyond 64 KiB), 501 (another Transfer-Encoding than
// chunked), 505 (another version of HTTP).
//
// # Pages
//
// Lists take limit (1 to 200, default 50) and after, the opaque cursor that
// the page before gave as next; next is null on the last page. A filter that
// matches little may give a short or empty page with a cursor. An unknown or
// repeated query parameter is 400. Pages of segments and attempts may be asked
// for with a limit of up to 1000, and may begin at from, a position counted
// from 0. Rejected events of one chain are asked for by
// tenant, prompt_hash, session and chain together.
//
// # Documents
//
// Members are always there and in this order; what is missing is null, or ""
// for a text, or [] for a list. Later versions may add members at the end.
// Digests are 64 lower-case hex digits, tenant "" is the empty tenant, and
// sequences, epochs and times (_ms: Unix milliseconds) are the store's.
//
//	chains: chains next
//	chain in a list: tenant prompt_hash session chain outcome reason conformity segments head run_ids duplicates late rejected epoch stream_seq sealed url coverage damage last_at_ms anchors
//	chain alone: the same, and conformity_codes coverage_why steps untold_steps event_count event_ids producer_head producer_signature lost first_stream_seq end_stream_seq evidence_url addenda_url bundle_url stream_weaknesses
//	anchors: trace_id plan_commit_ref plan_call_index
//	sealed: class head path bytes sha256 signed bundle_path bundle_root sealed_ms bundle_bytes bundle_sha256
//	step: step_id begun ended failed
//	lost range: stream epoch from to why recorded_ms
//	addenda: addenda next
//	addendum: ordinal event_id verb payload_sha256 producer_seq epoch stream_seq broker_ms at_ms phase step_id outcome reason kind_jcs
//	segments: segments next
//	segment: seq kind digest prev ORIGIN emitted_at_ms kind_jcs
//	attempts: attempts next
//	attempt: ordinal phase step_id step_index reason at_ms ORIGIN
//	ORIGIN: event_id verb payload_sha256 producer_seq epoch stream_seq broker_ms arrival
//	keys: signing pinned trusted
//	key: public_key key_id status comment
//	runs: runs next
//	run: run_id chain seq outcome conformity head sealed chain_url
//	rejections: rejected next
//	rejection: id chain subject stream_seq broker_ms event_id class detail payload_sha256 existing_sha256 after_end
//	epochs: epochs next
//	epoch: number stream stream_created_ns base applied why started_ms
//	lost ranges: lost next
//	readiness: ready causes
//	cause: cause detail
//
// The chain of a run or rejection is tenant, prompt_hash, session and chain;
// null for a rejected event whose subject names none. A rejected event's
// payload is not shown, whatever a publisher sent; its digest finds it in the
// stream of rejected events.
//
// # Tokens
//
// With [Config.Tokens] every route but the two pages, the verifier, /healthz and
// /readyz needs a bearer token; what a token may not read looks as if it did not exist.
// Details of /readyz and comments of /v1/keys are for tokens of all tenants.
package server
