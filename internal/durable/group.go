package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"sync"
)

// File is a file to be written in a group.
type File struct {
	Name string
	Body Body
	Once bool // as [Dir.WriteOnce] writes, else as [Dir.Write]
}

// WriteGroup writes files as Write and WriteOnce do, waiting for the disk three
// times in all: for the bytes of all of them, for the names of first, and for the
// names of then. No file of then has its name before all of first are durable, and
// no file has its name before meanwhile, which runs during the first wait, has
// returned nil; its error is in that of the group. A nil meanwhile is none.
//
// The order of system calls, those of one line at once but for mkdirat and openat:
//
//	mkdirat                           for each missing directory on the way of any
//	openat, write                     TempDir/n, for each
//	fsync                             each TempDir/n, and the parent of each directory made
//	close                             each
//	renameat2 TempDir/n → name        for each of first
//	fsync                             the directories of first
//	renameat2 TempDir/n → name        for each of then
//	fsync                             the directories of then
//
// When WriteGroup returns an error, each file holds what it held before or its new
// bytes, and if any of then holds new ones all of first are durable. A
// [*ConflictError], or [ErrNotRegular], of one of first has left those after it and
// all of then as they were. No name may be given twice.
func (d *Dir) WriteGroup(first, then []File, meanwhile func() error) error {
	return d.write(meanwhile, first, then)
}

func (d *Dir) write(meanwhile func() error, steps ...[]File) error {
	n := 0
	for _, step := range steps {
		n += len(step)
		for _, f := range step {
			if err := checkName(f.Name); err != nil {
				return fmt.Errorf("write file: %w", err)
			}
		}
	}
	reports := d.shared.begin(n)
	g := &group{d: d, reports: reports, removals: d.removals(), held: map[string]*folder{}, meanwhile: meanwhile}
	err := g.write(steps)
	g.leave()
	if err == nil && d.removals() != g.removals {
		err = errRemoved
	}
	if lost := d.shared.end(reports, n); err == nil {
		err = lost
	}
	if err != nil {
		d.forget()
		return fmt.Errorf("write %s: %w", describe(slices.Concat(steps...)), err)
	}
	return nil
}

func describe(files []File) string {
	switch n := len(files); n {
	case 0:
		return "no files"
	case 1:
		return "file " + strconv.Quote(files[0].Name)
	default:
		return fmt.Sprintf("file %q and %d more", files[0].Name, n-1)
	}
}

// group is a write of some files. One goroutine has it.
type group struct {
	d        *Dir
	reports  uint64             // of the shared sync, at the beginning
	removals uint64             // of directories, at the beginning
	held     map[string]*folder // by name
	way      way
	staged   []*staged

	meanwhile func() error
}

// staged is a file whose bytes have no name of their own yet.
type staged struct {
	*File
	f    *os.File // nil when it has been closed
	temp string   // name below TempDir; "" once the file has its own
}

func (s *staged) tempName() string { return path.Join(TempDir, s.temp) }

func (g *group) write(steps [][]File) error {
	if err := g.prepare(steps); err != nil {
		g.unstage()
		g.d.unmake(&g.way)
		return err
	}
	g.d.know(&g.way, g.removals)
	rest := g.staged
	for _, step := range steps {
		if err := g.place(rest[:len(step)]); err != nil {
			g.unstage()
			return err
		}
		rest = rest[len(step):]
	}
	return nil
}

// prepare makes the directories, and a temporary file for each file, all durable.
func (g *group) prepare(steps [][]File) error {
	for _, step := range steps {
		for i := range step {
			if err := g.makeDir(path.Dir(step[i].Name)); err != nil {
				return err
			}
		}
	}
	for _, step := range steps {
		for i := range step {
			if err := g.stage(&step[i]); err != nil {
				return err
			}
		}
	}
	judged := make(chan error, 1)
	if g.meanwhile == nil {
		judged <- nil
	} else {
		go func() { judged <- g.meanwhile() }()
	}
	err := g.settle()
	if err := errors.Join(<-judged, err); err != nil {
		return err
	}
	return g.closeAll()
}

// unstage removes what has no name of its own.
func (g *group) unstage() {
	_ = g.closeAll() // of files that nobody will see
	for _, s := range g.staged {
		if s.temp != "" {
			// Left behind it concerns nobody but RemoveTemp.
			_ = g.d.root.Remove(s.tempName())
		}
	}
}

// enter holds a directory until the group ends; each is looked at once.
func (g *group) enter(dir string) (*folder, error) {
	if dir == "." {
		return g.d.folders.top, nil
	}
	if f := g.held[dir]; f != nil {
		return f, nil
	}
	parent, err := g.enter(path.Dir(dir))
	if err != nil {
		return nil, err
	}
	f, err := g.d.folders.step(parent, dir)
	if err != nil {
		return nil, err
	}
	g.held[dir] = f
	return f, nil
}

func (g *group) leave() {
	for _, f := range g.held {
		g.d.folders.leave(f)
	}
}

