package emitter

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// Receipt types.
const (
	ReceiptApplied = "applied" // events of the chain are durable
	ReceiptSealed  = "sealed"  // the evidence of the finished chain has been written
)

// Receipt is the message on evidence-receipts.{tenant}.{prompt_hash}.{session}.{chain}
// that follows a commit, as a JSON object (schemas/receipt.json). One message
// lists at most 64 events; a batch with more events of a chain brings several.
// Receipts are not stored and may be lost; publishing the same event again
// brings one (verdict duplicate). New members may be added: readers ignore
// what they do not know. Another "v" is another format.
type Receipt struct {
	V          int    `json:"v"`    // 1
	Type       string `json:"type"` // ReceiptApplied or ReceiptSealed
	Tenant     string `json:"tenant"`
	PromptHash string `json:"prompt_hash"`
	Session    string `json:"session"`
	Chain      string `json:"chain"`

	Stream    string `json:"stream"`     // name of the stream of events
	StreamSeq uint64 `json:"stream_seq"` // of the last event that the receipt covers

	LastEventID string         `json:"last_event_id,omitzero"` // "" when it could not be read
	ProducerSeq *uint64        `json:"producer_seq,omitzero"`  // of that event; nil: not given
	Outcome     events.Outcome `json:"outcome,omitzero"`       // set when the chain has ended in this receipt, and in sealed
	Head        string         `json:"head,omitzero"`          // head of the chain afterwards, 64 hex digits; "": no segment

	Events []EventReceipt `json:"events,omitzero"` // applied: in stream order
	Sealed *SealedReceipt `json:"sealed,omitzero"` // sealed only
}

// EventReceipt says what became of one event.
type EventReceipt struct {
	EventID   string         `json:"event_id,omitzero"` // "" when it could not be read
	SHA256    string         `json:"sha256"`            // of the payload, 64 hex digits
	StreamSeq uint64         `json:"stream_seq"`
	Verdict   events.Verdict `json:"verdict"`
	Class     events.Class   `json:"class,omitzero"`           // rejected: why
	Detail    string         `json:"detail,omitzero"`          // rejected: why, in words
	Existing  string         `json:"existing_sha256,omitzero"` // conflict: the digest that holds the id
	Head      string         `json:"head,omitzero"`            // head of the chain after this event
}

// SealedReceipt says where the evidence of a chain lies.
type SealedReceipt struct {
	Path       string `json:"path,omitzero"`        // of the sidecar, below the sidecar root; "": a chain without segments
	BundleRoot string `json:"bundle_root,omitzero"` // root of the trust bundle, 64 hex digits; "": none was made
}

// Key is the chain that the receipt belongs to.
func (r *Receipt) Key() events.Key {
	return events.Key{Tenant: r.Tenant, PromptHash: r.PromptHash, Session: r.Session, Chain: r.Chain}
}

// ParseReceipt reads a receipt: strict JSON, version 1, no more than 256 KiB.
// Members that it does not know are ignored.
func ParseReceipt(b []byte) (*Receipt, error) {
	if len(b) > maxReceiptBytes {
		return nil, fmt.Errorf("parse receipt: %d bytes are too many", len(b))
	}
	r := &Receipt{}
	if err := json.Unmarshal(b, r, jsontext.AllowDuplicateNames(false)); err != nil {
		return nil, fmt.Errorf("parse receipt: %w", err)
	}
	if r.V != 1 {
		return nil, fmt.Errorf("parse receipt: version %d is unknown", r.V)
	}
	return r, nil
}

// appendReceipt writes r as compact JSON in the order of the struct.
func appendReceipt(dst []byte, r *Receipt) []byte {
	dst = append(dst, `{"v":1,"type":"`...)
	dst = append(dst, r.Type...)
	dst = appendReceiptKey(append(dst, '"'), r.Key(), r.Stream)
	dst = appendNumber(dst, "stream_seq", r.StreamSeq)
	dst = appendOptional(dst, "last_event_id", r.LastEventID)
	if r.ProducerSeq != nil {
		dst = appendNumber(dst, "producer_seq", *r.ProducerSeq)
	}
	dst = appendOptional(dst, "outcome", string(r.Outcome))
	dst = appendOptional(dst, "head", r.Head)
	for i := range r.Events {
		if i == 0 {
			dst = append(dst, `,"events":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = appendEventReceipt(dst, &r.Events[i])
	}
	if len(r.Events) > 0 {
		dst = append(dst, ']')
	}
	if r.Sealed != nil {
		dst = append(dst, `,"sealed":{"path":`...)
		dst = segments.AppendString(dst, r.Sealed.Path)
		dst = appendOptional(dst, "bundle_root", r.Sealed.BundleRoot)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

func appendEventReceipt(dst []byte, e *EventReceipt) []byte {
	dst = append(dst, `{"sha256":"`...)
	dst = append(dst, e.SHA256...)
	dst = append(dst, '"')
	dst = appendOptional(dst, "event_id", e.EventID)
	dst = appendNumber(dst, "stream_seq", e.StreamSeq)
	dst = appendMember(dst, "verdict", string(e.Verdict))
	dst = appendOptional(dst, "class", string(e.Class))
	dst = appendOptional(dst, "detail", e.Detail)
	dst = appendOptional(dst, "existing_sha256", e.Existing)
	dst = appendOptional(dst, "head", e.Head)
	return append(dst, '}')
}

func appendMember(dst []byte, name, value string) []byte {
	dst = appendName(dst, name)
	return segments.AppendString(dst, value)
}

func appendOptional(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	return appendMember(dst, name, value)
}

func appendNumber(dst []byte, name string, value uint64) []byte {
	return strconv.AppendUint(appendName(dst, name), value, 10)
}

// appendName writes the name of a member that is not the first of its object.
func appendName(dst []byte, name string) []byte {
	dst = append(dst, `,"`...)
	dst = append(dst, name...)
	return append(dst, `":`...)
}
