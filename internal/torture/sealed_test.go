package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	evidence "github.com/chaind/chaind/engine/run"
	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/sealer"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
)

// past is a history made by hand: what a producer wrote down, and what a store
// and a sealer made of it.
type past struct {
	t     *testing.T
	store *store.Store
	diary *diary
	seq   uint64
}

// send makes the producer write, and the store take in, one message.
func (p *past) send(chain, what string, n int) {
	p.t.Helper()
	_, _, payload := message(producerName(0), chain, what, n)
	p.give(chain, what, n, payload)
}

func (p *past) give(chain, what string, n int, payload []byte) {
	p.t.Helper()
	p.write(chain, what, n, payload)
	verb := events.VerbStep
	switch {
	case what == whatSeal:
		verb = events.VerbSeal
	case strings.Contains(string(payload), "comp_committed"):
		verb = events.VerbCommit
	}
	m := events.Message{Subject: keyOf(producerName(0), chain).Subject(verb), Payload: payload, StreamSeq: p.seq, BrokerMS: 1_780_000_000_000 + p.seq}
	batch := &events.Batch{Stream: events.Stream{Name: "EVIDENCE", CreatedNS: 1}, Events: []*events.Event{events.Decode(m, events.DefaultLimits)}}
	if _, err := p.store.Append(p.t.Context(), batch); err != nil {
		p.t.Fatal(err)
	}
}

// write writes down what was sent and acknowledged.
func (p *past) write(chain, what string, n int, payload []byte) {
	p.t.Helper()
	p.seq++
	e := entry{Do: doTry, Chain: chain, What: what, N: n, ID: fmt.Sprintf("%s.%d", chain, n), Sum: segments.Sum(payload).String()}
	if what == whatMalformed {
		e.ID = ""
	}
	if what == whatSeal {
		e.Outcome = "failed"
		if _, rest, ok := strings.Cut(string(payload), `"producer_head":"`); ok {
			e.Outcome, e.Head = "succeeded", rest[:64]
		}
	}
	p.note(e)
	e.Do, e.Seq = doAck, p.seq
	p.note(e)
}

func (p *past) note(e entry) {
	p.t.Helper()
	if err := p.diary.write(e); err != nil {
		p.t.Fatal(err)
	}
}

// published writes a chain with a plan and its seal, which states everything.
func (p *past) published(chain string) {
	p.t.Helper()
	p.note(entry{Do: doBegin, Chain: chain, Flavour: flavourPublished})
	_, _, step := message(producerName(0), chain, whatEvent, 1)
	scope, _, _ := strings.Cut(string(step), `,"at_ms"`)
	plan, artifact := segments.Sum([]byte("plan")), segments.Sum([]byte(chain))
	p.give(chain, whatEvent, 0, fmt.Appendf(nil, `%s,"kind":{"kind":"comp_committed","plan_commit_id_hex":"%s","comp_semantic_sha256":"%[2]s","step_topo":["s1"]}}`,
		strings.Replace(scope, chain+".1", chain+".0", 1), plan))
	p.send(chain, whatEvent, 1)
	kind := fmt.Sprintf(`{"kind":"run_sealed","run_id":"pr%s","run_bundle_digest":"%[1]s"}`, artifact)
	head := p.headAfter(chain, &segments.RunSealed{RunID: "pr" + artifact.String(), RunBundleDigest: artifact})
	p.give(chain, whatSeal, 2, fmt.Appendf(nil, `{"v":1,"event_id":"%s.2","kind":%s,"event_count":3,"producer_head":"%s"}`, chain, kind, head))
	p.note(entry{Do: doEnd, Chain: chain})
}

