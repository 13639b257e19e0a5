package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	evidence "github.com/chaind/chaind/engine/run"
	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/store"
)

// said is what a trust bundle says of a chain, read from its evidence.
type said struct {
	evidence.Summary
	facts         // segments, attempts and the end, each once, by position; the rejected events that are packaged
	end     place // the event that ended the chain
	lost    []string
	weak    []string
	numbers map[string]uint64 // of the intake record, and event_count of the chain
	head    string            // as the producer stated it; "": not stated
	exit    int               // exit code of its verification
}

// readSaid reads a bundle that was verified: what can not be read is a fault of
// this reader, or of the verifier.
func readSaid(b *bundle.Bundle, summary *evidence.Summary) (*said, error) {
	closure, err := engine.ReadClosure(b)
	if err != nil {
		return nil, err
	}
	chain, intake := closure.Graph.Node("chain"), closure.Graph.Node("intake")
	if chain == nil || intake == nil {
		return nil, fmt.Errorf("no chain or no intake record")
	}
	r := &nodeReader{}
	d := &said{Summary: *summary, numbers: map[string]uint64{}}
	r.home = uint32(r.number(intake, "epoch"))
	for _, name := range []string{"epoch", "last_stream_seq", "attempts", "duplicates", "rejected"} {
		d.numbers[name] = r.number(intake, name)
	}
	for _, a := range intake.Attributes {
		switch a[0] {
		case "lost":
			d.lost = append(d.lost, a[1])
		case "weak":
			d.weak = append(d.weak, a[1])
		}
	}
	if _, ok := chain.Attr("event_count"); ok {
		d.numbers["event_count"] = r.number(chain, "event_count")
	}
	d.head, _ = chain.Attr("producer_head")
	d.end = r.place(chain, "end", "end_")
	for i := range closure.Graph.Nodes {
		r.event(d, &closure.Graph.Nodes[i])
	}
	d.settle()
	return d, r.err
}

// settle puts the places in the order of the stream, with the end where it is no
// segment.
func (d *said) settle() {
	if !slices.ContainsFunc(d.places, func(p place) bool { return p.epoch == d.end.epoch && p.seq == d.end.seq }) {
		d.places = append(d.places, d.end)
	}
	slices.SortFunc(d.places, comparePlaces)
	for i := range d.places {
		d.places[i].arrival = uint64(i + 1)
	}
}

func comparePlaces(a, b place) int {
	return cmp.Or(cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.seq, b.seq))
}

// nodeReader takes attributes of nodes apart.
type nodeReader struct {
	home uint32 // epoch of what names none
	err  error  // the first
}

func (r *nodeReader) number(n *engine.Node, name string) uint64 {
	text, _ := n.Attr(name)
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		r.err = cmp.Or(r.err, fmt.Errorf("node %q: %s: %w", n.ID, name, err))
	}
	return number
}

func (r *nodeReader) place(n *engine.Node, kind, prefix string) place {
	p := place{kind: kind, epoch: r.home, seq: r.number(n, prefix+"stream_seq")}
	p.id, _ = n.Attr(prefix + "event_id")
	if _, ok := n.Attr(prefix + "epoch"); ok {
		p.epoch = uint32(r.number(n, prefix+"epoch"))
	}
	return p
}

func (r *nodeReader) event(d *said, n *engine.Node) {
	switch n.Kind {
	case "segment", "attempt":
		d.places = append(d.places, r.place(n, n.Kind, ""))
	case "rejected":
		p := r.place(n, n.Kind, "")
		text, _ := n.Attr("payload_sha256")
		sum, err := segments.ParseDigest(text)
		if err != nil {
			r.err = cmp.Or(r.err, fmt.Errorf("node %q: %w", n.ID, err))
		}
		class, _ := n.Attr("class")
		d.rejected = append(d.rejected, events.Rejection{EventID: p.id, Sum: sum, Class: events.Class(class), Epoch: p.epoch, Message: events.Message{StreamSeq: p.seq}})
	}
}

// packaged is how many rejected events a trust bundle has; it counts the others.
const packaged = 100

// standing lists what stands in a chain, in the order of the stream.
func standing(places []place) []string {
	places = slices.Clone(places)
	slices.SortFunc(places, comparePlaces)
	var list []string
	for _, p := range places {
		list = append(list, fmt.Sprintf("%s %s at %d:%d", p.kind, p.id, p.epoch, p.seq))
	}
	return list
}

func (d *said) standing() []string { return standing(d.places) }

func countOf(places []place, kind string) (n int) {
	for _, p := range places {
		if p.kind == kind {
			n++
		}
	}
	return n
}

// sums lists rejected events in the order of the stream.
func sums(list []events.Rejection) []string {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b events.Rejection) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.StreamSeq, b.StreamSeq))
	})
	var texts []string
	for _, r := range list {
		texts = append(texts, fmt.Sprintf("%s %s at %d:%d", r.Class, r.Sum, r.Epoch, r.StreamSeq))
	}
	return texts
}

// losses spells lost ranges as a trust bundle does: what one loss left is one.
func losses(lost []store.LostRange) []string {
	lost = slices.Clone(lost)
	slices.SortFunc(lost, func(a, b store.LostRange) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.From, b.From))
	})
	var texts []string
	for i := 0; i < len(lost); {
		first, last := lost[i], lost[i]
		for i++; i < len(lost) && lost[i].Epoch == last.Epoch && lost[i].Why == last.Why && lost[i].From == last.To+1; i++ {
			last = lost[i]
		}
		texts = append(texts, fmt.Sprintf("%d:%d-%d %s", first.Epoch, first.From, last.To, first.Why))
	}
	return texts
}

func textOf(d *segments.Digest) string {
	if d == nil {
		return ""
	}
	return d.String()
}
