package verifier

import (
	"fmt"
	"strings"

	"github.com/chaind/chaind/segments"
)

// facts is what one pass over the segments leaves behind. It holds nothing that
// grows with their number, except the bounded marks of plans.
type facts struct {
	asked string // run id whose seal is wanted; "": none
	plan  string // plan commit id that is expected; "": none

	walk   segments.Walk
	broken *uint64 // stored seq of the first segment with a wrong prev
	order  segments.Order
	strays int // bytes of the step ids that order remembers

	firstPlan string // plan commit ids
	lastPlan  string
	strange   uint64 // commits to other plans than the expected one
	stranger  string // the first of those

	seals  []RunSeal
	wanted *segments.Digest // digest of the first seal of the asked run

	lastMS *uint64

	errors   findings // of strict mode
	warnings findings
}

// gather runs over a bundle in memory.
func gather(b *segments.Bundle, asked string) *facts {
	f := &facts{asked: asked}
	for i := range b.Segments {
		f.observe(&b.Segments[i], b.Segments[i].Digest())
	}
	return f
}

// head is what hashing gives: nil for an empty chain and for a broken one.
func (f *facts) head() *segments.Digest {
	if f.broken != nil {
		return nil
	}
	return f.walk.Head
}

// observe takes the next segment and the digest of its preimage. It keeps
// neither, nor any of its texts but the topology.
func (f *facts) observe(s *segments.Segment, digest segments.Digest) {
	index := f.walk.Count
	f.link(s, digest, index)
	if s.Seq != index {
		f.fault(CodeSeqGap, s, index, fmt.Sprintf("segment %d of the array has seq %d", index, s.Seq))
	}
	f.sequence(s, index)
	f.clock(s, index)
	switch kind := s.Kind.(type) {
	case *segments.CompCommitted:
		f.commit(s, index, kind)
	case *segments.RunSealed:
		f.seal(s, index, kind)
	}
}

func (f *facts) fault(code Code, s *segments.Segment, index uint64, detail string) {
	seq := s.Seq
	finding := Finding{Code: code, Seq: &seq, Index: &index, Detail: detail}
	if step, ok := s.Kind.(*segments.StepExecuted); ok {
		finding.StepID = strings.Clone(clip(step.StepID))
	}
	f.errors.add(finding)
}

// link goes on after a broken link as if it had held, so that one altered
// segment is one finding.
func (f *facts) link(s *segments.Segment, digest segments.Digest, index uint64) {
	err := f.walk.Follows(s)
	f.walk.Add(digest)
	if err == nil {
		return
	}
	if f.broken == nil {
		seq := s.Seq
		f.broken = &seq
	}
	f.fault(CodeBrokenPrev, s, index, fmt.Sprintf(
		"segment seq %d does not point at the digest of the segment before it", s.Seq))
}

// sequence notes the first segment that breaks the order of kinds.
func (f *facts) sequence(s *segments.Segment, index uint64) {
	before := f.order.KindOrder
	f.order.Add(s)
	f.bound(s)
	if before == nil && f.order.KindOrder != nil {
		f.fault(CodeKindOrder, s, index, fmt.Sprintf(
			"%s (segment seq %d) comes after a later kind, or twice", s.Kind.Tag(), s.Seq))
	}
}

// bound makes the order of kinds and steps forget when steps outside of any
// plan would take memory without end.
func (f *facts) bound(s *segments.Segment) {
	if step, ok := s.Kind.(*segments.StepExecuted); ok && !f.order.Lean {
		if len(f.order.Tail) > 0 {
			f.strays += len(step.StepID)
		}
		f.order.Lean = len(f.order.Tail) > maxStrays || len(f.order.Seqs) > maxStrays || f.strays > maxStrayBytes
	}
}

// overrun reports whether steps and plans were mixed beyond what was
// remembered, so that no verdict about them is possible.
func (f *facts) overrun() bool {
	lost := f.order.Lean && f.order.KindOrder != nil
	first := f.order.First
	return lost && (first == nil && f.order.Comps > 0 || first != nil && first.Broken == nil)
}

func (f *facts) clock(s *segments.Segment, index uint64) {
	if s.EmittedAtMS == nil {
		return
	}
	if f.lastMS != nil && *s.EmittedAtMS < *f.lastMS {
		seq := s.Seq
		f.warnings.add(Finding{Code: CodeClockRegression, Seq: &seq, Index: &index,
			Detail: fmt.Sprintf("segment seq %d claims a time before that of the segment before it", s.Seq)})
	}
	ms := *s.EmittedAtMS
	f.lastMS = &ms
}

func (f *facts) commit(s *segments.Segment, index uint64, c *segments.CompCommitted) {
	if f.order.Comps == 1 {
		f.firstPlan = strings.Clone(c.PlanCommitIDHex)
	}
	f.lastPlan = strings.Clone(c.PlanCommitIDHex)
	if f.plan != "" && f.plan != c.PlanCommitIDHex {
		if f.strange++; f.strange == 1 {
			f.stranger = strings.Clone(clip(c.PlanCommitIDHex))
		}
	}
	if c.PlanCommitIDHex != c.CompSemanticSHA256.String() {
		f.fault(CodePlanIDMismatch, s, index, fmt.Sprintf(
			"plan commit id %s is not the digest %s of the plan", quoted(c.PlanCommitIDHex), c.CompSemanticSHA256))
	}
}

func (f *facts) seal(s *segments.Segment, index uint64, r *segments.RunSealed) {
	if len(f.seals) < maxSeals {
		f.seals = append(f.seals, RunSeal{s.Seq, strings.Clone(clip(r.RunID)), r.RunBundleDigest})
	}
	if f.wanted == nil && f.asked != "" && r.RunID == f.asked {
		digest := r.RunBundleDigest
		f.wanted = &digest
	}
	if r.RunID != segments.RunID(r.RunBundleDigest) {
		f.fault(CodeRunIDMismatch, s, index, fmt.Sprintf(
			"run id %s is not pr and the digest %s", quoted(r.RunID), r.RunBundleDigest))
	}
}
