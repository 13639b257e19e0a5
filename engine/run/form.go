package run

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/segments"
)

// Kinds of nodes; also what stands before the colon of their ids.
const (
	kindChain    = "chain"
	kindSegment  = "segment"
	kindAttempt  = "attempt"
	kindPlan     = "plan"
	kindArtifact = "artifact"
	kindIntent   = "intent"
	kindParsed   = "parsed"
	kindIntake   = "intake"
	kindRejected = "rejected"
)

// form turns the parts of a chain into nodes. Everything in a node follows
// from the part, the source and the home epoch.
type form struct {
	source string // origin of all records: "run/" session "/" chain
	home   uint32 // epoch that positions need not name
}

func newForm(f *Facts) form {
	out := form{source: "run/" + f.Scope.ExecuteSessionID + "/" + f.Name}
	if f.Intake != nil {
		out.home = f.Intake.Last.Epoch
	}
	return out
}

// ingestedAt marks all records: what is known of times are attributes.
const ingestedAt = "at-intake"

func (f form) node(kind, key, text string, a attributes) engine.Node {
	id := kind
	if kind != kindChain && kind != kindIntake {
		id += ":" + key
	}
	return engine.Node{
		Record: engine.Record{
			ID: id, Source: f.source, IngestedAt: ingestedAt, Text: text,
			Locator: engine.Locator{Kind: "run-record", Parts: []engine.Pair{{kind, key}}},
		},
		Kind: kind, Attributes: a,
	}
}

func (f form) chain(c *Facts) engine.Node {
	var a attributes
	a.text("tenant", c.Scope.TenantID)
	a.text("session", c.Scope.ExecuteSessionID)
	a.text("chain", c.Name)
	a.text("scope", string(segments.AppendScope(nil, &c.Scope)))
	if c.Unscoped {
		a.text("unscoped", "true")
	}
	a.text("outcome", string(c.Outcome))
	a.some("reason", c.Reason)
	a.text("conformity", string(c.Conformity))
	a.number("segments", c.Count)
	a.someDigest("head", c.Head)
	a.event("end_", c.End, f.home)
	a.signature("", c.Signature)
	if c.Declared != nil {
		a.number("event_count", c.Declared.Count)
		a.position("event_count_", c.Declared.At, f.home)
	}
	if c.Producer != nil {
		a.text("producer_head", c.Producer.Head.String())
		a.number("producer_segments", c.Producer.Segments)
		a.signature("producer_", c.Producer.Signature)
	}
	text := fmt.Sprintf("The run of chain %s in session %s: %s, %s, %s.", quote(c.Name), quote(c.Scope.ExecuteSessionID), c.Outcome, c.Conformity, plural(c.Count, "segment"))
	return f.node(kindChain, c.Name, text, a)
}

// segment appends the attributes to a.
func (f form) segment(a attributes, s *Segment, digest segments.Digest, kindJCS string) engine.Node {
	a = slices.Grow(a, 13)
	a.number("seq", s.Seq)
	a.someDigest("prev", s.Prev)
	a.text("digest", digest.String())
	a.text("kind_jcs", kindJCS)
	a.event("", s.Event, f.home)
	a.someNumber("at_ms", s.EmittedAtMS)
	a.text("kind", s.Kind.Tag())
	text := "Segment " + strconv.FormatUint(s.Seq, 10)
	switch k := s.Kind.(type) {
	case *segments.IntentBound:
		a.number("intent_len", uint64(k.IntentLen))
		text += " binds an intent of " + plural(uint64(k.IntentLen), "byte") + "."
	case *segments.CompCommitted:
		a.number("planned_steps", uint64(len(k.StepTopo)))
		text += " commits a plan of " + plural(len(k.StepTopo), "step") + "."
	case *segments.StepExecuted:
		a.text("step_id", k.StepID)
		a.number("step_index", uint64(k.StepIndex))
		a.number("requests", uint64(len(k.RequestFingerprints)))
		text += " records that step " + quote(k.StepID) + " was executed."
	case *segments.RunSealed:
		a.text("run_id", k.RunID)
		text += " seals run " + quote(k.RunID) + "."
	}
	return f.node(kindSegment, strconv.FormatUint(s.Seq, 10), text, a)
}

func (f form) attempt(t *Attempt) engine.Node {
	var a attributes
	a.text("phase", t.Phase)
	a.text("step_id", t.StepID)
	a.number("step_index", uint64(t.StepIndex))
	a.some("reason", t.Reason)
	a.event("", &t.Event, f.home)
	a.someNumber("at_ms", t.AtMS)
	text := "Step " + quote(t.StepID) + " was begun."
	if t.Phase == PhaseFailed {
		text = "Step " + quote(t.StepID) + " failed" + because(t.Reason) + "."
	}
	return f.node(kindAttempt, f.at(t.Position), text, a)
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + quote(reason)
}

// at spells a position in an id.
func (f form) at(p Position) string {
	seq := strconv.FormatUint(p.StreamSeq, 10)
	if p.Epoch != f.home {
		return strconv.FormatUint(uint64(p.Epoch), 10) + "." + seq
	}
	return seq
}

// preimage is the node of a kept text; key is the digest that it was kept for.
func (f form) preimage(kind, key, json string) engine.Node {
	what := map[string]string{
		kindPlan: "plan", kindArtifact: "run snapshot, reduced to what its seal needs,",
		kindIntent: "intent", kindParsed: "parsed expression",
	}[kind]
	return f.node(kind, key, "The text of the "+what+" that was kept.", attributes{{"json", json}})
}

func (f form) intake(i *intake) engine.Node {
	var a attributes
	a.text("stream", i.Stream)
	a.text("created_ns", strconv.FormatInt(i.CreatedNS, 10))
	a.number("epoch", uint64(i.Last.Epoch))
	a.position("first_", i.First, f.home)
	a.number("last_stream_seq", i.Last.StreamSeq)
	a.number("attempts", i.attempts)
	a.number("duplicates", i.Duplicates)
	a.number("rejected", i.rejected)
	i.rest.write(&a)
	for _, l := range i.Lost {
		a.text("lost", lostText(l))
	}
	for _, w := range i.Weak {
		a.text("weak", w)
	}
	text := fmt.Sprintf("The daemon recorded %s, %s, %s and %s on stream %s.", plural(i.attempts, "attempt"), plural(i.rejected, "rejection"),
		plural(i.Duplicates, "duplicate"), plural(len(i.Lost), "lost range"), quote(i.Stream))
	return f.node(kindIntake, i.Stream, text, a)
}

// lostText spells a lost range: epoch, first and last sequence, why.
func lostText(l Lost) string { return fmt.Sprintf("%d:%d-%d %s", l.Epoch, l.From, l.To, l.Why) }

func (f form) rejected(r *Rejected) engine.Node {
	var a attributes
	a.event("", &r.Event, f.home)
	a.text("class", r.Class)
	a.some("detail", r.Detail)
	a.text("payload_sha256", r.Sum.String())
	a.someDigest("existing_sha256", r.Existing)
	text := "The event at stream sequence " + f.at(r.Position) + " was rejected: " + quote(r.Class) + "."
	return f.node(kindRejected, f.at(r.Position), text, a)
}
