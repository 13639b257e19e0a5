package durable

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// gates stop named system calls, counted from 1 ("fsync .#2"), until they are let go.
// Temporary files are all called "temp".
type gates struct {
	mu     sync.Mutex
	counts map[string]int
	log    []string
	at     map[string]*halt
}

type halt struct {
	entered, release chan struct{}
	fails            bool
}

func (g *gates) around(op, name string, do func() error) error {
	if strings.HasPrefix(name, TempDir) {
		name = "temp"
	}
	call := op + " " + name
	g.mu.Lock()
	g.counts[call]++
	g.log = append(g.log, call)
	stop := g.at[fmt.Sprint(call, "#", g.counts[call])]
	g.mu.Unlock()
	if stop == nil {
		return do()
	}
	close(stop.entered)
	<-stop.release
	if stop.fails {
		return errInjected
	}
	return do()
}

// stop makes a call stop, and returns its gate.
func (g *gates) stop(call string, fails bool) *halt {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at[call] = &halt{make(chan struct{}), make(chan struct{}), fails}
	return g.at[call]
}

func (g *gates) called() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.log)
}

// calledSince tells whether a call was made since so many were.
func (g *gates) calledSince(n int, call string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Contains(g.log[n:], call)
}

func gated(t *testing.T) (*Dir, *gates, func(name string) <-chan error) {
	d := open(t, t.TempDir())
	g := &gates{counts: map[string]int{}, at: map[string]*halt{}}
	d.around = g.around
	return d, g, func(name string) <-chan error {
		done := make(chan error, 1)
		go func() { done <- d.Write(name, Bytes([]byte("x"))) }()
		return done
	}
}

// The first writer makes a/ and fails; the second found a/ there, and comes to say
// that it is known only after the first has removed it; the third has made a/ anew
// and not synced it. The fourth must not rely on what the second says.
func TestKnownAfterItWasRemoved(t *testing.T) {
	t.Parallel()
	d, g, write := gated(t)
	first, second, third := g.stop("fsync .#1", true), g.stop("close temp#1", false), g.stop("fsync .#3", false)
	failed := write("a/x")
	<-first.entered
	late := write("a/y") // with a sync of its own, the second
	<-second.entered
	close(first.release)
	if err := <-failed; !errors.Is(err, errInjected) {
		t.Fatal(err)
	}
	anew := write("a/z")
	<-third.entered
	named := g.stop("rename a/y#1", false)
	close(second.release)
	<-named.entered // it has said what it knows
	before := g.called()
	if err := d.Write("a/q", Bytes([]byte("x"))); err == nil && !g.calledSince(before, "fsync .") {
		t.Error("a/q is said to be durable, and the entry of a/, made anew, was never synced")
	}
	close(third.release)
	close(named.release)
	if err := <-anew; err != nil {
		t.Error(err)
	}
	if err := <-late; err == nil {
		t.Error("what was put into a directory that is gone is said to be durable")
	}
}

// The second writer has said that a/ is known, and the fourth has been told so, when
// the first removes it and the third makes it anew: the fourth must not succeed
// without a sync of the new entry, though all its own calls do.
func TestToldBeforeItWasRemoved(t *testing.T) {
	t.Parallel()
	d, g, write := gated(t)
	first, second := g.stop("fsync .#1", true), g.stop("rename a/y#1", false)
	failed := write("a/x")
	<-first.entered
	lost := write("a/y")
	<-second.entered // it is known
	told := g.stop(fmt.Sprint("close temp#", g.counted("close temp")+1), false)
	fourth := write("a/q")
	<-told.entered
	close(first.release)
	if err := <-failed; !errors.Is(err, errInjected) {
		t.Fatal(err)
	}
	third := g.stop("fsync .#3", false)
	anew := write("a/z")
	<-third.entered
	close(told.release)
	if err := <-fourth; err == nil {
		t.Error("a/q is said to be durable, and the entry of a/, made anew, was never synced")
	}
	close(third.release)
	close(second.release)
	if err := <-anew; err != nil && !errors.Is(err, errRemoved) {
		t.Error(err)
	}
	if err := <-lost; err == nil {
		t.Error("what was put into a directory that is gone is said to be durable")
	}
	mustWrite(t, d, "a/q", "x")
}

func (g *gates) counted(call string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.counts[call]
}
