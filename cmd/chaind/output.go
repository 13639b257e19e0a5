package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chaind/chaind/verifier"
)

// outputFlags say where a new trust bundle goes.
type outputFlags struct {
	Output string `short:"o" required:"" help:"Where the bundle goes." placeholder:"FILE"`
	Force  bool   `help:"Replace FILE when it is there already."`
	JSON   bool   `help:"Print JSON."`
}

// written is what a command says about the bundle that it wrote.
type written struct {
	File        string `json:"file"`
	Bytes       int    `json:"bytes"`
	Root        string `json:"root"`
	Domain      string `json:"domain"`
	Question    string `json:"question"`
	Refused     bool   `json:"refused"`
	Claims      int    `json:"claims"`
	Established int    `json:"established"` // claims that re-derive
	Upstreams   int    `json:"upstreams"`
	SignedBy    string `json:"signed_by,omitempty"` // public key
	Verdict     string `json:"verdict"`
	Summary     string `json:"summary"`
	ExitCode    int    `json:"verify_exit_code"` // what chaind verify says of it, nobody's key being trusted
}

// write verifies the bytes of a bundle, which must not fail, writes them
// durably and tells what they are.
func (o *outputFlags) write(a *app, text []byte) error {
	report := verifyText(a, text)
	if code := report.ExitCode; code != exitOK && code != exitDegraded {
		return &problem{code: code, err: fmt.Errorf("the bundle would not verify: %s", report.Summary)}
	}
	err := writeFile(o.Output, text, o.Force)
	if errors.Is(err, fs.ErrExist) {
		return cannot(err, "nothing is overwritten unless --force says so")
	}
	if err != nil {
		return cannot(err, "")
	}
	return o.tell(a, text, report)
}

func (o *outputFlags) tell(a *app, text []byte, r *verifier.Report) error {
	c := r.Content
	w := written{
		File: o.Output, Bytes: len(text), Root: c.Root, Domain: c.Result.Domain, Question: c.Result.Recorded.Question, Refused: c.Result.Recorded.Refused,
		Claims: len(c.Claims), Upstreams: len(c.Upstreams), SignedBy: r.Signature.PublicKey, Verdict: string(r.Verdict), Summary: r.Summary, ExitCode: r.ExitCode,
	}
	for i := range c.Claims {
		if c.Claims[i].Verdict == verifier.ClaimRederived {
			w.Established++
		}
	}
	if o.JSON {
		return a.printJSON(w)
	}
	signed := "unsigned"
	if w.SignedBy != "" {
		signed = "signed by key " + r.Signature.KeyID
	}
	return a.printf("wrote %s (%d bytes), %s\nroot %s\n%s %s: %s (exit %d)\n", verifier.Escape(w.File), w.Bytes, signed, verifier.Escape(w.Root),
		paint(w.Verdict, w.ExitCode, colours(a.stdout)), verifier.Escape(w.File), w.Summary, w.ExitCode)
}

// writeFile writes a file that is on disk, with its name, when it returns. An
// existing one is fs.ErrExist, or with force replaced in one step.
func writeFile(path string, text []byte, force bool) (err error) {
	target := path
	var f *os.File
	if force {
		f, err = os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	} else {
		f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	}
	if err != nil {
		return err
	}
	target = f.Name()
	defer func() {
		if err != nil {
			os.Remove(target)
		}
	}()
	if err = fill(f, text); err != nil {
		return err
	}
	if force {
		if err = os.Chmod(target, 0o644); err != nil {
			return err
		}
		if err = os.Rename(target, path); err != nil {
			return err
		}
		target = path
	}
	return syncDirectory(filepath.Dir(path))
}

func fill(f *os.File, text []byte) error {
	_, err := f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDirectory(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
