package sidecar

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chaind/chaind/segments"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestLayout lists every blob that the writing of one run makes.
func TestLayout(t *testing.T) {
	t.Parallel()
	for _, tenant := range []string{"", "acme"} {
		for backEnd, make := range backEnds {
			t.Run(backEnd+"/"+tenant, func(t *testing.T) {
				t.Parallel()
				b := make(t)
				s, err := Open(t.Context(), Config{Blobs: b, Owner: "store"})
				if err != nil {
					t.Fatal(err)
				}
				place := Place{Tenant: tenant, PromptHash: testPrompt, Session: testSession}
				e, text := testEvidence(place, "x", false, runID(1), runID(2))
				e.Sealed = Position{Epoch: 1, StreamSeq: 7}
				w := write(t, s, e)
				if _, err := s.WriteSnapshot(t.Context(), place, runID(1), []byte("{}")); err != nil {
					t.Fatal(err)
				}
				dir := testDir
				if tenant != "" {
					dir = "tenants/acme/" + testDir
				}
				head := e.Head.String()
				want := map[string]string{
					dir + "/evidence/heads/" + head + ".evidence.json":   string(text),
					dir + "/evidence/run-heads/" + runID(1) + ".head":    head,
					dir + "/evidence/run-heads/" + runID(1) + "/" + head: "1 7\n",
					dir + "/evidence/run-heads/" + runID(2) + ".head":    head,
					dir + "/evidence/run-heads/" + runID(2) + "/" + head: "1 7\n",
					dir + "/" + fmt.Sprintf("%064x", 1) + ".artifact":    "PLAR1\n\x00\x00\x00\x4a" + snapshotMetadata + "{}",
					".chaind/owner": "store\n",
				}
				marker := ".chaind/snapshots/" + dir + "/" + fmt.Sprintf("%064x", 1) + ".artifact"
				got := map[string]string{}
				for _, name := range names(t, b, "") {
					got[name] = get(t, b, name)
				}
				if !strings.HasSuffix(got[marker], "\n") || strings.Count(got[marker], "\n") != 2 {
					t.Errorf("marker %q", got[marker])
				}
				delete(got, marker)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if want := (Written{Path: e.Place.EvidencePath(Heads, e.Head), Outcome: Stored, Bytes: uint64(len(text)), SHA256: segments.Sum(text)}); w != want {
					t.Errorf("written %+v", w)
				}
			})
		}
	}
}

// TestOtherClasses: nothing of a chain that does not conform is where the
// reference looks.
func TestOtherClasses(t *testing.T) {
	t.Parallel()
	for _, class := range []Class{Unplanned, Nonconforming} {
		b := NewMemory()
		s := openSidecars(t, b)
		e, text := testEvidence(testPlace, "x", false, runID(1))
		e.Class = class
		write(t, s, e)
		want := []string{testDir + "/evidence/" + string(class) + "/" + e.Head.String() + ".evidence.json"}
		if diff := cmp.Diff(want, names(t, b, "")); diff != "" {
			t.Error(diff)
		}
		if _, err := s.ReadRun(t.Context(), testPlace, runID(1)); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s found by run id: %v", class, err)
		}
		found, err := s.ReadHead(t.Context(), testPlace, class, e.Head)
		if err != nil || string(found.Bytes) != string(text) || found.Via != ViaHead || *found.Head != e.Head || found.Class != class {
			t.Errorf("%s by head: %+v, %v", class, found, err)
		}
	}
	e, _ := testEvidence(testPlace, "x", false)
	e.Class = "run-heads"
	if _, err := openSidecars(t, NewMemory()).Write(t.Context(), e); !errors.Is(err, ErrName) {
		t.Errorf("unknown class: %v", err)
	}
}

// recorder notes the names written, in order.
type recorder struct {
	Blobs
	mu    sync.Mutex
	wrote []string
}

func (r *recorder) note(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrote = append(r.wrote, name)
}

func (r *recorder) Put(ctx context.Context, name string, body Body) error {
	r.note(name)
	return r.Blobs.Put(ctx, name, body)
}

func (r *recorder) PutOnce(ctx context.Context, name string, body Body) error {
	r.note(name)
	return r.Blobs.PutOnce(ctx, name, body)
}

