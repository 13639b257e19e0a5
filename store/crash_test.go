package store

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// crashEnv makes the test binary a writer that is killed: directory, point,
// after how many batches, batch size.
const crashEnv = "CHAIND_STORE_CRASH"

func TestMain(m *testing.M) {
	if spec := os.Getenv(crashEnv); spec != "" {
		writeUntilKilled(spec)
		return
	}
	if dir := os.Getenv(tracedEnv); dir != "" {
		writeTraced(dir)
		return
	}
	if path := os.Getenv(damageEnv); path != "" {
		openDamaged(path)
		return
	}
	if spec := os.Getenv(compactEnv); spec != "" {
		compactAndDie(spec)
		return
	}
	goleak.VerifyTestMain(m)
}

var crashPoints = []string{"before commit", "in commit", "after commit", "published"}

// writeUntilKilled appends the large vector from the watermark on.
func writeUntilKilled(spec string) {
	parts := strings.Split(spec, "|")
	dir, point := parts[0], parts[1]
	after, _ := strconv.Atoi(parts[2])
	size, _ := strconv.Atoi(parts[3])
	t := new(crashT)
	s, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	tight(s)
	batches := 0
	die := func(at string) error {
		if at == "before commit" {
			batches++
		}
		if batches != after || at != point {
			return nil
		}
		if point == "in commit" {
			fmt.Println("now")
			return nil // the parent kills, some time from here on
		}
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	s.testingOnly = hooks{
		beforeCommit: func() error { return errors.Join(die("before commit"), die("in commit")) },
		afterCommit:  func() error { return die("after commit") },
		published:    func(int, int) { die("published") },
	}
	v := loadVector(t, "large")
	w, err := s.Watermark(testStream)
	if err != nil {
		t.Fatal(err)
	}
	for i := int(w.Applied); i < len(v.Messages); i += size {
		mustAppend(t, s, v.batch(i, i+size))
	}
	fmt.Println("done")
	os.Exit(0)
}

// crashT lets the helpers run outside a test.
type crashT struct{ testing.TB }

func (*crashT) Helper() {}
func (*crashT) Fatal(args ...any) {
	fmt.Println(args...)
	os.Exit(3)
}

// Invariant 8: kill -9 at any instruction loses nothing and repeats nothing.
func TestC12KilledAtAnyPoint(t *testing.T) {
	if testing.Short() {
		t.Skip("runs many processes")
	}
	t.Parallel()
	v := loadVector(t, "large")
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, 2))
			dir := filepath.Join(t.TempDir(), "store")
			for kill := range 8 {
				point := crashPoints[kill%len(crashPoints)]
				killOnce(t, dir, point, 1+rnd.IntN(5), 20+rnd.IntN(100))
				s, err := Open(Config{Dir: dir})
				if err != nil {
					t.Fatalf("open after a kill %s: %v", point, err)
				}
				mustCheck(t, s)
				s.Close()
			}
			s, err := Open(Config{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			w, _ := s.Watermark(testStream)
			// Half of what was applied comes again, as after lost acks.
			for i := int(w.Applied / 2); i < len(v.Messages); i += 200 {
				mustAppend(t, s, v.batch(i, i+200))
			}
			v.verify(t, s)
			mustCheck(t, s)
			s.Close()
		})
	}
}

func killOnce(t *testing.T, dir, point string, after, size int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%s|%d|%d", crashEnv, dir, point, after, size))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		switch lines.Text() {
		case "now":
			cmd.Process.Kill()
		case "done":
		default:
			t.Errorf("writer: %s", lines.Text())
		}
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL) {
		t.Fatalf("writer: %v", err)
	}
}

// Cases C12 and C24: what a crash during creation leaves is completed.
func TestC24CrashDuringCreation(t *testing.T) {
	t.Parallel()
	whole := testConfig(t)
	s := openStore(t, whole)
	id := s.ID()
	s.Close()
	database, err := os.ReadFile(filepath.Join(whole.Dir, DatabaseFile))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		files map[string]string
		sameI bool
	}{
		"empty directory":             {map[string]string{}, false},
		"first write did not happen":  {map[string]string{creatingPrefix + "1": ""}, false},
		"half written":                {map[string]string{creatingPrefix + "1": string(database[:5000])}, false},
		"not linked yet":              {map[string]string{creatingPrefix + "1": string(database)}, false},
		"linked, name not removed":    {map[string]string{creatingPrefix + "1": string(database), DatabaseFile: string(database)}, true},
		"linked, no mark yet":         {map[string]string{DatabaseFile: string(database)}, true},
		"mark written to a temporary": {map[string]string{DatabaseFile: string(database), creatingPrefix + MarkFile: "chai"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range c.files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s := openStore(t, Config{Dir: dir})
			if (s.ID() == id) != c.sameI {
				t.Errorf("store id %s", s.ID())
			}
			give(t, s, testStream, step("c", "a", 1))
			entries, err := fs.ReadDir(os.DirFS(dir), ".")
			if err != nil || len(entries) != 2 {
				t.Errorf("the directory holds %v, %v", entries, err)
			}
		})
	}
}
