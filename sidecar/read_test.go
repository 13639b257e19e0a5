package sidecar

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaind/chaind/segments"
)

const vectors = "../testdata/plasm/store"

type readCase struct {
	Store     string
	Prompt    string `json:"prompt_hash"`
	Session   string `json:"session_id"`
	Run       string `json:"run_id"`
	Reference struct {
		Found bool
		Via   string
		Head  string
	}
	Strict struct {
		Found  bool
		Reject string
	}
}

// TestVectorReads reads the trees of the golden vectors through each back end.
// The memory back end of the reference ends its search at a dangling pointer;
// ours falls back to the legacy file everywhere.
func TestVectorReads(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(vectors, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases struct{ Reads []readCase }
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases.Reads) != 7 {
		t.Fatalf("%d cases", len(cases.Reads))
	}
	for _, c := range cases.Reads {
		for backEnd, b := range map[string]Blobs{"directory": vectorDir(t, c.Store), "memory": vectorMemory(t, c.Store)} {
			t.Run(c.Store+"/"+c.Run[:6]+"/"+backEnd, func(t *testing.T) {
				t.Parallel()
				testVectorRead(t, b, c)
			})
		}
	}
}

func testVectorRead(t *testing.T, b Blobs, c readCase) {
	s := openSidecars(t, b)
	found, err := s.ReadRun(t.Context(), Place{PromptHash: c.Prompt, Session: c.Session}, c.Run)
	if !c.Reference.Found {
		if !errors.Is(err, ErrNotFound) || found != nil {
			t.Errorf("%+v, %v", found, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if via, _, _ := strings.Cut(c.Reference.Via, " "); string(found.Via) != via {
		t.Errorf("found via %s", found.Via)
	}
	bundle, _, err := segments.ReadBundle(strings.NewReader(string(found.Bytes)))
	if err != nil || bundle.Head.String() != c.Reference.Head {
		t.Errorf("head %v, %v", bundle.Head, err)
	}
	misnamed := found.Head != nil && *found.Head != *bundle.Head
	if misnamed != (c.Strict.Reject == "head_file_name_mismatch") {
		t.Errorf("name says %v", found.Head)
	}
	if (found.Head == nil) != (found.Via == ViaLegacy) {
		t.Errorf("via %s with head %v", found.Via, found.Head)
	}
}

func vectorDir(t *testing.T, store string) Blobs {
	t.Helper()
	d, err := OpenDirReadOnly(filepath.Join(vectors, store))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func vectorMemory(t *testing.T, store string) Blobs {
	t.Helper()
	m := NewMemory()
	tree := os.DirFS(filepath.Join(vectors, store))
	err := fs.WalkDir(tree, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		m.blobs[name], err = fs.ReadFile(tree, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestUnreadable: what cannot be read is not "not found"; but it does lead to
// the legacy file.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	b := NewMemory()
	e, text := testEvidence(testPlace, "x", false, runID(1))
	write(t, openSidecars(t, b), e)
	for n := range 2 { // the pointer, the head file
		s := openSidecars(t, &faulty{Blobs: b, n: n})
		if found, err := s.ReadRun(t.Context(), testPlace, runID(1)); !errors.Is(err, errInjected) || errors.Is(err, ErrNotFound) || found != nil {
			t.Errorf("operation %d failed: %+v, %v", n, found, err)
		}
	}
	put(t, b, testPlace.legacy(runID(1)), string(text))
	s := openSidecars(t, &faulty{Blobs: b, n: 1})
	if found, err := s.ReadRun(t.Context(), testPlace, runID(1)); err != nil || found.Via != ViaLegacy {
		t.Errorf("with a legacy file: %+v, %v", found, err)
	}
}

// TestPlasmSnapshots reads the run snapshots that the reference left beside
// its evidence and checks the seals against them.
func TestPlasmSnapshots(t *testing.T) {
	t.Parallel()
	s := openSidecars(t, vectorDir(t, "two-run"))
	found, err := s.ReadRun(t.Context(), testPlace, "prf666c6def78497125b71b1c0870a88b3cbd26b6f3718c713a18c5020be862630")
	if err != nil {
		t.Fatal(err)
	}
	bundle, _, err := segments.ReadBundle(strings.NewReader(string(found.Bytes)))
	if err != nil {
		t.Fatal(err)
	}
	seals := 0
	for _, segment := range bundle.Segments {
		seal, ok := segment.Kind.(*segments.RunSealed)
		if !ok {
			continue
		}
		seals++
		blob, err := s.ReadSnapshot(t.Context(), testPlace, seal.RunID)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := segments.DecodeSealDocument(blob)
		if err != nil {
			t.Fatal(err)
		}
		if digest, err := segments.RunDigest(&bundle.Scope, doc); err != nil || digest != seal.RunBundleDigest {
			t.Errorf("seal of %s: %v, %v", seal.RunID, digest, err)
		}
	}
	if seals != 2 {
		t.Errorf("%d seals", seals)
	}
	if _, err := s.ReadSnapshot(t.Context(), testPlace, runID(1)); !errors.Is(err, ErrNotFound) {
		t.Errorf("missing snapshot: %v", err)
	}
}

func TestOpenEvidence(t *testing.T) {
	t.Parallel()
	s := openSidecars(t, NewMemory())
	e, text := testEvidence(testPlace, "x", false)
	write(t, s, e)
	r, err := s.OpenEvidence(t.Context(), testPlace, Heads, e.Head)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, _, err := segments.ReadBundle(r); err != nil {
		t.Error(err)
	}
	if size, err := r.Seek(0, 1); size != int64(len(text)) || err != nil {
		t.Errorf("read %d bytes, %v", size, err)
	}
	if _, err := s.OpenEvidence(t.Context(), testPlace, Unplanned, e.Head); !errors.Is(err, ErrNotFound) {
		t.Errorf("other class: %v", err)
	}
}
