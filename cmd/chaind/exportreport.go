package main

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/verifier"
)

// exportReport is what the printable report of an export shows.
type exportReport struct {
	What      string
	CreatedMS int64
	Chains    []reportedChain
	Keys      []reportedKey
	Signing   *reportedKey
	Signers   []reportedSigner
	manifest  string // public key that will sign the list of files; "": none
}

// reportedSigner is a key that signed something in the export, listed or not.
type reportedSigner struct {
	PublicKey, KeyID string
	Bundles          int  // that it signed, validly
	Manifest         bool // it signs the list of files
}

type reportedChain struct {
	exportedChain
	Bundles []reportedBundle
	Refused []reportedRefusal
}

// spelt names the chain on one line.
func (c *reportedChain) spelt() string {
	return strings.Join([]string{tenantToken(c.Tenant), verifier.Escape(c.PromptHash), verifier.Escape(c.Session), verifier.Escape(c.Chain)}, "/")
}

// Unread tells whether the daemon told nothing of the chain.
func (c *reportedChain) Unread() bool {
	return slices.ContainsFunc(c.Refused, func(r reportedRefusal) bool { return r.What == refusedRecord })
}

// refusedRecord is what a chain is without of which the daemon tells nothing.
const refusedRecord = "record"

// reportedRefusal is the daemon's answer in the place of a bundle or of what it knows.
type reportedRefusal struct{ What, Path, Detail string }

// reportedBundle is a file with its verdict, nobody's key being trusted.
type reportedBundle struct {
	Path   string
	Report *verifier.Report
}

type reportedKey struct {
	PublicKey string `json:"public_key"`
	KeyID     string `json:"key_id"`
	Status    string `json:"status"`
	Comment   string `json:"comment"`
}

var (
	//go:embed export.html
	exportPage string
	//go:embed export.css
	exportStyle string
)

// page makes the report. listed is the API's list of keys.
func (r *exportReport) page(listed []byte) ([]byte, error) {
	k, err := decodePage[struct {
		Signing *reportedKey  `json:"signing"`
		Trusted []reportedKey `json:"trusted"`
	}](listed)
	if err != nil {
		return nil, err
	}
	r.Signing, r.Keys, r.Signers = k.Signing, k.Trusted, r.signers()
	sum := sha256.Sum256([]byte(exportStyle))
	t, err := template.New("report").Funcs(template.FuncMap{
		"style": func() template.CSS { return template.CSS(exportStyle) },
		"policy": func() string {
			return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
		},
		"plain":     verifier.Escape,
		"time":      func(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05 UTC") },
		"join":      func(list []string) string { return verifier.Escape(strings.Join(list, ", ")) },
		"tone":      reportTone,
		"wordTone":  func(word string) string { return wordTones[word] },
		"checkTone": func(s verifier.Status) string { return checkTones[s] },
		"idle":      func(s verifier.Status) bool { return s == verifier.StatusNotApplicable },
		"unread":    func(s verifier.Status) bool { return s == verifier.StatusSkipped },
		"deref":     func(s *string) string { return *s },
	}).Parse(exportPage)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, r); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// signers lists the keys that signed, in the order in which they come up.
func (r *exportReport) signers() []reportedSigner {
	var list []reportedSigner
	of := func(key, id string) *reportedSigner {
		i := slices.IndexFunc(list, func(s reportedSigner) bool { return s.PublicKey == key })
		if i < 0 {
			i, list = len(list), append(list, reportedSigner{PublicKey: key, KeyID: id})
		}
		return &list[i]
	}
	for _, c := range r.Chains {
		for _, b := range c.Bundles {
			if s := b.Report.Signature; s.State == keys.StateUnpinned {
				of(s.PublicKey, s.KeyID).Bundles++
			}
		}
	}
	if key, err := keys.ParsePublicKey(r.manifest); err == nil {
		of(key.String(), key.ID()).Manifest = true
	}
	return list
}

// wordTones are the classes of what chains are said to be; what is missing is
// neither good nor bad. The word itself always stands there.
var wordTones = map[string]string{
	"succeeded": "tag good", "conforming": "tag good", "complete": "tag good",
	"cancelled": "tag fair", "abandoned": "tag fair", "unplanned": "tag fair",
	"failed": "tag bad", "nonconforming": "tag bad", "incomplete": "tag bad",
}

var checkTones = map[verifier.Status]string{
	verifier.StatusPass: "mark good", verifier.StatusWarn: "tag fair", verifier.StatusFail: "tag bad",
}

// reportTone is the class of a verdict.
func reportTone(exit int) string {
	switch exit {
	case exitOK:
		return "good"
	case exitDegraded:
		return "fair"
	}
	return "bad"
}
