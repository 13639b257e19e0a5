package emitter

import (
	"context"
	"errors"
	"fmt"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// Intent says what the agent was asked to do.
type Intent struct {
	EventID string // "": derived from the event
	Text    string // its digest and length are sent
	// KeepText sends the text too, so that the digest can be checked. The
	// daemon keeps it only if its own policy says so as well.
	KeepText bool
	Anchors  *segments.Anchors
}

// Commit commits to a plan.
type Commit struct {
	EventID string
	// Comp is the compiled plan, raw JSON. It is sent along unless OmitComp is set.
	Comp     []byte
	OmitComp bool
	// PlanDigest stands for Comp where that is not at hand.
	PlanDigest *segments.Digest
	StepTopo   []string // step ids in topological order
	Anchors    *segments.Anchors
}

// Step says that a step was executed.
type Step struct {
	EventID             string
	StepID              string
	StepIndex           uint32
	EntryID             *string // nil: absent
	RequestFingerprints []string
	SourceLine          string
	// Parsed is the parsed expression, raw JSON whose exact text is hashed;
	// ParsedDigest stands for it where it is not at hand.
	Parsed       []byte
	ParsedDigest *segments.Digest
	KeepParsed   bool // send Parsed along
	Anchors      *segments.Anchors
}

// Attempt says that a step was begun, or that it failed.
type Attempt struct {
	EventID   string
	StepID    string
	StepIndex uint32
	Failed    bool
	Reason    string // of the failure
}

// Seal ends the chain, or (with More) one of several return roots.
type Seal struct {
	EventID string
	Outcome events.Outcome // "": succeeded
	Reason  string

	// Artifact is the run snapshot (a JSON body with at least the members
	// that the seal needs): the run's digest and id are computed from it, and
	// it is sent along unless OmitArtifact is set.
	Artifact     []byte
	OmitArtifact bool
	// RunDigest stands for Artifact where that is not at hand. With neither
	// the seal carries an outcome and no run.
	RunDigest     *segments.Digest
	StepID        *string // of the return root; nil: absent
	ResourceIndex *uint64 // nil: absent

	More    bool // further seals follow
	Anchors *segments.Anchors
}

// Intent publishes an intent.
func (p *Publisher) Intent(ctx context.Context, in Intent) (Sent, error) {
	digest, length := segments.IntentDigest(in.Text, p.cfg.Scope.CatalogCGSHash, p.cfg.Scope.EntryID, nil)
	d := &draft{verb: events.VerbIntent, id: in.EventID, anchors: in.Anchors,
		kind: &segments.IntentBound{IntentDigest: digest, IntentLen: length}}
	if in.KeepText {
		d.preimage.Text = &in.Text
	}
	return p.publish(ctx, d)
}

// Commit publishes a commitment to a plan.
func (p *Publisher) Commit(ctx context.Context, c Commit) (Sent, error) {
	digest, err := digestOf(c.PlanDigest, c.Comp, "Comp or PlanDigest", segments.PlanDigest)
	if err != nil {
		return Sent{}, fmt.Errorf("commit plan: %w", err)
	}
	d := &draft{verb: events.VerbCommit, id: c.EventID, anchors: c.Anchors,
		kind: &segments.CompCommitted{PlanCommitIDHex: digest.String(), CompSemanticSHA256: digest, StepTopo: c.StepTopo}}
	if !c.OmitComp {
		d.preimage.Comp = c.Comp
	}
	return p.publish(ctx, d)
}

// Step publishes an executed step.
func (p *Publisher) Step(ctx context.Context, s Step) (Sent, error) {
	digest, err := digestOf(s.ParsedDigest, s.Parsed, "Parsed or ParsedDigest", func(b []byte) (segments.Digest, error) {
		return segments.ParsedDigest(b), nil
	})
	if err != nil {
		return Sent{}, fmt.Errorf("record step %q: %w", s.StepID, err)
	}
	d := &draft{verb: events.VerbStep, id: s.EventID, anchors: s.Anchors, kind: &segments.StepExecuted{
		StepID: s.StepID, StepIndex: s.StepIndex, EntryID: s.EntryID,
		RequestFingerprints: s.RequestFingerprints, SourceLine: s.SourceLine, ParsedExprDigest: digest,
	}}
	if s.KeepParsed {
		d.preimage.Parsed = s.Parsed
	}
	return p.publish(ctx, d)
}

// Attempt publishes that a step was begun or failed.
func (p *Publisher) Attempt(ctx context.Context, a Attempt) (Sent, error) {
	d := &draft{verb: events.VerbStep, id: a.EventID, phase: events.PhaseBegin, stepID: a.StepID, stepIndex: a.StepIndex}
	if a.Failed {
		d.phase, d.reason = events.PhaseFailed, a.Reason
	} else if a.Reason != "" {
		return Sent{}, errors.New("record attempt: a reason without a failure")
	}
	return p.publish(ctx, d)
}

// Seal publishes a seal. The last one (without More) carries the number of
// events, the head as the publisher computed it, and its signature when there is a key.
func (p *Publisher) Seal(ctx context.Context, s Seal) (Sent, error) {
	d := &draft{verb: events.VerbSeal, id: s.EventID, anchors: s.Anchors,
		outcome: s.Outcome, reason: s.Reason, more: s.More, final: !s.More}
	if s.RunDigest != nil || s.Artifact != nil {
		digest, err := digestOf(s.RunDigest, s.Artifact, "Artifact or RunDigest", p.runDigest)
		if err != nil {
			return Sent{}, fmt.Errorf("seal run: %w", err)
		}
		d.kind = &segments.RunSealed{RunID: segments.RunID(digest), StepID: s.StepID, ResourceIndex: s.ResourceIndex, RunBundleDigest: digest}
	}
	if !s.OmitArtifact {
		d.preimage.Artifact = s.Artifact
	}
	return p.publish(ctx, d)
}

func (p *Publisher) runDigest(artifact []byte) (segments.Digest, error) {
	doc, err := segments.DecodeSealDocument(artifact)
	if err != nil {
		return segments.Digest{}, err
	}
	return segments.RunDigest(&p.cfg.Scope, doc)
}

// digestOf returns the stated digest, or computes it from the text.
func digestOf(stated *segments.Digest, text []byte, names string, compute func([]byte) (segments.Digest, error)) (segments.Digest, error) {
	switch {
	case stated != nil:
		return *stated, nil
	case text != nil:
		return compute(text)
	}
	return segments.Digest{}, errors.New(names + " is missing")
}