func TestHeadBeforePointers(t *testing.T) {
	t.Parallel()
	b := &recorder{Blobs: NewMemory()}
	e, _ := testEvidence(testPlace, "x", false, runID(1))
	write(t, openSidecars(t, b), e)
	want := []string{testPlace.EvidencePath(Heads, e.Head), testPlace.history(runID(1)) + e.Head.String(), testPlace.pointer(runID(1))}
	slices.Sort(b.wrote[1:]) // entry and pointer come in any order, after the head
	slices.Sort(want[1:])
	if diff := cmp.Diff(want, b.wrote); diff != "" {
		t.Error(diff)
	}
}

// TestFirstBytesStand: a head that was first written with another signature
// keeps it, and the caller is told what stands.
func TestFirstBytesStand(t *testing.T) {
	t.Parallel()
	for _, firstSigned := range []bool{false, true} {
		b := NewMemory()
		s := openSidecars(t, b)
		first, text := testEvidence(testPlace, "x", firstSigned)
		later, _ := testEvidence(testPlace, "x", !firstSigned)
		write(t, s, first)
		w := write(t, s, later)
		if w.Outcome != Kept || w.SHA256 != segments.Sum(text) || w.Standing == nil || (w.Standing.Signature != nil) != firstSigned {
			t.Errorf("first signed %v: %+v", firstSigned, w)
		}
		if get(t, b, w.Path) != string(text) {
			t.Error("the first bytes are gone")
		}
	}
}

// TestNewRunsOfKnownHead is quirk 28, and quirk 29: missing pointers of a known
// head are written, a later head takes the pointer, the earlier stays findable.
func TestNewRunsOfKnownHead(t *testing.T) {
	t.Parallel()
	s := openSidecars(t, NewMemory())
	one, _ := testEvidence(testPlace, "one", false, runID(1))
	one.Sealed = Position{1, 5}
	write(t, s, one)
	one.RunIDs = []string{runID(1), runID(2)}
	write(t, s, one)
	two, _ := testEvidence(testPlace, "two", false, runID(1))
	two.Sealed = Position{1, 9}
	write(t, s, two)
	for id, want := range map[string]segments.Digest{runID(1): two.Head, runID(2): one.Head} {
		if found, err := s.ReadRun(t.Context(), testPlace, id); err != nil || *found.Head != want || found.Via != ViaPointer {
			t.Errorf("run %s: %+v, %v", id, found, err)
		}
	}
	heads, err := s.RunHeads(t.Context(), testPlace, runID(1))
	if diff := cmp.Diff([]RunHead{{one.Head, Position{1, 5}}, {two.Head, Position{1, 9}}}, heads); diff != "" || err != nil {
		t.Error(err, diff)
	}
	// Sealing the earlier one again, as after a crash, does not turn back the pointer.
	write(t, s, one)
	if found, err := s.ReadRun(t.Context(), testPlace, runID(1)); err != nil || *found.Head != two.Head {
		t.Errorf("after the earlier one again: %+v, %v", found, err)
	}
}

// TestLaterSealKeepsItsPlace: another chain with the same head that was sealed
// earlier does not move the head back in the history, nor the pointer to what was
// sealed between the two.
func TestLaterSealKeepsItsPlace(t *testing.T) {
	t.Parallel()
	s := openSidecars(t, NewMemory())
	twice, _ := testEvidence(testPlace, "twice", false, runID(1))
	between, _ := testEvidence(testPlace, "between", false, runID(1))
	twice.Sealed = Position{2, 1}
	write(t, s, twice)
	between.Sealed = Position{1, 7}
	write(t, s, between)
	twice.Sealed = Position{1, 5}
	write(t, s, twice)
	heads, err := s.RunHeads(t.Context(), testPlace, runID(1))
	if diff := cmp.Diff([]RunHead{{between.Head, Position{1, 7}}, {twice.Head, Position{2, 1}}}, heads); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if found, err := s.ReadRun(t.Context(), testPlace, runID(1)); err != nil || *found.Head != twice.Head {
		t.Errorf("pointer to %+v, %v", found, err)
	}
}

