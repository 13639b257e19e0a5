package emitter

import (
	"encoding/hex"
	"strconv"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// draft is an event before it has its number, its time and its place in the chain.
type draft struct {
	verb      events.Verb
	id        string
	kind      segments.Kind // nil: attempt, or seal without a run
	phase     events.Phase  // attempts
	stepID    string
	stepIndex uint32
	reason    string
	preimage  events.Preimage
	anchors   *segments.Anchors
	outcome   events.Outcome
	more      bool
	final     bool
}

// closing is what the last seal says about the whole chain.
type closing struct {
	count     uint64
	head      *segments.Digest // nil: unknown, or no segment
	signature *segments.Signature
}

// encode writes the event as compact JSON. An id that was not given is derived
// from everything else in the event, so the same event always has the same one.
func (d *draft) encode(scope *segments.Scope, seq, atMS uint64, end *closing) (id string, payload []byte) {
	tail := d.appendTail(nil, scope, seq, atMS, end)
	id = d.id
	if id == "" {
		sum := segments.Sum(tail)
		id = string(d.verb) + "." + strconv.FormatUint(seq, 10) + "." + hex.EncodeToString(sum[:8])
	}
	payload = make([]byte, 0, len(tail)+len(id)+24)
	payload = append(payload, `{"v":1,"event_id":`...)
	payload = segments.AppendString(payload, id)
	return id, append(payload, tail...)
}

func (d *draft) appendTail(dst []byte, scope *segments.Scope, seq, atMS uint64, end *closing) []byte {
	dst = segments.AppendScope(appendName(dst, "scope"), scope)
	dst = appendNumber(dst, "at_ms", atMS)
	dst = appendNumber(dst, "producer_seq", seq)
	switch {
	case d.kind != nil:
		dst = segments.AppendKind(appendName(dst, "kind"), d.kind)
	case d.phase != "":
		dst = appendMember(append(dst, `,"kind":{"kind":"`+segments.TagStepExecuted+`"`...), "step_id", d.stepID)
		dst = append(appendNumber(dst, "step_index", uint64(d.stepIndex)), '}')
	}
	dst = appendOptional(dst, "phase", string(d.phase))
	dst = appendOptional(dst, "outcome", string(d.outcome))
	dst = appendOptional(dst, "reason", d.reason)
	dst = d.appendPreimage(dst)
	if d.anchors != nil {
		dst = segments.AppendAnchors(appendName(dst, "anchors"), d.anchors)
	}
	if d.more {
		dst = append(dst, `,"more":true`...)
	}
	if end != nil {
		dst = end.append(dst)
	}
	return append(dst, '}')
}

func (d *draft) appendPreimage(dst []byte) []byte {
	p := &d.preimage
	switch {
	case p.Text != nil:
		dst = append(dst, `,"preimage":{"text":`...)
		dst = segments.AppendString(dst, *p.Text)
	case p.Comp != nil:
		dst = append(append(dst, `,"preimage":{"comp":`...), p.Comp...)
	case p.Parsed != nil:
		dst = append(append(dst, `,"preimage":{"parsed":`...), p.Parsed...)
	case p.Artifact != nil:
		dst = append(append(dst, `,"preimage":{"artifact":`...), p.Artifact...)
	default:
		return dst
	}
	return append(dst, '}')
}

func (c *closing) append(dst []byte) []byte {
	dst = appendNumber(dst, "event_count", c.count)
	if c.head == nil {
		return dst
	}
	dst = appendMember(dst, "producer_head", c.head.String())
	if c.signature != nil {
		dst = append(dst, `,"producer_signature":{"public_key_hex":"`...)
		dst = append(dst, c.signature.PublicKeyHex...)
		dst = append(dst, `","signature_hex":"`...)
		dst = append(dst, c.signature.SignatureHex...)
		dst = append(dst, `"}`...)
	}
	return dst
}
