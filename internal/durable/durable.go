// Package durable writes files so that they are either wholly there after a
// crash or not there at all, inside one directory tree and never outside it.
//
// # Contract
//
// When [Dir.Write] or [Dir.WriteOnce] returns nil, the bytes, the name, and
// every directory on the way to the name have reached the disk. When one of
// them returns an error, the name holds what it held before or the new bytes
// entire, and nothing may be concluded about a power cut; the caller repeats
// the call.
//
// Where more than [crowd] files are being written, the fsyncs of one line below are
// a syncfs(2) that all share, on file systems where that does the same.
//
// A failed fsync is never made good by another fsync on the same file: the
// kernel reports a lost write once and then forgets it. Every attempt writes
// the bytes anew into a fresh temporary file, also when the name already holds
// the same bytes, because nobody can tell whether those ever reached the disk.
//
// Names are slash-separated and relative to the root. All access goes through
// [os.Root], or by the last part of a name relative to a directory opened so; in
// addition no symbolic link is followed below the root, neither
// as the last part of a name nor as a directory on the way. A write through
// Write replaces a link that stands in the place of the name; reads and
// WriteOnce refuse it with [ErrNotRegular].
//
// Temporary files lie in one directory of their own ([TempDir]) on the same
// file system, so that what a crash left behind is found without a walk.
package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// TempDir is the directory below the root that holds files being written.
const TempDir = ".chaind-tmp"

const (
	filePerm = 0o644 // before umask
	dirPerm  = 0o755 // before umask

	// maxKnown bounds the memory of directories that are known to be durable;
	// beyond it the memory starts anew, which costs only extra fsyncs.
	maxKnown = 8192
)

var (
	// ErrNotRegular is returned when a name, or a directory on the way to it,
	// is a symbolic link, or when the name is not a regular file.
	ErrNotRegular = errors.New("not a regular file below real directories")

	// ErrTooLarge is returned by [Dir.Read] for a file above the limit.
	ErrTooLarge = errors.New("file is larger than the limit")
)

// ConflictError is returned by [Dir.WriteOnce] when the name holds other bytes.
type ConflictError struct{ Name string }

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s exists with other bytes", strconv.Quote(e.Name))
}

// Body writes the content of a file to w. It may be called more than once and
// must write the same bytes each time, in pieces of a sensible size: nothing
// between it and the file buffers.
type Body = func(w io.Writer) error

// Bytes is the body that consists of b.
func Bytes(b []byte) Body {
	return func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}
}

// Dir is a directory tree that is written durably. It is safe for concurrent
// use; of concurrent writes to one name, any one may be the last.
type Dir struct {
	root *os.Root
	next atomic.Uint64 // counts temporary files

	shared *sharedSync

	folders *folders

	mu      sync.Mutex
	known   map[string]struct{} // directories whose entries up to the root this Dir has synced
	removed uint64              // counts failed writes that removed directories

	// around, if it is not nil, stands around every system call of a write, so that
	// tests see their order and make them fail with or without effect.
	around func(op, name string, do func() error) error
}

// Open opens the tree at the directory root, which must exist.
func Open(root string) (*Dir, error) {
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("open directory: %w", err)
	}
	return &Dir{
		root:    r,
		folders: newFolders(r),
		known:   map[string]struct{}{".": {}},
		shared:  newSharedSync(r),
	}, nil
}

// Create makes the directory root with its parents, durably, when it is
// missing, and opens it.
func Create(root string) (*Dir, error) {
	if err := createAll(filepath.Clean(root)); err != nil {
		return nil, fmt.Errorf("create directory: %w", err)
	}
	return Open(root)
}

