package durable

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// disk is a model of a file system that forgets: after a power cut only what was
// synced is certain. A name that was not synced may be there or not, bytes that
// were not synced may be there or not, each independently; the model looks at the
// two extremes that hurt, everything unsynced dropped, and names kept without
// their bytes.
type disk struct {
	t    *testing.T
	root string

	mu     sync.Mutex
	staged []*inode // the temporary files, in the order in which they get their names
	temps  map[string]*inode
	dirs   map[string]*directory
}

type inode struct{ cached, synced string }

type directory struct{ cached, synced map[string]*inode } // nil: a directory

func newDisk(t *testing.T, root string) *disk {
	return &disk{t: t, root: root, temps: map[string]*inode{}, dirs: map[string]*directory{".": {map[string]*inode{}, map[string]*inode{}}}}
}

// around follows the system calls of a write, and calls crash before and after each.
func (d *disk) around(crash func()) func(op, name string, do func() error) error {
	return func(op, name string, do func() error) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		crash()
		err := do()
		if err == nil {
			d.follow(op, name)
		}
		crash()
		return err
	}
}

func (d *disk) follow(op, name string) {
	switch op {
	case "write":
		text, err := os.ReadFile(filepath.Join(d.root, name))
		if err != nil {
			d.t.Fatal(err)
		}
		d.temps[name] = &inode{cached: string(text)}
		d.staged = append(d.staged, d.temps[name])
	case "mkdir":
		d.dirs[name] = &directory{map[string]*inode{}, map[string]*inode{}}
		d.dirs[path.Dir(name)].cached[path.Base(name)] = nil
	case "rename", "link":
		d.dirs[path.Dir(name)].cached[path.Base(name)] = d.staged[0]
		d.staged = d.staged[1:]
	case "syncfs":
		for _, n := range d.temps {
			n.synced = n.cached
		}
		for _, dir := range d.dirs {
			dir.synced = maps.Clone(dir.cached)
		}
	case "fsync":
		if dir := d.dirs[name]; dir != nil {
			dir.synced = maps.Clone(dir.cached)
		} else {
			d.temps[name].synced = d.temps[name].cached
		}
	}
}

// after is what a name holds after a power cut right now; ok is false when there
// is no such name. kept: unsynced names survive, without their bytes.
func (d *disk) after(name string, kept bool) (text string, ok bool) {
	parts, dir := strings.Split(name, "/"), "."
	for i, part := range parts {
		entries := d.dirs[dir].synced
		if kept {
			entries = d.dirs[dir].cached
		}
		node, there := entries[part]
		if !there {
			return "", false
		}
		if i == len(parts)-1 {
			return node.synced, true
		}
		dir = path.Join(dir, part)
	}
	return "", false
}

// TestF07PowerCuts is case F07 against the model: wherever the power goes, a name
// holds the old bytes or the new ones, whole; and once a write has returned it
// holds the new ones.
func TestF07PowerCuts(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := open(t, root)
	model := newDisk(t, root)
	var name, old, now string // of the write that runs; old "": no such file
	cuts := 0
	d.around = model.around(func() {
		cuts++
		for _, kept := range []bool{false, true} {
			if text, ok := model.after(name, kept); ok && text != old && text != now || !ok && old != "" {
				t.Errorf("%s holds %q (there: %v) after a power cut, neither %q nor %q", name, text, ok, old, now)
			}
		}
	})
	for _, step := range []struct {
		name, old, now string
		write          func(string, Body) error
	}{
		{"a/b/f", "", "first", d.Write},
		{"a/b/f", "first", "second, longer", d.Write},
		{"a/b/f", "second, longer", "3", d.Write},
		{"a/c/g", "", "once", d.WriteOnce},
		{"a/c/g", "once", "once", d.WriteOnce},
		{"top", "", "x", d.WriteOnce},
		{"a/h", "", "y", d.Write},
	} {
		name, old, now = step.name, step.old, step.now
		if err := step.write(name, Bytes([]byte(now))); err != nil {
			t.Fatal(err)
		}
		if text, ok := model.after(name, false); !ok || text != now {
			t.Errorf("%s was written, and holds %q (there: %v) after a power cut", name, text, ok)
		}
	}
	if cuts < 50 {
		t.Errorf("only %d power cuts", cuts)
	}
}

// TestPowerCutsInGroups: wherever the power goes in a group of files, each holds
// its old or its new bytes, whole, and one that is written then does not hold its
// new ones before all that are written first do.
func TestPowerCutsInGroups(t *testing.T) {
	t.Parallel()
	t.Run("alone", func(t *testing.T) {
		t.Parallel()
		d := open(t, t.TempDir())
		cutGroups(t, d, 100)
	})
	t.Run("in a crowd", func(t *testing.T) {
		t.Parallel()
		cutGroups(t, crowdedDir(t, func(*os.File) error { return nil }), 60)
	})
}

func cutGroups(t *testing.T, d *Dir, least int) {
	root := d.root.Name()
	model := newDisk(t, root)
	files := groupFiles(1)
	old := map[string]string{}
	cuts := 0
	d.around = model.around(func() {
		cuts++
		for _, kept := range []bool{false, true} {
			checkGroup(t, old, files, func(name string) string {
				if text, ok := model.after(name, kept); ok {
					return text
				}
				return "absent"
			})
		}
	})
	for generation := range 3 {
		files = groupFiles(generation)
		if err := d.WriteGroup(files[:2], files[2:], nil); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if text, _ := model.after(f.Name, false); text != groupText(f.Name, generation) {
				t.Errorf("%s was written, and holds %q after a power cut", f.Name, text)
			}
			old[f.Name] = groupText(f.Name, generation)
		}
	}
	if cuts < least {
		t.Errorf("only %d power cuts", cuts)
	}
}
