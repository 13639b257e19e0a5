package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// blocks are the fenced code blocks of a page in one language, under a heading.
func blocks(t *testing.T, page, heading, language string) []string {
	t.Helper()
	_, section, ok := strings.Cut(readHouse(t, page), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("%s has no section %q", page, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var found []string
	for {
		_, rest, ok := strings.Cut(section, "```"+language+"\n")
		if !ok {
			break
		}
		block, after, _ := strings.Cut(rest, "```")
		found = append(found, block)
		section = after
	}
	if len(found) == 0 {
		t.Fatalf("%s, section %q: no %s block", page, heading, language)
	}
	return found
}

// natsCommand stands for the two words of the nats command line that the
// tutorial uses: pub --jetstream.
func natsCommand() {
	if len(os.Args) != 5 || os.Args[1] != "pub" || os.Args[2] != "--jetstream" {
		fmt.Fprintln(os.Stderr, "usage: nats pub --jetstream subject body")
		os.Exit(1)
	}
	if err := natsPublish(os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func natsPublish(subject, body string) error {
	conn, err := nats.Connect(os.Getenv("NATS_URL"))
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	ack, err := js.Conn().Request(subject, []byte(body), nats.DefaultTimeout)
	if err != nil {
		return err
	}
	if !strings.Contains(string(ack.Data), `"stream"`) {
		return fmt.Errorf("not stored: %s", ack.Data)
	}
	return nil
}

// writeTutorial lays what the tutorial tells its reader to type into dir: the Go
// program, built, and the shell lines.
func writeTutorial(t *testing.T, dir string) {
	t.Helper()
	program := strings.ReplaceAll(blocks(t, "docs/tutorial.md", "From a Go program", "go")[0], `"nats://127.0.0.1:4222"`, `os.Getenv("NATS_URL")`)
	program = strings.Replace(program, "\"log\"\n", "\"log\"\n\t\"os\"\n", 1)
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	house, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(house, "mine", "main.go"): source}})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-overlay", overlayFile, "-o", filepath.Join(dir, "mine"), "./mine")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the tutorial's program: %v\n%s", err, out)
	}
	shell := "set -e\n" + strings.Join(blocks(t, "docs/tutorial.md", "From the shell, or any language", "sh"), "\n")
	shell = strings.ReplaceAll(shell, "./chaind ", "chaind ")
	if err := os.WriteFile(filepath.Join(dir, "shell.sh"), []byte(shell), 0o644); err != nil {
		t.Fatal(err)
	}
}
