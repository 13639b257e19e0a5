package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/chaind/chaind/store"
)

// resumption is a check of a database that is kept in a file while it runs.
type resumption struct {
	file string // "": nothing is kept
	at   store.Checkpoint
}

// keepEvery is how much of a check is done again after a kill, at most.
const keepEvery = 5 * time.Second

// resume reads how far an earlier check came, if there was one. A file that is
// something else is left alone.
func (a *app) resume(file string) (*resumption, error) {
	r := &resumption{file: file}
	if file == "" {
		return r, nil
	}
	f, err := openKept(a, file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, r.begin()
	}
	if err != nil {
		return nil, cannot(err, resumeHint)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, store.MaxCheckpoint+1))
	if err != nil {
		return nil, cannot(err, "")
	}
	if err := r.at.UnmarshalBinary(text); err != nil {
		return nil, cannot(fmt.Errorf("%s was not kept by a check: %w", file, err), "name another file, or remove this one to check from the start")
	}
	return r, nil
}

const resumeHint = "--resume names the file in which to keep how far the check is: an earlier check's, or one that is not there"

// openKept opens a regular file. What is known to be something else is not
// opened: that of a pipe waits for its other end.
func openKept(a *app, file string) (*os.File, error) {
	special := fmt.Errorf("%s is no regular file", file)
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, special)
	}
	f, err := a.open(file)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() { // it has become another one since
		return nil, errors.Join(cmp.Or(err, special), f.Close())
	}
	return f, nil
}

// begin makes the file now, rather than not being able to when it is needed.
func (r *resumption) begin() error {
	err := writeFile(r.file, r.text(), false)
	switch {
	case errors.Is(err, fs.ErrExist): // and yet there was nothing to open
		return cannot(fmt.Errorf("%s is a link that leads to nothing", r.file), "remove it, or name the file itself")
	case err != nil:
		return cannot(err, resumeHint)
	}
	return nil
}

// text is the place as it is kept.
func (r *resumption) text() []byte {
	text, _ := r.at.MarshalBinary() // never fails
	return text
}

// check goes on with the check, and keeps where it is.
func (r *resumption) check(a *app, s *store.Store) (*store.CheckReport, error) {
	report, err := s.CheckFrom(a.ctx, &r.at, r.keeping(a))
	if errors.Is(err, store.ErrCheckpoint) {
		fmt.Fprintf(a.stderr, "chaind: %s is of another database, or this one was written to since: checking from the start\n", r.file)
		r.at = store.Checkpoint{}
		report, err = s.CheckFrom(a.ctx, &r.at, r.keeping(a))
	}
	if err == nil {
		return report, r.keep()
	}
	err = fmt.Errorf("check store: %w", err)
	if kept := r.keep(); r.file == "" || kept != nil {
		return nil, cannot(errors.Join(err, kept), "")
	}
	return nil, cannot(err, "the same command goes on where this one stopped")
}

// keeping shows progress and keeps it now and then. What cannot be kept now may
// be at the end, where it is an error.
func (r *resumption) keeping(a *app) func(store.CheckProgress) {
	show := a.checkProgress()
	last := a.now()
	return func(p store.CheckProgress) {
		if show != nil {
			show(p)
		}
		if now := a.now(); r.file != "" && now.Sub(last) >= keepEvery {
			r.keep()
			last = now
		}
	}
}

func (r *resumption) keep() error {
	if r.file == "" {
		return nil
	}
	return writeFile(r.file, r.text(), true)
}

// remove ends it: the check is over.
func (r *resumption) remove() error {
	if r.file == "" {
		return nil
	}
	return os.Remove(r.file)
}
