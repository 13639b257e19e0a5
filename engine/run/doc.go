// Package run is the domain of trust bundles that seal one agent run: what an
// event chain and its intake record establish, recomputed from what the bundle
// packages. engine.domain is "evidence-run", engine.tessera_version
// "chaind-run-2"; the latter names this specification, not a program. What
// "chaind-run-1" has otherwise is under Compatibility.
//
// The graph is the whole chain, so that an omission after sealing shows, and it
// has one form: whoever reads a graph takes each node apart, makes the node
// again from what it read, and compares. A graph that would not come out the
// same (another order, an edge too many, an attribute twice, a sentence that
// says something else) is no evidence of this domain: re-execution fails, and
// so do the claims that rest on the place.
//
// # Nodes
//
// In this order: chain; segment:{seq} for 0, 1, 2, …; attempt:{at}; kept texts
// plan:{digest}, artifact:{digest}, intent:{digest}, parsed:{digest} in order
// of the first segment that they belong to; intake; rejected:{at}. {at} is the
// stream sequence, and "{epoch}.{stream sequence}" when the epoch is not the
// home epoch, the one that the intake record names (0 without one).
//
// Every record has source "run/{session}/{chain}", ingested_at "at-intake",
// locator kind "run-record" with the one part [kind of node, what stands behind
// the colon of the id] (for chain the chain's name, for intake the stream's),
// and the name null. kind is what stands before the colon. Attributes come in the order below; those with ?
// are left out when there is nothing to say. Numbers are decimal, digests and
// keys lower-case hex, [p] stands for
// {p}event_id? {p}producer_seq? {p}epoch? {p}stream_seq
// ({p}epoch only when it is not the home epoch), all left out when the event is
// not known.
//
//	chain     tenant session chain scope unscoped? outcome reason? conformity segments head? [end_]?
//	          public_key? signature? event_count? [event_count_ without id and number]?
//	          producer_head? producer_segments? producer_public_key? producer_signature?
//	segment   seq prev? digest kind_jcs []? at_ms? kind, then by kind: intent_len |
//	          planned_steps | step_id step_index requests | run_id
//	attempt   phase step_id step_index reason? [] at_ms?
//	plan, artifact, intent, parsed   json
//	intake    stream created_ns epoch [first_ without id and number] last_stream_seq attempts
//	          duplicates rejected (more_rejected rejected_sha256 more_ids more_counted?
//	          more_numbers? more_uncounted?)? lost* weak*
//	rejected  [] class detail? payload_sha256 existing_sha256?
//
// scope is the scope as an evidence bundle writes it; unscoped is "true" when no
// event carried it. outcome is open, succeeded, failed, cancelled, abandoned or
// unrecorded; conformity conforming, unplanned or nonconforming. kind_jcs is
// the canonical JSON of the segment's kind (RFC 8785), and digest the SHA-256
// of {"kind":kind_jcs,"prev":prev or null,"schema_version":2,"seq":seq} in
// canonical form. at_ms is Unix milliseconds. producer_segments is how many
// segments the chain had when producer_head was stated. phase is begin or
// failed. lost is "{epoch}:{first}-{last} {why}", weak a stream setting.
//
// json is the text that a digest was computed from: of plan and parsed as it
// stood; of intent the JSON string with the fewest escapes; of artifact the
// object display_lines, entry_id, parsed_preimage (as it stood),
// request_fingerprints, in this order, without white space between. Results and
// entities of a run are never packaged, intents and parsed expressions only on
// request.
//
// The first 100 rejected events are nodes. more_rejected counts the others,
// more_ids their distinct readable event ids that no packaged event has, more_counted,
// where it is another number, the same of those that came up to the position at which
// event_count was declared (ids of theirs that no event packaged up to there has),
// more_numbers their producer numbers as "0-4,7-7" (at most 1024 ranges), and
// rejected_sha256 is the SHA-256 of one line for each rejected event, packaged
// or not: "{epoch}.{stream sequence} {class} {payload_sha256} {event id}\n".
// more_uncounted is "true" beyond 65,536 ids or those ranges.
//
// The texts of the records, where Q(s) is s cut to 80 code points (then "…"),
// as a JSON string in canonical form, and N(n, "noun") is "1 noun" or "{n} nouns":
//
//	The run of chain Q(chain) in session Q(session): {outcome}, {conformity}, N(segments, "segment").
//	Segment {seq} binds an intent of N(intent_len, "byte"). | commits a plan of N(…, "step").
//	    | records that step Q(step_id) was executed. | seals run Q(run_id).
//	Step Q(step_id) was begun. | Step Q(step_id) failed[: Q(reason)].
//	The text of the plan that was kept. | …run snapshot, reduced to what its seal needs, that…
//	    | …intent that… | …parsed expression that…
//	The daemon recorded N(attempts, "attempt"), N(rejected, "rejection"), N(duplicates, "duplicate")
//	    and N(lost ranges, "lost range") on stream Q(stream).
//	The event at stream sequence {at} was rejected: Q(class).
//
// # Edges and kb
//
// For each node in order, its edges in this order: every segment, attempt and
// rejected node and the intake node "in" chain; a segment "follows" the one
// before it; a step "executes" the last commit before it; then, when its text
// is kept, an intent "binds", a commit "commits", a step "executes", a run seal
// "seals" it; an attempt "attempts" the last commit before it in the stream.
// There are no resolutions and no mentions. The kb is the records of the nodes,
// in their order.
//
// # Questions
//
// [QuestionRun], the default, is answered by all claims in the order below; the
// others of [Questions] by those they ask for and by every claim that does not
// hold, so that a narrow question hides nothing. Anything else is refused, in
// the refusal "Only these questions are answered: " and the questions, a space
// between. The route is run, outcome, plan, steps, requests or completeness,
// with the reason "recomputed from N(nodes, "record") of one run", or refused
// with "not one of the questions of this domain".
//
// # Claims
//
// A claim belongs to the shape whose label it starts with. Its grammar makes
// the claim of that shape anew from the whole graph. The claim is supported
// iff text and cited records are the same and the property holds; "unverified"
// therefore means: recomputed, and it does not hold, as its text says. ✗ marks
// the parts that make a claim one that does not hold. L(…) is a list of at most
// 20 entries with ", " between, then " and {n} more". Every claim cites chain.
//
//	chaind.run.outcome; cites the last segment
//	  Outcome: {outcome}, as the daemon recorded.[ Reason given: Q(reason).]
//	    and one of
//	    · The event that ended it is segment {n}.   (the last segment is a run seal, by event, number and position)
//	    · The event that ended it sealed no run.    (it comes after all events that are packaged)
//	    ✗ The event that ended it does not fit the last segment.
//	    ✗ No event that ended the run is recorded.
//	  ✗ Outcome: open, the run has not ended[ as of stream sequence {last_stream_seq}].[ The record contradicts itself: an event ended it.]
//	  ✗ Outcome: unrecorded, nothing says how the run ended.
//
//	chaind.run.chain_intact; cites the first and the last segment
//	  Chain: intact, N(n, "segment"); every digest and every link recomputes, up to head {head}.
//	  ✗ Chain: broken at segment {n}, whose link is not the digest of the segment before it. | …, whose digest does not recompute.
//	  ✗ Chain: not whole, N(n, "segment") instead of the {segments} recorded.
//	  ✗ Chain: ends at another segment than the recorded head: N(n, "segment") leading to {digest, or "no head"}.
//	    then The head is not signed. | The head is signed by key {key}.
//	    ✗ The signature over the head does not hold: its key is no sound Ed25519 public key. | …: it does not verify.
//	    ✗ There is a signature and no head.
//	  ✗ Chain: empty, there is no segment.
//
//	chaind.run.intent_bound; cites the segment and the kept text
//	  Intent: none was bound.
//	  Intent: bound by segment {n}, N(intent_len, "byte"), digest {digest}.[✗ It is not the first segment.][✗ N(n, "intent") were bound.]
//	    Its text is not kept. | Its text is kept and gives digest and length. | ✗ The text that is kept is another.
//
//	chaind.run.plan_committed; cites the last commit and its kept text
//	  Plan: none was committed.
//	  Plan: {digest} committed by segment {n} with N(n, "step")[: L(Q(step), …)].
//	    [ It is the last of N(n, "commit"), all of one plan. | …, which are of several plans.]
//	    [✗ The plan id of segment {n} is not the digest of its plan. | The text that is kept for segment {n} is another plan.
//	     | The plan that is kept for segment {n} has other steps.]
//	    Its text is kept and gives this id and these steps. (nothing, after ✗) | Its text is not kept.
//
//	chaind.run.steps_in_order; cites the first and the last executed step
//	  Steps: N(n, "step") executed of {planned} planned, in the committed order. | N(n, "step") executed without a plan.
//	    | none was executed, and none was planned. | ✗ not as committed, N(n, "step") executed. then, of these, those that apply:
//	      Segment {n} is out of place: the order is an intent, commits, steps, run seals.
//	      Step Q(step) of segment {n} is not in the plan, or not in its order.
//	      No event ever carried the scope.
//	    [ Not executed: L(Q(step) ({state}), …).]   state: no attempt recorded, failed, outcome unknown
//	    [✗ The chain was recorded as {conformity} and is {conformity}.]
//	    [ The expressions of N(n, "step") are kept and give their digests. | ✗ The expression that is kept for segment {n} is another.]
//
//	chaind.run.attempts; cites the first and the last attempt
//	  Attempts: none was recorded.
//	  Attempts: {n} begun and {n} failed, of N(n, "step").[ Outcome unknown: L(Q(step), …).]
//	    [ Failed: L(Q(step) (N(n, "time")[: Q(last reason)]), …).][ Ended: L(Q(step)[ (after N(n, "failure"))], …).]
//
//	chaind.run.requests_issued; cites the step with the most
//	  Requests: {n} issued by N(n, "executed step").[ The most, {n}, by step Q(step) of segment {n}.]
//	    [ N(n, "result") computed from the plan, without a request.]
//
//	chaind.run.runs_sealed; cites the first and the last run seal and the first kept snapshot
//	  Runs: none was sealed.
//	  Runs: {n} sealed, L(Q(run id) by segment {n}, …).
//	    No snapshot is kept. | N(n, "snapshot") kept, giving the digest that was sealed; all N(n, "request") in it are of executed steps.
//	    ✗ The run id of segment {n} is not pr and its digest. | ✗ The snapshot that is kept for segment {n} gives another digest.
//	    ✗ Of the N(n, "request") in the snapshot of segment {n}, {n} are of no executed step.
//
//	chaind.run.producer_agrees; cites the segment that the head is of
//	  Producer: stated no head of its own.
//	  Producer: agrees, it stated head {head} after N(n, "segment").[ It stated none for the N(n, "segment") that followed.]
//	  ✗ Producer: disagrees, it stated head {head} after N(n, "segment").
//	  ✗ Producer: stated head {head}, and the chain had no segment that it could be of.
//	    then It did not sign it. | It signed it with key {key}. | ✗ Its signature does not hold: {as for the chain}.
//
//	chaind.run.complete_at_intake; cites intake
//	  Intake: complete. | ✗ incomplete. | ✗ unspecified, the run has not ended.
//	    | ✗ unspecified, the producer declared neither a count, nor numbers, nor a head up to the end.[ Not every event has a number.]
//	    | ✗ unspecified, the producer declared a head up to the end, which does not cover attempts, and neither a count nor numbers.[ Not every event has a number.]
//	    then, of these, those that apply
//	      The producer's numbers have a hole: L({from} to {to}, …).
//	      The producer declared N(n, "event"), and there are {n}.
//	      The producer stated another head.
//	      The daemon recorded stream sequences {n} to {n} of epoch {n} as lost: Q(why).   (after more than 20 reasons: The daemon recorded more losses.)
//	      There are too many rejections to count their events.
//	      The record contradicts itself: {how}.
//	    N(n, "distinct event"): N(n, "segment"), N(n, "attempt")[, the end without a segment], N(n, "rejection").
//	    [ The producer declared {n}.][ The producer's numbers are {from} to {to}.]
//	    [ Nothing that the producer declared covers the end.]
//	    [ Of the rejections {n} are not packaged, only their digest {digest}.]
//	    The daemon recorded N(n, "lost range") and N(n, "duplicate"), on stream Q(stream) from sequence {n} to {n} of epoch {n}.
//	    [ It recorded stream settings that weaken evidence: L(Q(setting), …).]
//	  ✗ Intake: unrecorded, no daemon recorded how the events came in.
//
// # How it is recomputed
//
// Conformity is nonconforming when the kinds are not intent_bound?
// comp_committed* step_executed* run_sealed*, when the executed step ids are no
// subsequence of the first or of the last committed topology, or when the chain
// ended without a scope; else unplanned without a commit; else conforming.
//
// A step's state comes from its attempts and executed segments in stream order
// (epoch, then sequence): a begin opens it; an end or a failure closes one
// opening. Open is "outcome unknown"; else "ended" when it was executed; else
// "failed" when an attempt failed. That no attempt is recorded does not say that
// there was none.
//
// Requests are the fingerprints of executed steps but for those that start,
// trimmed, with "plan-compute:". Of several steps with the most the first is
// named. Plans, intents, expressions and snapshots are held against their
// digests as package segments does, in either spelling of large floats; the
// topology of a plan is its bind.topo. A fingerprint of a snapshot is looked up
// trimmed among those of executed steps, trimmed.
//
// Events are counted by distinct readable event id over segments, attempts,
// rejected events and the end when it is no segment, up to the position at
// which event_count was declared. Numbers are those of the same events without
// that bound and must be 0, 1, 2, … A chain is incomplete when count, numbers or
// producer head disagree, a range was lost, or the record contradicts itself (an
// accepted event without an id or with one that another has; a list out of
// stream order; two events at one position; an event outside of first_ to last_;
// a segment without an event; a count declared after the end). Otherwise it is
// complete when something of the producer's covers the end: numbers, of which no
// segment, attempt or end is without one; a count declared at the position of the
// end; or, when no event has a number and there is no attempt, since it covers
// neither, a head of the last segment, when the end is a segment or none is a run
// seal (else a run seal before the end may have brought the head). It is
// unspecified without: what was lost behind the last declaration nothing misses.
//
// # Verdicts
//
// A claim that does not hold makes a bundle DEGRADED (exit code 3), never FAIL:
// the record says what it says. So a run that is open, nonconforming, incomplete
// or not declared at all, empty, or contradicted by its producer is DEGRADED;
// one that is complete passes (0) whether it succeeded, failed, was cancelled or
// abandoned, planned or not. FAIL (2) means that the recorded answer is not the
// one that the packaged evidence gives.
//
// # What it cannot show
//
// Outcome, reason, times, attempts, rejections, losses, duplicates and stream
// settings are the word of the daemon, which the bundle's signature covers and
// nothing inside of it can prove; the producer's count, numbers, head and
// signature contradict it where they can, but an operator who leaves them all
// out before sealing, or rewrites a chain whose producer signed nothing, makes
// another sound bundle with another root. Texts that were kept can be left out
// in the same way. Only a root that was signed or noted before shows that.
//
// Some of what is packaged no claim rests on, so that it can be altered and
// sealed again without a claim to fail: at_ms; members of a plan that its id
// does not cover; detail, payload digests and, as far as the counts stay the
// same, event ids of rejected events; the way in which numbers that are only
// counted are split.
//
// # Compatibility
//
// All of the above, the limits included, is frozen under chaind-run-2, and the
// files in testdata hold it. A change of any text, attribute or rule takes
// another version, beside which this one stays.
//
// chaind-run-1 is the same but for the attribute more_counted, which it does not
// have, so that more_ids count wherever event_count was declared, and for the claim
// chaind.run.complete_at_intake. There a chain that is not incomplete is complete
// with any number, any count, or a head of the last segment, whichever events and
// seals gave them, and the sentence that nothing covers the end is left out with any
// count. So "complete" there may mean a declaration midway, behind which events may
// be lost that nothing misses: [Summary].Midway says of a bundle that it is complete
// in that sense alone. Whoever seals can still choose that version; a reader who
// cares looks at Midway.
package run
