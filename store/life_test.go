package store

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaind/chaind/events"
)

// An older copy of the database, put beside the mark of a later one, is known for
// one, whatever its size and whoever made it; and the history shows the seam once.
func TestOlderDatabaseBesideTheMark(t *testing.T) {
	t.Parallel()
	grow := func(t *testing.T, s *Store, events int) {
		w := must(s.Watermark(testStream))
		for i := range uint64(events) {
			give(t, s, testStream, step("new", string(rune('a'+i))+string(rune('a'+w.Applied%26)), w.Applied+1+i))
		}
	}
	file := func(t *testing.T, s *Store) []byte {
		b, err := os.ReadFile(filepath.Join(s.cfg.Dir, DatabaseFile))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	backup := func(t *testing.T, s *Store) []byte {
		var b bytes.Buffer
		if _, err := s.Backup(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for name, make := range map[string]func(t *testing.T, s *Store) (*Store, []byte){
		"backup from before a compaction": func(t *testing.T, s *Store) (*Store, []byte) {
			old := backup(t, s)
			grow(t, s, 1)
			if _, err := s.Compact(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			return s, old
		},
		"backup from one commit ago": func(t *testing.T, s *Store) (*Store, []byte) {
			old := backup(t, s)
			grow(t, s, 1)
			return s, old
		},
		"backup during which something was committed": func(t *testing.T, s *Store) (*Store, []byte) {
			var b bytes.Buffer
			once := &onFirstWrite{Writer: &b, do: func() { grow(t, s, 1) }}
			if _, err := s.Backup(t.Context(), once); err != nil {
				t.Fatal(err)
			}
			return s, b.Bytes()
		},
		"copy of the stopped database": func(t *testing.T, s *Store) (*Store, []byte) {
			s = reopen(t, s)
			old := file(t, s)
			grow(t, s, 1)
			return s, old
		},
		"copy of the running database": func(t *testing.T, s *Store) (*Store, []byte) {
			grow(t, s, 1)
			old := file(t, s)
			grow(t, s, 1)
			return s, old
		},
		"copy from before a compaction": func(t *testing.T, s *Store) (*Store, []byte) {
			grow(t, s, 1)
			old := file(t, s)
			if _, err := s.Compact(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			grow(t, s, 1)
			return s, old
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := half(t)
			s, old := make(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(s.cfg.Dir, DatabaseFile)
			if err := os.WriteFile(path, old, 0o600); err != nil {
				t.Fatal(err)
			}
			if size := s.mark.size; int64(len(old)) < size { // refused by its size; only more may be in the file than is in use
				if _, err := Open(s.cfg); !errors.Is(err, ErrTruncated) {
					t.Errorf("a smaller copy: %v", err)
				}
				if err := os.Truncate(path, size); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 { // noted once
				s, err := Open(s.cfg)
				if err != nil {
					t.Fatal(err)
				}
				if e := must(s.Epochs()); len(e) != 2 || e[1].Why != WhyRestored {
					t.Errorf("the restore is not recorded, or twice: %+v", e)
				}
				mustCheck(t, s)
				grow(t, s, 2)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// onFirstWrite does something when the first bytes come.
type onFirstWrite struct {
	io.Writer
	do func()
}

func (w *onFirstWrite) Write(p []byte) (int, error) {
	if w.do != nil {
		w.do()
		w.do = nil
	}
	return w.Writer.Write(p)
}

// A crash at any point between a commit and the mark leaves a mark that is true of
// the database: no restore is noted that never was.
func TestMarkBehindTheDatabase(t *testing.T) {
	t.Parallel()
	s, _ := half(t)
	path := filepath.Join(s.cfg.Dir, MarkFile)
	var marks [][]byte
	first := 0 // of the marks since the last compaction, which lowers it before the exchange
	note := func() {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(marks) == 0 || !bytes.Equal(marks[len(marks)-1], b) {
			marks = append(marks, b)
		}
	}
	for i := range uint64(12) {
		note()
		w := must(s.Watermark(testStream))
		give(t, s, testStream, step("new", string(rune('a'+i)), w.Applied+1))
		switch i % 4 {
		case 0:
			if _, err := s.Backup(t.Context(), io.Discard); err != nil {
				t.Fatal(err)
			}
		case 1:
			if _, err := s.Compact(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			first = len(marks)
		case 2:
			note()
			s = reopen(t, s)
		}
		crashed := filepath.Join(t.TempDir(), "crashed")
		database, err := os.ReadFile(filepath.Join(s.cfg.Dir, DatabaseFile))
		if err != nil {
			t.Fatal(err)
		}
		note()
		for back, mark := range slices.Backward(marks[first:]) {
			if len(marks)-first-back > 2 { // the one that stands, or the one before it
				break
			}
			place(t, crashed, database, mark)
			after, err := Open(Config{Dir: crashed})
			if err != nil {
				t.Fatal(err)
			}
			if e := must(after.Epochs()); len(e) != 1 {
				t.Errorf("commit %d, mark %d of %d: %+v", i, back+1, len(marks), e)
			}
			if err := after.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(marks) < 8 {
		t.Errorf("the mark was raised %d times only", len(marks))
	}
}

// While its mark cannot be written a life stays, so that a crash does not leave a
// mark with the name before the last; and the mark is tried again.
func TestNoNewLifeWithoutAMark(t *testing.T) {
	t.Parallel()
	s, _ := half(t)
	lives := func() string { return s.life.now + " " + s.mark.life }
	temp := filepath.Join(s.cfg.Dir, creatingPrefix+MarkFile)
	if err := os.Mkdir(temp, 0o700); err != nil { // in the way of the mark
		t.Fatal(err)
	}
	var seen []string
	for i := range uint64(4) {
		if _, err := s.Backup(t.Context(), io.Discard); err != nil {
			t.Fatal(err)
		}
		w := must(s.Watermark(testStream))
		wantVerdicts(t, give(t, s, testStream, step("new", string(rune('a'+i)), w.Applied+1)), events.Appended)
		if i == 2 {
			if err := os.Remove(temp); err != nil {
				t.Fatal(err)
			}
		}
		seen = append(seen, lives())
	}
	if s.mark.life != s.life.now || seen[0] != seen[2] || len(slices.Compact(seen)) != 2 {
		t.Errorf("lives, in the database and in the mark: %q", seen)
	}
	s = reopen(t, s)
	if e := must(s.Epochs()); len(e) != 1 {
		t.Errorf("%+v", e)
	}
	s.Close()
}
