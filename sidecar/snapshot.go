package sidecar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/chaind/chaind/segments"
)

// snapshotMetadata is the metadata of the frames that we write (Evidence
// format, section 14).
const snapshotMetadata = `{"content_type":"application/json","schema_version":3,"producer":"chaind"}`

const markers = ownDir + "/snapshots/"

// WriteSnapshot keeps the body of a run snapshot, as supplied, in the frame of
// the reference, unless a snapshot of that run id is there: the first stands,
// and kept tells so when it is another one. A snapshot that we write gets a
// marker first, without which retention never deletes it.
func (s *Sidecars) WriteSnapshot(ctx context.Context, p Place, runID string, body []byte) (kept bool, err error) {
	if err := checkRun(p, runID); err != nil {
		return false, fmt.Errorf("write snapshot: %w", err)
	}
	blob := segments.AppendArtifactFrame(nil, []byte(snapshotMetadata), body)
	if len(blob) > MaxSnapshot {
		return false, fmt.Errorf("write snapshot of run %s: %w", runID, ErrTooLarge)
	}
	kept, err = s.writeSnapshot(ctx, p.SnapshotPath(runID), blob)
	if err != nil {
		return false, fmt.Errorf("write snapshot of run %s: %w", runID, err)
	}
	return kept, nil
}

func (s *Sidecars) writeSnapshot(ctx context.Context, name string, blob []byte) (kept bool, err error) {
	defer s.locks.lock(name)()
	sum := segments.Sum(blob)
	_, err = read(ctx, s.blobs, markers+name, maxPointer)
	if errors.Is(err, fs.ErrNotExist) {
		have, err := read(ctx, s.blobs, name, MaxSnapshot)
		if err == nil {
			return segments.Sum(have) != sum, nil // somebody else's, and not for us to mark
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		if err := s.blobs.Put(ctx, markers+name, markerBody(s.now(), sum)); err != nil {
			return false, err
		}
	} else if err != nil {
		return false, err
	}
	// A crash here leaves a marker without a snapshot, which retention drops
	// and which the next call completes.
	err = s.blobs.PutOnce(ctx, name, Bytes(blob))
	if _, ok := errors.AsType[*ConflictError](err); ok {
		return true, nil
	}
	return false, err
}

func markerBody(at time.Time, sum segments.Digest) Body {
	return Bytes([]byte(strconv.FormatInt(at.Unix(), 10) + "\n" + sum.String() + "\n"))
}

// Expire deletes the snapshots that we wrote and that have reached the
// retention age, and returns how many. A blob that is no longer what we wrote
// is somebody else's and stays. Without retention nothing happens; evidence is
// never touched. One snapshot that cannot be looked at keeps none of the others:
// the error tells how many there were, and the first.
func (s *Sidecars) Expire(ctx context.Context) (deleted int, err error) {
	if s.retention == 0 {
		return 0, nil
	}
	var due []string
	err = s.blobs.List(ctx, markers, func(name string) error {
		due = append(due, strings.TrimPrefix(name, markers))
		return nil
	})
	failed := 0
	for _, name := range due {
		gone, expireErr := s.expire(ctx, name)
		if gone {
			deleted++
		}
		if expireErr != nil {
			failed++
			err = cmp.Or(err, expireErr)
		}
		if ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return deleted, fmt.Errorf("expire snapshots: %d of %d failed: %w", failed, len(due), err)
	}
	return deleted, nil
}

// expire deletes one snapshot when it is due, then its marker.
func (s *Sidecars) expire(ctx context.Context, name string) (gone bool, err error) {
	text, err := read(ctx, s.blobs, markers+name, maxPointer)
	if err != nil {
		return false, err
	}
	at, sum, ok := parseMarker(string(text))
	if !ok || !isSnapshot(name) || s.now().Sub(at) < s.retention {
		return false, nil
	}
	defer s.locks.lock(name)()
	blob, err := read(ctx, s.blobs, name, MaxSnapshot)
	if err == nil && segments.Sum(blob) == sum {
		err = s.blobs.Remove(ctx, name)
		gone = err == nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return gone, s.blobs.Remove(ctx, markers+name)
}

func parseMarker(text string) (at time.Time, sum segments.Digest, ok bool) {
	seconds, rest, _ := strings.Cut(text, "\n")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return time.Time{}, segments.Digest{}, false
	}
	sum, err = segments.ParseDigest(strings.TrimSuffix(rest, "\n"))
	return time.Unix(unix, 0), sum, err == nil
}

// isSnapshot keeps a forged marker from naming anything but a snapshot.
func isSnapshot(name string) bool {
	return strings.HasSuffix(name, ".artifact") && !strings.Contains(name, "/evidence/") &&
		(strings.HasPrefix(name, "execute/") || strings.HasPrefix(name, "tenants/"))
}
