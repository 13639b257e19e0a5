package server

import (
	"net/http"
	"strconv"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
)

// chainDetail is one chain with everything the store says about it.
type chainDetail struct {
	chainDocument
	ConformityCodes   []string         `json:"conformity_codes"`
	CoverageWhy       []string         `json:"coverage_why"`
	Steps             []stepDocument   `json:"steps"` // by step id, in order of appearance
	UntoldSteps       *stepDocument    `json:"untold_steps"`
	EventCount        *uint64          `json:"event_count"`   // as the producer declared it
	EventIDs          uint64           `json:"event_ids"`     // distinct ones seen up to the end
	ProducerHead      events.Agreement `json:"producer_head"` // agrees, differs; "" when not given
	ProducerSignature events.Agreement `json:"producer_signature"`
	Lost              []lostDocument   `json:"lost"` // ranges lost while the chain was open
	FirstStreamSeq    uint64           `json:"first_stream_seq"`
	EndStreamSeq      uint64           `json:"end_stream_seq"` // 0: open
	EvidenceURL       *string          `json:"evidence_url"`   // null: nothing to fetch yet
	AddendaURL        string           `json:"addenda_url"`
	BundleURL         string           `json:"bundle_url"`
	StreamWeaknesses  []string         `json:"stream_weaknesses"` // settings in force meanwhile under which evidence can vanish
}

// stepDocument counts the events of one step.
type stepDocument struct {
	StepID string `json:"step_id"`
	Begun  uint64 `json:"begun"`
	Ended  uint64 `json:"ended"`
	Failed uint64 `json:"failed"`
}

// lostDocument is a range of stream sequences that never came.
type lostDocument struct {
	Stream     string `json:"stream"`
	Epoch      uint32 `json:"epoch"`
	From       uint64 `json:"from"` // both included
	To         uint64 `json:"to"`
	Why        string `json:"why"`
	RecordedMS int64  `json:"recorded_ms"`
}

// chain describes one chain.
func (s *server) chain(w http.ResponseWriter, r *http.Request, a access) error {
	record, err := s.find(r, a)
	if err != nil {
		return err
	}
	return s.writeJSON(w, r, describeChain(record))
}

func describeChain(c *store.ChainRecord) chainDetail {
	conformity, codes := c.State.Conformity()
	d := chainDetail{
		chainDocument: chainDocument{
			keyDocument: describeKey(c.Key), Outcome: c.State.Outcome, Reason: c.State.Reason, Conformity: conformity,
			Segments: c.State.Segments, Head: hexOf(c.State.Head), RunIDs: notNil(c.State.RunIDs),
			Duplicates: c.State.Duplicates, Late: c.State.Late, Rejected: c.State.Rejected,
			Epoch: c.Epoch, StreamSeq: c.StreamSeq, Sealed: describeSeal(c.Seal), URL: chainURL(c.Key),
			LastAtMS: c.State.LastAtMS, Anchors: describeAnchors(&c.State.Anchors),
		},
		ConformityCodes: notNil(codes), Steps: describeSteps(c.State.Steps), Lost: describeLost(c.Lost), StreamWeaknesses: describeWeak(c.Weak),
		EventCount: c.State.Facts.Declared, EventIDs: c.State.Facts.IDs,
		ProducerHead: c.State.ProducerHead, ProducerSignature: c.State.ProducerSignature,
		FirstStreamSeq: c.State.FirstStreamSeq, EndStreamSeq: c.State.EndStreamSeq, AddendaURL: chainURL(c.Key) + "/addenda", BundleURL: chainURL(c.Key) + "/bundle",
	}
	if u := c.State.UntoldSteps; u.Begun+u.Ended+u.Failed > 0 {
		d.UntoldSteps = &describeSteps([]events.StepTally{u})[0]
	}
	covered, why := c.Coverage()
	d.Coverage, d.CoverageWhy = covered, notNil(why)
	if c.Seal != nil && c.Seal.Path != "" {
		url := chainURL(c.Key) + "/evidence"
		d.EvidenceURL = &url
	}
	return d
}

func describeSteps(tallies []events.StepTally) []stepDocument {
	steps := make([]stepDocument, len(tallies))
	for i, t := range tallies {
		steps[i] = stepDocument(t)
	}
	return steps
}

func describeLost(ranges []store.LostRange) []lostDocument {
	lost := make([]lostDocument, len(ranges))
	for i, l := range ranges {
		lost[i] = lostDocument{Stream: l.Stream.Name, Epoch: l.Epoch, From: l.From, To: l.To, Why: l.Why, RecordedMS: l.RecordedMS}
	}
	return lost
}

