package export

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

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
	return "the manifest cannot be read: " + whyNot(err)
}

// whyNot words why a file was not read, without what the system says of it.
func whyNot(err error) string {
	var large *tooLarge
	switch {
	case errors.Is(err, errSpecial):
		return "it is a link or another special file, and was not opened"
	case errors.As(err, &large):
		return large.Error()
	case errors.Is(err, fs.ErrPermission):
		return "permission denied"
	}
	for _, known := range []error{errMethod, errChecksum, errBehind, errOverlong} {
		if errors.Is(err, known) {
			return strings.TrimPrefix(known.Error(), ErrArchive.Error()+": ")
		}
	}
	return "it cannot be read"
}

// tooLarge says that a file is over its limit, and was not read.
type tooLarge struct{ size, limit int64 }

func (e *tooLarge) Error() string {
	return fmt.Sprintf("it has %d bytes, more than the %d that it may have, and was not read", e.size, e.limit)
}

// read reads a small file whole.
func (c *checking) read(name string, limit int64) ([]byte, error) {
	f, size, err := c.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > limit {
		return nil, &tooLarge{size, limit}
	}
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = &tooLarge{int64(len(text)), limit}
	}
	if err != nil {
		return nil, err
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
	if path != "" {
		detail = shown(path) + ": " + detail
	}
	*to = append(*to, verifier.Finding{Code: code, Detail: detail, Where: short(path)})
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
	if n := c.counts[CodeRefused]; n > 0 {
		held += fmt.Sprintf("; what the daemon did not give: %d", n)
	}
	if c.verdicts == 0 {
		held += "; it holds no evidence"
	}
	return held
}

// row is a check of the fixed list: its name, the codes that it may find, and
// what a passed one has shown.
type row struct {
	name  string
	codes []verifier.Code
	pass  string
}

func (c *checking) rows() []row {
	return []row{
		{"options", []verifier.Code{verifier.CodeBadOptions}, "they agree"},
		{"archive", []verifier.Code{CodeArchive}, "the ZIP file is its entries, one after the other, and nothing else"},
		{"manifest", []verifier.Code{CodeManifest}, "read strictly"},
		{"signature", []verifier.Code{verifier.CodeSignatureInvalid}, "fits the manifest"},
		{"trust", []verifier.Code{verifier.CodeSignatureNeeded, verifier.CodeUntrustedKey, verifier.CodeRevokedKey, verifier.CodeRetiredKey}, ""},
		{"listed", []verifier.Code{CodeMissing, CodeAltered, CodeSwapped, CodeUnreached, verifier.CodeInterrupted}, "every listed file is there with its size and digest"},
		{"extra", []verifier.Code{CodeExtra}, "nothing else is there"},
		{"chains", []verifier.Code{CodeOther, CodeDiffers}, "all evidence is of the chain that it is listed for, and bears out what the manifest says of it"},
		{"contents", []verifier.Code{CodeContent, CodeRefused}, fmt.Sprintf("%d bundles verified", c.verdicts)},
	}
}

// note says what became of a check that found nothing.
func (c *checking) note(check string, status verifier.Status, detail string) {
	if c.notes == nil {
		c.notes = map[string]verifier.Check{}
	}
	c.notes[check] = verifier.Check{Name: check, Status: status, Detail: detail}
}

// checks gives the fixed list of checks with what became of each. A failure
// outranks a note, a note a warning.
func (c *checking) checks() []verifier.Check {
	if _, noted := c.notes["archive"]; !noted && !c.packed {
		c.note("archive", verifier.StatusNotApplicable, "it is no ZIP file")
	}
	var checks []verifier.Check
	for _, row := range c.rows() {
		check := verifier.Check{Name: row.name, Status: verifier.StatusPass, Detail: row.pass}
		f, status := c.found(row.codes)
		note, noted := c.notes[row.name]
		switch {
		case f != nil && (status == verifier.StatusFail || !noted):
			check.Status, check.Detail = status, f.Detail
		case noted:
			check = note
		case c.stopped != "" && row.name != "options" && row.name != "archive":
			check.Status, check.Detail = verifier.StatusSkipped, c.stopped
		}
		checks = append(checks, check)
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
	c.note("archive", verifier.StatusSkipped, c.stopped)
	c.fail(CodeUnreached, "", verifier.ExitEnvelope, detail)
	c.conclude()
	return c.report
}
