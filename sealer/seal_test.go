package sealer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
)

func sealOne(t testing.TB, s *Sealer, job *store.SealJob) (Sealed, error) {
	t.Helper()
	return s.seal(context.WithoutCancel(t.Context()), job)
}

// TestOneRun lists what one job writes.
func TestOneRun(t *testing.T) {
	t.Parallel()
	f := newFake()
	key := f.finish("a", 1, 2)
	b := sidecar.NewMemory()
	sealAll(t, Config{Store: f, Sidecars: openSidecars(t, b), SkipAudit: true})
	dir := "execute/" + testPrompt + "/" + testSession
	head := f.finished[key].Head.String()
	root := f.finished[key].BundleRoot.String()
	chain := "bundles/by-chain/_/" + testPrompt + "/" + testSession + "/a"
	want := map[string]bool{
		dir + "/evidence/heads/" + head + ".evidence.json":            true,
		dir + "/evidence/run-heads/" + runID(1) + ".head":             true,
		dir + "/evidence/run-heads/" + runID(1) + "/" + head:          true,
		dir + "/evidence/run-heads/" + runID(2) + ".head":             true,
		dir + "/evidence/run-heads/" + runID(2) + "/" + head:          true,
		dir + "/" + runID(1)[2:] + ".artifact":                        true,
		dir + "/" + runID(2)[2:] + ".artifact":                        true,
		"bundles/" + root + ".tsb":                                    true,
		chain + ".root":                                               true,
		chain + "/" + root:                                            true,
		".chaind/snapshots/" + dir + "/" + runID(1)[2:] + ".artifact": true,
		".chaind/snapshots/" + dir + "/" + runID(2)[2:] + ".artifact": true,
	}
	got := map[string]bool{}
	for name := range dump(t, b) {
		got[name] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	metadata, body, err := segments.SplitArtifactFrame([]byte(content(t, b, dir+"/"+runID(1)[2:]+".artifact")))
	if err != nil || string(body) != snapshotOf("a") || !strings.Contains(string(metadata), `"schema_version":3`) {
		t.Errorf("snapshot %q %q %v", metadata, body, err)
	}
}

// TestSealedLater: the key changes between the writing and the end of the job;
// the first bytes stand, and what stands is what is recorded.
func TestSealedLater(t *testing.T) {
	t.Parallel()
	f := newFake()
	key := f.finish("a", 1)
	b := sidecar.NewMemory()
	var signer func() *keys.Signer
	f.onFinish = func(*store.SealJob) error {
		f.onFinish = nil
		signer = fixedSigner(t)
		return errInjected
	}
	var standing sidecar.Outcome
	clock := &fakeClock{now: fixedNow()}
	sealAll(t, Config{Store: f, Sidecars: openSidecars(t, b), Workers: 1, SkipAudit: true, Now: clock.Now, After: clock.After,
		OnSealed: func(s Sealed) { standing = s.Standing },
		Signer: func() *keys.Signer {
			if signer == nil {
				return nil
			}
			return signer()
		}})
	result := f.finished[key]
	if standing != sidecar.Kept || result.Signed || result.SHA256 != segments.Sum([]byte(content(t, b, result.Path))) {
		t.Errorf("%s, %+v", standing, result)
	}
	if len(f.failures) != 1 {
		t.Errorf("failures %q", f.failures)
	}
}

// TestTwoSeals is cases C06 and C10: two transcripts of one run disagree. Both
// stay, the later one has the pointer, and the history names the earlier.
func TestTwoSeals(t *testing.T) {
	t.Parallel()
	f := newFake()
	first, second := f.finish("first", 1), f.finish("second", 1)
	b := sidecar.NewMemory()
	sidecars := openSidecars(t, b)
	sealAll(t, Config{Store: f, Sidecars: sidecars, SkipAudit: true})
	place := sidecar.Place{PromptHash: testPrompt, Session: testSession}
	heads, err := sidecars.RunHeads(t.Context(), place, runID(1))
	if err != nil {
		t.Fatal(err)
	}
	want := []sidecar.RunHead{
		{Head: *f.finished[first].Head, Sealed: sidecar.Position{Epoch: 1, StreamSeq: 1}},
		{Head: *f.finished[second].Head, Sealed: sidecar.Position{Epoch: 1, StreamSeq: 2}},
	}
	if diff := cmp.Diff(want, heads); diff != "" {
		t.Error(diff)
	}
	for _, h := range heads {
		if _, err := sidecars.ReadHead(t.Context(), place, sidecar.Heads, h.Head); err != nil {
			t.Error(err)
		}
	}
	if found, err := sidecars.ReadRun(t.Context(), place, runID(1)); err != nil || *found.Head != want[1].Head {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestContradictions: nothing that fails a check is written.
func TestContradictions(t *testing.T) {
	t.Parallel()
	other := segments.Sum([]byte("other"))
	seven := uint64(7)
	damages := map[string]func(c *fakeChain){
		"a segment is missing":  func(c *fakeChain) { c.segments = c.segments[:2] },
		"all are missing":       func(c *fakeChain) { c.segments = nil },
		"one segment more":      func(c *fakeChain) { c.fixed.State.Segments-- },
		"another head":          func(c *fakeChain) { c.fixed.State.Head = &other },
		"a link is broken":      func(c *fakeChain) { c.segments[1].Prev = &other },
		"the first has a link":  func(c *fakeChain) { c.segments[0].Prev = &other },
		"a number is wrong":     func(c *fakeChain) { c.segments[1].Seq = 5 },
		"a payload is changed":  func(c *fakeChain) { c.segments[2].Kind.(*segments.RunSealed).ResourceIndex = &seven },
		"segments are swapped":  func(c *fakeChain) { c.segments[1], c.segments[2] = c.segments[2], c.segments[1] },
		"another tenant":        func(c *fakeChain) { c.fixed.State.Scope.TenantID = "acme" },
		"another scope version": func(c *fakeChain) { c.fixed.State.Scope.SchemaVersion = 2 },
		"scope is no UTF-8":     func(c *fakeChain) { c.fixed.State.Scope.EntryID = "\xff" },
		"unsafe time":           func(c *fakeChain) { *c.segments[0].EmittedAtMS = 1 << 60 },
		"no snapshot's seal":    func(c *fakeChain) { *c.preimages[0].Seq = 1 },
		"snapshot of nothing":   func(c *fakeChain) { *c.preimages[0].Seq = 9 },
		"called unplanned":      func(c *fakeChain) { c.fixed.State.Order.Planned = false },
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			key := f.finish("a", 1)
			damage(f.chains[key])
			b := sidecar.NewMemory()
			sealed, err := sealOne(t, New(Config{Store: f, Sidecars: openSidecars(t, b), Signer: fixedSigner(t)}), &f.jobs[0])
			if !errors.Is(err, ErrContradiction) || sealed != (Sealed{}) {
				t.Errorf("sealed %+v, %v", sealed, err)
			}
			for written := range dump(t, b) {
				if strings.Contains(written, "/evidence/") {
					t.Errorf("%s was written", written)
				}
			}
		})
	}
}

// kindsOf makes a chain of the kinds, one letter each: i, c (plan a b), d (plan
// b), a, b (steps), s (seal).
func kindsOf(letters string) *fakeChain {
	var b segments.Builder
	c := &fakeChain{}
	comp := func(topo ...string) segments.Kind {
		sum := segments.Sum([]byte(strings.Join(topo, ",")))
		return &segments.CompCommitted{PlanCommitIDHex: sum.String(), CompSemanticSHA256: sum, StepTopo: topo}
	}
	for _, l := range letters {
		var k segments.Kind
		switch l {
		case 'i':
			k = &segments.IntentBound{}
		case 'c':
			k = comp("a", "b")
		case 'd':
			k = comp("b")
		case 's':
			k = &segments.RunSealed{RunID: runID(0)}
		default:
			k = &segments.StepExecuted{StepID: string(l), RequestFingerprints: []string{}}
		}
		c.segments = append(c.segments, b.Append(k, nil))
	}
	return c
}

// TestEmitChecks: what is called conforming must pass the reference's emit
// checks and the order of kinds, whatever the state says.
func TestEmitChecks(t *testing.T) {
	t.Parallel()
	for letters, ok := range map[string]bool{
		"icabs": true, "cab": true, "ca": true, "cb": true, "c": true, "cc": true, "icss": true, "ccab": true, "cdb": true,
		"i": false, "s": false, "ab": false, "cba": false, "caa": false, "cx": false, "acb": false, "ci": false, "csa": false,
		"cac": false, "cda": false, "dca": false, "iic": false, "scab": false, "dcab": false,
	} {
		f := newFake()
		c := kindsOf(letters)
		last := c.segments[len(c.segments)-1]
		f.add(letters, c, last.Digest())
		b := sidecar.NewMemory()
		_, err := sealOne(t, New(Config{Store: f, Sidecars: openSidecars(t, b)}), &f.jobs[0])
		if ok != (err == nil) || err != nil && !errors.Is(err, ErrContradiction) {
			t.Errorf("%s: %v", letters, err)
		}
	}
}

// TestNumbers: a chain whose links are right and whose numbers are not is
// refused, which the reference would not do.
func TestNumbers(t *testing.T) {
	t.Parallel()
	f := newFake()
	c := kindsOf("cab")
	b := segments.Builder{Next: 1}
	for i := range c.segments {
		c.segments[i] = b.Append(c.segments[i].Kind, nil)
	}
	f.add("a", c, *b.Head)
	_, err := sealOne(t, New(Config{Store: f, Sidecars: openSidecars(t, sidecar.NewMemory())}), &f.jobs[0])
	if !errors.Is(err, ErrContradiction) {
		t.Errorf("numbers from 1: %v", err)
	}
}

// TestClasses: the class is the state's conformity.
func TestClasses(t *testing.T) {
	t.Parallel()
	for want, change := range map[sidecar.Class]func(*events.State){
		sidecar.Heads:         func(*events.State) {},
		sidecar.Nonconforming: func(s *events.State) { s.Order.Misplaced = true },
	} {
		f := newFake()
		key := f.finish("a", 1)
		change(f.chains[key].fixed.State)
		b := sidecar.NewMemory()
		sealed, err := sealOne(t, New(Config{Store: f, Sidecars: openSidecars(t, b)}), &f.jobs[0])
		if err != nil || sealed.Result.Class != string(want) || !strings.Contains(sealed.Result.Path, "/evidence/"+string(want)+"/") {
			t.Errorf("%s: %+v, %v", want, sealed.Result, err)
		}
	}
}

// TestSameBytes: sealing is a function of the chain; large bundles, which are
// generated twice, come out as small ones do.
func TestSameBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f := newFake()
		c := &fakeChain{}
		var b segments.Builder
		steps := rapid.SliceOfN(rapid.StringMatching(`[a-z<>&"\\é😀]{0,20}`), 1, 20).Draw(rt, "steps")
		add := func(k segments.Kind) {
			var at *uint64
			if rapid.Bool().Draw(rt, "time") {
				n := rapid.Uint64Range(0, segments.MaxSafeInteger).Draw(rt, "at")
				at = &n
			}
			c.segments = append(c.segments, b.Append(k, at))
		}
		sum := segments.Sum([]byte(fmt.Sprint(steps)))
		add(&segments.CompCommitted{PlanCommitIDHex: sum.String(), CompSemanticSHA256: sum, StepTopo: steps})
		for i, id := range steps {
			add(&segments.StepExecuted{StepID: id, StepIndex: uint32(i), RequestFingerprints: []string{id}, SourceLine: id})
		}
		f.add("a", c, *b.Head)
		var texts []string
		for range 2 {
			m := sidecar.NewMemory()
			sealed, err := sealOne(t, New(Config{Store: f, Sidecars: openSidecars(t, m), Signer: fixedSigner(t)}), &f.jobs[0])
			if err != nil {
				rt.Fatal(err)
			}
			texts = append(texts, content(t, m, sealed.Result.Path))
		}
		scope := f.jobs[0].Fixed.State.BoundScope()
		whole := &segments.Bundle{Envelope: segments.Envelope{Scope: scope, Head: b.Head}, Segments: c.segments}
		signature, err := fixedSigner(t)().Sign(segments.AppendHeadMessage(nil, &scope, *b.Head))
		if err != nil {
			rt.Fatal(err)
		}
		whole.Signature = &segments.Signature{PublicKeyHex: fixedSigner(t)().Public().String(), SignatureHex: fmt.Sprintf("%x", signature)}
		if want := string(segments.AppendBundle(nil, whole)); texts[0] != want || texts[1] != want {
			rt.Fatalf("%q, then %q, not %q", texts[0], texts[1], want)
		}
	})
}

// TestSignerFails: without its signature nothing is written.
func TestSignerFails(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.finish("a", 1)
	good := fixedSigner(t)()
	tested := false
	public := good.Public()
	signer, err := keys.NewSigner(public[:], func(message []byte) ([]byte, error) {
		if tested {
			return nil, errInjected
		}
		tested = true
		return good.Sign(message)
	})
	if err != nil {
		t.Fatal(err)
	}
	b := sidecar.NewMemory()
	_, err = sealOne(t, New(Config{Store: f, Sidecars: openSidecars(t, b), Signer: func() *keys.Signer { return signer }}), &f.jobs[0])
	if !errors.Is(err, errInjected) || len(dump(t, b)) != 0 {
		t.Errorf("%v, %v", err, dump(t, b))
	}
}
