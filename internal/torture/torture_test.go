package main

import (
	"flag"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/store"
	"go.uber.org/goleak"
)

var (
	duration = flag.Duration("torture.d", 5*time.Second, "how long trouble is made")
	seed     = flag.Uint64("torture.seed", 0, "repeats a run's choices (0: a random one)")
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(play(role, os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

// A piece of data on a slow wire comes late, and a cut ends its delay at once.
func TestWire(t *testing.T) {
	far, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	w, err := newWire(far.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	near, err := net.Dial("tcp", w.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	out, err := far.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	const delay = 50 * time.Millisecond
	w.set(false, delay)
	start := time.Now()
	if _, err := near.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < delay {
		t.Errorf("through after %v", took)
	}
	w.set(false, time.Hour)
	if _, err := near.Write([]byte("y")); err != nil {
		t.Fatal(err)
	}
	w.set(true, 0)
	if n, err := out.Read(make([]byte, 1)); err == nil && n > 0 {
		if _, err := out.Read(make([]byte, 1)); err == nil { // the y had come through; nothing else does
			t.Error("the cut wire carries data")
		}
	}
}

func TestTorture(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	o := options{duration: *duration, seed: *seed, rate: 60}
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano())
	}
	v, err := torture(t.Context(), o, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	v.print(t.Output())
	for _, text := range v.violations {
		t.Error(text)
	}
	if v.tallies["acknowledged, event"] == 0 || v.tallies["undisturbed chains"] == 0 {
		t.Errorf("nothing was checked: %v", v.tallies)
	}
}

// The checker itself must bite: one thing at a time is wrong with a chain that
// is otherwise right, and each is found.
func TestCheckerFindsWhatIsWrong(t *testing.T) {
	key := keyOf("p0", "c0")
	sum := func(text string) string { return segments.Sum([]byte(text)).String() }
	acked := func(id string, seq uint64, order int) *told {
		return &told{what: whatEvent, id: id, sum: sum(id), order: order, acked: []copy{{seq, order}}}
	}
	at := func(id string, arrival uint64) place {
		return place{kind: "segment", id: id, sum: sum(id), arrival: arrival, epoch: 1, seq: arrival}
	}
	lose := func(f *facts, c *checker, places ...place) { // the broker lost the others, and what is there is complete
		f.places, c.lost = places, []store.LostRange{{From: 1, To: 2}}
		count := uint64(len(places))
		f.record = &store.ChainRecord{Fixed: &store.Fixed{}, State: &events.State{Outcome: events.Succeeded, Facts: events.Facts{Declared: &count}}}
	}
	for name, c := range map[string]struct {
		change func(*story, *facts, *checker)
		wrong  int
	}{
		"right":               {func(*story, *facts, *checker) {}, 0},
		"an event is missing": {func(_ *story, f *facts, _ *checker) { f.places = f.places[:2] }, 1},
		"missing, and named": {func(_ *story, f *facts, c *checker) {
			f.places = f.places[:2]
			c.lost = []store.LostRange{{From: 3, To: 9}}
		}, 0},
		"missing, and named in another epoch": {func(_ *story, f *facts, c *checker) {
			f.places = f.places[:2]
			c.lost = []store.LostRange{{Epoch: 1, From: 3, To: 9}}
			c.anchors = map[string]anchors{key.Tenant: {{order: 2, epoch: 2}, {order: 5, epoch: 2}}}
		}, 1},
		"missing, and named in a later epoch": {func(_ *story, f *facts, c *checker) {
			f.places = f.places[:2]
			c.lost = []store.LostRange{{Epoch: 2, From: 3, To: 9}}
			c.anchors = map[string]anchors{key.Tenant: {{order: 1, epoch: 1}, {order: 5, epoch: 1}}}
		}, 1},
		"missing, and named, where an epoch begins": {func(_ *story, f *facts, c *checker) {
			f.places = f.places[:2]
			c.lost = []store.LostRange{{Epoch: 1, From: 3, To: 9}}
			c.anchors = map[string]anchors{key.Tenant: {{order: 2, epoch: 1}, {order: 5, epoch: 2}}}
		}, 0},
		"durable, missing, named": {func(s *story, f *facts, c *checker) {
			f.places = f.places[:2]
			c.lost = []store.LostRange{{From: 3, To: 9}}
			s.told[2].durable = true
		}, 1},
		"twice":                {func(_ *story, f *facts, _ *checker) { f.places = append(f.places, at("b", 4)) }, 2}, // and so out of order
		"order":                {func(_ *story, f *facts, _ *checker) { f.places[0].arrival, f.places[1].arrival = 2, 1 }, 1},
		"other bytes":          {func(_ *story, f *facts, _ *checker) { f.places[1].sum = sum("x") }, 2}, // missing, and foreign
		"from nobody":          {func(_ *story, f *facts, _ *checker) { f.places = append(f.places, at("x", 4)) }, 1},
		"rejected from nobody": {func(_ *story, f *facts, _ *checker) { f.rejected = []events.Rejection{{EventID: "x"}} }, 1},
		"conflict beside the first": {func(s *story, f *facts, _ *checker) {
			s.told[1].what = whatConflict
			s.told[1].id, f.places[1].id = "a", "a"
		}, 1},
		"nonsense in the chain": {func(s *story, f *facts, _ *checker) { s.told[1].what = whatMalformed }, 1},
		"rejected without a reason": {func(s *story, f *facts, _ *checker) {
			f.places = f.places[:2]
			f.rejected = []events.Rejection{{EventID: "c", Sum: segments.Sum([]byte("c"))}}
		}, 1},
		"complete, and something was lost": {func(_ *story, f *facts, c *checker) { lose(f, c, at("b", 2), at("c", 3)) }, 1},
		"lost whole, and begun anew": {func(s *story, f *facts, c *checker) {
			s.forgot = []int{2}
			s.told = []*told{s.told[0], s.told[2]}
			lose(f, c, at("c", 3))
		}, 0},
		"taken up where something was left": {func(s *story, f *facts, c *checker) {
			s.told[2].order, s.told[2].acked[0].order = 4, 4
			s.forgot = []int{3}
			lose(f, c, at("b", 2), at("c", 3))
		}, 1},
		"its end lost, and forgotten": {func(s *story, f *facts, c *checker) {
			s.told[2].order, s.told[2].acked[0].order = 4, 4
			s.resumed, s.forgot = []int{3}, []int{3}
			lose(f, c, at("a", 1), at("c", 3))
		}, 0},
		"its end lost, and remembered": {func(s *story, f *facts, c *checker) {
			s.told[2].order, s.told[2].acked[0].order = 4, 4
			s.resumed = []int{3}
			lose(f, c, at("a", 1), at("c", 3))
		}, 1},
		"begun anew, and lost again": {func(s *story, f *facts, c *checker) {
			s.forgot = []int{1}
			s.told[0].order = 0
			lose(f, c, at("c", 3))
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := &story{key: key, flavour: flavourRaw, told: []*told{acked("a", 1, 1), acked("b", 2, 2), acked("c", 3, 3)}}
			f := &facts{places: []place{at("a", 1), at("b", 2), at("c", 3)}}
			v := &verdict{tallies: map[string]int{}}
			checker := &checker{v: v}
			c.change(s, f, checker)
			checker.chain(s, f)
			if len(v.violations) != c.wrong {
				t.Errorf("%d violations, want %d: %q", len(v.violations), c.wrong, v.violations)
			}
		})
	}
}

// What is in the store, rejected or not, tells the epochs of acknowledgements, and
// those of the others lie between.
func TestEpochsOfAcknowledgements(t *testing.T) {
	sum := func(text string) string { return segments.Sum([]byte(text)).String() }
	one := func(id string, seq uint64, order int) *told {
		return &told{what: whatEvent, id: id, sum: sum(id), order: order, acked: []copy{{seq, order}}}
	}
	s := &story{told: []*told{one("a", 7, 10), one("lost", 8, 20), one("b", 9, 30), one("c", 8, 40), one("again", 9, 50)}}
	s.told[4].acked[0].seq = 99 // a copy: what is in the chain is another
	f := &facts{
		places: []place{{id: "a", sum: sum("a"), epoch: 1, seq: 7}, {id: "c", sum: sum("c"), epoch: 3, seq: 8}, {id: "again", sum: sum("again"), epoch: 9, seq: 9}},
		rejected: []events.Rejection{{Sum: segments.Sum([]byte("b")), Epoch: 2, Message: events.Message{StreamSeq: 9}},
			{Sum: segments.Sum([]byte("lost")), Epoch: 7, Message: events.Message{StreamSeq: 1}}},
	}
	var a anchors
	a.anchor(s, f)
	a.sort()
	for order, epochs := range map[int][2]uint32{5: {0, 1}, 20: {1, 2}, 30: {1, 2}, 35: {2, 3}, 45: {3, 1 << 30}} {
		for epoch := range uint32(12) {
			if want := epochs[0] <= epoch && epoch <= epochs[1]; a.possible(order, epoch) != want {
				t.Errorf("at %d, epoch %d: want %t", order, epoch, want)
			}
		}
	}
}
