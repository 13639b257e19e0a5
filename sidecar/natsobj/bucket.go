// Package natsobj keeps sidecars in a bucket of the NATS object store, through
// a JetStream handle that is given to it.
//
// # Layout
//
// The layout is the object store's own, so that any NATS client reads what is
// written here: the stream OBJ_{bucket} holds, for each object, one message on
// $O.{bucket}.M.{name in padded base64url} that describes it ([Info]) and its
// content in pieces on $O.{bucket}.C.{nuid}. Objects that other clients wrote
// are read too; links are not followed.
//
// # Write-once
//
// Clients of the object store overwrite without looking. Here the description
// is published on the condition that the last message of its subject is the one
// that was read before (0: that there is none); the server decides, so of two
// writers one is refused, whatever they saw. The nuid is a digest over name,
// replaced revision and content, after one over the name alone. Hence the pieces of a
// revision belong to one possible description only, an attempt whose answer got lost is continued where
// it ended, and a message that a lost connection delivers late changes nothing.
//
// Removal is a purge of the description up to the revision that was read; it
// leaves no marker.
//
// # Durability
//
// A write has returned when the stream has acknowledged every message of it.
// What an acknowledgement means is the broker's matter: a quorum of replicas
// has the message, or one server has written it and syncs it to disk when its
// configuration says so (sync_interval; always syncs first).
//
// A write that was given up, or a process that died, may leave pieces behind
// that nothing describes; writing the same again uses them. So does replacing
// what another client wrote: only pieces that are ours are removed.
package natsobj

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/sidecar"
)

// Limits.
const (
	pieceBytes  = 64 << 10 // of content in one message
	maxInfo     = 64 << 10 // bytes of a description
	maxObject   = 4 << 30  // bytes of an object that is read
	maxInMemory = 4 << 20  // bytes of an open object that are not in a file
)

// ErrUnfit is returned by [Open] for a bucket that loses, or does not show, what
// was written to it.
var ErrUnfit = errors.New("bucket is unfit for evidence")

// Config says which bucket to use.
type Config struct {
	JS     jetstream.JetStream
	Bucket string // [A-Za-z0-9_-]+, at most 64 bytes
	// Replicas of the bucket if it is created; 0: 1. One that exists stays as
	// it is.
	Replicas int
	// TempDir holds open objects above 4 MiB; "": the system's.
	TempDir string
}

// Bucket is a [sidecar.Blobs] in an object store.
type Bucket struct {
	js     jetstream.JetStream
	stream jetstream.Stream
	name   string
	temp   string
	locks  [64]sync.Mutex // by name: writers in this process take turns
}

var _ sidecar.Blobs = (*Bucket)(nil)

// ValidBucket tells whether a bucket may have this name.
func ValidBucket(name string) bool { return validBucket.MatchString(name) }

var validBucket = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Open opens the bucket and creates it, in files, when it is missing. A bucket
// that exists and keeps its messages in memory, drops them by age, count or
// size, cannot replace them, or answers reads from replicas that lag behind is
// refused with an error that wraps [ErrUnfit].
func Open(ctx context.Context, cfg Config) (*Bucket, error) {
	if !ValidBucket(cfg.Bucket) {
		return nil, fmt.Errorf("open bucket: %w: %.80q", sidecar.ErrName, cfg.Bucket)
	}
	b := &Bucket{js: cfg.JS, name: cfg.Bucket, temp: cfg.TempDir}
	err := b.retry(ctx, func(ctx context.Context) (err error) {
		b.stream, err = b.openStream(ctx, max(cfg.Replicas, 1))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", cfg.Bucket, err)
	}
	if err := fit(b.stream.CachedInfo().Config, b.subjects()); err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", cfg.Bucket, err)
	}
	return b, nil
}

func (b *Bucket) openStream(ctx context.Context, replicas int) (jetstream.Stream, error) {
	s, err := b.js.Stream(ctx, "OBJ_"+b.name)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return s, err
	}
	s, err = b.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: "OBJ_" + b.name, Description: "evidence of agent runs", Subjects: b.subjects(),
		Storage: jetstream.FileStorage, Replicas: replicas, Discard: jetstream.DiscardNew, AllowRollup: true,
	})
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return b.js.Stream(ctx, "OBJ_"+b.name)
	}
	return s, err
}

