package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaind/chaind/events"
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

// Case B09: cp of a live database. The copy has pages from before and after
// transactions that ran meanwhile; it is refused, or the check finds something, or
// nothing that matters moved and it is one of the two states, whole. It is never
// a third that looks right.
func TestB09CopyOfALiveDatabase(t *testing.T) {
	t.Parallel()
	v := loadVector(t, "small")
	s := openStore(t, testConfig(t))
	tight(s)
	file := filepath.Join(s.cfg.Dir, DatabaseFile)
	read := func() []byte { return must(os.ReadFile(file)) }
	root, torn := t.TempDir(), 0
	for i := 0; i < len(v.Messages); i += 25 {
		old := read()
		mustAppend(t, s, v.batch(i, i+25))
		now := read()
		for at := 4096; at < min(len(old), len(now)); at += 4096 * (1 + len(now)/4096/8) {
			for name, copied := range map[string][]byte{
				"old-new": append(bytes.Clone(old[:at]), now[at:]...), "new-old": append(bytes.Clone(now[:at]), old[at:]...),
			} {
				if !bytes.Equal(copied, old) && !bytes.Equal(copied, now) {
					place(t, filepath.Join(root, fmt.Sprintf("%d-%d-%s", i, at, name)), copied, nil)
					torn++
				}
			}
		}
	}
	tally := map[string]int{}
	for name, answer := range inOtherProcess(t, root) {
		tally[answer]++
		var i int
		fmt.Sscanf(name, "%d-", &i)
		switch answer {
		case "refused", "found":
		case "clean":
			c, err := Open(Config{Dir: filepath.Join(root, name)})
			if err != nil {
				t.Fatal(err)
			}
			// exercise has appended one event more, under sequence 304.
			before, after := uint64(i), uint64(min(i+25, len(v.Messages)))
			epochs := must(c.Epochs()) // the second began with the restore, unless the copy was of an empty store
			if seam := epochs[len(epochs)-1].Base; len(epochs) == 1 && i != 0 || seam != before && seam != after {
				t.Errorf("%s is a third state: %+v", name, epochs)
			}
			c.Close()
		default:
			t.Errorf("%s: %s", name, answer)
		}
	}
	if t.Logf("%d torn copies: %v", torn, tally); tally["refused"]+tally["found"] == 0 {
		t.Error("no torn copy was noticed")
	}
}

// Case B13: what cannot be a key is refused with a reason, and the refusal is
// durable: nothing comes again for ever.
func TestB13KeysOfAnyLength(t *testing.T) {
	t.Parallel()
	s := openStore(t, testConfig(t))
	long := strings.Repeat("r", 40_000)
	seal := func(run string) string {
		return fmt.Sprintf(`{"v":1,"event_id":"e","kind":{"kind":"run_sealed","run_id":%q,"run_bundle_digest":%q}}`, run, strings.Repeat("0", 64))
	}
	key := testKey("c")
	for i, c := range []struct {
		subject, payload string
		class            events.Class
	}{
		{key.Subject(events.VerbSeal), seal(long), events.RunIDMismatch},
		{key.Subject(events.VerbSeal), seal(""), events.RunIDMismatch},
		{key.Subject(events.VerbStep), stepPayload(long), events.BadID},
		{key.Subject(events.VerbStep), stepPayload(""), events.BadID},
		{strings.Replace(key.Subject(events.VerbStep), ".c.", "."+long+".", 1), stepPayload("e"), events.BadSubject},
		{strings.Replace(key.Subject(events.VerbStep), ".c.", "..", 1), stepPayload("e"), events.BadSubject},
		{long, stepPayload("e"), events.BadSubject},
		{"", stepPayload("e"), events.BadSubject},
	} {
		for again := range 2 {
			b := &events.Batch{Stream: testStream, Events: []*events.Event{decoded(c.subject, c.payload, uint64(i)+1)}}
			effects := mustAppend(t, s, b)
			if f := effects[0].Fault; effects[0].Verdict != events.Rejected || f == nil || f.Class != c.class {
				t.Errorf("%d, given %d times: %s, %+v", i, again+1, effects[0].Verdict, f)
			}
		}
	}
	list, _, err := s.Rejected(RejectedQuery{Limit: MaxPage})
	if err != nil || len(list) != 8 {
		t.Errorf("%d rejections, %v", len(list), err)
	}
	if w := must(s.Watermark(testStream)); w.Applied != 8 {
		t.Errorf("%+v", w)
	}
	wantVerdicts(t, give(t, s, testStream, step("c", "e", 9)), events.Appended)
}

// Case C10: sealed as completed, then as failed. The first stands and the second
// is an addendum that says what it wanted; what the seal rests on has not changed.
func TestC10SecondSealDisagrees(t *testing.T) {
	t.Parallel()
	s := openStore(t, testConfig(t))
	completed := decoded(testKey("c").Subject(events.VerbSeal), `{"v":1,"event_id":"z"}`, 2)
	wantVerdicts(t, give(t, s, testStream, step("c", "a", 1), completed), events.Appended, events.Finished)
	before := must(s.SealJobs(0, 10))
	wantVerdicts(t, give(t, s, testStream, seal("c", "y", 3)), events.Late)
	if st := state(t, s, "c"); st.Outcome != events.Succeeded || st.Late != 1 {
		t.Errorf("%s, %d late", st.Outcome, st.Late)
	}
	late := must(s.Addenda(testKey("c"), 0, 10))
	if len(late) != 1 || late[0].Outcome != events.Failed || late[0].Reason != "r" || late[0].StreamSeq != 3 {
		t.Errorf("addenda %+v", late)
	}
	after := must(s.SealJobs(0, 10))
	if len(before) != 1 || len(after) != 1 || after[0].Fixed.StreamSeq != 2 || after[0].Fixed.State.Outcome != events.Succeeded || after[0].Fixed.State.Late != 0 {
		t.Errorf("jobs %+v", after)
	}
}

// Case C24: the commit with a chain's very first event fails, with and without
// effect, and is given again in this process or the next: the chain begins once.
func TestC24FirstRecordOfAChain(t *testing.T) {
	t.Parallel()
	for _, persisted := range []bool{false, true} {
		for _, restart := range []bool{false, true} {
			s := openStore(t, testConfig(t))
			fail := func() error { return errInjected }
			if s.testingOnly.beforeCommit = fail; persisted {
				s.testingOnly = hooks{afterCommit: fail}
			}
			if _, err := s.Append(t.Context(), batchOf("c", 1, 1)); err == nil {
				t.Fatal("the commit did not fail")
			}
			if s.testingOnly = (hooks{}); restart {
				s = reopen(t, s)
			}
			want := events.Appended
			if persisted {
				want = events.Duplicate
			}
			wantVerdicts(t, give(t, s, testStream, batchOf("c", 1, 1).Events...), want)
			wantVerdicts(t, give(t, s, testStream, batchOf("c", 2, 1).Events...), events.Appended)
			if st := state(t, s, "c"); st.Segments != 2 || st.Duplicates != 0 {
				t.Errorf("persisted %v, restart %v: %d segments, %d duplicates", persisted, restart, st.Segments, st.Duplicates)
			}
			mustCheck(t, s)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
