package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/chaind/chaind/segments"
)

// Via says how evidence was found.
type Via string

// The ways to evidence.
const (
	ViaPointer Via = "pointer" // run id, pointer, head file
	ViaLegacy  Via = "legacy"  // run id, legacy file
	ViaHead    Via = "head"    // asked for by head
)

// Found is stored evidence. Nothing about it has been verified: Head is what
// the name says, and whoever verifies compares it with the content.
type Found struct {
	Bytes []byte
	Path  string           // name of the blob
	Head  *segments.Digest // head that the name states; nil for a legacy file
	Class Class            // Heads for what was found by run id
	Via   Via
}

// ReadRun finds the evidence of a run id: its pointer's head file, else the
// legacy file (Evidence format, section 13). A pointer that is missing,
// unreadable, not 64 hex digits after trimming, or whose head file is missing
// or unreadable, leads to the legacy file.
//
// The error wraps [ErrNotFound] when nothing is there, [ErrName] when place or
// run id are malformed. When nothing was found and something could not be read,
// that is the error.
func (s *Sidecars) ReadRun(ctx context.Context, p Place, runID string) (*Found, error) {
	if err := checkRun(p, runID); err != nil {
		return nil, fmt.Errorf("read evidence: %w", err)
	}
	found, err := s.readPointed(ctx, p, runID)
	if err == nil {
		return found, nil
	}
	name := p.legacy(runID)
	b, legacyErr := read(ctx, s.blobs, name, MaxEvidence)
	if legacyErr == nil {
		return &Found{Bytes: b, Path: name, Class: Heads, Via: ViaLegacy}, nil
	}
	return nil, fmt.Errorf("read evidence of run %s: %w", runID, absent(err, legacyErr))
}

func (s *Sidecars) readPointed(ctx context.Context, p Place, runID string) (*Found, error) {
	head, err := s.readPointer(ctx, p.pointer(runID))
	if err != nil {
		return nil, err
	}
	return s.readHead(ctx, p, Heads, head, ViaPointer)
}

// ReadHead reads the evidence of a head. The error wraps [ErrNotFound] when
// there is none, [ErrName] when place or class are malformed.
func (s *Sidecars) ReadHead(ctx context.Context, p Place, class Class, head segments.Digest) (*Found, error) {
	if err := checkClass(p, class); err != nil {
		return nil, fmt.Errorf("read evidence: %w", err)
	}
	found, err := s.readHead(ctx, p, class, head, ViaHead)
	if err != nil {
		return nil, fmt.Errorf("read evidence of head %s: %w", head, absent(err))
	}
	return found, nil
}

func (s *Sidecars) readHead(ctx context.Context, p Place, class Class, head segments.Digest, via Via) (*Found, error) {
	name := p.EvidencePath(class, head)
	b, err := read(ctx, s.blobs, name, MaxEvidence)
	if err != nil {
		return nil, err
	}
	return &Found{Bytes: b, Path: name, Head: &head, Class: class, Via: via}, nil
}

// OpenEvidence opens the evidence of a head as a stream, for bundles that are
// not to be held in memory. Errors as [Sidecars.ReadHead]. The caller closes it.
func (s *Sidecars) OpenEvidence(ctx context.Context, p Place, class Class, head segments.Digest) (io.ReadSeekCloser, error) {
	if err := checkClass(p, class); err != nil {
		return nil, fmt.Errorf("open evidence: %w", err)
	}
	r, err := s.blobs.Open(ctx, p.EvidencePath(class, head))
	if err != nil {
		return nil, fmt.Errorf("open evidence of head %s: %w", head, absent(err))
	}
	return r, nil
}

// ReadSnapshot returns the framed run snapshot of a run id as it lies there,
// whoever wrote it. The error wraps [ErrNotFound] when there is none.
func (s *Sidecars) ReadSnapshot(ctx context.Context, p Place, runID string) ([]byte, error) {
	if err := checkRun(p, runID); err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	b, err := read(ctx, s.blobs, p.SnapshotPath(runID), MaxSnapshot)
	if err != nil {
		return nil, fmt.Errorf("read snapshot of run %s: %w", runID, absent(err))
	}
	return b, nil
}

func checkClass(p Place, class Class) error {
	if !class.valid() {
		return fmt.Errorf("%w: class %q", ErrName, clip(string(class)))
	}
	return p.Validate()
}

// absent is ErrNotFound when all errors say that something does not exist, and
// else those that say otherwise.
func absent(errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, fs.ErrNotExist) })
	if len(errs) == 0 {
		return ErrNotFound
	}
	return errors.Join(errs...)
}
