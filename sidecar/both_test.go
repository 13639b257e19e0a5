package sidecar

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chaind/chaind/segments"
)

func everything(t *testing.T, b Blobs) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range names(t, b, "") {
		all[name] = get(t, b, name)
	}
	return all
}

// TestBothAsApart: evidence and bundle written at once leave, and say, what they do
// when they are written one after the other.
func TestBothAsApart(t *testing.T) {
	t.Parallel()
	for backEnd, make := range backEnds {
		for _, class := range []Class{Heads, Unplanned} {
			t.Run(fmt.Sprint(backEnd, " ", class), func(t *testing.T) {
				t.Parallel()
				one, two := make(t), make(t)
				b := trustBundle(testBundleText)
				for i, name := range []string{"early", "late", "early", "middle"} {
					e, _ := testEvidence(testPlace, name, false, runID(1), runID(2))
					e.Class, e.Sealed = class, Position{1, []uint64{3, 9, 3, 5}[i]}
					first, err := openSidecars(t, one).Write(t.Context(), e)
					if err != nil {
						t.Fatal(err)
					}
					second, err := openSidecars(t, one).WriteBundle(t.Context(), b)
					if err != nil {
						t.Fatal(err)
					}
					evidence, bundle, err := openSidecars(t, two).WriteBoth(t.Context(), e, b, nil)
					if diff := cmp.Diff([]Written{first, second}, []Written{evidence, bundle}); diff != "" || err != nil {
						t.Errorf("%s: %v %s", name, err, diff)
					}
					if diff := cmp.Diff(everything(t, one), everything(t, two)); diff != "" {
						t.Errorf("after %s (-apart +both):\n%s", name, diff)
					}
				}
			})
		}
	}
}

// TestBothApart: when other bytes stand under head or root nothing that stands is
// touched and nothing points anywhere, whether they are sound or damaged.
func TestBothApart(t *testing.T) {
	t.Parallel()
	e, _ := testEvidence(testPlace, "x", false, runID(1))
	b := trustBundle(testBundleText)
	for backEnd, make := range backEnds {
		for _, path := range []string{e.Place.EvidencePath(e.Class, e.Head), BundlePath(b.Root)} {
			t.Run(backEnd+" "+path[:7], func(t *testing.T) {
				t.Parallel()
				blobs := make(t)
				put(t, blobs, path, "other")
				evidence, bundle, err := openSidecars(t, blobs).WriteBoth(t.Context(), e, b, nil)
				if !errors.Is(err, ErrApart) || evidence != (Written{}) || bundle != (Written{}) {
					t.Errorf("%+v, %+v, %v", evidence, bundle, err)
				}
				all := everything(t, blobs)
				want := map[string]string{path: "other"}
				if at := e.Place.EvidencePath(e.Class, e.Head); at != path {
					want[at] = all[at]
				}
				if diff := cmp.Diff(want, all); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
	many := e
	for i := range maxGroup {
		many.RunIDs = append(many.RunIDs, runID(i+2))
	}
	s := openSidecars(t, NewMemory())
	if _, _, err := s.WriteBoth(t.Context(), many, b, nil); !errors.Is(err, ErrApart) {
		t.Errorf("%d run ids: %v", len(many.RunIDs), err)
	}
	if w, err := s.Write(t.Context(), many); err != nil || w.Outcome != Stored {
		t.Errorf("%d run ids: %+v, %v", len(many.RunIDs), w, err)
	}
	if ok, err := s.Intact(t.Context(), many, segments.Sum([]byte(get(t, s.blobs, e.Place.EvidencePath(e.Class, e.Head))))); !ok || err != nil {
		t.Errorf("%d run ids: intact %v, %v", len(many.RunIDs), ok, err)
	}
	bad := e
	bad.RunIDs = []string{"pr1"}
	if _, _, err := s.WriteBoth(t.Context(), bad, b, nil); !errors.Is(err, ErrName) {
		t.Errorf("a bad run id: %v", err)
	}
}

// TestBothFaults makes each operation fail, with and without effect, in a back end
// that writes one blob at a time.
func TestBothFaults(t *testing.T) {
	t.Parallel()
	e, _ := testEvidence(testPlace, "x", false, runID(1))
	b := trustBundle(testBundleText)
	clean := NewMemory()
	if _, _, err := openSidecars(t, clean).WriteBoth(t.Context(), e, b, nil); err != nil {
		t.Fatal(err)
	}
	for _, persist := range []bool{false, true} {
		n := 0
		for ; ; n++ {
			m := NewMemory()
			f := &faulty{Blobs: m, n: n, persist: persist}
			_, _, err := openSidecars(t, f).WriteBoth(t.Context(), e, b, nil)
			if f.count <= n {
				break
			}
			if !errors.Is(err, errInjected) {
				t.Fatalf("operation %d failed, result %v", n, err)
			}
			if _, _, err := openSidecars(t, m).WriteBoth(t.Context(), e, b, nil); err != nil {
				t.Fatalf("again after operation %d: %v", n, err)
			}
			if diff := cmp.Diff(clean.blobs, m.blobs); diff != "" {
				t.Fatalf("again after operation %d (-clean +got):\n%s", n, diff)
			}
		}
		if n < 8 {
			t.Errorf("only %d operations", n)
		}
	}
}

// TestBothAtOnce: writers of heads of the same run ids do not wait for each other in
// a circle, and the pointers end where the last of the stream wants them.
func TestBothAtOnce(t *testing.T) {
	t.Parallel()
	d, err := OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s := openSidecars(t, d)
	const writers = 24
	var last segments.Digest
	var wg sync.WaitGroup
	errs := make([]error, writers)
	for i := range writers {
		ids := []string{runID(1), runID(2), runID(3)}
		if i%2 == 0 {
			ids[0], ids[2] = ids[2], ids[0]
		}
		e, _ := testEvidence(testPlace, fmt.Sprint("x", i), false, ids...)
		e.Sealed = Position{1, uint64(1 + i)}
		last = e.Head
		b := trustBundle(testBundleText)
		b.Chain, b.Root = fmt.Sprint("c", i), segments.Sum(fmt.Append(nil, i))
		wg.Go(func() { _, _, errs[i] = s.WriteBoth(t.Context(), e, b, nil) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		found, err := s.ReadRun(t.Context(), testPlace, runID(1+i))
		if err != nil || *found.Head != last {
			t.Errorf("run %d: %+v, %v", 1+i, found, err)
		}
		if heads, err := s.RunHeads(t.Context(), testPlace, runID(1+i)); err != nil || len(heads) != writers {
			t.Errorf("run %d had %d heads, %v", 1+i, len(heads), err)
		}
	}
}

// TestBothJudged: after an error of the judge nothing is there.
func TestBothJudged(t *testing.T) {
	t.Parallel()
	e, _ := testEvidence(testPlace, "x", false, runID(1))
	b := trustBundle(testBundleText)
	for backEnd, make := range backEnds {
		blobs := make(t)
		s := openSidecars(t, blobs)
		for _, answer := range []error{errInjected, nil} {
			if _, _, err := s.WriteBoth(t.Context(), e, b, func() error { return answer }); !errors.Is(err, answer) {
				t.Errorf("%s: says %v, not %v", backEnd, err, answer)
			}
			if n := len(everything(t, blobs)); (n == 0) != (answer != nil) {
				t.Errorf("%s: %d blobs after %v", backEnd, n, answer)
			}
		}
	}
}