// headAfter is the head of a chain after one more segment.
func (p *past) headAfter(chain string, next segments.Kind) segments.Digest {
	p.t.Helper()
	list, err := p.store.Segments(keyOf(producerName(0), chain), 0, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	var b segments.Builder
	for i := range list {
		b.Append(list[i].Segment.Kind, list[i].Segment.EmittedAtMS)
	}
	b.Append(next, nil)
	return *b.Head
}

// makePast makes three chains: one in which everything happens that a producer
// does to be rejected, repeated and late, one that lost an event, and a plain one.
func makePast(t *testing.T) *world {
	t.Helper()
	w := &world{dir: t.TempDir()}
	w.dataDir = filepath.Join(w.dir, "data")
	var err error
	p := &past{t: t}
	if p.store, err = store.Open(store.Config{Dir: filepath.Join(w.dataDir, "store")}); err != nil {
		t.Fatal(err)
	}
	defer p.store.Close()
	if p.diary, err = openDiary(w.diary(0)); err != nil {
		t.Fatal(err)
	}
	defer p.diary.f.Close()
	p.note(entry{Do: doBegin, Chain: "c0", Flavour: flavourRaw})
	for i, what := range []string{whatEvent, whatMalformed, whatEvent, whatConflict, whatSeal} {
		p.send("c0", what, []int{1, 1, 2, 1, 3}[i])
	}
	p.send("c0", whatLate, 4)
	p.send("c0", whatMalformed, 5)
	p.note(entry{Do: doEnd, Chain: "c0"})

	p.note(entry{Do: doBegin, Chain: "c1", Flavour: flavourRaw})
	p.send("c1", whatEvent, 1)
	_, _, gone := message(producerName(0), "c1", whatEvent, 2)
	p.write("c1", whatEvent, 2, gone) // and never delivered
	p.send("c1", whatEvent, 3)
	p.send("c1", whatSeal, 4)
	p.note(entry{Do: doEnd, Chain: "c1"})

	p.published("c2")
	seal(t, p.store, filepath.Join(w.dataDir, "artifacts"), 3)
	return w
}

// seal runs the sealer until it has sealed so many chains.
func seal(t *testing.T, s *store.Store, artifacts string, chains int) {
	t.Helper()
	signer, err := keys.ParseSigner(seedHex)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(artifacts, 0o700); err != nil {
		t.Fatal(err)
	}
	blobs, err := sidecar.OpenDir(artifacts)
	if err != nil {
		t.Fatal(err)
	}
	defer blobs.Close()
	sidecars, err := sidecar.Open(t.Context(), sidecar.Config{Blobs: blobs, Owner: s.ID()})
	if err != nil {
		t.Fatal(err)
	}
	sealed, ended := make(chan sealer.Sealed, chains), make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		ended <- sealer.New(sealer.Config{Store: s, Sidecars: sidecars, Signer: func() *keys.Signer { return signer },
			OnSealed: func(e sealer.Sealed) { sealed <- e }}).Run(ctx)
	}()
	for range chains {
		select {
		case <-sealed:
		case err := <-ended:
			t.Fatal(err)
		}
	}
	stop()
	<-ended
}

