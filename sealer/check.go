package sealer

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
)

// check looks at a bundle before it becomes evidence.
type check struct {
	*plan
	walk   segments.Walk
	order  segments.Order
	runs   map[string]struct{}
	runIDs []string // distinct, in order
}

// bundle reads the bytes of a bundle to their end. What does not fit is an
// [ErrContradiction]; another error is that of r.
func (c *check) bundle(r io.Reader) error {
	c.order.Lean, c.runs = true, make(map[string]struct{})
	env, deviations, err := segments.Read(r, c.segment)
	var text *segments.DecodeError
	switch {
	case errors.As(err, &text), errors.Is(err, segments.ErrTooLarge):
		return fmt.Errorf("%w: %w", ErrContradiction, err)
	case err != nil:
		return err
	case len(deviations) > 0:
		return fmt.Errorf("%w: %s at %s", ErrContradiction, deviations[0].Code, deviations[0].Path)
	}
	if err := c.envelope(env); err != nil {
		return fmt.Errorf("%w: %w", ErrContradiction, err)
	}
	return nil
}

func (c *check) segment(s *segments.Segment) error {
	if s.Seq != c.walk.Count {
		return fmt.Errorf("%w: segment %d has number %d", ErrContradiction, c.walk.Count, s.Seq)
	}
	if err := c.walk.Step(s); err != nil {
		return fmt.Errorf("%w: %w", ErrContradiction, err)
	}
	c.order.Add(s)
	if run, ok := s.Kind.(*segments.RunSealed); ok {
		if _, known := c.runs[run.RunID]; !known {
			c.runs[run.RunID] = struct{}{}
			c.runIDs = append(c.runIDs, run.RunID)
		}
	}
	return nil
}

func (c *check) envelope(env *segments.Envelope) error {
	at := sidecar.Place{Tenant: env.Scope.TenantID, PromptHash: env.Scope.PromptHash, Session: env.Scope.ExecuteSessionID}
	switch {
	case c.walk.Head == nil || *c.walk.Head != c.head:
		return fmt.Errorf("segments do not lead to head %s", c.head)
	case env.Head == nil || *env.Head != c.head:
		return fmt.Errorf("bundle does not declare head %s", c.head)
	case c.walk.Count != c.count:
		return fmt.Errorf("bundle has %d of %d segments", c.walk.Count, c.count)
	case env.Scope.SchemaVersion != segments.ScopeSchemaVersion:
		return fmt.Errorf("scope has schema version %d", env.Scope.SchemaVersion)
	case at != c.place:
		return errors.New("scope is of another session")
	case (env.Signature == nil) != (c.signature == nil):
		return errors.New("signature was lost")
	}
	if env.Signature != nil {
		if err := segments.VerifySignature(env.Signature, &env.Scope, c.head); err != nil {
			return err
		}
	}
	return c.conformity()
}

// conformity holds the class against the segments: nothing that the reference
// refuses may come under heads.
func (c *check) conformity() error {
	switch c.class {
	case sidecar.Heads:
		return conforming(&c.order)
	case sidecar.Unplanned:
		if c.order.Comps > 0 || c.order.KindOrder != nil {
			return errors.New("chain is called unplanned but has a plan, or broke the order of kinds")
		}
	}
	return nil
}

func conforming(o *segments.Order) error {
	if o.KindOrder != nil {
		return fmt.Errorf("order of kinds is broken at seq %d", o.KindOrder.Seq)
	}
	if o.First == nil {
		return errors.New("no plan was committed")
	}
	for _, p := range slices.DeleteFunc([]*segments.Progress{o.First, o.Last}, func(p *segments.Progress) bool { return p == nil }) {
		if p.Broken != nil {
			return fmt.Errorf("step %.64q at seq %d is not in the plan there", p.Broken.StepID, p.Broken.Seq)
		}
	}
	return nil
}
