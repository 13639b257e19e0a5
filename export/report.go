package export

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/chaind/chaind/verifier"
)

// explain words an error of reading the manifest for the report.
func explain(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no " + ManifestFile + ": this is no export"
	case errors.Is(err, errManifest):
		return err.Error()
	}
	return "the manifest cannot be read"
}

// read reads a small file whole.
func (c *checking) read(name string, limit int64) ([]byte, error) {
	f, err := c.folder.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: no plain file", name)
	}
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("read %s: larger than %d bytes", name, limit)
	}
	return text, nil
}

// fail records that the export itself is not what it must be.
func (c *checking) fail(code verifier.Code, path string, exit int, detail string) {
	c.own = verifier.WorstExit(c.own, exit)
	c.broken = c.broken || !concernsTrust(code)
	c.list(code, path, detail, false)
}

// concernsTrust tells who signed from what is wrong.
func concernsTrust(code verifier.Code) bool {
	return code == verifier.CodeSignatureNeeded || code == verifier.CodeUntrustedKey || code == verifier.CodeRevokedKey
}

// list adds a finding; beyond a bound they are counted only.
func (c *checking) list(code verifier.Code, path, detail string, warning bool) {
	if c.counts == nil {
		c.counts = map[verifier.Code]uint64{}
	}
	c.counts[code]++
	to := &c.report.Errors
	if warning {
		to = &c.report.Warnings
	}
	if c.counts[code] > maxListed {
		for i := range *to {
			if (*to)[i].Code == code {
				(*to)[i].More = c.counts[code] - maxListed
				return
			}
		}
		return
	}
	shown := detail
	if path != "" {
		shown = verifier.Escape(path) + ": " + detail
	}
	*to = append(*to, verifier.Finding{Code: code, Detail: shown, Where: path})
}

// conclude fills checks, verdict and summary.
func (c *checking) conclude() {
	r := c.report
	r.ExitCode = verifier.WorstExit(c.own, c.worst)
	if r.ExitCode == verifier.ExitPass && c.verdicts == 0 {
		r.ExitCode = verifier.ExitDegraded
	}
	r.Checks = c.checks()
	r.Verdict = c.word()
	r.Summary = c.sentence()
}

func (c *checking) word() verifier.Verdict {
	switch c.report.ExitCode {
	case verifier.ExitPass:
		return verifier.Pass
	case verifier.ExitDegraded:
		if c.verdicts == 0 {
			return verifier.Empty
		}
		return verifier.Degraded
	case verifier.ExitSemantic:
		return verifier.Fail
	case verifier.ExitNotRun, verifier.ExitUsage:
		return verifier.NotRun
	}
	if c.broken {
		return verifier.Broken
	}
	return verifier.Untrusted
}

func (c *checking) sentence() string {
	if len(c.report.Errors) > 0 {
		f := c.report.Errors[0]
		said := fmt.Sprintf("%s: %s", f.Code, f.Detail)
		if n := len(c.report.Errors) - 1; n > 0 {
			said += fmt.Sprintf(" (and %d more)", n)
		}
		return said
	}
	held := fmt.Sprintf("%d files of %d chains are all there and as listed, %d of %d bundles pass, manifest %s",
		len(c.manifest.Files), len(c.manifest.Chains), c.verdicts-c.failing, c.verdicts, c.report.Signature.State)
	if c.verdicts == 0 {
		held += "; it holds no evidence"
	}
	return held
}

// checks gives the fixed list of checks with what became of each.
func (c *checking) checks() []verifier.Check {
	rows := []struct {
		name  string
		codes []verifier.Code
		pass  string
	}{
		{"options", []verifier.Code{verifier.CodeBadOptions}, "they agree"},
		{"manifest", []verifier.Code{CodeManifest}, "read strictly"},
		{"signature", []verifier.Code{verifier.CodeSignatureInvalid, verifier.CodeSignatureNeeded, verifier.CodeUntrustedKey, verifier.CodeRevokedKey}, "the manifest's signature is " + string(c.report.Signature.State)},
		{"listed", []verifier.Code{CodeMissing, CodeAltered, CodeSwapped, CodeUnreached}, "every listed file is there with its size and digest"},
		{"extra", []verifier.Code{CodeExtra}, "nothing else is there"},
		{"chains", []verifier.Code{CodeOther}, "all evidence ends in the head of the chain that it is listed for"},
		{"contents", []verifier.Code{CodeContent}, fmt.Sprintf("%d bundles verified", c.verdicts)},
	}
	checks := make([]verifier.Check, len(rows))
	for i, row := range rows {
		checks[i] = verifier.Check{Name: row.name, Status: verifier.StatusPass, Detail: row.pass}
		if f, status := c.found(row.codes); f != nil {
			checks[i].Status, checks[i].Detail = status, f.Detail
		} else if c.stopped != "" && row.name != "options" {
			checks[i].Status, checks[i].Detail = verifier.StatusSkipped, c.stopped
		}
	}
	return checks
}

func (c *checking) found(codes []verifier.Code) (*verifier.Finding, verifier.Status) {
	for _, in := range []struct {
		list   []verifier.Finding
		status verifier.Status
	}{{c.report.Errors, verifier.StatusFail}, {c.report.Warnings, verifier.StatusWarn}} {
		for i := range in.list {
			for _, code := range codes {
				if in.list[i].Code == code {
					return &in.list[i], in.status
				}
			}
		}
	}
	return nil, ""
}

// Refused is the report on what cannot be opened as an export at all, such as
// an archive that [OpenZip] refuses.
func Refused(err error) *verifier.Report {
	c := &checking{report: &verifier.Report{Kind: Kind, Mode: verifier.Strict}, stopped: "the export could not be opened"}
	detail := "it cannot be opened"
	if errors.Is(err, ErrArchive) {
		detail = err.Error()
	}
	c.fail(CodeUnreached, "", verifier.ExitEnvelope, detail)
	c.conclude()
	return c.report
}
