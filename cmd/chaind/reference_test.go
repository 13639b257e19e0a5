package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// current compares a page with what the code says, or writes it.
func current(t *testing.T, page, want string) {
	t.Helper()
	path := filepath.Join(root, page)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := readHouse(t, page); got != want {
		t.Errorf("%s is not what the code says; go test ./cmd/chaind -run Reference -update writes it anew", page)
	}
}

const madeByTest = "<!-- Made from the code by `go test ./cmd/chaind -run Reference -update`; do not edit. -->\n\n"

// model is the command line as kong knows it.
func model(t *testing.T) *kong.Application {
	t.Helper()
	parser, err := kong.New(&cli{}, kong.Name("chaind"), kong.Bind(&app{}))
	if err != nil {
		t.Fatal(err)
	}
	return parser.Model
}

// TestReferenceOfCommands makes docs/reference/cli.md from the command line's
// own model: every command with its arguments, flags and help.
func TestReferenceOfCommands(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	page.WriteString(madeByTest + "# Command line\n\n" +
		"`chaind COMMAND --help` prints the same. Results go to standard output, everything else to standard error.\n\n" +
		"Exit codes: 0 pass; 2 semantic failure; 3 degraded, nothing failed; 4 envelope broken; 5 policy; 64 usage; 1 could not run.\n\n")
	commands := model(t).Leaves(true)
	for _, c := range commands {
		fmt.Fprintf(&page, "* [`%s`](#%s) %s\n", c.Path(), strings.ReplaceAll(c.FullPath(), " ", "-"), c.Help)
	}
	for _, c := range commands {
		fmt.Fprintf(&page, "\n## %s\n\n```\n%s\n```\n\n%s\n", c.FullPath(), summary(c), c.Help)
		if c.Detail != "" {
			fmt.Fprintf(&page, "\n```text\n%s\n```\n", c.Detail)
		}
		page.WriteString(argumentTable(c))
		if c.Name == "serve" || c.Name == "config" {
			page.WriteString("\nFlags: [settings.md](settings.md).\n")
			continue
		}
		page.WriteString(flagTable(c.Flags))
	}
	current(t, "docs/reference/cli.md", page.String())
}

func summary(c *kong.Node) string {
	words := c.FullPath()
	for _, p := range c.Positional {
		words += " " + p.Summary()
	}
	return words + " [flags]"
}

func argumentTable(c *kong.Node) string {
	if len(c.Positional) == 0 {
		return ""
	}
	table := "\n| argument | meaning |\n| --- | --- |\n"
	for _, p := range c.Positional {
		table += fmt.Sprintf("| `%s` | %s |\n", p.Summary(), cell(p.Help))
	}
	return table
}

func flagTable(flags []*kong.Flag) string {
	table := "\n| flag | variable | default | meaning |\n| --- | --- | --- | --- |\n"
	n := 0
	for _, f := range flags {
		if f.Hidden || f.Name == "help" {
			continue
		}
		n++
		table += fmt.Sprintf("| `%s` | %s | %s | %s |\n", spelled(f), code(strings.Join(f.Envs, " ")), code(f.Default), cell(f.Help))
	}
	if n == 0 {
		return ""
	}
	return table
}

func spelled(f *kong.Flag) string {
	name := "--" + f.Name
	if f.Short != 0 {
		name = "-" + string(f.Short) + ", " + name
	}
	if !f.IsBool() {
		name += "=" + f.FormatPlaceHolder()
	}
	return strings.ReplaceAll(name, "|", "\\|")
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

// TestReferenceOfSettings makes docs/reference/settings.md: every setting with
// its key in the file, its flag and its variable.
func TestReferenceOfSettings(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	page.WriteString(madeByTest + `# Settings of the daemon

For ` + "`chaind serve`" + `; ` + "`chaind config`" + ` takes the same, and prints what holds and where it comes from. A flag goes before a variable, a variable
before the file (` + "`--config`" + `), the file before the default. Nested keys of the file are joined with a dash: ` + "`nats: {url: …}`" + ` sets
` + "`nats-url`" + `. What is unknown, has a wrong unit or contradicts another setting is refused with file and line. A commented sample is
[` + "`configs/chaind.yaml`" + `](../../configs/chaind.yaml). Durations have a unit (` + "`3ms`" + `); lists are YAML lists, or comma-separated.

Relative paths, also those of the file, start at the directory in which the program was started (under systemd: ` + "`/var/lib/chaind`" + `), not at that of the file.

SIGHUP reads the files of ` + "`signing-key`, `trust-file`, `http-tokens`, `http-cert` and `http-client-ca`" + ` again, and ` + "`log-level`" + ` from the configuration file. Everything else needs a restart.

| key and flag | variable | default | meaning |
| --- | --- | --- | --- |
`)
	serve := model(t).Children[slices.IndexFunc(model(t).Children, func(n *kong.Node) bool { return n.Name == "serve" })]
	for _, f := range serve.Flags {
		if f.Hidden || f.Name == "help" {
			continue
		}
		name := f.Name
		for _, alias := range f.Aliases {
			name += ", --" + alias
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n", name, code(strings.Join(f.Envs, " ")), code(f.Default), cell(f.Help))
	}
	fmt.Fprintf(&page, `
Variables without a flag, of Plasm:

| variable | meaning |
| --- | --- |
| `+"`%s`"+` | signing key: the 32-byte seed in hex |
| `+"`%s`"+` | trusted public keys, comma-separated hex; adds to `+"`trusted-pubkey` and `trust-file`"+` |
| `+"`%s`"+` | 0 turns the intake off; unset means on, unlike in Plasm |
`, envSigningKey, envTrustedKeys, envIntake)
	current(t, "docs/reference/settings.md", page.String())
}

// TestEveryVariableIsInAReference compares the variables that the source reads
// with those that the reference pages name.
func TestEveryVariableIsInAReference(t *testing.T) {
	t.Parallel()
	variable := regexp.MustCompile(`\b(?:CHAIND|PLASM)_[A-Z0-9_]+\b`)
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]bool{}
	for _, file := range sources {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range variable.FindAllString(string(text), -1) {
			read[name] = true
		}
	}
	told := map[string]bool{}
	for _, page := range []string{"docs/reference/settings.md", "docs/reference/cli.md"} {
		for _, name := range variable.FindAllString(readHouse(t, page), -1) {
			told[name] = true
		}
	}
	for name := range read {
		if !told[name] {
			t.Errorf("%s is read and in no reference page", name)
		}
	}
	for name := range told {
		if !read[name] {
			t.Errorf("%s is in a reference page and nobody reads it", name)
		}
	}
	if len(read) < 25 {
		t.Errorf("only %d variables", len(read))
	}
}
