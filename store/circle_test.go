package store

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// circle lets a branch page of the journal's tree lead to itself.
func circle(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := openPages(f)
	if err != nil {
		t.Fatal(err)
	}
	for id := uint64(2); id < p.meta.pages; id++ {
		g, _, err := p.read(id, nil)
		if err != nil || g.flags != flagBranch {
			continue
		}
		at := int64(id)*int64(p.meta.pageSize) + pageHeader + 8
		if _, err := f.WriteAt(binary.NativeEndian.AppendUint64(nil, id), at); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("no branch page")
}

// Pages that lead in a circle, as in a torn copy, end neither in an endless walk
// nor in all the memory there is: a copy is refused, and a check of a store that
// was open already says what it found and follows them no further.
func TestPagesInACircle(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, batchOf("c", 1, 1000))
	file := filepath.Join(cfg.Dir, DatabaseFile)
	circle(t, file)
	report, err := s.Check(t.Context(), nil)
	if err != nil || len(report.Findings) < 2 || !strings.Contains(report.Findings[len(report.Findings)-1].Detail, "not looked at") {
		t.Errorf("%+v, %v", report, err)
	}
	if _, err := s.Compact(t.Context(), nil); !errors.Is(err, ErrCorrupt) {
		t.Errorf("compacted: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	place(t, copied, must(os.ReadFile(file)), nil)
	if _, err := Open(Config{Dir: copied}); !errors.Is(err, errPages) || !errors.Is(err, ErrCorrupt) {
		t.Errorf("a copy was opened: %v", err)
	}
}
