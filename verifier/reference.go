package verifier

import (
	"fmt"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
)

// referee applies the procedures of section 11 to the facts of a chain.
type referee struct {
	*facts
	env   *segments.Envelope
	trust *keys.TrustList
}

func (f *facts) reference(env *segments.Envelope, trust *keys.TrustList) *referee {
	return &referee{f, env, trust}
}

func (r *referee) verify() *Outcome {
	head, err := r.walked()
	if err == nil && r.env.Head != nil && *r.env.Head != head {
		err = errHead(*r.env.Head, head)
	}
	if err == nil {
		err = r.signature(head)
	}
	return outcome(head, err)
}

func (r *referee) serve() *Outcome {
	verified := r.verify()
	if verified.Err != nil {
		return verified
	}
	return outcome(verified.Head, r.topology())
}

func (r *referee) serveWithSeal(snapshot *segments.SealDocument) *Outcome {
	served := r.serve()
	if served.Err != nil {
		return served
	}
	return outcome(served.Head, r.runSeal(snapshot))
}

// failures gives the code and check of each failure.
var failures = map[Failure]Code{
	EmptyChain:           CodeEmptyChain,
	BrokenPrevLink:       CodeBrokenPrev,
	HeadMismatch:         CodeHeadMismatch,
	SignatureInvalid:     CodeSignatureInvalid,
	MissingCompCommitted: CodeCompMissing,
	StepTopoMismatch:     CodeTopoMismatch,
	RunSealMismatch:      CodeRunSealMismatch,
}

// asReference runs all three procedures for the report and judges by the last
// one that was asked for. What the caller demands beyond them is judged too.
func (j *judge) asReference() {
	r := j.facts.reference(j.env, j.o.Trust)
	out := &Outcomes{Decoded: true, Verify: r.verify(), Serve: r.serve()}
	last := out.Serve
	if asked := j.o.asked(); asked != "" && j.o.Artifact != nil {
		out.ServeWithRunSeal = r.serveWithSeal(j.o.Artifact)
		last = out.ServeWithRunSeal
	}
	j.report.Reference = out
	if last.Err != nil {
		j.errors.add(last.Err.found())
	} else {
		j.withoutSnapshot()
	}
	j.demands()
}

// found is the error as a finding.
func (e *ReferenceError) found() Finding {
	if e.finding != nil {
		return *e.finding
	}
	return Finding{Code: failures[e.Failure], Detail: e.Detail}
}

// withoutSnapshot asks of a run without snapshot what can be asked: that its
// seal is there.
func (j *judge) withoutSnapshot() {
	asked := j.o.asked()
	switch {
	case asked == "":
		j.note("run_seal", StatusNotApplicable, "no run was asked for")
	case j.o.Artifact != nil:
	case j.facts.wanted == nil:
		j.fail(CodeRunNotSealed, "no seal names run %s", quoted(asked))
	default:
		j.snapshot(asked)
	}
}

// demands holds the bundle against what the caller asked for on top.
func (j *judge) demands() {
	j.expectations()
	sig := j.env.Signature
	if sig != nil {
		head := j.env.Head
		if head == nil {
			head = j.facts.head()
		}
		j.report.Signature = examine(sig, &j.env.Scope, head).describe(sig, j.o.Trust)
		return
	}
	j.report.Signature.State = keys.Judge(nil, j.o.Trust)
	j.note("signature", StatusNotApplicable, "there is none, and the reference does not mind")
	if j.o.RequireSigned {
		j.fail(CodeSignatureNeeded, "a signature is required and there is none")
	} else {
		j.note("signed", StatusNotApplicable, "no signature was required")
	}
}

func outcome(head segments.Digest, err *ReferenceError) *Outcome {
	if err != nil {
		return &Outcome{Err: err}
	}
	return &Outcome{Head: head}
}

func (r *referee) walked() (segments.Digest, *ReferenceError) {
	switch {
	case r.broken != nil:
		return segments.Digest{}, errBrokenLink(*r.broken)
	case r.walk.Count == 0:
		return segments.Digest{}, errEmptyChain()
	}
	return *r.walk.Head, nil
}

// signature accepts what the reference accepts: no signature at all, weak keys,
// and without a list any key.
func (r *referee) signature(head segments.Digest) *ReferenceError {
	sig := r.env.Signature
	if sig == nil {
		return nil
	}
	e := examine(sig, &r.env.Scope, &head)
	switch entry, listed := r.trust.Lookup(e.claim.Key); {
	case r.trust == nil || listed && e.named && entry.Status != keys.Revoked:
	case e.fault != "":
		return errSignature("the key that the signature names is not among the trusted ones")
	case listed:
		return errSignature(revokedBy(e.claim.Key.ID()))
	default:
		return errSignature(untrustedBy(e.claim.Key.ID()))
	}
	if e.fault != "" {
		return errSignature(e.fault)
	}
	return nil
}

func (r *referee) topology() *ReferenceError {
	first := r.order.First
	switch {
	case r.overrun():
		return errOverrun(&r.order)
	case first == nil:
		return errNoPlan()
	case first.Broken != nil:
		return errTopology(first)
	}
	return nil
}

func (r *referee) runSeal(snapshot *segments.SealDocument) *ReferenceError {
	if r.wanted == nil {
		return errRunSeal(r.asked, "no seal names run "+quoted(r.asked))
	}
	if detail := sealFault(&r.env.Scope, snapshot, *r.wanted); detail != "" {
		return errRunSeal(r.asked, detail)
	}
	return nil
}

// sealFault recomputes the run digest of a snapshot (section 9.4), in both
// spellings of large floats (Q10), and says what is wrong; "": nothing.
func sealFault(scope *segments.Scope, snapshot *segments.SealDocument, sealed segments.Digest) string {
	digest, err := segments.RunDigest(scope, snapshot)
	if err != nil {
		return "the run digest of the snapshot cannot be computed"
	}
	if digest == sealed {
		return ""
	}
	older, err := segments.RunDigestOlder(scope, snapshot)
	if err == nil && older == sealed {
		return ""
	}
	return fmt.Sprintf("the run snapshot gives digest %s, the seal says %s", digest, sealed)
}
