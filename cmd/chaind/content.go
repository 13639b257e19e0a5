package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/verifier"
)

// maxShown is how many claims `verify` shows that do not re-derive; the rest is
// counted, and `explain` shows all.
const maxShown = 20

// writeContent tells which claims of a trust bundle do not re-derive, and what
// became of the embedded bundles.
func writeContent(w io.Writer, c *verifier.Content) {
	if c == nil {
		return
	}
	if c.Root != "" {
		fmt.Fprintf(w, "  root %s\n", c.Root)
	}
	for _, u := range c.Upstreams {
		fmt.Fprintf(w, "  upstream %s\n", upstreamLine(&u))
	}
	shown := 0
	for i := range c.Claims {
		claim := &c.Claims[i]
		if claim.Verdict == verifier.ClaimRederived {
			continue
		}
		if shown++; shown <= maxShown {
			fmt.Fprintf(w, "  claim %d %s: %s\n", claim.Index, claim.Verdict, cut(claim.Text, 200))
		}
	}
	if shown > maxShown {
		fmt.Fprintf(w, "  and %d more claims that are not established; chaind explain shows all\n", shown-maxShown)
	}
}

func upstreamLine(u *verifier.UpstreamReport) string {
	line := fmt.Sprintf("%s %s, signature state %s", verifier.Escape(shortRoot(u.Root)), u.Verdict, u.Signature)
	if u.Cause != "" {
		line += ": " + u.Cause
	}
	return line
}

// shortRoot is a root for people: its first 19 characters.
func shortRoot(root string) string {
	if len(root) <= 20 {
		return root
	}
	return root[:19] + "…"
}

// cut escapes a text from a file and cuts it to a number of code points; 0 cuts
// nothing.
func cut(text string, limit int) string {
	runes := []rune(text)
	if limit == 0 || len(runes) <= limit {
		return verifier.Escape(text)
	}
	return verifier.Escape(string(runes[:limit])) + fmt.Sprintf("… (+%d characters)", len(runes)-limit)
}

// judge verifies a file of any kind, or standard input.
func (a *app) judge(name string, o verifier.Options) *verifier.Report {
	if name == "-" {
		return verifier.File(a.ctx, a.stdin, o)
	}
	f, err := a.open(name)
	if err != nil {
		return verifier.File(a.ctx, failing{err}, o)
	}
	defer f.Close()
	defer boundMemory(f)()
	return verifier.File(a.ctx, a.reading(f), o)
}

// verifyText judges the bytes of a bundle that is about to be written.
func verifyText(a *app, text []byte) *verifier.Report {
	return verifier.TrustBundle(a.ctx, bytes.NewReader(text), verifier.Options{})
}

// trustBundle verifies a file that must be a trust bundle. The error says why
// it is none, or why no more can be made of it: every verdict that may does not
// list.
func (a *app) trustBundle(name string, o verifier.Options, may ...int) (*bundle.Bundle, *verifier.Report, error) {
	r := a.judge(name, o)
	if r.Kind != verifier.KindTrustBundle && r.Segments > 0 {
		return nil, r, &problem{code: exitUsage, err: fmt.Errorf("%s is an evidence bundle, not a trust bundle", name),
			hint: "chaind verify checks it; chaind bundle --evidence makes a trust bundle of it"}
	}
	for _, code := range may {
		if r.ExitCode == code {
			return r.Content.Bundle, r, nil
		}
	}
	return nil, r, &problem{code: r.ExitCode, err: fmt.Errorf("%s is %s: %s", name, r.Verdict, strings.TrimSuffix(r.Summary, ".")), hint: "chaind explain " + name + " shows what holds and what does not"}
}