func describeWeak(weak []events.Weakness) []string {
	names := make([]string, len(weak))
	for i, w := range weak {
		names[i] = string(w)
	}
	return names
}

// chainEvidence serves the evidence of a chain, of whatever class. An unknown
// chain, one without segments, one that is open and one whose evidence is
// still being written are four answers.
func (s *server) chainEvidence(w http.ResponseWriter, r *http.Request, a access) error {
	record, err := s.find(r, a)
	if err != nil {
		return err
	}
	if p := notSealed(record); p != nil {
		return p
	}
	place := sidecar.Place{Tenant: record.Key.Tenant, PromptHash: record.Key.PromptHash, Session: record.Key.Session}
	return s.evidence(w, r, a, target{
		place: place, class: sidecar.Class(record.Seal.Class), head: *record.Seal.Head, recorded: &record.Seal.SHA256,
	})
}

// notSealed says why a chain has no evidence to fetch; nil: it has.
func notSealed(c *store.ChainRecord) *problem {
	switch {
	case c.State.Segments == 0:
		return &problem{typeChainEmpty, http.StatusConflict, "Chain has no segments", "events of this chain have been seen, but none became part of it (outcome: " + string(c.State.Outcome) + ")"}
	case c.State.Outcome == events.Open:
		return &problem{typeChainOpen, http.StatusConflict, "Chain is open", "the chain has not ended: " + strconv.FormatUint(c.State.Segments, 10) + " segments so far"}
	case c.Seal == nil || c.Seal.Head == nil:
		return &problem{typeSealPending, http.StatusServiceUnavailable, "Evidence is being written", "the chain has ended and its evidence has not been written yet"}
	}
	if c.Seal.Path == "" {
		return &problem{typeHeadTaken, http.StatusConflict, "Head is taken",
			"the evidence of another scope stands under head " + c.Seal.Head.String() + ", so this chain has no evidence file; its trust bundle is at " + chainURL(c.Key) + "/bundle"}
	}
	return nil
}

// addendumDocument is an event that came after the end of its chain.
type addendumDocument struct {
	Ordinal     uint64         `json:"ordinal"`
	EventID     string         `json:"event_id"`
	Verb        events.Verb    `json:"verb"`
	SHA256      string         `json:"payload_sha256"`
	ProducerSeq *uint64        `json:"producer_seq"`
	Epoch       uint32         `json:"epoch"`
	StreamSeq   uint64         `json:"stream_seq"`
	BrokerMS    uint64         `json:"broker_ms"`
	AtMS        *uint64        `json:"at_ms"`
	Phase       events.Phase   `json:"phase"`   // steps only
	StepID      string         `json:"step_id"` // attempts only
	Outcome     events.Outcome `json:"outcome"` // seals only
	Reason      string         `json:"reason"`
	KindJCS     *string        `json:"kind_jcs"` // canonical JSON of the segment that it would have been
}

type addendumPage struct {
	Addenda []addendumDocument `json:"addenda"`
	Next    *string            `json:"next"`
}

// addenda lists what came after the end of a chain.
func (s *server) addenda(w http.ResponseWriter, r *http.Request, a access) error {
	record, err := s.find(r, a)
	if err != nil {
		return err
	}
	q := newQuery(r)
	from, limit := q.number(), q.limit()
	if q.err != nil {
		return q.err
	}
	found, err := s.Store.Addenda(record.Key, from, limit)
	if err != nil {
		return err
	}
	page := addendumPage{Addenda: make([]addendumDocument, len(found))}
	for i := range found {
		page.Addenda[i] = describeAddendum(&found[i])
	}
	// A page may end early; only an empty one is the end.
	if n := len(found); n > 0 && found[n-1].Ordinal+1 < record.State.Late {
		page.Next = countCursor(found[n-1].Ordinal + 1)
	}
	return s.writeJSON(w, r, page)
}

func describeAddendum(a *store.Addendum) addendumDocument {
	d := addendumDocument{
		Ordinal: a.Ordinal, EventID: a.EventID, Verb: a.Verb, SHA256: a.Sum.String(), ProducerSeq: a.ProducerSeq, Epoch: a.Epoch,
		StreamSeq: a.StreamSeq, BrokerMS: a.BrokerMS, AtMS: a.AtMS, Phase: a.Phase, StepID: a.StepID, Outcome: a.Outcome, Reason: a.Reason,
	}
	if a.Kind != nil {
		text := string(segments.AppendKindJCS(nil, a.Kind))
		d.KindJCS = &text
	}
	return d
}
