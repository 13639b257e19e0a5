package store

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
)

// tracedEnv makes the test binary a writer whose system calls are recorded: the
// directory of its store.
const tracedEnv = "CHAIND_STORE_TRACED"

// writeTraced appends the small vector, compacts half-way, and says what has been
// acknowledged.
func writeTraced(dir string) {
	t := new(crashT)
	s, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	tight(s)
	v := loadVector(t, "small")
	for i := 0; i < len(v.Messages); i += 20 {
		mustAppend(t, s, v.batch(i, i+20))
		fmt.Println("acknowledged", must(s.Watermark(testStream)).Applied)
		if i == 160 {
			if _, err := s.compact(context.Background(), nil, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	goOnAfterKill(t, dir)
	os.Exit(0)
}

// goOnAfterKill leaves a commit that was written and not synced, as a kill does,
// opens the database again, and tells what that has.
func goOnAfterKill(t testing.TB, dir string) {
	s, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	last := must(s.Watermark(testStream)).Applied
	give(t, s, testStream, step("killed", "a", last+1)) // the first of a process writes more than its commit
	s.testingOnly.commit = func(tx *bbolt.Tx) error {
		tx.DB().NoSync = true
		return tx.Commit()
	}
	give(t, s, testStream, step("killed", "b", last+2))
	if err := errors.Join(s.db.Close(), s.mark.root.Close()); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(Config{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	fmt.Println("acknowledged", must(s.Watermark(testStream)).Applied)
}

// powerModel is a disk that keeps what has been synced. What has not may be there
// after a power cut or not, each write and each name by itself.
type powerModel struct {
	dir     string
	fds     map[string]*modelFile // by number; the directory is the one without a name
	names   map[string]*modelFile // as the process sees them
	durable map[string]*modelFile
	acked   uint64
}

type modelFile struct {
	isDir   bool
	content []byte // durable
	pending []func([]byte) []byte
}

func (f *modelFile) sync() {
	for _, change := range f.pending {
		f.content = change(f.content)
	}
	f.pending = nil
}

func resized(b []byte, size int) []byte {
	if len(b) >= size {
		return b[:size]
	}
	return append(b, make([]byte, size-len(b))...)
}

// image writes what a power cut may leave: keep tells of each unsynced thing
// whether it is there.
func (m *powerModel) image(t *testing.T, dir string, keep func() bool) {
	t.Helper()
	names := maps.Clone(m.durable)
	for _, name := range slices.Sorted(maps.Keys(m.names)) {
		if keep() {
			names[name] = m.names[name]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.durable)) {
		if m.names[name] == nil && keep() {
			delete(names, name)
		}
	}
	for name, f := range names {
		b := bytes.Clone(f.content)
		for _, change := range f.pending {
			if keep() {
				b = change(b)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// call is one system call that went well.
type call struct {
	name   string
	args   []string // numbers, and strings as they were
	result string
}

var (
	callLine = regexp.MustCompile(`^(\w+)\((.*)\)\s+= (\d+)$`)
	argument = regexp.MustCompile(`"((?:\\x[0-9a-f]{2})*)"|[^,\s][^,]*`)
)

// parseCall reads a line of strace; nil: none that counts.
func parseCall(line string) *call {
	m := callLine.FindStringSubmatch(line)
	if m == nil {
		return nil
	}
	c := &call{name: m[1], result: m[3]}
	for _, a := range argument.FindAllStringSubmatch(m[2], -1) {
		if strings.HasPrefix(a[0], `"`) {
			b, err := hex.DecodeString(strings.ReplaceAll(a[1], `\x`, ""))
			if err != nil {
				return nil
			}
			c.args = append(c.args, string(b))
		} else {
			c.args = append(c.args, a[0])
		}
	}
	return c
}

// do lets a call have its effect, and tells whether it was one on the disk.
func (m *powerModel) do(c *call) bool {
	switch c.name {
	case "openat":
		m.open(c)
		return false
	case "close":
		delete(m.fds, c.args[0])
		return false
	case "write":
		if text, ok := strings.CutPrefix(c.args[1], "acknowledged "); ok && c.args[0] == "1" {
			m.acked, _ = strconv.ParseUint(strings.TrimSpace(text), 10, 64)
			return true
		}
	case "renameat", "renameat2", "linkat":
		from, to := filepath.Base(c.args[1]), filepath.Base(c.args[3])
		if f := m.names[from]; f != nil {
			m.names[to] = f
			if c.name != "linkat" {
				delete(m.names, from)
			}
		}
		return true
	case "unlinkat":
		delete(m.names, filepath.Base(c.args[1]))
		return true
	}
	f := m.fds[c.args[0]]
	if f == nil {
		return false
	}
	switch c.name {
	case "write": // of small files, once and whole
		data := []byte(c.args[1])
		f.pending = append(f.pending, func([]byte) []byte { return data })
	case "pwrite64":
		data := []byte(c.args[1])
		at, _ := strconv.Atoi(c.args[3])
		f.pending = append(f.pending, func(b []byte) []byte {
			b = resized(b, max(len(b), at+len(data)))
			copy(b[at:], data)
			return b
		})
	case "ftruncate":
		size, _ := strconv.Atoi(c.args[1])
		f.pending = append(f.pending, func(b []byte) []byte { return resized(b, size) })
	case "fsync", "fdatasync":
		if f.isDir {
			m.durable = maps.Clone(m.names)
		} else {
			f.sync()
		}
	}
	return true
}

func (m *powerModel) open(c *call) {
	base := filepath.Base(c.args[1])
	switch {
	case c.args[1] == m.dir, c.args[1] == ".":
		m.fds[c.result] = &modelFile{isDir: true}
	case c.args[0] == "AT_FDCWD": // elsewhere
	case m.names[base] == nil && strings.Contains(c.args[2], "O_CREAT"), strings.Contains(c.args[2], "O_TRUNC"):
		m.names[base] = new(modelFile)
		fallthrough
	default:
		m.fds[c.result] = m.names[base]
	}
}

// trace runs the writer under strace and returns its system calls.
func trace(t *testing.T) (dir string, calls []*call) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip(err)
	}
	dir = t.TempDir()
	log := filepath.Join(t.TempDir(), "log")
	cmd := exec.Command(strace, "-f", "-xx", "-s", "16777216", "-o", log,
		"-e", "trace=openat,close,write,pwrite64,ftruncate,fsync,fdatasync,renameat,renameat2,linkat,unlinkat", os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), tracedEnv+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("strace does not work here: %v: %.300s", err, out)
	}
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	begun := map[string]string{} // calls of threads that others came between
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<28)
	for lines.Scan() {
		thread, line, _ := strings.Cut(lines.Text(), " ")
		line = strings.TrimSpace(line)
		if start, ok := strings.CutSuffix(line, "<unfinished ...>"); ok {
			begun[thread] = strings.TrimRight(start, " ")
			continue
		}
		if _, rest, ok := strings.Cut(line, "resumed>"); ok && strings.HasPrefix(line, "<...") {
			line = begun[thread] + rest
		}
		if c := parseCall(line); c != nil {
			calls = append(calls, c)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return dir, calls
}

// The database on a disk that forgets what was not synced: wherever the power is
// cut, the store opens, is whole, and has what was acknowledged; and it takes
// itself for no restored one.
func TestPowerCuts(t *testing.T) {
	t.Parallel()
	dir, calls := trace(t)
	m := &powerModel{dir: dir, fds: map[string]*modelFile{}, names: map[string]*modelFile{}, durable: map[string]*modelFile{}}
	rnd := rand.New(rand.NewPCG(7, 7))
	every := 23
	if testing.Short() {
		every = 61
	}
	cuts, syncs := 0, 0
	for i, c := range calls {
		if !m.do(c) {
			continue
		}
		acknowledged := c.name == "write" && strings.HasPrefix(c.args[1], "acknowledged")
		if strings.HasSuffix(c.name, "sync") {
			syncs++
		}
		if acknowledged {
			m.cut(t, fmt.Sprintf("call %d, nothing survives", i), func() bool { return false })
		}
		if acknowledged && !testing.Short() || strings.HasPrefix(c.name, "rename") || rnd.IntN(every) == 0 {
			m.cut(t, fmt.Sprintf("call %d, %s", i, c.name), func() bool { return rnd.IntN(2) == 0 })
			cuts++
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d calls, %d syncs, %d cuts", len(calls), syncs, cuts)
	if m.acked < 300 || cuts < 10 {
		t.Errorf("acknowledged up to %d, %d cuts", m.acked, cuts)
	}
}

func (m *powerModel) cut(t *testing.T, where string, keep func() bool) {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), "cut")
	if err != nil {
		t.Fatal(err)
	}
	m.image(t, dir, keep)
	s, err := Open(Config{Dir: dir})
	if err != nil {
		t.Errorf("%s, after %d were acknowledged: %v", where, m.acked, err)
		return
	}
	if w := must(s.Watermark(testStream)); w.Applied < m.acked {
		t.Errorf("%s: %d were acknowledged, and %d are there", where, m.acked, w.Applied)
	}
	if e := must(s.Epochs()); len(e) > 1 {
		t.Errorf("%s: taken for something else: %+v", where, e)
	}
	mustCheck(t, s)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}
