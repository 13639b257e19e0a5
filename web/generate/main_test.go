package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestHashesInNode runs the tests of Go's SHA-256 and HMAC, and those of package
// sha256, compiled for WebAssembly with its loop in the place of Go's. Nothing else runs
// the loop by itself.
func TestHashesInNode(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles Go's tests for WebAssembly")
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed: the loop of SHA-256 is not run as WebAssembly")
	}
	t.Chdir("..")
	env, err := environment()
	if err != nil {
		t.Fatal(err)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	goroot := strings.TrimSpace(string(root))
	overlay, err := replaceLoop(t.TempDir(), goroot)
	if err != nil {
		t.Fatal(err)
	}
	test := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay, "-exec", filepath.Join(goroot, "lib", "wasm", "go_js_wasm_exec"),
		"-v", "crypto/sha256", "crypto/hmac", "./sha256")
	test.Env = env
	out, err := test.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"TestGolden", "TestHMAC", "TestPiecesAndStates", "TestEveryLength", "TestEveryBit"} {
		if !strings.Contains(string(out), "--- PASS: "+name) {
			t.Errorf("%s did not run:\n%s", name, out)
		}
	}
}

// TestSettingsOfGoChangeNothing: what a caller set for other builds does not reach
// the compiler, what says where things are does.
func TestSettingsOfGoChangeNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(file, []byte("GOEXPERIMENT=nojsonv2\nGOPRIVATE=example.org\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"GOENV": file, "GOFIPS140": "v1.0.0", "GOWASM": "satconv", "GOFLAGS": "-race", "GODEBUG": "x=1", "CGO_ENABLED": "1"} {
		t.Setenv(name, value)
	}
	env, err := environment()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"GOENV=off", "GOEXPERIMENT=", "GOFIPS140=off", "GOWASM=", "GOFLAGS=-mod=readonly", "GOPRIVATE=example.org"} {
		name, _, _ := strings.Cut(want, "=")
		found := slices.DeleteFunc(slices.Clone(env), func(s string) bool { return !strings.HasPrefix(s, name+"=") })
		if !slices.Equal(found, []string{want}) {
			t.Errorf("the compiler gets %q, want %s", found, want)
		}
	}
}
