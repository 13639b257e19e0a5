package daemon

import (
	"cmp"
	"context"
	"errors"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/store"
)

// compare walks both stores in the order of chains.
func (r *ReplayReport) compare(ctx context.Context, was, now *store.Store) (err error) {
	if was == nil {
		return nil
	}
	r.Compared = true
	a, b := &walk{store: was}, &walk{store: now}
	for err == nil {
		if err = errors.Join(a.fill(), b.fill(), ctx.Err()); err != nil || a.empty() && b.empty() {
			break
		}
		switch order := a.order(b); {
		case order < 0:
			r.differ(a.take(), nil)
		case order > 0:
			r.differ(nil, b.take())
		default:
			r.match(a.take(), b.take())
		}
	}
	return err
}

func (r *ReplayReport) match(was, now *store.ChainSummary) {
	if sameChain(was, now) {
		r.Same++
		return
	}
	r.differ(was, now)
}

func (r *ReplayReport) differ(was, now *store.ChainSummary) {
	if len(r.Differences) == MaxDifferences {
		r.More++
		return
	}
	d := Difference{Old: was, New: now}
	if was != nil {
		d.Key = was.Key
	} else {
		d.Key = now.Key
	}
	r.Differences = append(r.Differences, d)
}

// sameChain compares what a stream gives, whatever happened on the way into the
// store. Duplicates are not compared: a redelivery may count as one.
func sameChain(a, b *store.ChainSummary) bool {
	sameHead := (a.Head == nil) == (b.Head == nil) && (a.Head == nil || *a.Head == *b.Head)
	return sameHead && a.Damage == "" && b.Damage == "" && a.Segments == b.Segments && a.Outcome == b.Outcome &&
		a.Reason == b.Reason && a.Conformity == b.Conformity && a.Late == b.Late && a.Rejected == b.Rejected
}

// walk reads the chains of a store page by page.
type walk struct {
	store *store.Store
	page  []store.ChainSummary
	after string
	ended bool
}

func (w *walk) fill() error {
	for len(w.page) == 0 && !w.ended {
		page, next, err := w.store.Chains(store.ChainQuery{After: w.after, Limit: store.MaxPage})
		if err != nil {
			return err
		}
		w.page, w.after, w.ended = page, next, next == ""
	}
	return nil
}

func (w *walk) empty() bool { return len(w.page) == 0 }

func (w *walk) take() *store.ChainSummary {
	first := w.page[0]
	w.page = w.page[1:]
	return &first
}

// order says whose first chain comes first; an empty walk comes last.
func (w *walk) order(other *walk) int {
	switch {
	case w.empty():
		return 1
	case other.empty():
		return -1
	}
	return compareKeys(w.page[0].Key, other.page[0].Key)
}

func compareKeys(a, b events.Key) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.PromptHash, b.PromptHash), cmp.Compare(a.Session, b.Session), cmp.Compare(a.Chain, b.Chain))
}