// TestReferencePointer: the reference keeps no history, so a head that only its
// pointer named is entered before the pointer moves.
func TestReferencePointer(t *testing.T) {
	t.Parallel()
	b := NewMemory()
	s := openSidecars(t, b)
	theirs, text := testEvidence(testPlace, "theirs", false, runID(1))
	put(t, b, testPlace.EvidencePath(Heads, theirs.Head), string(text))
	put(t, b, testPlace.pointer(runID(1)), theirs.Head.String())
	ours, _ := testEvidence(testPlace, "ours", false, runID(1))
	ours.Sealed = Position{1, 1}
	write(t, s, ours)
	heads, err := s.RunHeads(t.Context(), testPlace, runID(1))
	if diff := cmp.Diff([]RunHead{{theirs.Head, Position{}}, {ours.Head, Position{1, 1}}}, heads); diff != "" || err != nil {
		t.Error(err, diff)
	}
	// A pointer to a file that is not there names nothing to be kept.
	put(t, b, testPlace.pointer(runID(2)), strings.Repeat("0", 64))
	ours.RunIDs = []string{runID(2)}
	write(t, s, ours)
	heads, err = s.RunHeads(t.Context(), testPlace, runID(2))
	if diff := cmp.Diff([]RunHead{{ours.Head, Position{1, 1}}}, heads); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

// TestF11DamageIsRepaired is case F11: whatever stands under a known head is
// looked at, not taken for done.
func TestF11DamageIsRepaired(t *testing.T) {
	t.Parallel()
	e, text := testEvidence(testPlace, "x", true, runID(1))
	other, otherText := testEvidence(testPlace, "other", true, runID(1))
	elsewhere := testPlace
	elsewhere.Session = strings.Repeat("0", 32)
	_, strayed := testEvidence(elsewhere, "x", false, runID(1))
	forged := testBundle(testPlace, "x", true, runID(1))
	forged.Signature.SignatureHex = strings.Repeat("0", 128)
	damages := map[string]string{
		"empty": "", "half": string(text[:len(text)/2]), "another head": string(otherText), "no JSON": "x",
		"another session": string(strayed), "bad signature": string(segments.AppendBundle(nil, forged)),
		"trailing": string(text) + "{}", "unknown member": `{"x":1,` + string(text[1:]),
		"without head": strings.Replace(string(text), `,"head":"`+e.Head.String()+`"`, "", 1),
	}
	if len(other.RunIDs) != 1 {
		t.Fatal("no run")
	}
	for name, damage := range damages {
		for backEnd, make := range backEnds {
			t.Run(backEnd+"/"+name, func(t *testing.T) {
				t.Parallel()
				b := make(t)
				s := openSidecars(t, b)
				w := write(t, s, e)
				put(t, b, w.Path, damage)
				if ok, err := s.Intact(t.Context(), e, w.SHA256); ok || err != nil {
					t.Errorf("damage is not noticed: %v, %v", ok, err)
				}
				if w := write(t, s, e); w.Outcome != Repaired || w.SHA256 != segments.Sum(text) {
					t.Errorf("%+v", w)
				}
				if get(t, b, w.Path) != string(text) {
					t.Error("damage stands")
				}
				if ok, err := s.Intact(t.Context(), e, w.SHA256); !ok || err != nil {
					t.Errorf("after the repair: %v, %v", ok, err)
				}
			})
		}
	}
}

// TestEveryFlippedByte: a bundle with one byte changed is replaced unless it is
// still one with the same head, which then stands; told the exact bytes, Write
// replaces every one.
func TestEveryFlippedByte(t *testing.T) {
	t.Parallel()
	e, text := testEvidence(testPlace, "x", false, runID(1))
	path := testPlace.EvidencePath(Heads, e.Head)
	kept := 0
	for i := range text {
		flipped := slices.Clone(text)
		flipped[i] ^= 1
		b := NewMemory()
		s := openSidecars(t, b)
		put(t, b, path, string(flipped))
		w := write(t, s, e)
		bundle, _, err := segments.ReadBundle(strings.NewReader(get(t, b, path)))
		if err != nil || *bundle.Head != e.Head {
			t.Fatalf("byte %d flipped: what stands is no bundle with the head: %v", i, err)
		}
		if w.Outcome == Kept {
			kept++
			e.Exact = true
			w = write(t, s, e)
			e.Exact = false
		}
		if w.Outcome != Repaired || get(t, b, path) != string(text) {
			t.Fatalf("byte %d flipped: %s", i, w.Outcome)
		}
	}
	// Digits of times, and what the scope says beside the place, are not hashed.
	if kept == 0 || kept > 100 {
		t.Errorf("%d of %d changed bundles pass for first bytes", kept, len(text))
	}
}

// TestPointerDamage: pointers and history entries are made right on the next
// write, and Intact tells when they are not.
func TestPointerDamage(t *testing.T) {
	t.Parallel()
	for _, damage := range []string{"", "x", strings.Repeat("0", 63), "../../../../etc", strings.Repeat("z", 64), strings.Repeat(" ", 5000)} {
		b := NewMemory()
		s := openSidecars(t, b)
		e, text := testEvidence(testPlace, "x", false, runID(1))
		e.Sealed = Position{2, 3}
		write(t, s, e)
		for _, name := range []string{testPlace.pointer(runID(1)), testPlace.history(runID(1)) + e.Head.String()} {
			whole := get(t, b, name)
			put(t, b, name, damage)
			if ok, err := s.Intact(t.Context(), e, segments.Sum(text)); ok || err != nil {
				t.Errorf("%.10q in %s is not noticed: %v", damage, name, err)
			}
			write(t, s, e)
			if get(t, b, name) != whole {
				t.Errorf("%.10q in %s stands", damage, name)
			}
		}
	}
}

// TestLostPointer: the history tells which head was sealed last.
func TestLostPointer(t *testing.T) {
	t.Parallel()
	b := NewMemory()
	s := openSidecars(t, b)
	var early, late Evidence
	for i := range 8 {
		late, _ = testEvidence(testPlace, fmt.Sprint(i), false, runID(1))
		late.Sealed = Position{1, uint64(i)}
		write(t, s, late)
		if i == 0 {
			early = late
		}
	}
	if err := b.Remove(t.Context(), testPlace.pointer(runID(1))); err != nil {
		t.Fatal(err)
	}
	write(t, s, early)
	if got := get(t, b, testPlace.pointer(runID(1))); got != late.Head.String() {
		t.Errorf("pointer %s", got)
	}
}

// TestOrderOfWrites: whatever the order of the writes, and however often each
// comes, the same blobs are there.
func TestOrderOfWrites(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "chains")
		var all []Evidence
		for i := range n {
			var runs []string
			for r := range 3 {
				if rapid.Bool().Draw(t, "run") {
					runs = append(runs, runID(r))
				}
			}
			e, _ := testEvidence(testPlace, fmt.Sprint(i), false, runs...)
			e.Sealed = Position{Epoch: uint32(rapid.IntRange(1, 2).Draw(t, "epoch")), StreamSeq: uint64(i + 1)}
			all = append(all, e)
		}
		want := dump(t, all)
		order := rapid.Permutation(append(all, all[rapid.IntRange(0, n-1).Draw(t, "again")])).Draw(t, "order")
		if diff := cmp.Diff(want, dump(t, order)); diff != "" {
			t.Fatalf("(-in order +out of order):\n%s", diff)
		}
	})
}

func dump(t *rapid.T, list []Evidence) map[string]string {
	b := NewMemory()
	s, err := Open(context.Background(), Config{Blobs: b})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if _, err := s.Write(context.Background(), e); err != nil {
			t.Fatal(err)
		}
	}
	all := map[string]string{}
	for name, content := range b.blobs {
		all[name] = string(content)
	}
	return all
}

// TestNewRunsListNothing: sealing a run id for the first time costs no listing,
// which in an object store takes as long as there are objects.
func TestNewRunsListNothing(t *testing.T) {
	t.Parallel()
	b := &lister{Blobs: NewMemory()}
	s := openSidecars(t, b)
	for n := range 20 {
		e, _ := testEvidence(testPlace, fmt.Sprint(n), false, runID(n), runID(100+n))
		write(t, s, e)
	}
	if n := b.lists.Load(); n != 0 {
		t.Errorf("%d listings", n)
	}
}

// lister counts listings.
type lister struct {
	Blobs
	lists atomic.Int32
}

func (l *lister) List(ctx context.Context, prefix string, visit func(string) error) error {
	l.lists.Add(1)
	return l.Blobs.List(ctx, prefix, visit)
}
