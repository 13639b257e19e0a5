// Package web holds the pages for people: the console, and a page that
// verifies files in the browser with the same Go code as the command line.
//
// Each page is one HTML file that loads nothing: styles and scripts stand in
// it, and its content security policy names them by digest, allows no others,
// and forbids requests to anybody (the console's allows its own server). The
// verify page carries the verifier as well, so that it works from a disk
// without a server or a network.
//
// # Parts
//
//	assets/*.html      the pages, with a line {{name}} where a part goes
//	assets/*.css *.js  styles and scripts, plain, joined in the order of page.go
//	wasm               the verifier's command for the browser
//	sha256             the inner loop of its SHA-256 in assembly, which Go lacks
//	verifier.wasm.gz   its compiled form, made by go generate, reproducible
//	wasm_exec.js       Go's own glue code for it, of the same Go (BSD licence)
//
// After a change to the verifier, or to anything it imports, run
//
//	go generate ./web
//
// The compiled form is kept in the repository so that a clone needs no second
// compilation; continuous integration compiles it again and compares the bytes.
//
// # Text of files
//
// Pages put text from files and events into the document as text only, never
// as markup, and cut to a bounded length. Characters that are invisible or act
// on a line are written as an escape, those that verifier.Escape names; letters
// that are written from right to left stand isolated, so that nothing beside them
// changes its place. Combining marks are shown as they are.
package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"strings"
)

//go:generate go run ./generate

//go:embed assets verifier.wasm.gz wasm_exec.js
var files embed.FS

// Page is a whole page.
type Page struct {
	HTML []byte
	// Policy is the page's content security policy. It is in the page, too,
	// less what only a header may say.
	Policy string
}

// Verify is the page that verifies files. It works from any place, a disk
// included, and connects to nothing.
func Verify() Page {
	return page{
		markup: "verify.html",
		styles: []string{"base.css", "report.css", "verify.css"},
		code:   []string{"dom.js", "engine.js", "report.js", "verify.js"},
		extra: map[string]string{
			"worker": worker(),
			"engine": base64.StdEncoding.EncodeToString(Engine()),
		},
		policy: "script-src %s 'wasm-unsafe-eval'; worker-src blob:; img-src data:",
	}.join()
}

// Console is the page over the read API of the server that sent it. It loads
// the verifier from EnginePath when it is asked to verify.
func Console() Page {
	return page{
		markup: "console.html",
		styles: []string{"base.css", "report.css", "console.css"},
		code: []string{"dom.js", "engine.js", "report.js", "api.js", "plot.js", "rows.js", "timeline.js", "runs.js", "chain.js",
			"activity.js", "console.js"},
		extra:  map[string]string{"worker": worker(), "reader": concat([]string{"api.js", "order.js", "reader.js"})},
		policy: "script-src %s 'wasm-unsafe-eval'; worker-src blob:; img-src data:; connect-src 'self'",
	}.join()
}

// EnginePath is where the console asks its server for [Engine].
const EnginePath = "/verifier.wasm.gz"

// Engine is the verifier, compiled to WebAssembly, as a gzip file.
func Engine() []byte { return read("verifier.wasm.gz") }

// worker is the script that runs the verifier beside a page.
func worker() string { return string(read("wasm_exec.js")) + "\n" + string(read("assets/worker.js")) }

// page says what a page is joined from.
type page struct {
	markup string
	styles []string
	code   []string
	extra  map[string]string // data blocks by name
	policy string            // beside the default; %s stands for the script's digest
}

// join puts the parts into the markup.
func (p page) join() Page {
	style, script := concat(p.styles), concat(p.code)
	policy := "default-src 'none'; style-src " + digest(style) + "; " + strings.Replace(p.policy, "%s", digest(script), 1) +
		"; base-uri 'none'; form-action 'none'"
	parts := []string{"{{policy}}", policy, "{{style}}", style, "{{script}}", script}
	for name, text := range p.extra {
		parts = append(parts, "{{"+name+"}}", text)
	}
	html := strings.NewReplacer(parts...).Replace(string(read("assets/" + p.markup)))
	return Page{HTML: []byte(html), Policy: policy + "; frame-ancestors 'none'"}
}

func concat(names []string) string {
	var b bytes.Buffer
	for _, name := range names {
		b.Write(read("assets/" + name))
	}
	return b.String()
}

// digest names inline content in a policy (CSP Level 3, section 2.3.1).
func digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// read gives an embedded file. The names are constants of this package, so a
// missing one is a broken program.
func read(name string) []byte {
	b, err := files.ReadFile(name)
	if err != nil {
		panic("web: " + err.Error())
	}
	return b
}
