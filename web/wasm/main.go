//go:build js && wasm

// Command wasm is the verifier of a page: package verifier, compiled for the
// browser. It defines chaindVerify in the global scope and then waits for calls.
//
//	chaindVerify(content, settings, progress) → {report} or {error}
//	chaindVerifyExport(files, settings, progress) → {report, parts} or {error}
//
// content is what a file has: its size in bytes, and read(from), which gives a
// Uint8Array of some of the bytes from a place below the size on, one at least and as
// many as it likes, or a string that says why it cannot. files is an array of
// {path, content}, all of an exported folder, judged as the command line judges a
// directory, or with a single one whose path is "" a ZIP file; parts are
// {path, report}, the reports on the bundles in it. keys is the
// text of trusted public keys, parted by white space or commas; "" is nobody.
// entries, if it is there, is an array of {public_key, status, comment}, as in a
// trust file; both lists together are trusted. settings has these two, and as the
// command line's flags of those names allowUnsigned, requireSigned, expectHead,
// expectPlan and expectOutcome; "" and what is not there ask for nothing.
// progress, if it is a function, is called now and then with the number of
// segments and of bytes, of the bundle that is being read, and how many bundles of
// an export were judged before. report is the JSON form of the report, byte for byte
// what the command line prints for the same file and keys. error says, for a
// person, why there is none: a key that is not a key, a head that is no digest, a
// file that could not be read.
package main

import (
	"context"
	"fmt"
	"io/fs"
	"runtime/debug"
	"strings"
	"syscall/js"

	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/domains"
	"github.com/chaind/chaind/export"
	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/verifier"
)

// A thread of a page collects garbage while nothing else happens, so it does it
// seldom, and as often as it must where a tab would grow large. What a heap has
// taken in WebAssembly it never gives back.
const (
	garbagePercent = 200
	heapLimit      = 1 << 30 // bytes; beyond, garbage is collected as often as it must
)

func main() {
	debug.SetGCPercent(garbagePercent)
	debug.SetMemoryLimit(heapLimit)
	v := page{domains.All()}
	define("chaindVerify", func(args []js.Value) (map[string]any, error) { return v.verify(args[0], args[1], args[2]) })
	define("chaindVerifyExport", func(args []js.Value) (map[string]any, error) { return v.verifyExport(args[0], args[1], args[2]) })
	select {}
}

// define makes a function of the global scope.
func define(name string, f func(args []js.Value) (map[string]any, error)) {
	js.Global().Set(name, js.FuncOf(func(_ js.Value, args []js.Value) any {
		answer, err := f(args)
		if err != nil {
			return map[string]any{"error": err.Error()} // a report on what was not read is none
		}
		return answer
	}))
}

// page is what verifications of a page share: the domains, made once, since that
// takes longer than to judge a small file.
type page struct{ domains engine.Registry }

func (v page) verify(file, settings, progress js.Value) (map[string]any, error) {
	o, err := v.options(settings)
	if err != nil {
		return nil, err
	}
	tell := teller(progress)
	o.Progress = func(p verifier.Progress) { tell(p, 0) }
	var unread fault
	r := verifier.File(context.Background(), newContent(file, &unread), o)
	return map[string]any{"report": string(r.AppendJSON(nil))}, unread.err
}

func (v page) options(settings js.Value) (verifier.Options, error) {
	o := verifier.Options{
		Domains:       v.domains,
		AllowUnsigned: settings.Get("allowUnsigned").Truthy(),
		RequireSigned: settings.Get("requireSigned").Truthy(),
	}
	o.ExpectPlan, o.ExpectOutcome = text(settings, "expectPlan"), text(settings, "expectOutcome")
	if given := text(settings, "expectHead"); given != "" {
		head, err := segments.ParseDigest(given)
		if err != nil {
			return o, fmt.Errorf("expected head: %w", err)
		}
		o.ExpectHead = &head
	}
	if o.ExpectPlan != "" {
		if _, err := segments.ParseDigest(o.ExpectPlan); err != nil {
			return o, fmt.Errorf("expected plan: %w", err)
		}
	}
	var err error
	o.Trust, err = trust(settings.Get("keys").String(), settings.Get("entries"))
	return o, err
}

// text gives a member that is a string, without the space around it.
func text(settings js.Value, name string) string {
	if v := settings.Get(name); v.Type() == js.TypeString {
		return strings.TrimSpace(v.String())
	}
	return ""
}

// teller passes on to a page how far a verification is.
func teller(progress js.Value) func(p verifier.Progress, judged int) {
	if progress.Type() != js.TypeFunction {
		return func(verifier.Progress, int) {}
	}
	return func(p verifier.Progress, judged int) { progress.Invoke(float64(p.Segments), float64(p.Bytes), judged) }
}

func (v page) verifyExport(files, settings, progress js.Value) (map[string]any, error) {
	o, err := v.options(settings)
	if err != nil {
		return nil, err
	}
	var parts []any
	tell := teller(progress)
	o.Progress = func(p verifier.Progress) { tell(p, len(parts)) }
	var unread fault
	folder, err := open(files, &unread)
	if err != nil {
		return map[string]any{"report": string(export.Refused(err).AppendJSON(nil)), "parts": parts}, unread.err
	}
	r := export.Check(context.Background(), folder, o, func(path string, r *verifier.Report) {
		parts = append(parts, map[string]any{"path": path, "report": string(r.AppendJSON(nil))})
		tell(verifier.Progress{}, len(parts))
	})
	return map[string]any{"report": string(r.AppendJSON(nil)), "parts": parts}, unread.err
}

// open makes a file system of the page's files.
func open(files js.Value, unread *fault) (fs.FS, error) {
	if files.Length() == 1 && files.Index(0).Get("path").String() == "" {
		archive := newContent(files.Index(0).Get("content"), unread)
		return export.OpenZip(archive, archive.size)
	}
	folder := folder{make(map[string]js.Value, files.Length()), unread}
	for i := range files.Length() {
		folder.files[files.Index(i).Get("path").String()] = files.Index(i).Get("content")
	}
	return folder, nil
}

// trust reads the keys that somebody pasted and those of a list; nil: none.
func trust(pasted string, list js.Value) (*keys.TrustList, error) {
	words := strings.FieldsFunc(pasted, func(r rune) bool { return r == ',' || strings.ContainsRune(" \t\r\n", r) })
	var sources [][]keys.Entry
	if len(words) > 0 {
		entries, err := keys.ParseFlags(words)
		if err != nil {
			return nil, fmt.Errorf("read trusted keys: %w", err)
		}
		sources = append(sources, entries)
	}
	if list.Type() == js.TypeObject && list.Length() > 0 {
		listed, err := keys.ParseFile(fileEntries(list))
		if err != nil {
			return nil, fmt.Errorf("read trust list: %w", err)
		}
		sources = append(sources, listed)
	}
	if len(sources) == 0 {
		return nil, nil
	}
	merged, _, err := keys.Merge(sources...)
	return merged, err
}

func fileEntries(list js.Value) []keys.FileEntry {
	entries := make([]keys.FileEntry, list.Length())
	for i := range entries {
		e := list.Index(i)
		entries[i] = keys.FileEntry{PublicKey: e.Get("public_key").String(), Status: e.Get("status").String(), Comment: e.Get("comment").String()}
	}
	return entries
}
