package sealer

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/naive"
	"github.com/chaind/chaind/engine/run"
	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
)

// judged is what a stranger makes of a trust bundle.
func judged(t testing.TB, text string) (*engine.Judgement, *run.Summary) {
	t.Helper()
	b, err := bundle.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	j, err := engine.Judge(b, run.Domains())
	if err != nil {
		t.Fatal(err)
	}
	sum, err := run.Summarize(b)
	if err != nil {
		t.Fatal(err)
	}
	return j, sum
}

// checkBundles: every chain that ended has one trust bundle, and it says of the
// chain what the store says.
func checkBundles(t *testing.T, db *store.Store, sealed map[events.Key]Sealed, got map[string]string) {
	var names []string
	for key, s := range sealed {
		text := got[s.Result.BundlePath]
		if s.Result.BundlePath != sidecar.BundlePath(s.Result.BundleRoot) || uint64(len(text)) != s.Result.BundleBytes ||
			segments.Sum([]byte(text)) != s.Result.BundleSHA256 {
			t.Errorf("%s: %d bytes in %s", key.Chain, len(text), s.Result.BundlePath)
			continue
		}
		names = append(names, s.Result.BundlePath)
		record, err := db.Chain(key)
		if err != nil {
			t.Fatal(err)
		}
		checkBundle(t, record, text)
	}
	for name := range got {
		if strings.HasSuffix(name, ".tsb") && !slices.Contains(names, name) {
			t.Errorf("%s is nobody's", name)
		}
	}
	slices.Sort(names)
	if len(names) == 0 || len(slices.Compact(names)) != len(sealed) {
		t.Errorf("%d trust bundles of %d chains", len(names), len(sealed))
	}
}

func checkBundle(t *testing.T, record *store.ChainRecord, text string) {
	t.Helper()
	j, sum := judged(t, text)
	if err := naive.Check(naive.MustParse(text)); err != nil {
		t.Errorf("%s: a naive checker says %v", record.Key.Chain, err)
	}
	state := record.Fixed.State
	conformity, _ := state.Conformity()
	coverage, _ := (&store.ChainRecord{State: state, Lost: record.Lost}).Coverage()
	want := run.Summary{
		Word: string(state.Outcome), Tenant: record.Key.Tenant, PromptHash: record.Key.PromptHash, Session: record.Key.Session, Chain: record.Key.Chain,
		Outcome: run.Outcome(state.Outcome), Reason: state.Reason, Conformity: run.Conformity(conformity), Coverage: run.Coverage(coverage),
		Segments: state.Segments, RunIDs: state.RunIDs, Unmet: sum.Unmet,
	}
	if state.Head != nil {
		want.Head = state.Head.String()
	} else {
		want.Word = "empty"
	}
	if len(want.RunIDs) == 0 {
		want.RunIDs = sum.RunIDs[:0]
	}
	if diff := cmp.Diff(&want, sum); diff != "" {
		t.Errorf("%s: (-store +bundle):\n%s", record.Key.Chain, diff)
	}
	// Some snapshots of the vectors name requests of no executed step, on purpose.
	foreign := slices.ContainsFunc(sum.Unmet, func(s string) bool { return strings.Contains(s, "are of no executed step") })
	pass := !foreign && conformity != events.Nonconforming && coverage == events.Complete && state.Head != nil && state.ProducerSignature != events.SignatureInvalid
	verdict := engine.Degraded
	if pass {
		verdict = engine.Pass
	}
	if j.Taxonomy != engine.ReDerived || j.Verdict() != verdict {
		t.Errorf("%s: %s, %s, not %s: %s %q", record.Key.Chain, j.Taxonomy, j.Verdict(), verdict, j.Cause(), sum.Unmet)
	}
}