func (g *group) stage(file *File) error {
	s := &staged{File: file}
	err := g.d.call("create", TempDir, func() error { return g.create(s) })
	if s.f != nil {
		g.staged = append(g.staged, s)
	}
	if err != nil {
		return err
	}
	return g.d.call("write", s.tempName(), func() error { return file.Body(s.f) })
}

// create opens a new temporary file. The directory is made when it is missing
// and needs no fsync: nothing in it has to survive.
func (g *group) create(s *staged) error {
	temps, err := g.enter(TempDir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := g.d.root.Mkdir(TempDir, dirPerm); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		temps, err = g.enter(TempDir)
	}
	for err == nil {
		s.temp = strconv.FormatUint(g.d.next.Add(1), 10)
		s.f, err = temps.root.OpenFile(s.temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, filePerm)
		if err == nil {
			return nil
		}
		if errors.Is(err, fs.ErrExist) {
			err = nil // of a process before this one
		}
	}
	return err
}

func (g *group) closeAll() error {
	var errs []error
	for _, s := range g.staged {
		if s.f != nil {
			errs = append(errs, g.d.call("close", s.tempName(), s.f.Close))
			s.f = nil
		}
	}
	return errors.Join(errs...)
}

// settle syncs what is staged and the entries of the directories on the way.
func (g *group) settle() error {
	list := make([]syncing, 0, len(g.staged)+len(g.way.unsynced))
	several := len(g.staged) > 1 && !g.d.shared.crowded()
	for _, s := range g.staged {
		if several {
			startWriting(s.f) // all are on their way before the first is waited for
		}
		list = append(list, syncing{s.tempName(), s.f})
	}
	dirs := make([]string, len(g.way.unsynced))
	for i, dir := range g.way.unsynced {
		dirs[i] = path.Dir(dir)
	}
	return g.sync(list, dirs)
}

// place gives files their names and makes those durable.
func (g *group) place(files []*staged) error {
	dirs := make([]string, len(files))
	for i, s := range files {
		dirs[i] = path.Dir(s.Name)
		dir, err := g.enter(dirs[i])
		if err == nil {
			err = g.name(s, dir)
		}
		if err != nil {
			return err
		}
	}
	return g.sync(nil, dirs)
}

func (g *group) name(s *staged, dir *folder) error {
	if !s.Once {
		return g.rename(s, dir)
	}
	temps := g.held[TempDir]
	err := g.d.call("link", s.Name, func() error { return moveNew(g.d.root, temps, s.temp, dir, s.Name) })
	if !errors.Is(err, fs.ErrExist) {
		if err == nil {
			s.temp = ""
		}
		return err
	}
	same, err := g.d.sameBytes(s.tempName(), s.Name)
	if err != nil {
		return err
	}
	if !same {
		return &ConflictError{Name: s.Name}
	}
	return g.rename(s, dir)
}

func (g *group) rename(s *staged, dir *folder) error {
	temps := g.held[TempDir]
	err := g.d.call("rename", s.Name, func() error { return move(g.d.root, temps, s.temp, dir, s.Name) })
	if err == nil {
		s.temp = ""
	}
	return err
}

// linkNew gives a file a name that must not exist.
func linkNew(root *os.Root, from *folder, base, name string) error {
	temp := path.Join(from.name, base)
	err := root.Link(temp, name)
	if err == nil {
		_ = root.Remove(temp) // left behind it concerns nobody but RemoveTemp
	}
	return err
}

// syncing is a file to be synced.
type syncing struct {
	name string
	f    *os.File
}

// sync makes files and the entries of directories durable, so that what comes next
// may rely on them: also on no shared sync of others having failed meanwhile.
func (g *group) sync(list []syncing, dirs []string) error {
	if len(list)+len(dirs) == 0 {
		return nil
	}
	if err := g.syncAll(list, dirs); err != nil {
		return err
	}
	return g.d.shared.check(g.reports)
}

// syncAll syncs in a crowd by one shared sync, else each by its own fsync, all of
// them at once.
func (g *group) syncAll(list []syncing, dirs []string) error {
	if g.d.shared.crowded() {
		return g.d.call("syncfs", ".", g.d.shared.wait)
	}
	for i, dir := range dirs {
		if slices.Contains(dirs[:i], dir) {
			continue
		}
		f, err := g.enter(dir)
		if err != nil {
			return err
		}
		h, err := f.file()
		if err != nil {
			return err
		}
		list = append(list, syncing{dir, h})
	}
	return g.d.syncEach(list)
}

// syncEach syncs files at once: the file system makes one commit of many. Where
// tests look on, it does so in turn.
func (d *Dir) syncEach(list []syncing) error {
	errs := make([]error, len(list))
	if d.around != nil || len(list) == 1 {
		for i, s := range list {
			errs[i] = d.call("fsync", s.name, s.f.Sync)
		}
		return errors.Join(errs...)
	}
	var wg sync.WaitGroup
	for i, s := range list {
		wg.Go(func() { errs[i] = s.f.Sync() })
	}
	wg.Wait()
	return errors.Join(errs...)
}
