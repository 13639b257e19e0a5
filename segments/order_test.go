package segments_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/chaind/chaind/segments"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// genChain draws chains over few step ids, so that they fit, repeat and
// contradict their plans often.
var genChain = rapid.Custom(func(t *rapid.T) []segments.Segment {
	id := rapid.SampledFrom([]string{"a", "b", "c", "d"})
	var list []segments.Segment
	seq := uint64(0)
	for range rapid.IntRange(0, 14).Draw(t, "n") {
		var k segments.Kind
		switch rapid.IntRange(0, 7).Draw(t, "kind") {
		case 0:
			k = &segments.IntentBound{}
		case 1, 2:
			k = &segments.CompCommitted{StepTopo: rapid.SliceOfN(id, 0, 6).Draw(t, "topo")}
		case 3:
			k = &segments.RunSealed{}
		default:
			k = &segments.StepExecuted{StepID: id.Draw(t, "id")}
		}
		list = append(list, segments.Segment{Seq: seq, Kind: k})
		seq += rapid.SampledFrom([]uint64{1, 1, 1, 0, 5}).Draw(t, "gap")
	}
	return list
})

// verdict is what an Order is asked for.
type verdict struct {
	KindOrder, First, Last *segments.Offence
	Comps                  uint64
	Missing                []string
}

// judge is the specification, with the whole chain at hand.
func judge(list []segments.Segment) verdict {
	var v verdict
	var comps [][]string
	var steps []segments.Offence
	rank, intents := 0, 0
	for _, s := range list {
		r, id := 0, ""
		switch k := s.Kind.(type) {
		case *segments.IntentBound:
			r = 1
			intents++
		case *segments.CompCommitted:
			r = 2
			comps = append(comps, k.StepTopo)
		case *segments.StepExecuted:
			r, id = 3, k.StepID
			steps = append(steps, segments.Offence{Seq: s.Seq, StepID: id})
		case *segments.RunSealed:
			r = 4
		}
		if v.KindOrder == nil && (r < rank || r == 1 && intents > 1) {
			v.KindOrder = &segments.Offence{Seq: s.Seq, StepID: id}
		}
		rank = max(rank, r)
	}
	v.Comps = uint64(len(comps))
	if len(comps) == 0 {
		return v
	}
	v.First, v.Last = misfit(comps[0], steps), misfit(comps[len(comps)-1], steps)
	for _, id := range comps[len(comps)-1] {
		ran := slices.ContainsFunc(steps, func(s segments.Offence) bool { return s.StepID == id })
		if !ran && !slices.Contains(v.Missing, id) {
			v.Missing = append(v.Missing, id)
		}
	}
	return v
}

func misfit(topo []string, steps []segments.Offence) *segments.Offence {
	at := 0
	for i := range steps {
		for at < len(topo) && topo[at] != steps[i].StepID {
			at++
		}
		if at == len(topo) {
			return &steps[i]
		}
		at++
	}
	return nil
}

func verdictOf(o *segments.Order) verdict {
	v := verdict{KindOrder: o.KindOrder, Comps: o.Comps}
	if o.First != nil {
		v.First, v.Last = o.First.Broken, o.AgainstLast().Broken
	}
	v.Missing, _ = o.Missing(100)
	return v
}

// Whatever the chain, and though the state is stored and read back between
// any two segments, the incremental verdict is that of the specification.
func TestOrderIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		list := genChain.Draw(r, "chain")
		o := new(segments.Order)
		for i := range list {
			o.Add(&list[i])
			if diff := cmp.Diff(judge(list[:i+1]), verdictOf(o)); diff != "" {
				t.Fatalf("%s after %d of %s", diff, i+1, describe(list))
			}
			if rapid.Bool().Draw(r, "store") {
				o = restored(t, o)
			}
		}
	})
}

func restored(t *testing.T, o *segments.Order) *segments.Order {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	back := new(segments.Order)
	if err := json.Unmarshal(text, back); err != nil {
		t.Fatal(err)
	}
	return back
}

func describe(list []segments.Segment) (s string) {
	for _, v := range list {
		s += fmt.Sprintf("%d:%s ", v.Seq, segments.AppendKindJCS(nil, v.Kind))
	}
	return s
}

// A lean order finds the first fault, and no fault where there is none.
func TestLeanOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		list := genChain.Draw(r, "chain")
		o := &segments.Order{Lean: true}
		for i := range list {
			o.Add(&list[i])
			want, got := judge(list[:i+1]), verdictOf(o)
			if len(o.Tail) != 0 || len(o.Seqs) != 0 {
				t.Fatal("a lean order keeps steps")
			}
			if diff := cmp.Diff(want.KindOrder, got.KindOrder); diff != "" || want.Comps != got.Comps {
				t.Fatal(diff)
			}
			if want.KindOrder != nil {
				return
			}
			if want.First != nil || want.Last != nil {
				want.Missing, got.Missing = nil, nil
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s after %d of %s", diff, i+1, describe(list))
			}
		}
	})
}

func TestHonestOrderStaysSmall(t *testing.T) {
	t.Parallel()
	const n = 10_000
	b := chainOf(append([]segments.Kind{honest(n)[0], honest(n)[1]}, honest(n)[1:]...)) // the comp twice, as after a dry run
	var o segments.Order
	for i := range b.Segments {
		o.Add(&b.Segments[i])
	}
	if o.Last != nil || len(o.Tail) != 0 || len(o.Seqs) != 1 || len(o.First.Ran) != n {
		t.Errorf("last %v, %d tail, %d runs, %d positions", o.Last != nil, len(o.Tail), len(o.Seqs), len(o.First.Ran))
	}
	if v := verdictOf(&o); v.KindOrder != nil || v.First != nil || v.Missing != nil {
		t.Errorf("%+v", v)
	}
}

func TestMissingIsBounded(t *testing.T) {
	t.Parallel()
	var o segments.Order
	o.Add(&segments.Segment{Kind: &segments.CompCommitted{StepTopo: []string{"a", "b", "b", "c", "d"}}})
	o.Add(&segments.Segment{Kind: &segments.StepExecuted{StepID: "c"}})
	ids, total := o.Missing(2)
	if !slices.Equal(ids, []string{"a", "b"}) || total != 3 {
		t.Errorf("%v, %d", ids, total)
	}
}

// Replaying earlier steps against each of many plans must not go quadratic.
func TestOrderOfManyPlansIsLinear(t *testing.T) {
	t.Parallel()
	const n = 20_000
	var topo []string
	for i := range n {
		topo = append(topo, fmt.Sprint(i))
	}
	var o segments.Order
	o.Add(&segments.Segment{Kind: &segments.CompCommitted{StepTopo: topo}})
	for _, id := range topo[n/2:] {
		o.Add(&segments.Segment{Kind: &segments.StepExecuted{StepID: id}})
	}
	start := time.Now()
	for i := range n {
		o.Add(&segments.Segment{Kind: &segments.CompCommitted{StepTopo: []string{topo[n/2], fmt.Sprint("x", i%2)}}})
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("%v for %d plans", d, n)
	}
	if b := o.AgainstLast().Broken; b == nil || b.StepID != topo[n/2+1] {
		t.Errorf("%+v", b)
	}
}
