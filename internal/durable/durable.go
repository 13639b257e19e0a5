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
// Where more than [crowd] writes are under way, each "fsync" below is a syncfs(2)
// that they share, on file systems where that does the same.
//
// A failed fsync is never made good by another fsync on the same file: the
// kernel reports a lost write once and then forgets it. Every attempt writes
// the bytes anew into a fresh temporary file, also when the name already holds
// the same bytes, because nobody can tell whether those ever reached the disk.
//
// Names are slash-separated and relative to the root. All access goes through
// [os.Root]; in addition no symbolic link is followed below the root, neither
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

	mu    sync.Mutex
	known map[string]struct{} // directories whose entries up to the root this Dir has synced

	// around stands around every system call of a write, so that tests see
	// their order and make them fail with or without effect.
	around func(op, name string, do func() error) error
}

// Open opens the tree at the directory root, which must exist.
func Open(root string) (*Dir, error) {
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("open directory: %w", err)
	}
	return &Dir{
		root:   r,
		known:  map[string]struct{}{".": {}},
		shared: newSharedSync(r),
		around: func(_, _ string, do func() error) error { return do() },
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
// the final name), and do makes it. Models of disks stand on it.
func (d *Dir) TestingOnlyAround(around func(op, name string, do func() error) error) {
	d.around = around
}

// Root is the handle through which the tree is reached, for what this package
// does not do (lock files).
func (d *Dir) Root() *os.Root { return d.root }

// Close releases the handles on the root.
func (d *Dir) Close() error { return errors.Join(d.shared.close(), d.root.Close()) }

// Write makes name hold the bytes of body, replacing what is there. The order of
// system calls:
//
//	mkdirat                         for each missing directory on the way
//	openat  TempDir/n               O_CREAT|O_EXCL
//	write
//	fsync   TempDir/n
//	fsync   the parent              of each directory made above
//	close
//	renameat TempDir/n → name
//	fsync   the directory of name
//
// A crash before the rename leaves a temporary file, which [Dir.RemoveTemp]
// removes, and directories that may be there or not, with nothing in them. A
// crash between rename and the last fsync leaves the old or the new bytes, whole
// in either case, since the new ones were synced before.
func (d *Dir) Write(name string, body Body) error {
	return d.write(name, body, d.rename)
}

// WriteOnce makes name hold the bytes of body unless it exists: with the same
// bytes it is as if it had been written now, with others the result is a
// [*ConflictError] and nothing changes. The order of system calls is that of
// Write, with linkat in the place of renameat:
//
//	linkat  TempDir/n → name        fails when name exists, link or not
//	unlinkat TempDir/n              when it did not
//	renameat TempDir/n → name       only when it exists with the same bytes
//	fsync   the directory of name
//
// The third line is there because the bytes found may be in the page cache
// only, their own fsync failed or cut short by a crash: the freshly synced copy
// takes their place.
func (d *Dir) WriteOnce(name string, body Body) error {
	return d.write(name, body, d.link)
}

func (d *Dir) write(name string, body Body, place func(temp, name string) error) error {
	if err := checkName(name); err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	reports := d.shared.begin()
	err := d.writeAlone(name, body, place)
	if lost := d.shared.end(reports); err == nil && lost != nil {
		d.forget()
		return fmt.Errorf("write file %q: %w", name, lost)
	}
	return err
}

func (d *Dir) writeAlone(name string, body Body, place func(temp, name string) error) error {
	dir := path.Dir(name)
	temp, err := d.prepare(dir, body)
	if err != nil {
		return fmt.Errorf("write file %q: %w", name, err)
	}
	err = place(temp, name)
	if err == nil {
		err = d.syncDir(dir)
	}
	if err != nil {
		// Gone already after a rename; left behind it concerns nobody but RemoveTemp.
		_ = d.root.Remove(temp)
		d.forget()
		return fmt.Errorf("write file %q: %w", name, err)
	}
	return nil
}

// prepare makes a temporary file with the bytes of body, and the directory that
// it is to go to, both durable. Nothing is left behind on error.
func (d *Dir) prepare(dir string, body Body) (temp string, err error) {
	w, err := d.makeDir(dir)
	if err == nil {
		temp, err = d.stage(body, w)
	}
	if err != nil {
		d.unmake(w)
		return "", err
	}
	d.know(w)
	return temp, nil
}

// stage writes a temporary file, syncs it and the entries of the directories on
// the way, and returns its name. No file is left behind on error.
func (d *Dir) stage(body Body, w *way) (temp string, err error) {
	var f *os.File
	err = d.around("create", TempDir, func() (err error) {
		f, temp, err = d.create()
		return err
	})
	if f == nil {
		return "", err
	}
	if err == nil {
		err = d.around("write", temp, func() error { return body(f) })
	}
	if err == nil {
		err = d.settle(f, temp, w)
	}
	err = errors.Join(err, d.around("close", temp, f.Close))
	if err != nil {
		_ = d.root.Remove(temp)
		return "", err
	}
	return temp, nil
}

// settle syncs a file and the entries of the directories on the way; in a crowd
// all of it by one shared sync.
func (d *Dir) settle(f *os.File, temp string, w *way) error {
	sync := f.Sync
	crowded := d.shared.crowded()
	if crowded {
		sync = d.shared.wait
	}
	err := d.around("fsync", temp, sync)
	for i := 0; err == nil && !crowded && i < len(w.unsynced); i++ {
		err = d.syncDir(path.Dir(w.unsynced[i]))
	}
	return err
}

// create opens a new temporary file. The directory is made when it is missing
// and needs no fsync: nothing in it has to survive.
func (d *Dir) create() (f *os.File, temp string, err error) {
	for {
		temp = path.Join(TempDir, strconv.FormatUint(d.next.Add(1), 10))
		f, err = d.root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, filePerm)
		switch {
		case err == nil:
			return f, temp, nil
		case errors.Is(err, fs.ErrNotExist):
			if err := d.root.Mkdir(TempDir, dirPerm); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, "", err
			}
		case !errors.Is(err, fs.ErrExist):
			return nil, "", err
		}
	}
}