func (b *Bucket) subjects() []string {
	return []string{"$O." + b.name + ".C.>", "$O." + b.name + ".M.>"}
}

// fit refuses settings under which written evidence vanishes or is not seen.
func fit(c jetstream.StreamConfig, subjects []string) error {
	unlimited := func(n int64) bool { return n <= 0 }
	has := func(subject string) bool { return slices.Contains(c.Subjects, subject) }
	for _, rule := range []struct {
		broken bool
		why    string
	}{
		{c.Storage != jetstream.FileStorage, "it is kept in memory"},
		{c.MaxAge > 0, "it drops messages by age"},
		{!unlimited(c.MaxMsgsPerSubject), "it limits the messages of a subject"},
		{c.Discard != jetstream.DiscardNew && !(unlimited(c.MaxMsgs) && unlimited(c.MaxBytes)), "it drops old messages for new ones"},
		{c.Retention != jetstream.LimitsPolicy, "it drops what was consumed"},
		{!c.AllowRollup || c.DenyPurge, "it does not let messages be replaced"},
		{c.Sealed, "it is sealed"},
		{c.AllowDirect && c.Replicas > 1, "it answers from replicas that may lag behind (allow_direct)"},
		{!has(subjects[0]) || !has(subjects[1]), "it is no object store"},
	} {
		if rule.broken {
			return fmt.Errorf("%w: %s", ErrUnfit, rule.why)
		}
	}
	return nil
}

func (b *Bucket) infoSubject(name string) string {
	return "$O." + b.name + ".M." + base64.URLEncoding.EncodeToString([]byte(name))
}

func (b *Bucket) pieceSubject(nuid string) string { return "$O." + b.name + ".C." + nuid }

// check is what every operation begins with.
func check(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return sidecar.CheckName(name)
}

func (b *Bucket) lock(name string) (unlock func()) {
	h := fnv.New32a()
	h.Write([]byte(name))
	m := &b.locks[h.Sum32()%uint32(len(b.locks))]
	m.Lock()
	return m.Unlock
}

// List implements [sidecar.Blobs], in the order of the names. It costs one
// question per 100,000 objects of the whole bucket: names have no hierarchy
// there.
func (b *Bucket) List(ctx context.Context, prefix string, visit func(name string) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var subjects map[string]uint64
	err := b.retry(ctx, func(ctx context.Context) error {
		info, err := b.stream.Info(ctx, jetstream.WithSubjectFilter(b.subjects()[1]))
		if err == nil {
			subjects = info.State.Subjects
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("list blobs: %w", err)
	}
	var names []string
	for subject := range subjects {
		name, err := base64.URLEncoding.DecodeString(subject[len(b.subjects()[1])-1:])
		if err == nil && strings.HasPrefix(string(name), prefix) && sidecar.CheckName(string(name)) == nil {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := visit(name); err != nil {
			return err
		}
	}
	return nil
}

// Remove implements [sidecar.Blobs].
func (b *Bucket) Remove(ctx context.Context, name string) error {
	if err := check(ctx, name); err != nil {
		return fmt.Errorf("remove blob: %w", err)
	}
	defer b.lock(name)()
	asked := false // an earlier attempt may have removed it
	err := b.retry(ctx, func(ctx context.Context) error {
		o, err := b.look(ctx, name)
		switch {
		case err != nil:
			return err
		case !o.live() && asked:
			return nil
		case !o.live():
			return fs.ErrNotExist
		}
		asked = true
		// The description goes first: pieces without one harm nobody.
		err = b.stream.Purge(ctx, jetstream.WithPurgeSubject(b.infoSubject(name)), jetstream.WithPurgeSequence(o.revision+1))
		if err != nil {
			return err
		}
		return b.drop(ctx, name, o.NUID)
	})
	if err != nil {
		return fmt.Errorf("remove blob %q: %w", name, err)
	}
	return nil
}

// drop removes the pieces that we wrote for a name. Other clients' pieces stay,
// though nothing describes them any more: a description can be forged to name
// the pieces of another object, evidence for one.
func (b *Bucket) drop(ctx context.Context, name, nuid string) error {
	if !validNUID(nuid) || !strings.HasPrefix(nuid, nuidPrefix(name)) {
		return nil
	}
	return b.stream.Purge(ctx, jetstream.WithPurgeSubject(b.pieceSubject(nuid)))
}
