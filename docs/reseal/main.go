// Command reseal reads a trust bundle on standard input, computes every digest
// anew over what it finds there, and writes the bundle, unsigned, to standard
// output: what anybody can do who holds a file and has the format. It teaches
// what an intact envelope does not say, see docs/flip-a-byte.md. It judges
// nothing.
package main

import (
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/chaind/chaind/bundle"
)

func main() {
	if err := reseal(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "reseal:", err)
		os.Exit(1)
	}
}

func reseal(in io.Reader, out io.Writer) error {
	b, err := bundle.Read(in)
	if err != nil {
		return err
	}
	graph := b.Closure.Get("graph")
	d := &bundle.Draft{
		Engine:      b.Engine.AppendCanonical(nil),
		Result:      b.Result.AppendCanonical(nil),
		Kind:        b.Closure.Get("kind").Text(),
		Edges:       items(graph.Get("edges")),
		Mentions:    items(graph.Get("mentions")),
		Resolutions: items(graph.Get("resolutions")),
		Records:     items(b.Closure.Get("kb").Get("records")),
		Nodes:       nodes(graph.Get("nodes")),
	}
	if b.Action.Kind() == bundle.Object {
		d.Action = b.Action.AppendCanonical(nil)
	}
	for _, v := range b.Upstream().Items() {
		upstream, err := bundle.Open(v)
		if err != nil {
			return err
		}
		d.Upstream = append(d.Upstream, upstream)
	}
	_, err = bundle.Write(out, d, nil)
	return err
}

func items(list bundle.Value) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, v := range list.Items() {
			if !yield(v.AppendCanonical(nil)) {
				return
			}
		}
	}
}

func nodes(list bundle.Value) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, v := range list.Items() {
			if !yield(v.Get("record").Get("id").Text(), v.AppendCanonical(nil)) {
				return
			}
		}
	}
}
