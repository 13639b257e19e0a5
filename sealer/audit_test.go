package sealer

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
)

// audit runs a sealer that has nothing to do until it has looked at all
// existing evidence.
func audit(t *testing.T, cfg Config) Audit {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := New(cfg)
	s.runAudit(ctx)
	a := s.Status().Audit
	if !a.Done {
		t.Errorf("audit did not end: %+v", a)
	}
	return a
}

// TestF11Audit is case F11: evidence that was emptied, changed or removed under an
// unchanged head is noticed at the next start, without a new event.
func TestF11Audit(t *testing.T) {
	t.Parallel()
	for _, signed := range []bool{false, true} {
		f := newFake()
		b := sidecar.NewMemory()
		cfg := Config{Store: f, Sidecars: openSidecars(t, b)}
		if signed {
			cfg.Signer = fixedSigner(t)
		}
		key := f.finish("a", 1)
		f.finish("b", 2)
		sealAll(t, cfg)
		path := f.finished[key].Path
		whole := dump(t, b)
		if a := audit(t, cfg); a != (Audit{Checked: 2, Done: true}) {
			t.Errorf("intact: %+v", a)
		}
		pointer := strings.Split(path, "heads/")[0] + "run-heads/" + runID(1) + ".head"
		damages := []struct{ name, content string }{
			{path, ""}, {path, whole[path][:100]}, {path, strings.Replace(whole[path], "1767225600000", "1767225600001", 1)},
			{path, "absent"}, {pointer, "absent"}, {pointer, ""},
		}
		for _, d := range damages {
			damage(t, b, d.name, d.content)
			if a := audit(t, cfg); a != (Audit{Checked: 2, Repaired: 1, Done: true}) {
				t.Errorf("%.20q in %s: %+v", d.content, d.name, a)
			}
			if content(t, b, d.name) != whole[d.name] {
				t.Errorf("%.20q in %s stands", d.content, d.name)
			}
		}
	}
}

func damage(t *testing.T, b sidecar.Blobs, name, content string) {
	t.Helper()
	var err error
	if content == "absent" {
		err = b.Remove(t.Context(), name)
	} else {
		err = b.Put(t.Context(), name, sidecar.Bytes([]byte(content)))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestAuditWithAnotherKey: what cannot be made again as it was is left alone
// while it is a bundle with its head, and said to differ; what is damaged is
// signed with the key there is now.
func TestAuditWithAnotherKey(t *testing.T) {
	t.Parallel()
	f := newFake()
	b := sidecar.NewMemory()
	cfg := Config{Store: f, Sidecars: openSidecars(t, b), Signer: fixedSigner(t)}
	key := f.finish("a", 1)
	sealAll(t, cfg)
	path := f.finished[key].Path
	bundle, _, err := segments.ReadBundle(strings.NewReader(content(t, b, path)))
	if err != nil {
		t.Fatal(err)
	}
	other, err := keys.ParseSigner(strings.Repeat("02", 32))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Signer = func() *keys.Signer { return other }
	bundle.Signature = nil
	stripped := string(segments.AppendBundle(nil, bundle))
	damage(t, b, path, stripped)
	if a := audit(t, cfg); a.Differing != 1 || a.Repaired != 0 || content(t, b, path) != stripped {
		t.Errorf("signature stripped: %+v", a)
	}
	damage(t, b, path, "")
	if a := audit(t, cfg); a.Repaired != 1 || !strings.Contains(content(t, b, path), other.Public().String()) {
		t.Errorf("emptied: %+v", a)
	}
}

// TestAuditFails: evidence that cannot be compared is not intact evidence.
func TestAuditFails(t *testing.T) {
	t.Parallel()
	f := newFake()
	m := sidecar.NewMemory()
	key := f.finish("a", 1)
	sealAll(t, Config{Store: f, Sidecars: openSidecars(t, m), SkipAudit: true})
	damage(t, m, f.finished[key].Path, "")
	b := &blobs{Blobs: m, hook: func(context.Context, string, string) error { return errInjected }}
	a := audit(t, Config{Store: f, Sidecars: openSidecars(t, b)})
	if a.Failed != 1 || a.Repaired != 0 || !strings.Contains(a.LastError, "injected fault") {
		t.Errorf("%+v", a)
	}
}

// TestAuditAtStart: Run looks at existing evidence beside new jobs.
func TestAuditAtStart(t *testing.T) {
	t.Parallel()
	f := newFake()
	b := sidecar.NewMemory()
	cfg := Config{Store: f, Sidecars: openSidecars(t, b)}
	key := f.finish("a", 1)
	sealAll(t, cfg)
	path := f.finished[key].Path
	whole := content(t, b, path)
	damage(t, b, path, "")
	repaired := make(chan struct{})
	hook := &blobs{Blobs: b, hook: func(_ context.Context, op, name string) error {
		if op == "put" && strings.HasSuffix(name, ".head") {
			close(repaired) // the last step of a repair
		}
		return nil
	}}
	cfg.Sidecars = openSidecars(t, hook)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- New(cfg).Run(ctx) }()
	select {
	case <-repaired:
	case <-time.After(20 * time.Second):
		t.Error("damage is not noticed")
	}
	cancel()
	if err := <-done; err != nil || content(t, b, path) != whole {
		t.Errorf("%v, %.40q", err, content(t, b, path))
	}
}

// TestOneHeadOfTwoScopes: of two chains with the same segments and different
// scopes the second has no evidence file and no part in the first one's. Its
// trust bundle is whole without, and is made again as it was.
func TestOneHeadOfTwoScopes(t *testing.T) {
	t.Parallel()
	f := newFake()
	first := f.finish("a", 1)
	twin := *f.chains[first]
	second := f.add("b", &twin, *twin.fixed.State.Head)
	f.chains[second].fixed.State.Scope.EntryID = "another"
	b := sidecar.NewMemory()
	var log bytes.Buffer
	cfg := Config{Store: f, Sidecars: openSidecars(t, b), Workers: 1, SkipAudit: true, Signer: fixedSigner(t),
		Logger: slog.New(slog.NewTextHandler(&log, nil))}
	sealAll(t, cfg)
	one, two := f.finished[first], f.finished[second]
	if *one.Head != *two.Head || one.Path == "" || two.Path != "" || two.Class != "heads" || two.Signed || two.SHA256 != (segments.Digest{}) {
		t.Fatalf("%+v\n%+v", one, two)
	}
	if !strings.Contains(log.String(), "chain=b") {
		t.Errorf("log: %s", &log)
	}
	text := content(t, b, two.BundlePath)
	j, _ := judged(t, text)
	if len(j.Integrity.Findings) > 0 || !j.Signature.Valid || j.Taxonomy != engine.ReDerived || !strings.Contains(text, "another") {
		t.Errorf("trust bundle: %+v, %s", j.Integrity, j.Taxonomy)
	}
	list, err := cfg.Sidecars.RunHeads(t.Context(), placeOf(first), runID(1))
	if err != nil || len(list) != 1 || list[0].Sealed.StreamSeq != 1 {
		t.Errorf("the run's history: %+v, %v", list, err)
	}
	whole := dump(t, b)
	for _, name := range []string{"", two.BundlePath, one.Path} {
		want := Audit{Checked: 2, Contradicting: 1, Done: true}
		if name != "" {
			damage(t, b, name, "")
			want.Repaired = 1
		}
		if a := audit(t, cfg); a != want {
			t.Errorf("%q damaged: %+v", name, a)
		}
		if diff := cmp.Diff(whole, dump(t, b)); diff != "" {
			t.Errorf("%q stands: %s", name, diff)
		}
	}
}
