package sealer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chaind/chaind/internal/durable"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
	"go.uber.org/goleak"
)

// TestMain runs as the sealer that gets killed when the environment says so.
func TestMain(m *testing.M) {
	if dir := os.Getenv("SEALER_TEST_DIR"); dir != "" {
		if err := sealAndDie(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// steps counts the steps of sealing and does something around one of them.
type steps struct {
	mu    sync.Mutex
	count int
	at    func(n int, do func() error) error
}

func (s *steps) step(do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.count
	s.count++
	return s.at(n, do)
}

// stepStore and stepBlobs make every change to store and blobs a step.
type stepStore struct {
	*store.Store
	steps *steps
}

func (s *stepStore) FinishSeal(ctx context.Context, job *store.SealJob, r store.SealResult) error {
	return s.steps.step(func() error { return s.Store.FinishSeal(ctx, job, r) })
}

type stepBlobs struct {
	sidecar.Blobs
	steps *steps
}

func (b *stepBlobs) Put(ctx context.Context, name string, body sidecar.Body) error {
	return b.steps.step(func() error { return b.Blobs.Put(ctx, name, body) })
}

func (b *stepBlobs) PutOnce(ctx context.Context, name string, body sidecar.Body) error {
	return b.steps.step(func() error { return b.Blobs.PutOnce(ctx, name, body) })
}

// sealAndDie works off the jobs in dir and kills its own process before or
// after the step that the environment names: a system call on files, or the end of a
// job in the store.
func sealAndDie(dir string) error {
	at, _ := strconv.Atoi(os.Getenv("SEALER_TEST_STEP"))
	die := func(n int, when string) {
		if n == at && os.Getenv("SEALER_TEST_WHEN") == when {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	st := &steps{at: func(n int, do func() error) error {
		die(n, "before")
		err := do()
		die(n, "after")
		return err
	}}
	db, err := store.Open(store.Config{Dir: filepath.Join(dir, "db")})
	if err != nil {
		return err
	}
	defer db.Close()
	tree, err := durable.Create(filepath.Join(dir, "artifacts"))
	if err != nil {
		return err
	}
	tree.TestingOnlyAround(func(_, _ string, do func() error) error { return st.step(do) })
	files, err := sidecar.OpenDirIn(tree, filepath.Join(dir, "artifacts"))
	if err != nil {
		return err
	}
	defer files.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	sidecars, err := sidecar.Open(ctx, sidecar.Config{Blobs: files, Now: fixedNow})
	if err != nil {
		return err
	}
	cfg := Config{Store: &stepStore{db, st}, Sidecars: sidecars, Workers: 1, SkipAudit: true}
	cfg.OnSealed = func(Sealed) {
		if jobs, err := db.SealJobs(0, 1); err == nil && len(jobs) == 0 {
			cancel()
		}
	}
	if jobs, err := db.SealJobs(0, 1); err != nil || len(jobs) == 0 {
		return err
	}
	err = New(cfg).Run(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ctx.Err()
	}
	return err
}

// TestF09KilledAroundAnyStep is case F09: the sealer is killed around steps of its work; the next
// start, without new events, completes what is missing.
func TestF09KilledAroundAnyStep(t *testing.T) {
	t.Parallel()
	list := loadEvents(t, "small")
	clean := filepath.Join(t.TempDir(), "clean")
	fed := t.TempDir()
	db, err := store.Open(store.Config{Dir: filepath.Join(fed, "db")})
	if err != nil {
		t.Fatal(err)
	}
	feed(t, db, list, 1000)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	prepare := func(dir string) {
		if err := os.CopyFS(dir, os.DirFS(fed)); err != nil {
			t.Fatal(err)
		}
	}
	prepare(clean)
	if survived := sealProcess(t, clean, -1, ""); !survived {
		t.Fatal("killed for no reason")
	}
	want := readTree(t, filepath.Join(clean, "artifacts"))
	stride := 131
	if testing.Short() {
		stride = 331
	}
	n := 0
	for survived := false; !survived; n += stride {
		for _, when := range []string{"before", "after"} {
			dir := t.TempDir()
			prepare(dir)
			survived = sealProcess(t, dir, n, when)
			if !sealProcess(t, dir, -1, "") {
				t.Fatalf("start after the kill %s step %d fails", when, n)
			}
			if diff := cmp.Diff(want, readTree(t, filepath.Join(dir, "artifacts"))); diff != "" {
				t.Fatalf("killed %s step %d (-clean +got):\n%s", when, n, diff)
			}
		}
	}
	if n < 300 {
		t.Errorf("only %d steps were met", n)
	}
}

func sealProcess(t *testing.T, dir string, step int, when string) (survived bool) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "SEALER_TEST_DIR="+dir, "SEALER_TEST_STEP="+strconv.Itoa(step), "SEALER_TEST_WHEN="+when)
	out, err := cmd.CombinedOutput()
	if err != nil && !strings.Contains(err.Error(), "killed") {
		t.Fatalf("sealer: %v: %s", err, out)
	}
	return err == nil
}

// readTree returns the blobs of a directory but for our own lock.
func readTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	d, err := sidecar.OpenDirReadOnly(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if leftovers, err := filepath.Glob(filepath.Join(dir, ".chaind-tmp", "*")); err != nil || len(leftovers) > 0 {
		t.Errorf("left behind: %v, %v", leftovers, err)
	}
	return dump(t, d)
}

// TestFaults makes each step fail, with and without effect, and expects the
// retry to leave what a run without faults leaves.
func TestFaults(t *testing.T) {
	t.Parallel()
	list := loadEvents(t, "small")
	run := func(n int, persist bool) (map[string]string, int) {
		m := sidecar.NewMemory()
		db := openStore(t, t.TempDir())
		defer db.Close()
		feed(t, db, list, 1000)
		st := &steps{at: func(at int, do func() error) error {
			if at != n {
				return do()
			}
			if persist {
				do()
			}
			return errInjected
		}}
		clock := &fakeClock{now: fixedNow()}
		sealAll(t, Config{Store: &stepStore{db, st}, Sidecars: openSidecars(t, &stepBlobs{m, st}), Workers: 1,
			SkipAudit: true, Now: clock.Now, After: clock.After})
		return dump(t, m), st.count
	}
	want, count := run(-1, false)
	stride := 4
	if testing.Short() {
		stride = 20
	}
	for n := 0; n < count; n += stride {
		for _, persist := range []bool{false, true} {
			got, _ := run(n, persist)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("step %d failed, persisted %v (-clean +got):\n%s", n, persist, diff)
			}
		}
	}
}

// TestIntakeGoesOn: while the back end hangs, events are appended.
func TestIntakeGoesOn(t *testing.T) {
	t.Parallel()
	list := loadEvents(t, "small")
	db := openStore(t, t.TempDir())
	feed(t, db, list[:len(list)/2], 50)
	if jobs, err := db.SealJobs(0, 1); err != nil || len(jobs) == 0 {
		t.Fatal("nothing to seal in the first half", err)
	}
	hanging := make(chan struct{})
	var once sync.Once
	b := &blobs{Blobs: sidecar.NewMemory(), hook: func(ctx context.Context, _, _ string) error {
		once.Do(func() { close(hanging) })
		<-ctx.Done()
		return ctx.Err()
	}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- New(Config{Store: db, Sidecars: openSidecars(t, b), SkipAudit: true}).Run(ctx) }()
	select {
	case <-hanging:
	case <-time.After(20 * time.Second):
		t.Fatal("no job was begun")
	}
	appended := make(chan struct{})
	go func() {
		defer close(appended)
		feed(t, db, list[len(list)/2:], 50)
	}()
	select {
	case <-appended:
	case <-time.After(20 * time.Second):
		t.Error("the back end holds up the intake")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	// When the back end is well again, everything is sealed as if nothing had been.
	m := sidecar.NewMemory()
	sealAll(t, Config{Store: db, Sidecars: openSidecars(t, m), SkipAudit: true})
	for _, v := range loadVectors(t, "small") {
		if v.Sidecar != nil && content(t, m, *v.Sidecar) == "" {
			t.Errorf("%s is missing", *v.Sidecar)
		}
	}
}
