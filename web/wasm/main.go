//go:build js && wasm

// Command wasm is the verifier of a page: package verifier, compiled for the
// browser. It defines chaindVerify in the global scope and then waits for calls.
//
//	chaindVerify(bytes, {keys, entries, allowUnsigned, requireSigned}, progress) → {report} or {error}
//
// bytes is a Uint8Array, read piece by piece and never changed. keys is the
// text of trusted public keys, parted by white space or commas; "" is nobody.
// entries, if it is there, is an array of {public_key, status, comment}, as in a
// trust file; both lists together are trusted.
// progress, if it is a function, is called now and then with the number of
// segments and of bytes. report is the JSON form of the report, byte for byte
// what the command line prints for the same file and keys. error says, for a
// person, why there is none: a key that is not a key.
package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"syscall/js"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/verifier"
)

func main() {
	js.Global().Set("chaindVerify", js.FuncOf(func(_ js.Value, args []js.Value) any {
		report, err := verify(args[0], args[1], args[2])
		if err != nil {
			return map[string]any{"error": err.Error()}
		}
		return map[string]any{"report": report}
	}))
	select {}
}

func verify(file, settings, progress js.Value) (string, error) {
	o := verifier.Options{
		AllowUnsigned: settings.Get("allowUnsigned").Truthy(),
		RequireSigned: settings.Get("requireSigned").Truthy(),
	}
	var err error
	if o.Trust, err = trust(settings.Get("keys").String(), settings.Get("entries")); err != nil {
		return "", err
	}
	if progress.Type() == js.TypeFunction {
		o.Progress = func(p verifier.Progress) { progress.Invoke(float64(p.Segments), float64(p.Bytes)) }
	}
	r := verifier.File(context.Background(), &array{value: file, length: file.Length()}, o)
	return string(r.AppendJSON(nil)), nil
}

// trust reads the keys that somebody pasted and those of a list; nil: none.
func trust(text string, list js.Value) (*keys.TrustList, error) {
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || strings.ContainsRune(" \t\r\n", r) })
	var sources [][]keys.Entry
	if len(words) > 0 {
		pasted, err := keys.ParseFlags(words)
		if err != nil {
			return nil, fmt.Errorf("read trusted keys: %w", err)
		}
		sources = append(sources, pasted)
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

// array reads a Uint8Array without a second copy of the whole.
type array struct {
	value        js.Value
	next, length int
}

func (a *array) Read(p []byte) (int, error) {
	if a.next >= a.length {
		return 0, io.EOF
	}
	end := min(a.length, a.next+len(p))
	n := js.CopyBytesToGo(p, a.value.Call("subarray", a.next, end))
	a.next += n
	return n, nil
}
