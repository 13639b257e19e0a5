package sidecar

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chaind/chaind/segments"
	"github.com/google/go-cmp/cmp"
)

func fixedNow() time.Time { return time.Unix(1_800_000_000, 0) }

type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func openWithClock(t *testing.T, b Blobs, c *clock, retention time.Duration) *Sidecars {
	t.Helper()
	s, err := Open(t.Context(), Config{Blobs: b, Retention: retention, Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func snapshot(t *testing.T, s *Sidecars, n int, body string) (kept bool) {
	t.Helper()
	kept, err := s.WriteSnapshot(t.Context(), testPlace, runID(n), []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

func TestSnapshotIsWrittenOnce(t *testing.T) {
	t.Parallel()
	b := NewMemory()
	s := openSidecars(t, b)
	for range 2 {
		if snapshot(t, s, 1, `{"first":1}`) {
			t.Error("the same bytes pass for others")
		}
	}
	if !snapshot(t, s, 1, `{"other":1}`) {
		t.Error("another snapshot of the run is not reported")
	}
	blob, err := s.ReadSnapshot(t.Context(), testPlace, runID(1))
	if err != nil {
		t.Fatal(err)
	}
	metadata, body, err := segments.SplitArtifactFrame(blob)
	if err != nil || string(metadata) != snapshotMetadata || string(body) != `{"first":1}` {
		t.Errorf("%q, %q, %v", metadata, body, err)
	}
}

// TestRetention: only what we wrote goes, and only when it is old enough.
func TestRetention(t *testing.T) {
	t.Parallel()
	for backEnd, make := range backEnds {
		t.Run(backEnd, func(t *testing.T) {
			t.Parallel()
			b := make(t)
			c := &clock{fixedNow()}
			s := openWithClock(t, b, c, time.Hour)
			e, _ := testEvidence(testPlace, "x", false, runID(1))
			write(t, s, e)
			put(t, b, testPlace.SnapshotPath(runID(3)), "theirs")
			put(t, b, testPlace.SnapshotPath(runID(4)), string(segments.AppendArtifactFrame(nil, []byte(snapshotMetadata), []byte("same"))))
			snapshot(t, s, 1, "ours")
			snapshot(t, s, 2, "ours, then replaced")
			snapshot(t, s, 3, "not ours")
			snapshot(t, s, 4, "same")
			put(t, b, testPlace.SnapshotPath(runID(2)), "replaced")
			before := names(t, b, "execute/")
			c.now = c.now.Add(time.Hour - time.Second)
			snapshot(t, s, 5, "younger")
			if n, err := s.Expire(t.Context()); n != 0 || err != nil {
				t.Fatalf("before the time: %d, %v", n, err)
			}
			c.now = c.now.Add(time.Second)
			if n, err := s.Expire(t.Context()); n != 1 || err != nil {
				t.Fatalf("at the time: %d, %v", n, err)
			}
			want := []string{testPlace.SnapshotPath(runID(5))}
			for _, name := range before {
				if name != testPlace.SnapshotPath(runID(1)) {
					want = append(want, name)
				}
			}
			left := names(t, b, "execute/")
			if diff := cmp.Diff(len(want), len(left)); diff != "" || get(t, b, testPlace.SnapshotPath(runID(1))) != "absent" {
				t.Errorf("left: %v", left)
			}
			if diff := cmp.Diff([]string{markers + testPlace.SnapshotPath(runID(5))}, names(t, b, markers)); diff != "" {
				t.Errorf("markers: %s", diff)
			}
			if _, err := s.ReadSnapshot(t.Context(), testPlace, runID(1)); !errors.Is(err, ErrNotFound) {
				t.Errorf("expired snapshot: %v", err)
			}
			if _, err := s.ReadRun(t.Context(), testPlace, runID(1)); err != nil {
				t.Errorf("evidence of the expired snapshot: %v", err)
			}
		})
	}
}

func TestNoRetention(t *testing.T) {
	t.Parallel()
	b := NewMemory()
	c := &clock{fixedNow()}
	s := openWithClock(t, b, c, 0)
	snapshot(t, s, 1, "x")
	c.now = c.now.Add(1000 * time.Hour)
	if n, err := s.Expire(t.Context()); n != 0 || err != nil || get(t, b, testPlace.SnapshotPath(runID(1))) == "absent" {
		t.Errorf("without retention %d went, %v", n, err)
	}
	s = openWithClock(t, b, &clock{fixedNow().Add(59 * time.Second)}, time.Second)
	if n, err := s.Expire(t.Context()); n != 0 || err != nil {
		t.Errorf("retention below a minute: %d, %v", n, err)
	}
}

// TestForgedMarker: a marker cannot be made to delete anything but a snapshot.
func TestForgedMarker(t *testing.T) {
	t.Parallel()
	b := NewMemory()
	s := openWithClock(t, b, &clock{fixedNow()}, time.Hour)
	e, text := testEvidence(testPlace, "x", false, runID(1))
	w := write(t, s, e)
	put(t, b, "execute/x/evidence/y.artifact", "y")
	put(t, b, ".chaind/y.artifact", "y")
	for _, name := range []string{w.Path, "execute/x/evidence/y.artifact", ".chaind/y.artifact"} {
		put(t, b, markers+name, "1\n"+segments.Sum([]byte(get(t, b, name))).String()+"\n")
	}
	put(t, b, testPlace.SnapshotPath(runID(7)), "z")
	put(t, b, markers+testPlace.SnapshotPath(runID(7)), "not a marker")
	if n, err := s.Expire(t.Context()); n != 0 || err != nil {
		t.Errorf("%d went, %v", n, err)
	}
	if get(t, b, w.Path) != string(text) || get(t, b, testPlace.SnapshotPath(runID(7))) != "z" {
		t.Error("something else was deleted")
	}
}

// TestRetentionGoesOn: what is wrong with one marker or snapshot keeps no other
// one from its end.
func TestRetentionGoesOn(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	b := openDir(t, root)
	c := &clock{fixedNow()}
	s := openWithClock(t, b, c, time.Hour)
	for n := 1; n <= 5; n++ {
		snapshot(t, s, n, "ours")
	}
	put(t, b, markers+testPlace.SnapshotPath(runID(1)), strings.Repeat("x", maxPointer+1))
	at := filepath.Join(root, testPlace.SnapshotPath(runID(3)))
	link(t, filepath.Join(root, "elsewhere"), at)
	c.now = c.now.Add(time.Hour)
	n, err := s.Expire(t.Context())
	if n != 3 || !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrNotRegular) || !strings.Contains(err.Error(), "2 of 5 failed") {
		t.Errorf("%d went, %v", n, err)
	}
	if _, err := os.Lstat(at); err != nil || get(t, b, testPlace.SnapshotPath(runID(1))) == "absent" {
		t.Errorf("one that cannot be looked at went: %v", err)
	}
}
