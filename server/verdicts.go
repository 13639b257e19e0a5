package server

import (
	"container/list"
	"sync"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
)

// question is everything that a verdict depends on. There is no file name in
// it: the head that a name promises and the digest of the bytes stand for the
// file, so changed bytes under an old name are a new question.
type question struct {
	place         sidecar.Place
	class         sidecar.Class
	head          segments.Digest // promised by the name; zero for the legacy form
	file          segments.Digest // of the stored bytes
	snapshot      segments.Digest // of the run's snapshot; zero: none at hand
	runID         string          // "": no run was named
	trust         *keys.TrustList // lists are never changed, only exchanged
	allowUnsigned bool
}

// verdict is what verification said about one question.
type verdict struct {
	problem   *problem // nil: may be served
	result    string   // label for metrics
	head      string   // of the chain, computed
	tenant    string   // as the scope has it
	signature keys.State
	signer    string // public key of the signature; "": unsigned
	seal      string // header Chaind-Seal-Check
	record    string // header Chaind-Record; "": not compared yet
	asStored  bool   // the bundle written anew is the file, byte for byte
}

// verdicts remembers the most recently asked questions.
type verdicts struct {
	mu    sync.Mutex
	limit int
	order *list.List // of *remembered, most recent first
	known map[question]*list.Element
}

type remembered struct {
	question question
	verdict  verdict
}

func newVerdicts(limit int) *verdicts {
	return &verdicts{limit: limit, order: list.New(), known: map[question]*list.Element{}}
}

func (v *verdicts) get(q question) (verdict, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	e, ok := v.known[q]
	if !ok {
		return verdict{}, false
	}
	v.order.MoveToFront(e)
	return e.Value.(*remembered).verdict, true
}

func (v *verdicts) put(q question, given verdict) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e, ok := v.known[q]; ok {
		e.Value.(*remembered).verdict = given
		v.order.MoveToFront(e)
		return
	}
	v.known[q] = v.order.PushFront(&remembered{q, given})
	if v.order.Len() > v.limit {
		oldest := v.order.Remove(v.order.Back()).(*remembered)
		delete(v.known, oldest.question)
	}
}
