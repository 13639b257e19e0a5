package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/chaind/chaind/internal/durable"
)

// Body writes the content of a blob. A back end may call it more than once (to
// compare, to try again); it must write the same bytes each time.
type Body = durable.Body

// Bytes is the body that consists of b.
func Bytes(b []byte) Body { return durable.Bytes(b) }

// Blobs is a flat store of named blobs. Names are checked by [CheckName] first.
// All methods are safe for concurrent use and return early with the error of a
// context that has ended.
type Blobs interface {
	// Put makes name hold the bytes of body. They are durable when it returns
	// nil; after an error the name holds the old or the new bytes, whole.
	Put(ctx context.Context, name string, body Body) error

	// PutOnce is Put for a name that does not exist. When the name holds the
	// same bytes it succeeds (and they are durable); when it holds others it
	// returns a *ConflictError and changes nothing.
	PutOnce(ctx context.Context, name string, body Body) error

	// Open opens a blob for reading. What it returns does not change when the
	// name is written while it is open. The error wraps fs.ErrNotExist when
	// there is no such blob. The caller closes it.
	Open(ctx context.Context, name string) (io.ReadSeekCloser, error)

	// List calls visit for each name that begins with prefix, in no promised
	// order, and ends with the first error that visit returns. Names written
	// meanwhile may be left out.
	List(ctx context.Context, prefix string, visit func(name string) error) error

	// Remove removes a blob durably. The error wraps fs.ErrNotExist when there
	// is none. Only retention of snapshots calls it.
	Remove(ctx context.Context, name string) error
}

// ConflictError is returned by PutOnce when the name holds other bytes.
type ConflictError struct{ Name string }

func (e *ConflictError) Error() string {
	return "blob " + strconv.Quote(e.Name) + " exists with other bytes"
}

var (
	// ErrName is returned for a blob name, tenant, hash, session or run id
	// outside its alphabet. Nothing was read or written.
	ErrName = errors.New("invalid name")

	// ErrNotRegular is returned by the directory back end when a symbolic link
	// or something else that is not a file or directory is in the way.
	ErrNotRegular = durable.ErrNotRegular

	// ErrTooLarge is returned when a blob is larger than its limit.
	ErrTooLarge = durable.ErrTooLarge
)

// Limits on names and blobs.
const (
	MaxName     = 1024      // bytes of a blob name
	maxPart     = 255       // bytes between two slashes, the limit of common file systems
	MaxEvidence = 256 << 20 // bytes of an evidence bundle that is read into memory
	MaxSnapshot = 64 << 20  // bytes of a framed run snapshot
	MaxBundle   = 1 << 30   // bytes of a trust bundle that is read into memory
	maxPointer  = 4 << 10   // bytes of a pointer, history, marker or owner blob
)

// CheckName accepts slash-separated names of parts that are not empty, not "."
// or "..", and have neither a backslash nor a control character. The names of
// the lock and of temporary files are refused too. The error wraps [ErrName].
func CheckName(name string) error {
	if name == lockName || name == durable.TempDir || strings.HasPrefix(name, durable.TempDir+"/") {
		return fmt.Errorf("%w: %q is reserved", ErrName, clip(name))
	}
	if len(name) > MaxName || !fs.ValidPath(name) || name == "." || strings.ContainsFunc(name, unsafeRune) {
		return fmt.Errorf("%w: %q", ErrName, clip(name))
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > maxPart {
			return fmt.Errorf("%w: %q", ErrName, clip(name))
		}
	}
	return nil
}

func unsafeRune(r rune) bool { return r < 0x20 || r == 0x7f || r == '\\' }

// clip bounds what a hostile name adds to an error text.
func clip(s string) string { return s[:min(len(s), 200)] }

// read returns a whole blob of at most limit bytes.
func read(ctx context.Context, b Blobs, name string, limit int64) ([]byte, error) {
	r, err := b.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read blob %q: %w", name, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("read blob %q: %w", name, ErrTooLarge)
	}
	return data, nil
}