func (d *Dir) rename(temp, name string) error {
	return d.around("rename", name, func() error { return d.root.Rename(temp, name) })
}

func (d *Dir) link(temp, name string) error {
	err := d.around("link", name, func() error { return d.root.Link(temp, name) })
	if err == nil {
		_ = d.root.Remove(temp) // as above
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	same, err := d.sameBytes(temp, name)
	if err != nil {
		return err
	}
	if !same {
		return &ConflictError{Name: name}
	}
	return d.rename(temp, name)
}

// syncDir makes the entries of a directory durable.
func (d *Dir) syncDir(dir string) error {
	return d.around("fsync", dir, func() error {
		if d.shared.crowded() {
			return d.shared.wait()
		}
		f, err := d.root.Open(dir)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// way is what a write found on the way to its directory, outermost first.
type way struct {
	unsynced []string // directories whose entries may not be durable
	made     []string // those of them that were missing
}

// makeDir makes dir and its parents. Their entries are to be synced, also of
// those that exist: a crash, or a failed fsync, may have come between their
// making and their syncing. What this Dir has synced once is not synced again.
// The result is good on error, too.
func (d *Dir) makeDir(dir string) (*way, error) {
	w := &way{}
	if d.isKnown(dir) {
		return w, nil
	}
	for i := 0; i <= len(dir); i++ {
		if i < len(dir) && dir[i] != '/' || d.isKnown(dir[:i]) {
			continue
		}
		if err := d.makeOne(dir[:i], w); err != nil {
			return w, err
		}
	}
	return w, nil
}

func (d *Dir) makeOne(dir string, w *way) error {
	made := false
	err := d.around("mkdir", dir, func() error {
		err := d.root.Mkdir(dir, dirPerm)
		made = err == nil
		return err
	})
	if errors.Is(err, fs.ErrExist) {
		err = d.checkDir(dir)
	}
	if made {
		w.made = append(w.made, dir)
	}
	w.unsynced = append(w.unsynced, dir)
	return err
}

// unmake removes the directories that a failed write made: the next attempt
// makes them anew rather than trust a second fsync. One that others have filled
// meanwhile stays.
func (d *Dir) unmake(w *way) {
	for i := len(w.made) - 1; i >= 0; i-- {
		_ = d.root.Remove(w.made[i])
	}
}

// know remembers directories whose entries are durable.
func (d *Dir) know(w *way) {
	d.mu.Lock()
	defer d.mu.Unlock()
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
	if err := d.checkParents(name); err != nil {
		return fmt.Errorf("remove file %q: %w", name, err)
	}
	err := d.around("unlink", name, func() error { return d.root.Remove(name) })
	if err != nil {
		return fmt.Errorf("remove file: %w", err)
	}
	if err := d.syncDir(path.Dir(name)); err != nil {
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
