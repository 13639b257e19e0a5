// Command generate compiles package verifier for the browser, as
// verifier.wasm.gz and wasm_exec.js in the directory web. It is run by go
// generate ./web. The same source and the same Go give the same bytes in
// whatever directory, so that anybody can compile the published file again.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
	path := filepath.Join(temp, "verifier.wasm")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", path, "./wasm")
	// GOFLAGS and GOWASM of the caller must not change the result.
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "GOWASM=", "GOFLAGS=-mod=readonly")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("compile verifier: %w\n%s", err, out)
	}
	module, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	packed, err := pack(module)
	if err != nil {
		return err
	}
	if err := os.WriteFile("verifier.wasm.gz", packed, 0o644); err != nil {
		return err
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("find go: %w", err)
	}
	glue, err := os.ReadFile(filepath.Join(string(bytes.TrimSpace(root)), "lib", "wasm", "wasm_exec.js"))
	if err != nil {
		return fmt.Errorf("read glue code of %s: %w", runtime.Version(), err)
	}
	return os.WriteFile("wasm_exec.js", glue, 0o644)
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
