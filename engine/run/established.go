package run

import (
	"errors"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
)

// outcome says how the run ended, and holds the end against the last segment.
func (m *model) outcome() *claim {
	f := &m.facts
	c := newClaim("Outcome: ", "%s", f.Outcome)
	n := len(m.segments)
	if n > 0 {
		c.cite(segmentID(uint64(n - 1)))
	}
	switch f.Outcome {
	case Open:
		c.fail(", the run has not ended")
		if m.intake != nil {
			c.say(" as of stream sequence %d", m.intake.Last.StreamSeq)
		}
		c.say(".")
		if f.End != nil {
			c.fail(" The record contradicts itself: an event ended it.")
		}
		return c
	case Unrecorded:
		c.fail(", nothing says how the run ended.")
		return c
	}
	c.say(", as the daemon recorded.")
	if f.Reason != "" {
		c.say(" Reason given: %s.", quote(f.Reason))
	}
	m.end(c)
	return c
}

// end says which event ended the chain.
func (m *model) end(c *claim) {
	end, n := m.facts.End, len(m.segments)
	if end == nil {
		c.fail(" No event that ended the run is recorded.")
		return
	}
	fits := true
	last := end // the event that must be the end
	if !m.bareEnd() {
		last = m.segments[n-1].Event
		_, seal := m.segments[n-1].Kind.(*segments.RunSealed)
		fits = seal && last.Position == end.Position && equalNumber(last.ProducerSeq, end.ProducerSeq)
	}
	for e := range m.accepted() {
		fits = fits && (e == last || e.Position.compare(end.Position) < 0)
	}
	switch {
	case !fits:
		c.fail(" The event that ended it does not fit the last segment.")
	case last == end:
		c.say(" The event that ended it sealed no run.")
	default:
		c.say(" The event that ended it is segment %d.", n-1)
	}
}

func equalNumber(a, b *uint64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// chain recomputes every digest and link, the head and its signature.
func (m *model) chain() *claim {
	n := uint64(len(m.segments))
	if n == 0 && m.facts.Count == 0 && m.facts.Head == nil {
		c := newClaim("Chain: ", "")
		c.fail("empty, there is no segment.")
		return c
	}
	var walk segments.Walk
	broken := ""
	for i := range m.segments {
		s := &m.segments[i]
		if s.Kind == nil {
			break
		}
		if err := walk.Step(&s.Segment); err != nil {
			broken = err.Error()
			break
		}
	}
	c := newClaim("Chain: ", "")
	switch {
	case broken != "":
		c.fail("broken at segment %d, whose link is not the digest of the segment before it.", walk.Count)
	case len(m.broken) > 0:
		c.fail("broken at segment %d, whose digest does not recompute.", m.broken[0])
	case n != m.facts.Count:
		c.fail("not whole, %s instead of the %d recorded.", plural(n, "segment"), m.facts.Count)
	case m.facts.Head == nil || walk.Head == nil || *m.facts.Head != *walk.Head:
		c.fail("ends at another segment than the recorded head: %s leading to %s.", plural(n, "segment"), digestText(walk.Head))
	default:
		c.say("intact, %s; every digest and every link recomputes, up to head %s.", plural(n, "segment"), walk.Head)
	}
	if n > 0 {
		c.cite(segmentID(0))
		c.cite(segmentID(n - 1))
	}
	m.headSignature(c)
	return c
}

func digestText(d *segments.Digest) string {
	if d == nil {
		return "no head"
	}
	return d.String()
}

func (m *model) headSignature(c *claim) {
	sig, head := m.facts.Signature, m.facts.Head
	switch {
	case sig == nil:
		c.say(" The head is not signed.")
	case head == nil:
		c.fail(" There is a signature and no head.")
	default:
		if err := verifySignature(sig, &m.facts.Scope, *head); err != nil {
			c.fail(" The signature over the head does not hold: %v.", err)
			return
		}
		c.say(" The head is signed by key %s.", sig.PublicKeyHex)
	}
}

// Why a signature is not taken.
var (
	errBadKey       = errors.New("its key is no sound Ed25519 public key")
	errBadSignature = errors.New("it does not verify")
)

// verifySignature checks a head signature and refuses keys under which a
// signature shows nothing.
func verifySignature(sig *segments.Signature, scope *segments.Scope, head segments.Digest) error {
	key, err := keys.ParsePublicKey(sig.PublicKeyHex)
	if err != nil || key.String() != sig.PublicKeyHex {
		return errBadKey
	}
	if segments.VerifySignature(sig, scope, head) != nil {
		return errBadSignature
	}
	return nil
}

// intent says what binds the run to what was asked.
func (m *model) intent() *claim {
	if m.order.Intents == 0 {
		return newClaim("Intent: ", "none was bound.")
	}
	at := 0
	for m.segments[at].Kind == nil || m.segments[at].Kind.Tag() != segments.TagIntentBound {
		at++
	}
	k := m.segments[at].Kind.(*segments.IntentBound)
	c := newClaim("Intent: ", "bound by segment %d, %s, digest %s.", at, plural(uint64(k.IntentLen), "byte"), k.IntentDigest)
	c.cite(segmentID(uint64(at)))
	if at != 0 {
		c.fail(" It is not the first segment.")
	}
	if m.order.Intents > 1 {
		c.fail(" %s were bound.", plural(m.order.Intents, "intent"))
	}
	id, text, ok := m.kept(k)
	if !ok {
		c.say(" Its text is not kept.")
		return c
	}
	c.cite(id)
	intent, ok := jsonString(text)
	digest, length := segments.IntentDigest(intent, m.facts.Scope.CatalogCGSHash, m.facts.Scope.EntryID, nil)
	if !ok || digest != k.IntentDigest || length != k.IntentLen {
		c.fail(" The text that is kept is another.")
		return c
	}
	c.say(" Its text is kept and gives digest and length.")
	return c
}

// producer holds what the producer stated against the chain.
func (m *model) producer() *claim {
	p := m.facts.Producer
	if p == nil {
		return newClaim("Producer: ", "stated no head of its own.")
	}
	c := newClaim("Producer: ", "")
	n := uint64(len(m.segments))
	switch {
	case p.Segments == 0 || p.Segments > n || m.segments[p.Segments-1].Kind == nil:
		c.fail("stated head %s, and the chain had no segment that it could be of.", p.Head)
	case m.segments[p.Segments-1].Digest() != p.Head:
		c.cite(segmentID(p.Segments - 1))
		c.fail("disagrees, it stated head %s after %s.", p.Head, plural(p.Segments, "segment"))
	default:
		c.cite(segmentID(p.Segments - 1))
		c.say("agrees, it stated head %s after %s.", p.Head, plural(p.Segments, "segment"))
	}
	if c.holds && p.Segments < n {
		c.say(" It stated none for the %s that followed.", plural(n-p.Segments, "segment"))
	}
	switch {
	case p.Signature == nil:
		c.say(" It did not sign it.")
	default:
		if err := verifySignature(p.Signature, &m.facts.Scope, p.Head); err != nil {
			c.fail(" Its signature does not hold: %v.", err)
			return c
		}
		c.say(" It signed it with key %s.", p.Signature.PublicKeyHex)
	}
	return c
}
