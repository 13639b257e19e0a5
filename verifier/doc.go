// Package verifier checks evidence without trusting whoever hands it over. It
// needs no network, no daemon and no credentials, and links no package that
// could reach them.
//
// # Two modes
//
// Strict mode accepts every bundle that an honest emitter writes, in whatever
// order and indentation it arrives, and refuses what only a lenient reader lets
// through. It collects all errors; the codes are those of the Plasm evidence
// format, section 16, and the table in codes.go.
//
// Reference mode judges as Plasm does: the procedures of section 11, each of
// which ends at its first error. [Verify], [Serve], [ServeWithSeal], [Emit] and
// [CompID] are the same procedures over a bundle in memory.
//
// # Report
//
// [Evidence] reads a bundle as a stream and returns a [*Report], never an
// error: whatever went wrong is in the report. A report lists every check of
// its mode with what became of it, so that a check that did not run is seen not
// to have run. [Report.AppendJSON] gives its stable JSON form:
//
//	{"report":"chaind-verify-1",        name and version of this shape
//	 "kind":"evidence",                 what was verified
//	 "mode":"strict",                   or "reference"
//	 "verdict":"PASS",                  one of the Verdict constants
//	 "summary":"...",                   one sentence
//	 "exit_code":0,
//	 "head":{"declared":hex|null,"computed":hex|null},
//	 "segments":n,                      segments read
//	 "scope":{...}|null,                as in the bundle; null: not decoded
//	 "plan":hex|null,                   plan id of the last commit
//	 "signature":{"state":"TRUSTED","public_key":text|null,"key_id":hex|null,"comment":text|null},
//	 "run_seals":{"count":n,"first":[{"seq":n,"run_id":text,"digest":hex},...]},
//	 "checks":[{"name":text,"status":"pass|warn|fail|skipped|not_applicable","detail":text},...],
//	 "errors":[finding,...],
//	 "warnings":[finding,...],
//	 "reference":null                   strict mode; in reference mode:
//	   {"decode":{"outcome":"accept|reject"},
//	    "verify":{"outcome":"accept","head":hex}|{"outcome":"reject","error":name}|null,
//	    "serve":..., "serve_with_run_seal":...},
//	 "bundle":null}                     trust bundles only, see below
//
// A finding is {"code":text,"detail":text} and, where they apply, "seq" and
// "index" (the stored number and the position of a segment), "step_id",
// "path" (JSON pointer), "offset" (bytes into the file), "more" (how many
// further findings of this code are not listed) and "where" (the leaf or member
// of a trust bundle). "state" is null when the signature was never looked at. Members are always there and in
// this order; later versions may add members at the end of an object, anything
// else changes the name in "report". Characters that could act on a terminal
// are written as \u escapes.
//
// # Trust bundles
//
// [TrustBundle] judges a trust bundle (.tsb) in two layers. The envelope shows
// that the file is the file; executing the content again, with package engine,
// shows that what it says follows from the evidence in it. A report of kind
// "trust-bundle" has the same shape; what is of evidence bundles alone is null,
// zero or empty, "mode" is "strict", and "bundle", null for a file that could
// not be read, is
//
//	{"root":{"stored":text|null,"computed":text|null},
//	 "canonical":bool,                  byte for byte the canonical text
//	 "domain":text|null,"engine_version":text|null,   as sealed; null: not looked at
//	 "installed":[text,...],            versions of that domain that are known here
//	 "taxonomy":"RE-DERIVED|INTEGRITY-ONLY|NOT-EVALUABLE"|null,
//	 "question":text|null,"refused":bool|null,        as recorded
//	 "run":null|                        what a run amounts to, when nothing fails
//	   {"outcome":text,"reason":text|null,"conformity":text,"coverage":text,
//	    "tenant":text,"prompt_hash":text,"session":text,"chain":text,
//	    "segments":n,"head":text|null,"run_ids":[text,...]},
//	 "claims":[{"index":n,"text":text,"recorded":bool,"verdict":text,"cause":text|null},...],
//	 "answer":"re-derives|differs|ranking-tie|not-performed"|null,
//	 "action":"none|re-derived|fails|not-evaluable"|null,
//	 "upstreams":[{"root":text,"verdict":text,"cause":text|null,"signature":text|null,"public_key":text|null},...],
//	 "withheld":{"count":n,"first":[text,...]}}
//
// "recorded" is what the file says of a claim; "verdict", one of the
// ClaimVerdict constants, is ours.
//
// # Exit codes
//
// 0 pass, 1 could not run, 2 a semantic check failed, 3 nothing failed but not
// everything was established, as with a chain that is not sealed, 4 the envelope is unreadable or broken (encoding, links,
// head, numbering, signature, trust), 5 policy, 64 usage. [WorstExit] ranks
// them for many files.
//
// # Memory
//
// A trust bundle is held in memory, with a bounded multiple of its size. For an
// evidence bundle memory does not grow with the number of segments. It grows with the largest
// segment, which the reader bounds, and so with the step lists of plans. A chain
// that mixes steps and plans beyond the limits (limits.go) is refused.
package verifier
