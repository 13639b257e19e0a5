// Command generate compiles package verifier for the browser, as
// verifier.wasm.gz and wasm_exec.js in the directory web. It is run by go
// generate ./web. The same source and the same Go give the same bytes in
// whatever directory and with whatever settings of Go, so that anybody can
// compile the published file again.
//
// One file of Go's own is left out: the loop at the heart of crypto/sha256, in
// whose place that of web/sha256 is compiled, because Go's takes three times the
// time. Nothing else of the standard library is another.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run() error {
	temp, err := os.MkdirTemp("", "chaind-wasm-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("find go: %w", err)
	}
	goroot := string(bytes.TrimSpace(root))
	module, err := compile(temp, goroot)
	if err != nil {
		return fmt.Errorf("compile verifier: %w", err)
	}
	packed, err := pack(module)
	if err != nil {
		return err
	}
	if err := os.WriteFile("verifier.wasm.gz", packed, 0o644); err != nil {
		return err
	}
	glue, err := os.ReadFile(filepath.Join(goroot, "lib", "wasm", "wasm_exec.js"))
	if err != nil {
		return fmt.Errorf("read glue code of %s: %w", runtime.Version(), err)
	}
	return os.WriteFile("wasm_exec.js", glue, 0o644)
}

// compile gives the WebAssembly module.
func compile(temp, goroot string) ([]byte, error) {
	overlay, err := replaceLoop(temp, goroot)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(temp, "verifier.wasm")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-overlay", overlay, "-ldflags=-s -w -buildid=", "-o", path, "./wasm")
	if build.Env, err = environment(); err != nil {
		return nil, err
	}
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	return os.ReadFile(path)
}

// where are the settings that say where Go finds and keeps things, and nothing
// about what it compiles.
var where = []string{"GOROOT", "GOTOOLCHAIN", "GOPATH", "GOCACHE", "GOMODCACHE", "GOTMPDIR", "GOPROXY", "GOSUMDB", "GONOPROXY", "GONOSUMDB", "GOPRIVATE"}

// environment is the caller's, but that of the settings of Go, in it or in Go's own
// file of them, none changes the result: experiments, features of the processor,
// FIPS 140, flags, a workspace.
func environment() ([]string, error) {
	out, err := exec.Command("go", append([]string{"env", "-json"}, where...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("ask go for its settings: %w", err)
	}
	var settings map[string]string
	if err := json.Unmarshal(out, &settings); err != nil {
		return nil, fmt.Errorf("read settings of go: %w", err)
	}
	env := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "GO") || strings.HasPrefix(s, "CGO_") })
	for _, name := range where {
		env = append(env, name+"="+settings[name])
	}
	return append(env, "GOENV=off", "GOWORK=off", "GO111MODULE=on", "GOOS=js", "GOARCH=wasm", "GOWASM=", "GOEXPERIMENT=", "GOFIPS140=off",
		"GODEBUG=", "GOFLAGS=-mod=readonly", "CGO_ENABLED=0"), nil
}

// replaceLoop writes what tells go build that the files of package sha256 stand
// where Go keeps the loop of SHA-256 for processors without one of their own.
func replaceLoop(temp, goroot string) (string, error) {
	standard := filepath.Join(goroot, "src", "crypto", "internal", "fips140", "sha256")
	declaration, code := filepath.Join(standard, "sha256block_noasm.go"), filepath.Join(standard, "sha256block_wasm.s")
	if _, err := os.Stat(declaration); err != nil {
		return "", fmt.Errorf("this Go keeps SHA-256 elsewhere: %w", err)
	}
	if _, err := os.Stat(code); err == nil {
		return "", errors.New("this Go has a loop of SHA-256 for WebAssembly: ours is of no use any more")
	}
	ours, err := filepath.Abs("sha256")
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{
		declaration: filepath.Join(ours, "block_wasm.go"),
		code:        filepath.Join(ours, "block_wasm.s"),
	}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(temp, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}

// pack compresses without name and time, which would differ each time.
func pack(module []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(module); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
