package run

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"

	"github.com/chaind/chaind/segments"
)

// intake is the intake record as packaged: what the daemon said, and how many
// nodes of other kinds there must be.
type intake struct {
	Intake
	attempts uint64
	rejected uint64 // all, those of rest included
	rest     *rest  // nil: all rejected events are nodes
}

// rest stands for the rejected events that are no nodes.
type rest struct {
	count    uint64
	digest   segments.Digest // of the whole list, see [rejectedLine]
	ids      uint64          // distinct readable event ids that no packaged event has
	counted  *uint64         // the same up to where a count was declared; nil: as many
	numbers  []numberRange   // producer numbers of those with a readable id
	overflow bool            // more ids or ranges than are counted
}

// numberRange is a run of producer numbers, both ends included.
type numberRange struct{ from, to uint64 }

func (r *rest) write(a *attributes) {
	if r == nil {
		return
	}
	a.number("more_rejected", r.count)
	a.text("rejected_sha256", r.digest.String())
	a.number("more_ids", r.ids)
	if r.counted != nil {
		a.number("more_counted", *r.counted)
	}
	a.some("more_numbers", rangesText(r.numbers))
	if r.overflow {
		a.text("more_uncounted", "true")
	}
}

func readRest(r *reader) *rest {
	if _, ok := r.Attr("more_rejected"); !ok {
		return nil
	}
	out := &rest{count: r.number("more_rejected"), digest: r.digest("rejected_sha256"), ids: r.number("more_ids"), counted: r.someNumber("more_counted")}
	_, out.overflow = r.Attr("more_uncounted")
	ranges, ok := parseRanges(r.some("more_numbers"))
	out.numbers = ranges
	r.bad = r.bad || !ok || out.count == 0 || out.counted != nil && *out.counted == out.ids
	return out
}

// rangesText spells ranges: "0-4,7-7".
func rangesText(ranges []numberRange) string {
	parts := make([]string, len(ranges))
	for i, r := range ranges {
		parts[i] = fmt.Sprintf("%d-%d", r.from, r.to)
	}
	return strings.Join(parts, ",")
}

func parseRanges(text string) ([]numberRange, bool) {
	if text == "" {
		return nil, true
	}
	var out []numberRange
	for part := range strings.SplitSeq(text, ",") {
		from, to, _ := strings.Cut(part, "-")
		a, errA := strconv.ParseUint(from, 10, 53)
		b, errB := strconv.ParseUint(to, 10, 53)
		if errA != nil || errB != nil || a > b || len(out) == maxRestRanges {
			return nil, false
		}
		out = append(out, numberRange{a, b})
	}
	return out, true
}

// join sorts ranges and merges those that touch or overlap.
func join(ranges []numberRange) []numberRange {
	slices.SortFunc(ranges, func(a, b numberRange) int {
		switch {
		case a.from < b.from:
			return -1
		case a.from > b.from:
			return 1
		}
		return 0
	})
	out := ranges[:0]
	for _, r := range ranges {
		if n := len(out); n > 0 && r.from <= out[n-1].to+1 {
			out[n-1].to = max(out[n-1].to, r.to)
			continue
		}
		out = append(out, r)
	}
	return out
}

// rejections collects rejected events while a chain is packed.
type rejections struct {
	nodes []Rejected // the first maxRejected
	total uint64
	rest  *rest
	list  hash.Hash // of the lines of all
	ids   []Event   // of the rest the first ones with each readable id
	known map[string]bool
}

// add takes the next rejected event.
func (r *rejections) add(e Rejected) {
	if r.list == nil {
		r.list = sha256.New()
	}
	fmt.Fprint(r.list, rejectedLine(&e))
	r.total++
	if r.total <= maxRejected {
		r.nodes = append(r.nodes, e)
		return
	}
	if r.rest == nil {
		r.rest, r.known = &rest{}, map[string]bool{}
	}
	r.addRest(&e)
}

func (r *rejections) addRest(e *Rejected) {
	r.rest.count++
	if e.ID == "" {
		return
	}
	switch {
	case r.known[e.ID]:
	case len(r.ids) == maxRestIDs:
		r.rest.overflow = true
	default:
		r.known[e.ID] = true
		r.ids = append(r.ids, e.Event)
	}
	if e.ProducerSeq == nil {
		return
	}
	n := *e.ProducerSeq
	r.rest.numbers = join(append(r.rest.numbers, numberRange{n, n}))
	if len(r.rest.numbers) > maxRestRanges {
		r.rest.numbers, r.rest.overflow = r.rest.numbers[:maxRestRanges], true
	}
}

// rejectedLine is what the digest of a list of rejected events covers, for
// each: epoch, ".", stream sequence, class, SHA-256 of the payload, event id
// ("" when unreadable), with a space between and a line feed at the end.
func rejectedLine(r *Rejected) string {
	return fmt.Sprintf("%d.%d %s %s %s\n", r.Epoch, r.StreamSeq, r.Class, r.Sum, r.ID)
}

// end finishes the collection for a model that has everything else.
func (r *rejections) end(m *model) *rest {
	if r.rest == nil {
		return nil
	}
	r.rest.digest = segments.Digest(r.list.Sum(nil))
	r.rest.ids = r.beside(m, nil)
	if d := m.facts.Declared; d != nil {
		if n := r.beside(m, &d.At); n != r.rest.ids {
			r.rest.counted = &n
		}
	}
	return r.rest
}

// beside counts the ids of the rest that no packaged event has, up to a position;
// nil: all.
func (r *rejections) beside(m *model, until *Position) (n uint64) {
	packaged := m.packagedIDs(until)
	for i := range r.ids {
		if e := &r.ids[i]; !packaged[e.ID] && (until == nil || e.Position.compare(*until) <= 0) {
			n++
		}
	}
	return n
}
