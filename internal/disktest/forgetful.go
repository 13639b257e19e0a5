package disktest

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"sync"
	"testing"
)

// Forgetful is a model of a disk beneath a directory that forgets: after a power
// cut only what was synced is certain. A name that was not synced may be there or
// not, bytes that were not synced may be there or not, each independently; the
// model looks at the two extremes that hurt, everything unsynced dropped, and names
// kept without their bytes.
type Forgetful struct {
	t    testing.TB
	root string
	cut  func()

	mu    sync.Mutex
	nodes []*node
	dirs  map[string]*entries // by name; "." is there from the start
}

type node struct {
	info           os.FileInfo
	cached, synced string
}

type entries struct{ cached, synced map[string]*node } // nil: a directory

func newEntries() *entries { return &entries{map[string]*node{}, map[string]*node{}} }

// NewForgetful begins with an empty directory. cut is called around every system
// call, one call at a time.
func NewForgetful(t testing.TB, root string, cut func()) *Forgetful {
	return &Forgetful{t: t, root: root, cut: cut, dirs: map[string]*entries{".": newEntries()}}
}

// Cut cuts the power now.
func (f *Forgetful) Cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut()
}

// Around follows one system call of package durable. It holds the lock throughout,
// so that calls come one after the other, as cuts between them do.
func (f *Forgetful) Around(op, name string, do func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut()
	err := do()
	if err == nil {
		f.follow(op, name)
	}
	f.cut()
	return err
}

func (f *Forgetful) follow(op, name string) {
	dir, base := path.Split(name)
	parent := f.dir(path.Clean(dir))
	switch op {
	case "write":
		text, err := os.ReadFile(filepath.Join(f.root, name))
		if err != nil {
			f.t.Fatal(err)
		}
		f.nodes = append(f.nodes, &node{info: f.stat(name), cached: string(text)})
	case "mkdir":
		f.dir(name)
	case "rename", "link":
		parent.cached[base] = f.node(name)
	case "unlink":
		delete(parent.cached, base)
	case "syncfs":
		for _, n := range f.nodes {
			n.synced = n.cached
		}
		for _, d := range f.dirs {
			d.synced = maps.Clone(d.cached)
		}
	case "fsync":
		if d := f.dirs[name]; d != nil {
			d.synced = maps.Clone(d.cached)
		} else {
			n := f.node(name)
			n.synced = n.cached
		}
	}
}

// dir finds a directory, or takes note of it; it may have been made otherwise.
func (f *Forgetful) dir(name string) *entries {
	if d := f.dirs[name]; d != nil {
		return d
	}
	f.dirs[name] = newEntries()
	f.dir(path.Dir(name)).cached[path.Base(name)] = nil
	return f.dirs[name]
}

func (f *Forgetful) stat(name string) os.FileInfo {
	info, err := os.Lstat(filepath.Join(f.root, name))
	if err != nil {
		f.t.Fatal(err)
	}
	return info
}

// node is the file that has the name now; numbers of files that are gone are
// given again, so the last one counts.
func (f *Forgetful) node(name string) *node {
	info := f.stat(name)
	for i := len(f.nodes) - 1; i >= 0; i-- {
		if os.SameFile(f.nodes[i].info, info) {
			return f.nodes[i]
		}
	}
	f.t.Fatalf("%s is no file that was written", name)
	return nil
}

// After is what is there, by name, after a power cut now. kept: names survive
// although they were not synced, and their bytes do not. Call it from cut, or when
// no system call is under way.
func (f *Forgetful) After(kept bool) map[string]string {
	files := map[string]string{}
	var walk func(dir string)
	walk = func(dir string) {
		d := f.dirs[dir]
		list := d.synced
		if kept {
			list = d.cached
		}
		for base, n := range list {
			if name := path.Join(dir, base); n != nil {
				files[name] = n.synced
			} else {
				walk(name)
			}
		}
	}
	walk(".")
	return files
}
