package natsobj

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/sidecar/blobstest"
)

func TestBlobs(t *testing.T) {
	t.Parallel()
	broker := startBroker(t)
	var n atomic.Int32
	// The group waits for its parallel tests before the broker stops.
	t.Run("bucket", func(t *testing.T) {
		blobstest.Run(t, func(*testing.T) sidecar.Blobs { return broker.bucket(fmt.Sprintf("b%d", n.Add(1))) })
	})
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(n)}).Read(b)
	return b
}

func content(t *testing.T, b *Bucket, name string) []byte {
	t.Helper()
	r, err := b.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// pieces counts the messages that are not descriptions.
func (b *Bucket) pieces(t *testing.T) int {
	t.Helper()
	info, err := b.stream.Info(t.Context(), jetstream.WithSubjectFilter(b.subjects()[0]))
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(0)
	for _, count := range info.State.Subjects {
		n += count
	}
	return int(n)
}

// TestLarge: sizes around those of a piece and of what stays in memory come
// back, also when they overwrite each other, and old pieces go.
func TestLarge(t *testing.T) {
	t.Parallel()
	b := startBroker(t).bucket("large")
	for _, size := range []int{0, 1, pieceBytes - 1, pieceBytes, pieceBytes + 1, 3*pieceBytes + 7, maxInMemory, maxInMemory + 1} {
		want := random(size)
		body := func(w io.Writer) error { // in odd portions
			for rest := range slices.Chunk(want, 10_007) {
				if _, err := w.Write(rest); err != nil {
					return err
				}
			}
			return nil
		}
		if err := b.Put(t.Context(), "x", body); err != nil {
			t.Fatal(err)
		}
		if got := content(t, b, "x"); !bytes.Equal(got, want) {
			t.Fatalf("%d bytes: %d others came back", size, len(got))
		}
		if got, want := b.pieces(t), (size+pieceBytes-1)/pieceBytes; got != want {
			t.Errorf("%d bytes: %d pieces, want %d", size, got, want)
		}
	}
	if left, err := os.ReadDir(b.temp); err != nil || len(left) != 0 {
		t.Errorf("temporary files: %v, %v", left, err)
	}
	if err := b.Remove(t.Context(), "x"); err != nil || b.pieces(t) != 0 {
		t.Errorf("removed: %v, %d pieces", err, b.pieces(t))
	}
}

// TestOtherClients: what the object store's own client writes is read, and the
// other way round.
func TestOtherClients(t *testing.T) {
	t.Parallel()
	broker := startBroker(t)
	b := broker.bucket("shared")
	theirs, err := broker.connect().ObjectStore(t.Context(), "shared")
	if err != nil {
		t.Fatal(err)
	}
	want := random(300_000)
	if _, err := theirs.PutBytes(t.Context(), "dir/theirs", want); err != nil {
		t.Fatal(err)
	}
	if got := content(t, b, "dir/theirs"); !bytes.Equal(got, want) {
		t.Error("their object reads differently here")
	}
	if err := b.PutOnce(t.Context(), "dir/ours", sidecar.Bytes(want)); err != nil {
		t.Fatal(err)
	}
	if got, err := theirs.GetBytes(t.Context(), "dir/ours"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("our object reads differently there: %v", err)
	}
	if _, ok := errors.AsType[*sidecar.ConflictError](b.PutOnce(t.Context(), "dir/theirs", sidecar.Bytes(nil))); !ok {
		t.Error("their object was overwritten")
	}
	if err := theirs.Delete(t.Context(), "dir/theirs"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Open(t.Context(), "dir/theirs"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what they deleted: %v", err)
	}
	if err := b.PutOnce(t.Context(), "dir/theirs", sidecar.Bytes([]byte("again"))); err != nil {
		t.Errorf("the name is not free: %v", err)
	}
	if _, err := theirs.AddLink(t.Context(), "link", mustInfo(t, theirs, "dir/ours")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Open(t.Context(), "link"); !errors.Is(err, sidecar.ErrNotRegular) {
		t.Errorf("read through a link: %v", err)
	}
}

func mustInfo(t *testing.T, store jetstream.ObjectStore, name string) *jetstream.ObjectInfo {
	t.Helper()
	info, err := store.GetInfo(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// TestTwoWriters: of many writers over several connections exactly one is
// first, whatever they saw before (case C04 for blobs).
func TestTwoWriters(t *testing.T) {
	t.Parallel()
	broker := startBroker(t)
	writers := []*Bucket{broker.bucket("w"), broker.bucket("w"), broker.bucket("w"), broker.bucket("w")}
	for round := range 20 {
		name := fmt.Sprintf("n%d", round)
		won := make([]bool, len(writers))
		var wg sync.WaitGroup
		for i, b := range writers {
			wg.Go(func() {
				err := b.PutOnce(t.Context(), name, sidecar.Bytes(bytes.Repeat([]byte{byte(i)}, 1000)))
				if _, conflict := errors.AsType[*sidecar.ConflictError](err); err != nil && !conflict {
					t.Errorf("writer %d: %v", i, err)
				}
				won[i] = err == nil
			})
		}
		wg.Wait()
		winner := slices.Index(won, true)
		if winner < 0 || slices.Contains(won[winner+1:], true) {
			t.Fatalf("round %d: who wrote: %v", round, won)
		}
		if got := content(t, writers[0], name); got[0] != byte(winner) {
			t.Errorf("round %d: %d won, the bytes are of %d", round, winner, got[0])
		}
	}
	if got := writers[0].pieces(t); got != 20 {
		t.Errorf("%d pieces of 20 objects: the losers left some", got)
	}
}

// TestStaleRevision is what the conditional write rests on: a description that
// replaces a revision which is gone is refused by the server.
func TestStaleRevision(t *testing.T) {
	t.Parallel()
	b := startBroker(t).bucket("stale")
	for _, replaces := range []uint64{0, 7} {
		if err := b.Put(t.Context(), "x", sidecar.Bytes([]byte("theirs"))); err != nil {
			t.Fatal(err)
		}
		info := b.newInfo("x", replaces, [32]byte{}, 0)
		if err := b.describe(t.Context(), &info, replaces); !isWrongLast(err) {
			t.Errorf("replaced revision %d, which is not there: %v", replaces, err)
		}
	}
	if got := string(content(t, b, "x")); got != "theirs" {
		t.Errorf("got %q", got)
	}
}

// TestOwnerOfBucket is case F15 for the bucket: another store's daemon stops.
func TestOwnerOfBucket(t *testing.T) {
	t.Parallel()
	broker := startBroker(t)
	open := func(owner string, takeOver bool) error {
		_, err := sidecar.Open(t.Context(), sidecar.Config{Blobs: broker.bucket("owned"), Owner: owner, TakeOver: takeOver})
		return err
	}
	if err := errors.Join(open("store-1", false), open("store-1", false)); err != nil {
		t.Fatal(err)
	}
	if owner, ok := errors.AsType[*sidecar.OwnerError](open("store-2", false)); !ok || owner.Have != "store-1" {
		t.Errorf("the second writer: %+v", owner)
	}
	if err := open("store-2", true); err != nil {
		t.Fatal(err)
	}
	if _, ok := errors.AsType[*sidecar.OwnerError](open("store-1", false)); !ok {
		t.Error("the former owner came back unnoticed")
	}
}

// TestInterruptedUpload: an attempt goes on after the pieces that an earlier
// one left; pieces that are not of the content are replaced.
func TestInterruptedUpload(t *testing.T) {
	t.Parallel()
	want := random(5*pieceBytes + 3)
	for name, left := range map[string][][]byte{
		"none":       nil,
		"some":       {want[:pieceBytes], want[pieceBytes : 2*pieceBytes]},
		"all":        slices.Collect(slices.Chunk(want, pieceBytes)),
		"other":      {want[:pieceBytes], []byte("other")},
		"first only": {[]byte("other")},
		"too many":   append(slices.Collect(slices.Chunk(want, pieceBytes)), []byte("more")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := startBroker(t).bucket("b")
			w, err := measure("x", sidecar.Bytes(want), true)
			if err != nil {
				t.Fatal(err)
			}
			info := b.newInfo("x", 0, w.sum, w.size)
			for _, piece := range left {
				if _, err := b.js.Publish(t.Context(), b.pieceSubject(info.NUID), piece); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.PutOnce(t.Context(), "x", sidecar.Bytes(want)); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(content(t, b, "x"), want) || b.pieces(t) != 6 {
				t.Errorf("%d pieces", b.pieces(t))
			}
		})
	}
}

// TestLostAnswer: the description was stored, its answer was not received. The
// next attempt finds it, and keeps the pieces.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	b := startBroker(t).bucket("b")
	w, err := measure("x", sidecar.Bytes([]byte("content")), true)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.attempt(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	info := b.newInfo("x", 0, w.sum, w.size)
	if err := b.raced(t.Context(), &info); !errors.Is(err, errRaced) {
		t.Errorf("raced with itself: %v", err)
	}
	if err := b.PutOnce(t.Context(), "x", sidecar.Bytes([]byte("content"))); err != nil || string(content(t, b, "x")) != "content" {
		t.Errorf("after that: %v", err)
	}
}

// TestDamage: what is broken in the bucket is handed out as it lies there, or
// called irregular, so that whoever knows the right bytes can put them there.
func TestDamage(t *testing.T) {
	t.Parallel()
	b := startBroker(t).bucket("b")
	want := random(2*pieceBytes + 5)
	fresh := func() object {
		t.Helper()
		if err := b.Put(t.Context(), "x", sidecar.Bytes(want)); err != nil {
			t.Fatal(err)
		}
		if got := content(t, b, "x"); !bytes.Equal(got, want) {
			t.Fatal("the right bytes did not come back")
		}
		o, err := b.look(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	o := fresh()
	if err := b.drop(t.Context(), "x", o.NUID); err != nil {
		t.Fatal(err)
	}
	if got := content(t, b, "x"); len(got) != 0 {
		t.Errorf("%d bytes of a purged object", len(got))
	}
	if _, ok := errors.AsType[*sidecar.ConflictError](b.PutOnce(t.Context(), "x", sidecar.Bytes(want))); !ok {
		t.Error("a damaged object passes for the same bytes")
	}
	for _, text := range []string{``, `{}`, `[]`, `{"name":"x"`, `{"name":"y","nuid":"n","chunks":0}`, `{"name":"x","name":"x"}`,
		`{"name":"x","nuid":"a.b","chunks":1}`, `{"name":"x","nuid":">","chunks":1}`, `{"name":"x","nuid":"","chunks":1}`, `{"name":"x","chunks":-1}`} {
		o = fresh()
		if _, err := b.js.Publish(t.Context(), b.infoSubject("x"), []byte(text)); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Open(t.Context(), "x"); !errors.Is(err, sidecar.ErrNotRegular) {
			t.Errorf("description %s: %v", text, err)
		}
		if _, ok := errors.AsType[*sidecar.ConflictError](b.PutOnce(t.Context(), "x", sidecar.Bytes(want))); !ok {
			t.Errorf("description %s: is no conflict", text)
		}
	}
	fresh()
}

// TestF13ConditionOnRemovedObject: what replaces a revision that was removed
// meanwhile is refused; it does not bring the name back.
func TestF13ConditionOnRemovedObject(t *testing.T) {
	t.Parallel()
	b := startBroker(t).bucket("b")
	if err := b.Put(t.Context(), "x", sidecar.Bytes([]byte("one"))); err != nil {
		t.Fatal(err)
	}
	o, err := b.look(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Remove(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	info := b.newInfo("x", o.revision, [32]byte{}, 0)
	if err := b.describe(t.Context(), &info, o.revision); !isWrongLast(err) {
		t.Errorf("replaced a removed object: %v", err)
	}
	if _, err := b.Open(t.Context(), "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is back: %v", err)
	}
}

// TestForgedDescription: a description that names the pieces of another object
// cannot be used to have them removed.
func TestForgedDescription(t *testing.T) {
	t.Parallel()
	b := startBroker(t).bucket("b")
	if err := b.PutOnce(t.Context(), "evidence", sidecar.Bytes([]byte("evidence"))); err != nil {
		t.Fatal(err)
	}
	forge := func() {
		t.Helper()
		victim, err := b.look(t.Context(), "evidence")
		if err != nil {
			t.Fatal(err)
		}
		victim.Name = "x"
		text, err := json.Marshal(&victim.Info)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.js.Publish(t.Context(), b.infoSubject("x"), text); err != nil {
			t.Fatal(err)
		}
	}
	forge()
	if err := b.Put(t.Context(), "x", sidecar.Bytes([]byte("other"))); err != nil {
		t.Fatal(err)
	}
	forge()
	if err := b.Remove(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if got := string(content(t, b, "evidence")); got != "evidence" {
		t.Errorf("evidence is now %q", got)
	}
}

// TestUnfit: buckets that would lose evidence are refused.
func TestUnfit(t *testing.T) {
	t.Parallel()
	js := startBroker(t).connect()
	for name, change := range map[string]func(*jetstream.StreamConfig){
		"memory":    func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
		"age":       func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		"count":     func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 3 },
		"discard":   func(c *jetstream.StreamConfig) { c.Discard, c.MaxBytes = jetstream.DiscardOld, 1<<20 },
		"work":      func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy },
		"no-rollup": func(c *jetstream.StreamConfig) { c.AllowRollup = false },
		"subjects":  func(c *jetstream.StreamConfig) { c.Subjects = c.Subjects[:1] },
	} {
		b := Bucket{name: name}
		c := jetstream.StreamConfig{Name: "OBJ_" + name, Subjects: b.subjects(), Discard: jetstream.DiscardNew, AllowRollup: true}
		change(&c)
		if _, err := js.CreateStream(t.Context(), c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, err := Open(t.Context(), Config{JS: js, Bucket: name}); !errors.Is(err, ErrUnfit) || got != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	lagging := jetstream.StreamConfig{Subjects: (&Bucket{name: "l"}).subjects(), Discard: jetstream.DiscardNew, AllowRollup: true, AllowDirect: true, Replicas: 3}
	if err := fit(lagging, lagging.Subjects); !errors.Is(err, ErrUnfit) {
		t.Errorf("reads from replicas: %v", err)
	}
	for _, name := range []string{"", "a.b", "a b", "*", strings.Repeat("x", 65)} {
		if _, err := Open(t.Context(), Config{JS: js, Bucket: name}); !errors.Is(err, sidecar.ErrName) {
			t.Errorf("bucket %.10q: %v", name, err)
		}
	}
	if _, err := js.CreateObjectStore(t.Context(), jetstream.ObjectStoreConfig{Bucket: "plain"}); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Config{JS: js, Bucket: "plain"}); err != nil {
		t.Errorf("a bucket that the nats command made: %v", err)
	}
}

// TestOutage: without a broker everything fails soon and without effect; when
// it is back, with what it had stored, everything goes on.
func TestOutage(t *testing.T) {
	t.Parallel()
	broker := startBroker(t)
	b := broker.bucket("b")
	if err := b.PutOnce(t.Context(), "x", sidecar.Bytes([]byte("before"))); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	broker.stop()
	await(ctx, b, nats.RECONNECTING)
	_, openErr := b.Open(ctx, "x")
	for op, err := range map[string]error{
		"put": b.Put(ctx, "x", sidecar.Bytes([]byte("lost"))), "put once": b.PutOnce(ctx, "y", sidecar.Bytes(nil)), "open": openErr,
		"remove": b.Remove(ctx, "x"), "list": b.List(ctx, "", func(string) error { return nil }),
	} {
		if err == nil || errors.Is(err, fs.ErrNotExist) || ctx.Err() != nil {
			t.Errorf("%s without a broker: %v", op, err)
		}
	}
	broker.start()
	await(ctx, b, nats.CONNECTED)
	if got := string(content(t, b, "x")); got != "before" {
		t.Errorf("after the outage: %q", got)
	}
	if err := b.PutOnce(ctx, "y", sidecar.Bytes([]byte("after"))); err != nil || string(content(t, b, "y")) != "after" {
		t.Errorf("write after the outage: %v", err)
	}
}

// await waits until the connection is in a state.
func await(ctx context.Context, b *Bucket, want nats.Status) {
	changes := b.js.Conn().StatusChanged(want)
	if b.js.Conn().Status() == want {
		return
	}
	select {
	case <-changes:
	case <-ctx.Done():
	}
}

// TestRetentionInBucket: snapshots that we wrote go, evidence and other
// people's snapshots stay.
func TestRetentionInBucket(t *testing.T) {
	t.Parallel()
	b := startBroker(t).bucket("b")
	now := time.Unix(1_800_000_000, 0)
	s, err := sidecar.Open(t.Context(), sidecar.Config{Blobs: b, Owner: "o", Retention: time.Hour, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	p := sidecar.Place{PromptHash: strings.Repeat("a", 64), Session: strings.Repeat("b", 32)}
	ours, theirs := segments.RunID(segments.Sum([]byte("1"))), segments.RunID(segments.Sum([]byte("2")))
	evidence := p.EvidencePath(sidecar.Heads, segments.Sum(nil))
	for _, err := range []error{
		b.Put(t.Context(), p.SnapshotPath(theirs), sidecar.Bytes([]byte("theirs"))),
		b.Put(t.Context(), evidence, sidecar.Bytes([]byte("evidence"))),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.WriteSnapshot(t.Context(), p, ours, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	if n, err := s.Expire(t.Context()); n != 1 || err != nil {
		t.Errorf("expired %d, %v", n, err)
	}
	var left []string
	if err := b.List(t.Context(), "", func(name string) error { left = append(left, name); return nil }); err != nil {
		t.Fatal(err)
	}
	if want := []string{".chaind/owner", p.SnapshotPath(theirs), evidence}; !slices.Equal(left, want) {
		t.Errorf("left: %v, want %v", left, want)
	}
}
