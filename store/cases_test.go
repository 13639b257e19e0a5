package store

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
)

// Case C16: the order is that of the stream, whatever the clocks say: the
// producer's goes back between two steps, two steps share a millisecond, and the
// broker's goes back.
func TestC16OrderIsByNumberNotByTime(t *testing.T) {
	t.Parallel()
	s := openStore(t, testConfig(t))
	at := []uint64{1780000005000, 1780000003000, 1780000003000, 1780000009000}
	for i, ms := range at {
		payload := strings.Replace(stepPayload(fmt.Sprint("e", i)), "1780000000000", fmt.Sprint(ms), 1)
		e := decoded(testKey("c").Subject("step"), payload, uint64(i)+1)
		e.BrokerMS = 1780000000000 - uint64(i)*1000
		give(t, s, testStream, e)
	}
	segments, err := s.Segments(testKey("c"), 0, 0)
	if err != nil || len(segments) != len(at) {
		t.Fatalf("%d segments, %v", len(segments), err)
	}
	for i, r := range segments {
		if r.EventID != fmt.Sprint("e", i) || r.Segment.Seq != uint64(i) || r.Segment.EmittedAtMS == nil || *r.Segment.EmittedAtMS != at[i] {
			t.Errorf("segment %d: %s at %v", i, r.EventID, r.Segment.EmittedAtMS)
		}
	}
	mustCheck(t, s)
}

// Case B11: evidence is never deleted, so there is little to give back; a
// compacted copy is the same store, with the same heads.
func TestB11CompactionChangesNothing(t *testing.T) {
	t.Parallel()
	v := loadVector(t, "small")
	s := openStore(t, testConfig(t))
	for i := 0; i < len(v.Messages); i += 5 {
		mustAppend(t, s, v.batch(i, min(i+5, len(v.Messages))))
	}
	before, err := s.Stats()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	compact, err := bbolt.Open(filepath.Join(dir, DatabaseFile), 0o600, nil)
	if err == nil {
		err = bbolt.Compact(compact, s.db, 0)
	}
	if err == nil {
		err = compact.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	copied := openStore(t, Config{Dir: dir})
	v.verify(t, copied)
	mustCheck(t, copied)
	after, err := copied.Stats()
	if err != nil {
		t.Fatal(err)
	}
	if before.FileBytes > 4*after.FileBytes {
		t.Errorf("%d bytes, and %d when compacted: too much of the file is dead", before.FileBytes, after.FileBytes)
	}
}