// The checker must bite where the files of the evidence are not what they must
// be, and take them when they are.
func TestCheckerFindsWrongFiles(t *testing.T) {
	w := makePast(t)
	v, err := check(t.Context(), w)
	if err != nil || len(v.violations) > 0 || v.tallies["trust bundles, exit 0"] != 1 || v.tallies["trust bundles, exit 3"] != 2 ||
		v.tallies["undisturbed chains"] != 1 || v.tallies["named as lost"] != 1 || v.tallies["trust bundles of chains to which more came after the end"] != 1 {
		t.Fatalf("%v %v\n%q", err, v.tallies, v.violations)
	}
	change := func(path string, change func([]byte) []byte) {
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, change(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	remove := func(_ *testing.T, paths []string) { _ = os.Remove(paths[0]) }
	alter := func(_ *testing.T, paths []string) {
		change(paths[0], func(text []byte) []byte {
			if len(text) == 0 {
				return []byte("x")
			}
			text[len(text)/2] ^= 1
			return text
		})
	}
	swap := func(_ *testing.T, paths []string) {
		other, err := os.ReadFile(paths[1])
		if err != nil {
			t.Fatal(err)
		}
		change(paths[0], func([]byte) []byte { return other })
	}
	more := func(_ *testing.T, paths []string) {
		text, err := os.ReadFile(paths[0])
		_, ending, ok := strings.Cut(filepath.Base(paths[0]), ".")
		name := strings.Repeat("0", 64)
		if ok {
			name += "." + ending
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(filepath.Dir(paths[0]), name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, what := range []struct {
		name, pattern string
		another       bool // there is more than one
	}{
		{"trust bundle", "bundles/*.tsb", true},
		{"pointer of a chain", "bundles/by-chain/*/*/*/*.root", true},
		{"history of a chain", "bundles/by-chain/*/*/*/*/*", false},
		{"evidence without a plan", "tenants/*/execute/*/*/evidence/unplanned/*", true},
		{"evidence", "tenants/*/execute/*/*/evidence/heads/*", false},
		{"pointer of a run", "tenants/*/execute/*/*/evidence/run-heads/*.head", false},
		{"history of a run", "tenants/*/execute/*/*/evidence/run-heads/*/*", false},
	} {
		for name, do := range map[string]func(*testing.T, []string){"removed": remove, "altered": alter, "another's": swap, "one more": more} {
			if name == "another's" && !what.another {
				continue
			}
			t.Run(what.name+", "+name, func(t *testing.T) {
				damaged := &world{dir: t.TempDir()}
				damaged.dataDir = filepath.Join(damaged.dir, "data")
				if err := os.CopyFS(damaged.dir, os.DirFS(w.dir)); err != nil {
					t.Fatal(err)
				}
				paths, err := filepath.Glob(filepath.Join(damaged.dataDir, "artifacts", what.pattern))
				if err != nil || len(paths) == 0 {
					t.Fatalf("%v %v", paths, err)
				}
				do(t, paths)
				if v, err := check(t.Context(), damaged); err != nil || len(v.violations) == 0 {
					t.Errorf("%v, %v", v.violations, err)
				}
			})
		}
	}
}

// The checker must bite where a trust bundle verifies and says something else
// than the store and the producer do.
func TestCheckerFindsWrongWords(t *testing.T) {
	w := makePast(t)
	c, err := newChecker(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	defer c.store.Close()
	if err := c.all(t.Context()); err != nil || len(c.v.violations) > 0 {
		t.Fatalf("%v %q", err, c.v.violations)
	}
	numbers := func(name string) func(*said) { return func(d *said) { d.numbers[name]++ } }
	for name, change := range map[string]func(*said){
		"right":       func(*said) {},
		"tenant":      func(d *said) { d.Tenant = "p1" },
		"prompt hash": func(d *said) { d.PromptHash = d.PromptHash[1:] },
		"session":     func(d *said) { d.Session = d.Session[1:] },
		"chain":       func(d *said) { d.Chain = "c9" },
		"outcome":     func(d *said) { d.Outcome = evidence.Cancelled },
		"reason":      func(d *said) { d.Reason += "!" },
		"conformity":  func(d *said) { d.Conformity = evidence.Nonconforming },
		"coverage": func(d *said) {
			d.Coverage = map[bool]evidence.Coverage{true: evidence.Incomplete, false: evidence.Complete}[d.Coverage == evidence.Complete]
		},
		"segments":     func(d *said) { d.Segments++ },
		"head":         func(d *said) { d.Head = strings.Repeat("0", 64) },
		"stated head":  func(d *said) { d.head = strings.Repeat("0", 64) },
		"runs":         func(d *said) { d.RunIDs = append(slices.Clone(d.RunIDs), "pr") },
		"epoch":        numbers("epoch"),
		"last":         numbers("last_stream_seq"),
		"attempts":     numbers("attempts"),
		"duplicates":   numbers("duplicates"),
		"rejected":     numbers("rejected"),
		"a loss more":  func(d *said) { d.lost = append(d.lost, "1:1-2 gap") },
		"setting":      func(d *said) { d.weak = append(d.weak, "max_age") },
		"exit code":    func(d *said) { d.exit = 2 },
		"an event":     func(d *said) { d.places = d.places[1:] },
		"event's kind": func(d *said) { d.places[0].kind = "attempt" },
		"event's id":   func(d *said) { d.places[0].id = "c0.9" },
		"epoch of one": func(d *said) { d.places[0].epoch++ },
		"place of one": func(d *said) { d.places[0].seq++ },
		"end":          func(d *said) { d.end.id = d.places[0].id },
		"a late one":   func(d *said) { d.places = append(d.places, place{"segment", "c0.4", "", 9, 1, 6}) },
		"rejections":   func(d *said) { d.rejected = append(d.rejected, events.Rejection{Class: events.Conflict}) },
	} {
		t.Run(name, func(t *testing.T) {
			for key, s := range c.stories {
				f, undisturbed := c.facts[key], s.flavour == flavourPublished
				d, err := c.said(t.Context(), s, f)
				if err != nil {
					t.Fatal(err)
				}
				change(d)
				c.v.violations = nil
				c.says(s, f, d)
				c.agrees(s, f, d, undisturbed)
				if found := len(c.v.violations) > 0; found != (name != "right") {
					t.Errorf("%s: %q", key.Chain, c.v.violations)
				}
			}
		})
	}
}
