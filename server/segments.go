package server

import (
	"net/http"
	"strconv"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/store"
)

// segmentDocument is one segment of a chain with its origin. kind_jcs is what
// the digest is computed over beside seq and prev (Plasm evidence format,
// section 4); whoever wants proof fetches the evidence instead.
type segmentDocument struct {
	Seq    uint64  `json:"seq"`
	Kind   string  `json:"kind"`
	Digest string  `json:"digest"`
	Prev   *string `json:"prev"` // null in the first
	originDocument
	EmittedAtMS *uint64 `json:"emitted_at_ms"`
	KindJCS     string  `json:"kind_jcs"`
}

// originDocument says which event something came from.
type originDocument struct {
	EventID     string      `json:"event_id"`
	Verb        events.Verb `json:"verb"`
	SHA256      string      `json:"payload_sha256"`
	ProducerSeq *uint64     `json:"producer_seq"`
	Epoch       uint32      `json:"epoch"`
	StreamSeq   uint64      `json:"stream_seq"`
	BrokerMS    uint64      `json:"broker_ms"`
	Arrival     uint64      `json:"arrival"` // position in the store's order of arrival
}

type segmentPage struct {
	Segments []segmentDocument `json:"segments"`
	Next     *string           `json:"next"`
}

// attemptDocument is a step's begin or failure, which is no segment.
type attemptDocument struct {
	Ordinal   uint64       `json:"ordinal"`
	Phase     events.Phase `json:"phase"`
	StepID    string       `json:"step_id"`
	StepIndex uint32       `json:"step_index"`
	Reason    string       `json:"reason"`
	AtMS      *uint64      `json:"at_ms"`
	originDocument
}

type attemptPage struct {
	Attempts []attemptDocument `json:"attempts"`
	Next     *string           `json:"next"`
}

func describeOrigin(o *store.Origin) originDocument {
	return originDocument{EventID: o.EventID, Verb: o.Verb, SHA256: o.Sum.String(), ProducerSeq: o.ProducerSeq,
		Epoch: o.Epoch, StreamSeq: o.StreamSeq, BrokerMS: o.BrokerMS, Arrival: o.Arrival}
}

// segments lists the segments of a chain, open or ended.
func (s *server) segments(w http.ResponseWriter, r *http.Request, a access) error {
	record, err := s.find(r, a)
	if err != nil {
		return err
	}
	from, limit, err := timelinePage(r)
	if err != nil {
		return err
	}
	found, err := s.Store.Segments(record.Key, from, limit)
	if err != nil {
		return err
	}
	page := segmentPage{Segments: make([]segmentDocument, len(found))}
	for i := range found {
		page.Segments[i] = describeSegment(&found[i])
	}
	if n := len(found); n > 0 && found[n-1].Segment.Seq+1 < record.State.Segments {
		page.Next = countCursor(found[n-1].Segment.Seq + 1)
	}
	return s.writeJSON(w, r, page)
}

func describeSegment(s *store.SegmentRecord) segmentDocument {
	return segmentDocument{
		Seq: s.Segment.Seq, Kind: s.Segment.Kind.Tag(), Digest: s.Segment.Digest().String(), Prev: hexOf(s.Segment.Prev),
		originDocument: describeOrigin(&s.Origin), EmittedAtMS: s.Segment.EmittedAtMS,
		KindJCS: string(segments.AppendKindJCS(nil, s.Segment.Kind)),
	}
}

// attempts lists the begins and failures of a chain's steps.
func (s *server) attempts(w http.ResponseWriter, r *http.Request, a access) error {
	record, err := s.find(r, a)
	if err != nil {
		return err
	}
	from, limit, err := timelinePage(r)
	if err != nil {
		return err
	}
	found, err := s.Store.Attempts(record.Key, from, limit)
	if err != nil {
		return err
	}
	page := attemptPage{Attempts: make([]attemptDocument, len(found))}
	for i := range found {
		t := &found[i]
		page.Attempts[i] = attemptDocument{Ordinal: t.Ordinal, Phase: t.Phase, StepID: t.StepID, StepIndex: t.StepIndex,
			Reason: t.Reason, AtMS: t.AtMS, originDocument: describeOrigin(&t.Origin)}
	}
	// The store does not count attempts alone, so that the page after the last
	// may be empty.
	if n := len(found); n > 0 {
		page.Next = countCursor(found[n-1].Ordinal + 1)
	}
	return s.writeJSON(w, r, page)
}

// timelinePage reads the parameters of the two lists, whose pages may be
// larger than those of other lists and may begin anywhere.
func timelinePage(r *http.Request) (from uint64, limit int, err error) {
	q := newQuery(r)
	from, limit = q.number(), q.upTo(maxTimelinePage)
	if q.values.Has("from") {
		if q.values.Has("after") {
			q.fail("from and after both say where to begin")
		}
		if from, err = strconv.ParseUint(q.values.Get("from"), 10, 64); err != nil {
			q.fail("from must be a number from 0 on")
		}
	}
	return from, limit, q.err
}