// TestSignedBundles: with a key every trust bundle is signed over its root, tells
// the signature of the evidence, and is otherwise what it is without.
func TestSignedBundles(t *testing.T) {
	t.Parallel()
	list := loadEvents(t, "small")
	db := openStore(t, t.TempDir())
	feed(t, db, list, 100)
	b := sidecar.NewMemory()
	signer := fixedSigner(t)
	results := map[events.Key]store.SealResult{}
	sealAll(t, Config{Store: db, Sidecars: openSidecars(t, b), Signer: signer, SkipAudit: true, Workers: 1, OnSealed: func(s Sealed) { results[s.Key] = s.Result }})
	for key, result := range results {
		text := content(t, b, result.BundlePath)
		j, _ := judged(t, text)
		if err := naive.Check(naive.MustParse(text)); err != nil {
			t.Errorf("%s: a naive checker says %v", key.Chain, err)
		}
		if !j.Signature.Valid || j.Signature.PublicKey != signer().Public().String() || j.Failed() {
			t.Errorf("%s: %+v, %s", key.Chain, j.Signature, j.Cause())
		}
		told := strings.Contains(text, "The head is signed by key "+signer().Public().String())
		if told != (result.Head != nil) {
			t.Errorf("%s: the evidence's signature is told: %v", key.Chain, told)
		}
	}
	if len(results) < 10 {
		t.Errorf("%d chains", len(results))
	}
}

// TestBundleRest is what arrived after the end, and what was lost: the bundle
// tells the chain as of its end.
func TestBundleRest(t *testing.T) {
	t.Parallel()
	f := newFake()
	key := f.finish("a", 1)
	c := f.chains[key]
	payload, number := `{"event_id":"r","producer_seq":3}`, uint64(3)
	rejected := func(id, seq uint64, epoch uint32) events.Rejection {
		return events.Rejection{ID: id, Epoch: epoch, EventID: "r", ProducerSeq: &number, Class: events.Conflict, Sum: segments.Sum([]byte(payload)),
			Message: events.Message{Subject: key.Subject(events.VerbStep), Payload: []byte(payload), StreamSeq: seq}}
	}
	c.fixed.Epoch, c.fixed.StreamSeq, c.fixed.RejectedUpTo = 2, 9, 2
	c.fixed.State.LastEventID, c.fixed.State.Rejected = "e2", 2
	c.rejected = []events.Rejection{rejected(1, 7, 2), rejected(2, 8, 1), rejected(3, 10, 2)}
	c.lost = []store.LostRange{{Epoch: 1, From: 6, To: 6, Why: "gap"}, {Epoch: 1, From: 5, To: 5, Why: "gap"}, {Epoch: 1, From: 7, To: 7, Why: "expired"}}
	var origins []store.Origin
	for i := range c.segments {
		origins = append(origins, fakeOrigin(uint64(i)))
	}
	record, err := f.Chain(key)
	if err != nil {
		t.Fatal(err)
	}
	text, root, err := Pack(t.Context(), f, record, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	j, sum := judged(t, text)
	if j.Integrity.Root != "sha256:"+root.String() || sum.Coverage != run.Incomplete || len(origins) != 3 {
		t.Errorf("%s, %+v", j.Integrity.Root, sum)
	}
	for _, want := range []string{
		`"rejected:1.8"`, `"rejected:7"`, `["lost","1:5-6 gap"]`, `["lost","1:7-7 expired"]`, `["first_epoch","1"]`, `["producer_seq","3"]`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in the bundle", want)
		}
	}
	if strings.Contains(text, `"rejected:10"`) {
		t.Error("what was rejected after the end is in the bundle")
	}
	if strings.Index(text, `"rejected:1.8"`) > strings.Index(text, `"rejected:7"`) {
		t.Error("rejected events are not in stream order")
	}
}

// TestOpenBundle: a chain that is open is packed as of its record, without what
// came since.
func TestOpenBundle(t *testing.T) {
	t.Parallel()
	f := newFake()
	key := f.finish("a", 1)
	c := f.chains[key]
	state := c.fixed.State
	state.Outcome, state.Segments = events.Open, 2
	head := c.segments[1].Digest()
	state.Head = &head
	c.attempts = []store.AttemptRecord{
		{Phase: events.PhaseBegin, StepID: "s", Origin: store.Origin{EventID: "a1", Epoch: 1, StreamSeq: 3}},
		{Ordinal: 1, Phase: events.PhaseBegin, StepID: "late", Origin: store.Origin{EventID: "a2", Epoch: 1, StreamSeq: 5}},
	}
	text, _, err := Pack(t.Context(), f, &store.ChainRecord{Key: key, State: state, Epoch: 1, StreamSeq: 4}, nil, fixedSigner(t)())
	if err != nil {
		t.Fatal(err)
	}
	j, sum := judged(t, text)
	if j.Verdict() != engine.Degraded || sum.Word != "open" || sum.Segments != 2 || strings.Contains(text, "late") || !j.Signature.Valid {
		t.Errorf("%s, %+v", j.Verdict(), sum)
	}
	if !strings.Contains(text, "as of stream sequence 4") {
		t.Error("the bundle does not say as of when it is")
	}
}

