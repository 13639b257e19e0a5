package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/chaind/chaind/internal/daemon"
	"github.com/chaind/chaind/keys/openssh"
	"github.com/chaind/chaind/verifier"
)

// Exit codes of the program.
const (
	exitOK       = 0
	exitCannot   = 1 // could not run
	exitSemantic = 2
	exitDegraded = 3
	exitEnvelope = 4
	exitPolicy   = 5
	exitUsage    = 64
)

// app is what every command is given: the streams, the clock, the context.
type app struct {
	ctx       context.Context
	stdin     io.Reader
	stdout    io.Writer
	stderr    io.Writer
	now       func() time.Time
	parsed    *kong.Context   // the parsed command line, for `chaind config`
	file      daemon.Settings // the configuration file, where one is named
	logLevel  slog.LevelVar   // of the daemon's log
	fileFault error           // why it could not be read
	warned    map[string]bool // warnings that were given
}

// warn tells of something that the command does all the same, once.
func (a *app) warn(text string) {
	if a.warned[text] {
		return
	}
	if a.warned == nil {
		a.warned = map[string]bool{}
	}
	a.warned[text] = true
	fmt.Fprintf(a.stderr, "chaind: warning: %s\n", verifier.Escape(text))
}

// problem is an error that knows its exit code and what the user can do.
type problem struct {
	code int
	err  error
	hint string
}

func (p *problem) Error() string { return p.err.Error() }
func (p *problem) Unwrap() error { return p.err }

func usageError(format string, args ...any) error {
	return &problem{code: exitUsage, err: fmt.Errorf(format, args...)}
}

func cannot(err error, hint string) error {
	return &problem{code: exitCannot, err: err, hint: hint}
}

// silent ends the program with a code whose reason was already printed as the
// command's result.
type silent int

func (s silent) Error() string { return fmt.Sprintf("exit %d", int(s)) }

// run is the whole program with its world handed in.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{ctx: ctx, stdin: &breakable{ctx: ctx, in: stdin}, stdout: stdout, stderr: stderr, now: time.Now}
	var c cli
	parsed, code, err := parse(&c, a, args)
	if parsed == nil {
		return a.report(code, err)
	}
	a.parsed = parsed
	return a.report(exitOK, parsed.Run(a))
}

// report prints an error with its hint, and gives the exit code.
func (a *app) report(code int, err error) int {
	var quiet silent
	var p *problem
	switch {
	case err == nil:
		return code
	case errors.As(err, &quiet):
		return int(quiet)
	case errors.As(err, &p):
		code = p.code
	case code == exitOK:
		code = exitCannot
	}
	fmt.Fprintf(a.stderr, "chaind: error: %s\n", verifier.Escape(err.Error()))
	if hint := hintFor(p, code); hint != "" {
		fmt.Fprintf(a.stderr, "chaind: hint: %s\n", verifier.Escape(hint))
	}
	return code
}

func hintFor(p *problem, code int) string {
	if p != nil && p.hint != "" {
		return p.hint
	}
	if code == exitUsage {
		return "chaind --help lists the commands, chaind COMMAND --help their flags"
	}
	return ""
}

// printJSON writes one result as indented JSON in which nothing can act on a
// terminal; this is output only, nothing here is hashed.
func (a *app) printJSON(v any) error {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := a.stdout.Write(inert(out.Bytes()))
	return err
}

// inert spells what is not printable as \u escapes. In JSON such characters
// stand in strings alone, line feeds between values apart.
func inert(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		if r == '\n' || r == ' ' || unicode.IsPrint(r) {
			out = utf8.AppendRune(out, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
	}
	return out
}

// printf writes to standard output; a reader that went away is an error.
func (a *app) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(a.stdout, format, args...)
	return err
}

// isTerminal tells whether w is a terminal that may be coloured and animated.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// askPassphrase gives a function that asks at the terminal, once: a later
// reload of the key finds the answer of the start. nil: there is no terminal.
func (a *app) askPassphrase() openssh.Passphrase {
	f, ok := a.stdinFile()
	if !ok || !isTerminal(a.stderr) {
		return nil
	}
	return sync.OnceValues(func() ([]byte, error) {
		fmt.Fprint(a.stderr, "passphrase of the signing key: ")
		defer fmt.Fprintln(a.stderr)
		return term.ReadPassword(int(f.Fd()))
	})
}

// stdinFile is standard input where it is a terminal.
func (a *app) stdinFile() (*os.File, bool) {
	in := a.stdin
	if b, ok := in.(*breakable); ok {
		in = b.in
	}
	f, ok := in.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

// colours tells whether text for w may carry colour (https://no-color.org).
func colours(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == ""
}