func createAll(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := createAll(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, dirPerm); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := os.Open(parent)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// TestingOnlyAround puts around around every system call of later writes: op and
// name are those of the call (temporary names lie in TempDir; rename and link have
// the final name, link being a rename that replaces nothing; syncfs has "."), and do
// makes it. What is otherwise done at once comes in turn. Models of disks stand on it.
func (d *Dir) TestingOnlyAround(around func(op, name string, do func() error) error) {
	d.around = around
}

func (d *Dir) call(op, name string, do func() error) error {
	if d.around == nil {
		return do()
	}
	return d.around(op, name, do)
}

// Root is the handle through which the tree is reached, for what this package
// does not do (lock files).
func (d *Dir) Root() *os.Root { return d.root }

// Close releases the handles on the root.
func (d *Dir) Close() error {
	return errors.Join(d.folders.close(), d.shared.close(), d.root.Close())
}

// Write makes name hold the bytes of body, replacing what is there. The order of
// system calls:
//
//	mkdirat                         for each missing directory on the way
//	openat  TempDir/n               O_CREAT|O_EXCL
//	write
//	fsync   TempDir/n, and the parent of each directory made above, at once
//	close
//	renameat2 TempDir/n → name
//	fsync   the directory of name
//
// A crash before the rename leaves a temporary file, which [Dir.RemoveTemp]
// removes, and directories that may be there or not, with nothing in them. A
// crash between rename and the last fsync leaves the old or the new bytes, whole
// in either case, since the new ones were synced before.
func (d *Dir) Write(name string, body Body) error {
	return d.write(nil, []File{{Name: name, Body: body}})
}

// WriteOnce makes name hold the bytes of body unless it exists: with the same
// bytes it is as if it had been written now, with others the result is a
// [*ConflictError] and nothing changes. The order of system calls is that of
// Write, but for the naming:
//
//	renameat2 TempDir/n → name      RENAME_NOREPLACE; fails when name exists, link or not
//	renameat2 TempDir/n → name      only when it exists with the same bytes
//	fsync   the directory of name
//
// The second line is there because the bytes found may be in the page cache
// only, their own fsync failed or cut short by a crash: the freshly synced copy
// takes their place. Where the system has no renameat2, a linkat and an unlinkat
// stand for the first line.
func (d *Dir) WriteOnce(name string, body Body) error {
	return d.write(nil, []File{{Name: name, Body: body, Once: true}})
}

// way is what a write found on the way to its directory, outermost first.
type way struct {
	unsynced []string // directories whose entries may not be durable
	made     []string // those of them that were missing
}

// makeDir makes dir and its parents. Their entries are to be synced, also of
// those that exist: a crash, or a failed fsync, may have come between their
// making and their syncing. What this Dir has synced once is not synced again.
func (g *group) makeDir(dir string) error {
	if g.d.isKnown(dir) || slices.Contains(g.way.unsynced, dir) {
		return nil
	}
	for i := 0; i <= len(dir); i++ {
		if i < len(dir) && dir[i] != '/' || g.d.isKnown(dir[:i]) || slices.Contains(g.way.unsynced, dir[:i]) {
			continue
		}
		if err := g.makeOne(dir[:i]); err != nil {
			return err
		}
	}
	return nil
}

func (g *group) makeOne(dir string) error {
	parent, err := g.enter(path.Dir(dir))
	if err != nil {
		return err
	}
	made := false
	err = g.d.call("mkdir", dir, func() error {
		err := parent.root.Mkdir(path.Base(dir), dirPerm)
		made = err == nil
		return err
	})
	if made {
		g.way.made = append(g.way.made, dir)
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		g.way.unsynced = append(g.way.unsynced, dir)
		_, err = g.enter(dir) // refuses what is no directory
	}
	return err
}

// errRemoved fails a write during which another one removed directories.
var errRemoved = errors.New("another write failed and removed directories that this one may have relied on")

// unmake removes the directories that a failed write made: the next attempt
// makes them anew rather than trust a second fsync. One that others have filled
// meanwhile stays.
//
// Others may have found such a directory, and synced its entry or been told that it
// is known to be durable; when it is gone, and made anew by somebody whose sync is
// still to come, that says nothing. So what is known is dropped with it, and a write
// that was under way then neither adds to what is known nor succeeds, however late it
// comes to either: it is repeated. The lock puts every look before or behind that.
func (d *Dir) unmake(w *way) {
	d.mu.Lock()
	defer d.mu.Unlock()
	gone := false
	for i := len(w.made) - 1; i >= 0; i-- {
		gone = d.root.Remove(w.made[i]) == nil || gone
	}
	if gone {
		d.known = map[string]struct{}{".": {}}
		d.removed++
	}
}

// removals counts how often directories have been removed.
func (d *Dir) removals() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.removed
}

// know remembers directories whose entries are durable, by a write that began after
// so many removals.
func (d *Dir) know(w *way, removals uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.removed != removals {
		return
	}
	for _, dir := range w.unsynced {
		if len(d.known) >= maxKnown {
			d.known = map[string]struct{}{".": {}}
		}
		d.known[dir] = struct{}{}
	}
}

func (d *Dir) isKnown(dir string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.known[dir]
	return ok
}

// forget drops what is known of directories after a failure: somebody may have
// removed one.
func (d *Dir) forget() {
	d.folders.forget()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known = map[string]struct{}{".": {}}
}

// Remove removes the file name and makes that durable. The error wraps
// [fs.ErrNotExist] when there is none.
func (d *Dir) Remove(name string) error {
	if err := checkName(name); err != nil {
		return fmt.Errorf("remove file: %w", err)
	}
	dir, err := d.folders.enter(path.Dir(name))
	if err != nil {
		return fmt.Errorf("remove file %q: %w", name, err)
	}
	defer d.folders.leave(dir)
	err = d.call("unlink", name, func() error { return dir.root.Remove(path.Base(name)) })
	if err == nil {
		var handle *os.File
		if handle, err = dir.file(); err == nil {
			err = d.call("fsync", dir.name, handle.Sync)
		}
	}
	if err != nil {
		return fmt.Errorf("remove file %q: %w", name, err)
	}
	return nil
}

// RemoveTemp removes what interrupted writes left behind and returns how many
// files that were. Call it before the first write, when nobody else writes.
func (d *Dir) RemoveTemp() (int, error) {
	entries, err := fs.ReadDir(d.root.FS(), TempDir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("remove temporary files: %w", err)
	}
	for i, e := range entries {
		if err := d.root.Remove(path.Join(TempDir, e.Name())); err != nil {
			return i, fmt.Errorf("remove temporary files: %w", err)
		}
	}
	return len(entries), nil
}

// checkName accepts clean relative slash-separated names only.
func checkName(name string) error {
	if !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\\\x00") {
		return fmt.Errorf("invalid name %q", name)
	}
	return nil
}
