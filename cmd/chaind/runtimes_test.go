package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chaind/chaind/internal/daemon"
)

// envNPM asks for the tests that need a registry of npm packages.
const envNPM = "CHAIND_TEST_NPM"

// TestTypeScriptRuntime installs, compiles and runs the example in
// docs/runtimes/typescript against a daemon.
func TestTypeScriptRuntime(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil || os.Getenv(envNPM) == "" {
			t.Skipf("needs node, npm, and %s=1: .ci/run sets it", envNPM)
		}
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "docs", "runtimes", "typescript"))); err != nil {
		t.Fatal(err)
	}
	for _, made := range []string{"node_modules", "dist"} {
		if err := os.RemoveAll(filepath.Join(dir, made)); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(dir, "chaind")
	command(t, root, nil, "go", "build", "-o", binary, "./cmd/chaind")
	command(t, dir, nil, "npm", "ci", "--no-audit", "--no-fund", "--prefer-offline")
	command(t, dir, nil, "npm", "run", "build")
	info := startDaemon(t, daemon.Config{NATS: daemon.NATSConfig{Listen: "127.0.0.1:-1"}, HTTP: daemon.HTTPConfig{Listen: "127.0.0.1:0"}})
	out := command(t, dir, []string{"NATS_URL=" + info.NATSURL, "CHAIND=" + binary}, "node", "dist/run.js")
	head := regexp.MustCompile(`(?m)^head ([0-9a-f]{64})$`).FindStringSubmatch(out)
	if head == nil {
		t.Fatalf("no head: %s", out)
	}
	wantSealed(t, info.HTTPURL, "from-typescript", head[1])
}

func command(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// wantSealed waits until a chain is sealed, and holds it to what a faultless
// run with one failed attempt looks like.
func wantSealed(t *testing.T, base, name, head string) {
	t.Helper()
	type chain struct {
		Outcome, Conformity, Coverage, Head string
		Segments, Rejected                  int
		Sealed                              *struct{ Path string }
	}
	var page struct{ Chains []chain }
	if !until(func() bool {
		res, err := http.Get(base + "/v1/chains?chain=" + name)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(body, &page); err != nil {
			t.Fatal(err)
		}
		return len(page.Chains) == 1 && page.Chains[0].Sealed != nil
	}) {
		t.Fatalf("chain %s was never sealed: %+v", name, page)
	}
	got := page.Chains[0]
	got.Sealed = nil
	if want := (chain{"succeeded", "conforming", "complete", head, got.Segments, 0, nil}); got != want || got.Segments < 5 {
		t.Errorf("chain %+v, want %+v", got, want)
	}
}
