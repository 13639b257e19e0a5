package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/store"
)

// someChains makes a database with as many chains, of one event each.
func someChains(t *testing.T, dir string, from, to int) {
	t.Helper()
	s, err := store.Open(store.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b := &events.Batch{Stream: events.Stream{Name: "S", CreatedNS: 1}}
	for n := from; n < to; n++ {
		key := events.Key{PromptHash: strings.Repeat("0", 64), Session: strings.Repeat("1", 32), Chain: "c" + string(rune('a'+n))}
		b.Events = append(b.Events, events.Decode(events.Message{Subject: key.Subject(events.VerbIntent), StreamSeq: uint64(n + 1), Payload: []byte("{}")}, events.DefaultLimits))
	}
	if _, err := s.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// checked runs a check whose clock gives up after as many looks at it; 0: never.
func checked(t *testing.T, dir, file string, looks int) (report *store.CheckReport, told string, err error) {
	t.Helper()
	s, err := store.OpenReadOnly(store.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	clock := time.Unix(0, 0)
	var stderr strings.Builder
	a := &app{ctx: ctx, stderr: &stderr, now: func() time.Time {
		if looks--; looks == 0 {
			stop()
		}
		clock = clock.Add(time.Minute)
		return clock
	}}
	r, err := a.resume(file)
	if err == nil {
		report, err = r.check(a, s)
	}
	if err == nil {
		err = r.remove()
	}
	return report, stderr.String(), err
}

func TestCheckGoesOn(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "part")
	someChains(t, dir, 0, 9)
	whole, _, err := checked(t, dir, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = checked(t, dir, file, 8)
	if p, ok := errors.AsType[*problem](err); !ok || !strings.Contains(p.hint, "goes on") || !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted: %v", err)
	}
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	report, told, err := checked(t, dir, file, 0)
	if err != nil || told != "" || report.Chains != 9 || report.Values != whole.Values {
		t.Errorf("%+v, and without a break %+v; %q, %v", report, whole, told, err)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is left behind: %v", err)
	}

	// The database has gone on: from the start, and it says so.
	someChains(t, dir, 9, 10)
	if err := os.WriteFile(file, first, 0o600); err != nil {
		t.Fatal(err)
	}
	report, told, err = checked(t, dir, file, 0)
	if err != nil || !strings.Contains(told, "from the start") || report.Chains != 10 {
		t.Errorf("%+v, %q, %v", report, told, err)
	}
}

// TestResumeFromWhatIsNoFile: no pipe is waited for, and what to do is said.
func TestResumeFromWhatIsNoFile(t *testing.T) {
	t.Parallel()
	here := t.TempDir()
	pipe, nowhere, folder := filepath.Join(here, "pipe"), filepath.Join(here, "link"), filepath.Join(here, "folder")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.Symlink(filepath.Join(here, "nothing"), nowhere), os.Mkdir(folder, 0o700)); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string][2]string{
		pipe:                                {"no regular file", "--resume names"},
		folder:                              {"no regular file", "--resume names"},
		nowhere:                             {"a link that leads to nothing", "remove it"},
		filepath.Join(here, "no", "folder"): {"no such file", "--resume names"},
	} {
		ended := make(chan error, 1)
		go func() {
			_, err := (&app{ctx: t.Context()}).resume(file)
			ended <- err
		}()
		select {
		case err := <-ended:
			if p, ok := errors.AsType[*problem](err); !ok || !strings.Contains(err.Error(), want[0]) || !strings.Contains(p.hint, want[1]) {
				t.Errorf("%s: %v, hint %+v", file, err, p)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s is waited for", file)
		}
	}
}
