package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chaind/chaind/export"
)

// within runs a command that must end by itself, and gives exit code and output.
func within(t *testing.T, args ...string) (int, string) {
	t.Helper()
	type result struct {
		code int
		out  string
	}
	done := make(chan result, 1)
	go func() {
		var out bytes.Buffer
		code := run(t.Context(), args, strings.NewReader(""), &out, &out)
		done <- result{code, out.String()}
	}()
	select {
	case r := <-done:
		return r.code, r.out
	case <-time.After(time.Minute):
		t.Fatalf("chaind %q goes on for ever", args)
		return 0, ""
	}
}

// handover is an unsigned export of a demo run, with its one chain's directory.
func handover(t *testing.T) (dir, chain string) {
	t.Helper()
	dir = t.TempDir()
	data := filepath.Join(dir, "data")
	if code, out := within(t, "demo", "--out", data); code != exitOK {
		t.Fatal(out)
	}
	if code, out := within(t, "export", "--all", "--data-dir", data, "-o", filepath.Join(dir, "handover")); code != exitOK {
		t.Fatal(out)
	}
	chains, err := filepath.Glob(filepath.Join(dir, "handover", "chains", "*"))
	if err != nil || len(chains) != 1 {
		t.Fatalf("%v %v", chains, err)
	}
	return filepath.Join(dir, "handover"), chains[0]
}

// TestFoldersWithSpecialFiles: nothing in a folder makes verify wait.
func TestFoldersWithSpecialFiles(t *testing.T) {
	dir, chain := handover(t)
	bundle := filepath.Join(chain, "bundle.tsb")
	for name, c := range map[string]struct {
		path, says string
	}{
		"listed": {filepath.Join(dir, "index.html"), "export_unreached: index.html: it is a link or another special file"},
		"bundle": {bundle, "export_unreached: chains/" + filepath.Base(chain) + "/bundle.tsb: it is a link"},
		"extra":  {filepath.Join(dir, "more"), "export_extra: more: there, and not listed"}, "manifest": {filepath.Join(dir, "manifest.json"), "export_manifest: manifest.json: the manifest cannot be read: it is a link"},
	} {
		aside := filepath.Join(t.TempDir(), "aside")
		moved := os.Rename(c.path, aside) == nil
		for kind, place := range map[string]func(path string) error{
			"pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) }, "link": func(path string) error { return os.Symlink("keys.json", path) },
			"device": func(path string) error { return os.Symlink("/dev/zero", path) }, "socket": listen,
		} {
			if err := place(c.path); err != nil {
				t.Logf("%s: %v", kind, err)
				continue
			}
			if code, out := within(t, "verify", dir); code != exitEnvelope || !strings.Contains(out, c.says) {
				t.Errorf("%s is a %s: exit %d\n%s", name, kind, code, out)
			}
			if err := os.Remove(c.path); err != nil {
				t.Fatal(err)
			}
		}
		if moved {
			if err := os.Rename(aside, c.path); err != nil {
				t.Fatal(err)
			}
		}
	}
	wordsOfTheManifest(t, dir)
}

// listen leaves a socket of that name. The name of a socket may be longer than
// the system takes: it is made elsewhere.
func listen(path string) error {
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	at := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: at, Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	defer l.Close()
	return os.Rename(at, path)
}

// wordsOfTheManifest are compared with what the trust bundle shows.
func wordsOfTheManifest(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, export.ManifestFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for old, changed := range map[string]string{
		`"outcome":"succeeded"`: `"outcome":"failed\u001b"`, `"conformity":"conforming"`: `"conformity":"unplanned"`, `,"chain":"`: `,"chain":"x`, `"segments":`: `"segments":1`,
	} {
		if !bytes.Contains(text, []byte(old)) {
			t.Fatalf("the manifest has no %s", old)
		}
		if err := os.WriteFile(path, bytes.Replace(text, []byte(old), []byte(changed), 1), 0o644); err != nil {
			t.Fatal(err)
		}
		if code, out := within(t, "verify", dir); code != exitEnvelope || !strings.Contains(out, "error export_differs: chains/") || strings.Contains(out, "\x1b") {
			t.Errorf("%s: exit %d\n%s", changed, code, out)
		}
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if code, out := within(t, "verify", dir); code != exitOK {
		t.Errorf("as it was: exit %d\n%s", code, out)
	}
}

// TestOpeningAFolderDoesNotWait: a file may become a pipe after it was looked at.
func TestOpeningAFolderDoesNotWait(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	folder, closeIt, err := openExport(dir)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		f, err := folder.Open("pipe")
		if err == nil {
			err = f.Close()
		}
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("opening a pipe waits for its other end")
	}
	if err := closeIt(); err != nil {
		t.Error(err)
	}
	if _, err := folder.Open("../" + filepath.Base(dir)); err == nil {
		t.Error("a path leads out of the folder")
	}
}

// TestTooManyFilesToExport: it is said before anything is written.
func TestTooManyFilesToExport(t *testing.T) {
	t.Parallel()
	type chain map[string]any
	var chains []chain
	for i := range (export.MaxFiles-filesBeside)/5 + 1 {
		chains = append(chains, chain{"url": fmt.Sprint("/v1/c/", i), "outcome": "succeeded", "segments": 1, "late": 1, "rejected": 1, "sealed": chain{"path": "p", "bundle_path": "b"}})
	}
	fits := chains[:len(chains)-1]
	for name, list := range map[string][]chain{"too many": chains, "as many as fit": fits} {
		page, err := json.Marshal(map[string]any{"chains": list, "next": nil})
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/chains" {
				w.Write(page)
				return
			}
			asked++
			if entries, _ := os.ReadDir(dir); len(entries) == 0 {
				t.Errorf("%s: %s is asked for before the output is open", name, r.URL.Path)
			}
			http.NotFound(w, r)
		}))
		code, out := within(t, "export", "--all", "--url", server.URL, "-o", filepath.Join(dir, "x.zip"))
		server.Close()
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) > 0 || code != exitCannot {
			t.Errorf("%s: exit %d, left are %v, %v", name, code, entries, err)
		}
		if refused := strings.Contains(out, "and an export has at most 100000"); refused != (name == "too many") || refused != (asked == 0) {
			t.Errorf("%s: %d requests, %s", name, asked, out)
		}
	}
}

// Files beside the one that is verified may be pipes, too.
func TestPipesBesideDoNotOutliveASignal(t *testing.T) {
	t.Parallel()
	pipe := pipeWithoutWriter(t)
	for _, args := range [][]string{
		{"verify", "--trust-file", pipe, "x"}, {"verify", "--run-id", "x", "--artifact", pipe, "x"}, {"explain", "--trust-file", pipe, "x"},
		{"runs", "--url", "http://127.0.0.1:1", "--token-file", pipe}, {"runs", "--url", "http://127.0.0.1:1", "--ca", pipe},
	} {
		endsWithASignal(t, args, strings.NewReader(""))
	}
}
