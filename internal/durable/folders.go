package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync"
)

// maxFolders bounds the directories kept open between uses, each with up to two
// handles; more are open only while they are in use.
const maxFolders = 128

// folder is an open directory of the tree.
type folder struct {
	name string
	root *os.Root
	info fs.FileInfo // of root

	mu     sync.Mutex
	handle *os.File // of the same directory, to sync it; nil until it is asked for
	fd     uintptr  // of handle; asking the handle each time costs two system calls

	// Of folders, under its lock.
	uses int    // who holds it
	last uint64 // when it was held last, in uses of any
	gone bool   // no longer in the table: closed by whoever leaves it last
}

// file is the folder as a file, for fsync and for renames into it.
func (f *folder) file() (*os.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.handle != nil {
		return f.handle, nil
	}
	h, err := f.root.Open(".")
	if err != nil {
		return nil, err
	}
	f.handle, f.fd = h, h.Fd()
	return h, nil
}

func (f *folder) close() error {
	var err error
	if f.handle != nil {
		err = f.handle.Close()
	}
	return errors.Join(err, f.root.Close())
}

// folders keeps directories open, so that a name of many parts costs one look for
// each of them and not for each way to each of them. That look is made at every
// use: a directory that was moved away, or replaced by another or by a link, is
// not used any more.
type folders struct {
	top *folder // the root; its owner closes it

	mu    sync.Mutex
	open  map[string]*folder
	clock uint64
}

func newFolders(root *os.Root) *folders {
	return &folders{top: &folder{name: ".", root: root}, open: map[string]*folder{}}
}

// enter holds the directory dir, and calls leave when done. The error wraps
// [ErrNotRegular] when something on the way is no directory.
func (c *folders) enter(dir string) (*folder, error) {
	if dir == "." {
		return c.top, nil
	}
	parent, err := c.enter(path.Dir(dir))
	if err != nil {
		return nil, err
	}
	defer c.leave(parent)
	return c.step(parent, dir)
}

// step holds a directory in one that is held. It looks before it opens and after,
// so that a link put there in between is noticed.
func (c *folders) step(parent *folder, dir string) (*folder, error) {
	base := path.Base(dir)
	now, err := parent.root.Lstat(base)
	if err == nil && !now.IsDir() {
		err = ErrNotRegular
	}
	if err != nil {
		return nil, fmt.Errorf("%q: %w", dir, err)
	}
	if f := c.hold(dir, now); f != nil {
		return f, nil
	}
	root, err := parent.root.OpenRoot(base)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", dir, err)
	}
	opened, err := root.Lstat(".")
	if err == nil && !os.SameFile(now, opened) {
		err = ErrNotRegular
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%q: %w", dir, err), root.Close())
	}
	return c.keep(&folder{name: dir, root: root, info: opened}), nil
}

// hold finds an open directory that is still the one at its name.
func (c *folders) hold(dir string, now fs.FileInfo) *folder {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.open[dir]
	if f == nil {
		return nil
	}
	if !os.SameFile(f.info, now) {
		c.drop(f)
		return nil
	}
	c.use(f)
	return f
}

func (c *folders) use(f *folder) {
	f.uses++
	c.clock++
	f.last = c.clock
}

// keep enters a directory into the table, held by the caller. Of two who opened
// one at the same time, the later's is used.
func (c *folders) keep(f *folder) *folder {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.open[f.name]; old != nil {
		c.drop(old)
	}
	if len(c.open) >= maxFolders {
		c.dropOldest()
	}
	c.open[f.name] = f
	c.use(f)
	return f
}

func (c *folders) dropOldest() {
	var oldest *folder
	for _, f := range c.open {
		if f.uses == 0 && (oldest == nil || f.last < oldest.last) {
			oldest = f
		}
	}
	if oldest != nil {
		c.drop(oldest)
	}
}

// drop takes a directory out of the table. Handles that only read, or that were
// synced, have nothing to say when they are closed.
func (c *folders) drop(f *folder) {
	delete(c.open, f.name)
	f.gone = true
	if f.uses == 0 {
		_ = f.close()
	}
}

func (c *folders) leave(f *folder) {
	if f == c.top {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f.uses--
	if f.uses == 0 && f.gone {
		_ = f.close()
	}
}

// forget empties the table.
func (c *folders) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.open {
		c.drop(f)
	}
}

// close ends the table; the root stays open.
func (c *folders) close() error {
	c.forget()
	if c.top.handle == nil {
		return nil
	}
	return c.top.handle.Close()
}
