package durable

import (
	"os"
	"testing"

	"github.com/chaind/chaind/internal/disktest"
)

// TestF07PowerCuts is case F07 against the model: wherever the power goes, a name
// holds the old bytes or the new ones, whole; and once a write has returned it
// holds the new ones.
func TestF07PowerCuts(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := open(t, root)
	var model *disktest.Forgetful
	var name, old, now string // of the write that runs; old "": no such file
	cuts := 0
	model = disktest.NewForgetful(t, root, func() {
		cuts++
		for _, kept := range []bool{false, true} {
			if text, ok := model.After(kept)[name]; ok && text != old && text != now || !ok && old != "" {
				t.Errorf("%s holds %q (there: %v) after a power cut, neither %q nor %q", name, text, ok, old, now)
			}
		}
	})
	d.around = model.Around
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
		if text, ok := model.After(false)[name]; !ok || text != now {
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
	var model *disktest.Forgetful
	files := groupFiles(1)
	old := map[string]string{}
	cuts := 0
	model = disktest.NewForgetful(t, root, func() {
		cuts++
		for _, kept := range []bool{false, true} {
			there := model.After(kept)
			checkGroup(t, old, files, func(name string) string {
				if text, ok := there[name]; ok {
					return text
				}
				return "absent"
			})
		}
	})
	d.around = model.Around
	for generation := range 3 {
		files = groupFiles(generation)
		if err := d.WriteGroup(files[:2], files[2:], nil); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if text := model.After(false)[f.Name]; text != groupText(f.Name, generation) {
				t.Errorf("%s was written, and holds %q after a power cut", f.Name, text)
			}
			old[f.Name] = groupText(f.Name, generation)
		}
	}
	if cuts < least {
		t.Errorf("only %d power cuts", cuts)
	}
}
