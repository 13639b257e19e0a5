package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/chaind/chaind/events"
)

// file is one that must be there.
type file struct {
	key     events.Key // whose evidence it is
	content *string    // nil: looked at elsewhere
}

// expectFiles says which files must be there for a chain that was sealed: none of
// its chain alone may be missing, none may be there that no chain accounts for.
func (c *checker) expectFiles(s *story, f *facts) {
	end, seal := f.record.Fixed, f.record.Seal
	expect := func(name string, content *string) { c.files[name] = file{s.key, content} }
	root, nothing := seal.BundleRoot.String(), ""
	byChain := path.Join("bundles/by-chain", s.key.Tenant, s.key.PromptHash, s.key.Session, s.key.Chain)
	expect(seal.BundlePath, nil)
	expect(byChain+".root", &root)
	expect(path.Join(byChain, root), &nothing)
	if end.State.Head == nil {
		return
	}
	expect(seal.Path, nil)
	if conformity, _ := end.State.Conformity(); conformity != events.Conforming {
		return
	}
	evidence := path.Dir(path.Dir(seal.Path))
	head, at := end.State.Head.String(), fmt.Sprintf("%d %d\n", end.Epoch, end.StreamSeq)
	for _, id := range end.State.RunIDs {
		expect(path.Join(evidence, "run-heads", id+".head"), &head)
		expect(path.Join(evidence, "run-heads", id, head), &at)
	}
}

// tree wants the expected files and no others below artifacts. What the daemon
// keeps for itself is in directories of their own.
func (c *checker) tree() error {
	root := os.DirFS(c.artifacts)
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(name, ".chaind"):
			return fs.SkipDir
		case entry.IsDir():
			return nil
		}
		want, ok := c.files[name]
		delete(c.files, name)
		c.v.count("files")
		if !ok {
			c.v.wrong(events.Key{}, "%s is of no chain that was sealed", name)
			return nil
		}
		if want.content == nil {
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err == nil && string(text) != *want.content {
			c.v.wrong(want.key, "%s is %q, want %q", name, text, *want.content)
		}
		return err
	})
	for name, want := range c.files {
		c.v.wrong(want.key, "%s is missing", name)
	}
	return err
}
