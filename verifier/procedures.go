package verifier

import (
	"fmt"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
)

// Failure names why a procedure of the reference rejects (section 11).
type Failure string

const (
	EmptyChain           Failure = "EmptyChain"
	BrokenPrevLink       Failure = "BrokenPrevLink"
	HeadMismatch         Failure = "HeadMismatch"
	RunSealMismatch      Failure = "RunSealMismatch"
	MissingCompCommitted Failure = "MissingCompCommitted"
	CompCommitMismatch   Failure = "CompCommitMismatch"
	StepTopoMismatch     Failure = "StepTopoMismatch"
	SignatureInvalid     Failure = "SignatureInvalid"
)

// ReferenceError is the one error of a reference procedure.
type ReferenceError struct {
	Failure Failure
	Detail  string // our sentence, safe for a terminal

	problem string
	finding *Finding // where it was found; nil: no single segment
}

func (e *ReferenceError) Error() string { return string(e.Failure) + ": " + e.Detail }

// Problem is the text that the HTTP side of the format prescribes for the
// member "detail" of a problem document (sections 11 and 15). It is raw: parts
// of it may come from the request or the bundle.
func (e *ReferenceError) Problem() string { return e.problem }

// Outcomes are the outcomes of the reference's procedures. A nil outcome: the
// procedure did not run, because the file does not decode or, for
// ServeWithRunSeal, because no run and snapshot were given.
type Outcomes struct {
	Decoded          bool
	Verify           *Outcome
	Serve            *Outcome
	ServeWithRunSeal *Outcome
}

// Outcome of one procedure.
type Outcome struct {
	Head segments.Digest // when Err is nil
	Err  *ReferenceError
}

// Verify checks links, declared head and, when there is one, the signature. It
// returns the head that hashing gives, or a [*ReferenceError]: BrokenPrevLink,
// EmptyChain, HeadMismatch, SignatureInvalid. A nil trust list accepts any key,
// and an unsigned bundle passes any list, as in the reference; revoked keys
// count as not listed.
func Verify(b *segments.Bundle, trust *keys.TrustList) (segments.Digest, error) {
	return gather(b, "").reference(&b.Envelope, trust).verify().result()
}

// Serve is [Verify] and then the topology: the executed steps must be a
// subsequence of the first committed plan (MissingCompCommitted,
// StepTopoMismatch).
func Serve(b *segments.Bundle, trust *keys.TrustList) (segments.Digest, error) {
	return gather(b, "").reference(&b.Envelope, trust).serve().result()
}

// ServeWithSeal is [Serve] and then the seal of one run against its snapshot
// (RunSealMismatch). The run id is compared as text.
func ServeWithSeal(b *segments.Bundle, trust *keys.TrustList, runID string, snapshot *segments.SealDocument) (segments.Digest, error) {
	return gather(b, runID).reference(&b.Envelope, trust).serveWithSeal(snapshot).result()
}

// Emit is the check that an emitter makes before it lets a bundle out: the
// declared head is the digest of the last segment with its prev as stored, and
// the topology holds. The other links and the signature are not looked at.
// Errors: EmptyChain, HeadMismatch, MissingCompCommitted, StepTopoMismatch.
func Emit(b *segments.Bundle) (segments.Digest, error) {
	if len(b.Segments) == 0 {
		return segments.Digest{}, errEmptyChain()
	}
	head := b.Segments[len(b.Segments)-1].Digest()
	if b.Head == nil || *b.Head != head {
		return segments.Digest{}, errEmitHead(b.Head, head)
	}
	if err := gather(b, "").reference(&b.Envelope, nil).topology(); err != nil {
		return segments.Digest{}, err
	}
	return head, nil
}

// CompID compares the plan commit id of the first commit with the expected
// text, exactly (MissingCompCommitted, CompCommitMismatch).
func CompID(b *segments.Bundle, expected string) error {
	for i := range b.Segments {
		comp, ok := b.Segments[i].Kind.(*segments.CompCommitted)
		if !ok {
			continue
		}
		if comp.PlanCommitIDHex != expected {
			return errCompID(expected, comp.PlanCommitIDHex)
		}
		return nil
	}
	return errNoPlan()
}

// result turns an outcome into what the exported procedures return.
func (o *Outcome) result() (segments.Digest, error) {
	if o.Err != nil {
		return segments.Digest{}, o.Err
	}
	return o.Head, nil
}

func refusal(failure Failure, detail, problem string) *ReferenceError {
	return &ReferenceError{Failure: failure, Detail: detail, problem: problem}
}

func errEmptyChain() *ReferenceError {
	return refusal(EmptyChain, "the chain has no segments", "evidence chain is empty")
}

func errBrokenLink(seq uint64) *ReferenceError {
	err := refusal(BrokenPrevLink,
		fmt.Sprintf("segment seq %d does not point at the digest of the segment before it", seq),
		fmt.Sprintf("broken prev link at segment seq %d", seq))
	err.finding = &Finding{Code: CodeBrokenPrev, Seq: &seq, Detail: err.Detail}
	return err
}

func errHead(declared, computed segments.Digest) *ReferenceError {
	return refusal(HeadMismatch,
		fmt.Sprintf("the bundle declares head %s, its segments give %s", declared, computed),
		fmt.Sprintf("chain head mismatch: expected %s, got %s", declared, computed))
}

// errEmitHead differs from errHead when no head is declared: the format then
// names the computed head as the expected one.
func errEmitHead(declared *segments.Digest, computed segments.Digest) *ReferenceError {
	if declared != nil {
		return errHead(*declared, computed)
	}
	return refusal(HeadMismatch,
		fmt.Sprintf("the bundle declares no head, its last segment gives %s", computed),
		fmt.Sprintf("chain head mismatch: expected %s, got null", computed))
}

func errSignature(detail string) *ReferenceError {
	return refusal(SignatureInvalid, detail, "signature verification failed")
}

func errNoPlan() *ReferenceError {
	return refusal(MissingCompCommitted, "no plan was committed", "missing comp_committed segment")
}

func errCompID(expected, got string) *ReferenceError {
	return refusal(CompCommitMismatch,
		fmt.Sprintf("the first committed plan is %s, expected %s", quoted(got), quoted(expected)),
		fmt.Sprintf("comp commit mismatch: expected %s, got %s", expected, got))
}

// errTopology carries the index that the format's text names: always the
// length of the plan (Q18).
func errTopology(p *segments.Progress) *ReferenceError {
	missed := missedStep(p)
	err := refusal(StepTopoMismatch, missed.Detail, fmt.Sprintf("step_topo mismatch at index %d", len(p.Topo)))
	err.finding = &missed
	return err
}

// errOverrun refuses what the limits keep from being judged; the reference might
// accept it.
func errOverrun(order *segments.Order) *ReferenceError {
	planned := 0
	if order.First != nil {
		planned = len(order.First.Topo)
	}
	return refusal(StepTopoMismatch,
		"too many steps precede their plan or break the numbering for the plan to be compared with them",
		fmt.Sprintf("step_topo mismatch at index %d", planned))
}

func errRunSeal(runID, detail string) *ReferenceError {
	return refusal(RunSealMismatch, detail, "run seal digest mismatch for run_id "+runID)
}
