package main

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/chaind/chaind/bundle"
	runs "github.com/chaind/chaind/engine/run"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/verifier"
)

// fromEvidence packs the run of an evidence file, with the texts behind its
// digests that the user has at hand.
func (c *bundleCmd) fromEvidence(a *app) (*bundle.Draft, error) {
	text, err := readBounded(a, c.Evidence, sidecar.MaxEvidence)
	if err != nil {
		return nil, &problem{code: exitEnvelope, err: err}
	}
	r := verifier.Evidence(a.ctx, bytes.NewReader(text), verifier.Options{})
	if r.ExitCode != exitOK && r.ExitCode != exitDegraded && r.ExitCode != exitSemantic {
		return nil, &problem{code: r.ExitCode, err: fmt.Errorf("%s is %s: %s", c.Evidence, r.Verdict, r.Summary), hint: "chaind verify " + c.Evidence + " shows what is wrong"}
	}
	whole, _, err := segments.ReadBundle(bytes.NewReader(text))
	if err != nil {
		return nil, &problem{code: exitEnvelope, err: err}
	}
	kept, err := c.preimages(a, whole)
	if err != nil {
		return nil, err
	}
	packed, err := runs.Pack(chainOf(whole, kept), runs.Keep{Plans: true, Artifacts: true, Intents: true})
	if err != nil {
		return nil, &problem{code: exitSemantic, err: err}
	}
	question := c.Question
	if question == "" {
		question = runs.QuestionRun
	}
	draft, _, err := packed.Draft(question)
	if err != nil {
		return nil, &problem{code: exitSemantic, err: err}
	}
	return draft, nil
}

// chainOf is what an evidence file alone says of a run.
func chainOf(b *segments.Bundle, kept []runs.Preimage) *runs.Chain {
	return &runs.Chain{
		Facts: runs.Facts{
			Scope: b.Scope, Outcome: runs.Unrecorded, Conformity: conformity(b.Segments),
			Count: uint64(len(b.Segments)), Head: b.Head, Signature: b.Signature,
		},
		Segments:  packedSegments(b.Segments),
		Preimages: each(kept),
	}
}

func conformity(list []segments.Segment) runs.Conformity {
	var order segments.Order
	for i := range list {
		order.Add(&list[i])
	}
	broken := func(p *segments.Progress) bool { return p != nil && p.Broken != nil }
	switch {
	case order.KindOrder != nil || broken(order.First) || broken(order.Last):
		return runs.Nonconforming
	case order.Comps == 0:
		return runs.Unplanned
	}
	return runs.Conforming
}

func packedSegments(list []segments.Segment) iter.Seq2[runs.Segment, error] {
	return func(yield func(runs.Segment, error) bool) {
		for i := range list {
			if !yield(runs.Segment{Segment: list[i]}, nil) {
				return
			}
		}
	}
}

func each[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, item := range list {
			if !yield(item, nil) {
				return
			}
		}
	}
}

// keeper collects texts for the segments whose digests they have.
type keeper struct {
	list []segments.Segment
	kept []runs.Preimage
}

// add finds the segment that a text belongs to: the first whose digest, as of
// names it, is the text's.
func (k *keeper) add(file, what string, digest segments.Digest, p runs.Preimage, of func(segments.Kind) *segments.Digest) error {
	at := slices.IndexFunc(k.list, func(s segments.Segment) bool {
		d := of(s.Kind)
		return d != nil && *d == digest
	})
	if at < 0 {
		return &problem{code: exitSemantic, err: fmt.Errorf("%s has the digest %s, and no %s of this run does", file, digest, what)}
	}
	p.Seq = uint64(at)
	k.kept = append(k.kept, p)
	return nil
}

// preimages reads the given texts, in the order of the segments that they belong
// to.
func (c *bundleCmd) preimages(a *app, b *segments.Bundle) ([]runs.Preimage, error) {
	k := &keeper{list: b.Segments}
	for _, name := range c.Plan {
		text, digest, err := readPlan(a, name)
		if err == nil {
			err = k.add(name, "plan", digest, runs.Preimage{Plan: text}, planDigest)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, name := range c.Artifact {
		text, digest, err := readSnapshot(a, name, &b.Scope)
		if err == nil {
			err = k.add(name, "sealed run", digest, runs.Preimage{Artifact: text}, sealDigest)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := c.intent(a, b, k); err != nil {
		return nil, err
	}
	slices.SortStableFunc(k.kept, func(x, y runs.Preimage) int { return cmp.Compare(x.Seq, y.Seq) })
	return k.kept, nil
}

func (c *bundleCmd) intent(a *app, b *segments.Bundle, k *keeper) error {
	if c.Intent == "" {
		return nil
	}
	text, err := readText(a, c.Intent)
	if err != nil {
		return err
	}
	intent := string(text)
	digest, _ := segments.IntentDigest(intent, b.Scope.CatalogCGSHash, b.Scope.EntryID, nil)
	return k.add(c.Intent, "intent", digest, runs.Preimage{Text: &intent}, intentDigest)
}

func readPlan(a *app, name string) ([]byte, segments.Digest, error) {
	text, err := readInput(a, name)
	if err != nil {
		return nil, segments.Digest{}, err
	}
	preimage, err := segments.AppendPlanPreimage(nil, text)
	if err != nil {
		return nil, segments.Digest{}, cannot(fmt.Errorf("read plan %s: %w", name, err), "")
	}
	return text, segments.Sum(preimage), nil
}

func readSnapshot(a *app, name string, scope *segments.Scope) ([]byte, segments.Digest, error) {
	text, err := readInput(a, name)
	if err != nil {
		return nil, segments.Digest{}, err
	}
	document, err := segments.DecodeSealDocument(text)
	if err != nil {
		return nil, segments.Digest{}, cannot(fmt.Errorf("read artifact %s: %w", name, err), "the full snapshot document is needed, not the projection that an agent is shown")
	}
	digest, err := segments.RunDigest(scope, document)
	if err != nil {
		return nil, segments.Digest{}, cannot(err, "")
	}
	return text, digest, nil
}

func planDigest(k segments.Kind) *segments.Digest {
	if c, ok := k.(*segments.CompCommitted); ok {
		return &c.CompSemanticSHA256
	}
	return nil
}

func sealDigest(k segments.Kind) *segments.Digest {
	if s, ok := k.(*segments.RunSealed); ok {
		return &s.RunBundleDigest
	}
	return nil
}

func intentDigest(k segments.Kind) *segments.Digest {
	if i, ok := k.(*segments.IntentBound); ok {
		return &i.IntentDigest
	}
	return nil
}