// TestAuditBundle: a trust bundle that was damaged or removed, or whose pointer
// was, is noticed and written again, the very bytes.
func TestAuditBundle(t *testing.T) {
	t.Parallel()
	for _, signed := range []bool{false, true} {
		f := newFake()
		b := sidecar.NewMemory()
		cfg := Config{Store: f, Sidecars: openSidecars(t, b)}
		if signed {
			cfg.Signer = fixedSigner(t)
		}
		key := f.finish("a", 1)
		empty := f.addEmpty("none")
		sealAll(t, cfg)
		whole := dump(t, b)
		path, pointer := f.finished[key].BundlePath, "bundles/by-chain/_/"+testPrompt+"/"+testSession+"/a.root"
		history := strings.TrimSuffix(pointer, ".root") + "/" + f.finished[key].BundleRoot.String()
		stripped := whole[path][:strings.LastIndex(whole[path], ",\"signature\":")]
		for _, d := range []struct{ name, content string }{
			{path, ""}, {path, whole[path][:1000]}, {path, strings.Replace(whole[path], `["seq","1"]`, `["seq","2"]`, 1)}, {path, "absent"},
			{path, stripped}, {pointer, "absent"}, {pointer, strings.Repeat("0", 64)}, {history, "absent"}, {f.finished[empty].BundlePath, "absent"},
		} {
			damage(t, b, d.name, d.content)
			if a := audit(t, cfg); a != (Audit{Checked: 2, Repaired: 1, Done: true}) {
				t.Errorf("%.20q in %s: %+v", d.content, d.name, a)
			}
			if diff := cmp.Diff(whole, dump(t, b)); diff != "" {
				t.Errorf("%.20q in %s stands: %s", d.content, d.name, diff)
			}
		}
	}
}

// TestBundleKeptSignature: where another signature over the root was first it
// stands, and the job records what stands.
func TestBundleKeptSignature(t *testing.T) {
	t.Parallel()
	f := newFake()
	key := f.addEmpty("none")
	b := sidecar.NewMemory()
	sidecars := openSidecars(t, b)
	first, err := sealOne(t, New(Config{Store: f, Sidecars: sidecars}), &f.jobs[0])
	if err != nil {
		t.Fatal(err)
	}
	second, err := sealOne(t, New(Config{Store: f, Sidecars: sidecars, Signer: fixedSigner(t)}), &f.jobs[0])
	if err != nil || second.Result != first.Result || second.Key != key {
		t.Errorf("%+v, then %+v, %v", first.Result, second.Result, err)
	}
}

// C18: two runs with the same first segments. The format's digests of segments
// are equal then; what tells the runs apart is the scope under the signature of
// the evidence, and chain and stream under the root of the trust bundle.
func TestC18TwoRunsOfOnePayload(t *testing.T) {
	t.Parallel()
	f := newFake()
	one, two := f.add("one", kindsOf("cab"), segments.Digest{}), f.add("two", kindsOf("cab"), segments.Digest{})
	roots := map[string]events.Key{}
	for _, key := range []events.Key{one, two} {
		c := f.chains[key]
		head := c.segments[2].Digest()
		c.fixed.State.Head, c.fixed.State.LastEventID = &head, "e2"
		c.fixed.StreamSeq = 3
	}
	if *f.chains[one].fixed.State.Head != *f.chains[two].fixed.State.Head {
		t.Fatal("the runs are not alike")
	}
	for _, key := range []events.Key{one, two} {
		record, err := f.Chain(key)
		if err != nil {
			t.Fatal(err)
		}
		text, root, err := Pack(t.Context(), f, record, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		roots[root.String()] = key
		swapped := strings.ReplaceAll(text, `"`+key.Chain+`"`, `"three"`)
		if j, _ := judged(t, text); len(j.Integrity.Findings) > 0 {
			t.Errorf("%s: %v", key.Chain, j.Integrity.Findings)
		}
		b, err := bundle.Parse(swapped)
		if err != nil {
			t.Fatal(err)
		}
		if integrity, err := b.CheckIntegrity(); err != nil || len(integrity.Findings) == 0 {
			t.Errorf("%s passes for another chain: %v", key.Chain, err)
		}
	}
	if len(roots) != 2 {
		t.Error("two chains have one root")
	}
}
