package verifier

import (
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/chaind/chaind/segments"
)

// ReportName names the JSON shape of a report and its version.
const ReportName = "chaind-verify-1"

// AppendJSON writes the report as one line of JSON without a final newline, in
// the shape that the package documentation gives. Equal reports give equal
// bytes.
func (r *Report) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"report":`...)
	dst = appendText(dst, ReportName)
	dst = appendMember(dst, "kind", string(r.Kind))
	dst = appendMember(dst, "mode", string(r.Mode))
	dst = appendMember(dst, "verdict", string(r.Verdict))
	dst = appendMember(dst, "summary", r.Summary)
	dst = append(dst, `,"exit_code":`...)
	dst = strconv.AppendInt(dst, int64(r.ExitCode), 10)
	dst = append(dst, `,"head":{"declared":`...)
	dst = appendDigest(dst, r.DeclaredHead)
	dst = append(dst, `,"computed":`...)
	dst = appendDigest(dst, r.ComputedHead)
	dst = append(dst, `},"segments":`...)
	dst = strconv.AppendUint(dst, r.Segments, 10)
	dst = append(dst, `,"scope":`...)
	dst = appendScope(dst, r.Scope)
	dst = append(dst, `,"plan":`...)
	dst = appendOptional(dst, r.Plan)
	dst = append(dst, `,"signature":`...)
	dst = appendSignature(dst, &r.Signature)
	dst = append(dst, `,"run_seals":{"count":`...)
	dst = strconv.AppendUint(dst, r.SealCount, 10)
	dst = append(dst, `,"first":`...)
	dst = appendList(dst, r.Seals, appendSeal)
	dst = append(dst, `},"checks":`...)
	dst = appendList(dst, r.Checks, appendCheck)
	dst = append(dst, `,"errors":`...)
	dst = appendList(dst, r.Errors, appendFinding)
	dst = append(dst, `,"warnings":`...)
	dst = appendList(dst, r.Warnings, appendFinding)
	dst = append(dst, `,"reference":`...)
	dst = appendOutcomes(dst, r.Reference)
	dst = append(dst, `,"bundle":`...)
	dst = appendContent(dst, r.Content)
	return append(dst, '}')
}

func appendList[T any](dst []byte, list []T, each func([]byte, *T) []byte) []byte {
	dst = append(dst, '[')
	for i := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = each(dst, &list[i])
	}
	return append(dst, ']')
}

func appendMember(dst []byte, name, text string) []byte {
	dst = append(dst, ',', '"')
	dst = append(dst, name...)
	dst = append(dst, '"', ':')
	return appendText(dst, text)
}

// appendText writes a JSON string in which nothing can act on a terminal.
func appendText(dst []byte, text string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		i += size
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case printable(r):
			dst = utf8.AppendRune(dst, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			dst = fmt.Appendf(dst, `\u%04x\u%04x`, high, low)
		default:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		}
	}
	return append(dst, '"')
}

// appendOptional writes null for an empty text.
func appendOptional(dst []byte, text string) []byte {
	if text == "" {
		return append(dst, "null"...)
	}
	return appendText(dst, text)
}

func appendDigest(dst []byte, d *segments.Digest) []byte {
	if d == nil {
		return append(dst, "null"...)
	}
	return appendText(dst, d.String())
}

func appendScope(dst []byte, s *segments.Scope) []byte {
	if s == nil {
		return append(dst, "null"...)
	}
	dst = append(dst, `{"schema_version":`...)
	dst = strconv.AppendUint(dst, uint64(s.SchemaVersion), 10)
	dst = appendMember(dst, "tenant_id", s.TenantID)
	dst = append(dst, `,"logical_session_id":`...)
	if s.LogicalSessionID == nil {
		dst = append(dst, "null"...)
	} else {
		dst = appendText(dst, *s.LogicalSessionID)
	}
	dst = appendMember(dst, "prompt_hash", s.PromptHash)
	dst = appendMember(dst, "execute_session_id", s.ExecuteSessionID)
	dst = appendMember(dst, "catalog_cgs_hash", s.CatalogCGSHash)
	dst = append(dst, `,"domain_revision":`...)
	dst = strconv.AppendUint(dst, uint64(s.DomainRevision), 10)
	dst = appendMember(dst, "entry_id", s.EntryID)
	return append(dst, '}')
}

func appendSignature(dst []byte, s *Signature) []byte {
	dst = append(dst, `{"state":`...)
	dst = appendOptional(dst, string(s.State))
	dst = append(dst, `,"public_key":`...)
	dst = appendOptional(dst, s.PublicKey)
	dst = append(dst, `,"key_id":`...)
	dst = appendOptional(dst, s.KeyID)
	dst = append(dst, `,"comment":`...)
	dst = appendOptional(dst, s.Comment)
	return append(dst, '}')
}

func appendSeal(dst []byte, s *RunSeal) []byte {
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendUint(dst, s.Seq, 10)
	dst = appendMember(dst, "run_id", s.RunID)
	dst = appendMember(dst, "digest", s.Digest.String())
	return append(dst, '}')
}

func appendCheck(dst []byte, c *Check) []byte {
	dst = append(dst, `{"name":`...)
	dst = appendText(dst, c.Name)
	dst = appendMember(dst, "status", string(c.Status))
	dst = appendMember(dst, "detail", c.Detail)
	return append(dst, '}')
}

func appendFinding(dst []byte, f *Finding) []byte {
	dst = append(dst, `{"code":`...)
	dst = appendText(dst, string(f.Code))
	dst = appendMember(dst, "detail", f.Detail)
	if f.Seq != nil {
		dst = append(dst, `,"seq":`...)
		dst = strconv.AppendUint(dst, *f.Seq, 10)
	}
	if f.Index != nil {
		dst = append(dst, `,"index":`...)
		dst = strconv.AppendUint(dst, *f.Index, 10)
	}
	if f.StepID != "" {
		dst = appendMember(dst, "step_id", f.StepID)
	}
	if f.Path != "" {
		dst = appendMember(dst, "path", f.Path)
	}
	if f.Offset != nil {
		dst = append(dst, `,"offset":`...)
		dst = strconv.AppendInt(dst, *f.Offset, 10)
	}
	if f.More > 0 {
		dst = append(dst, `,"more":`...)
		dst = strconv.AppendUint(dst, f.More, 10)
	}
	if f.Where != "" {
		dst = appendMember(dst, "where", f.Where)
	}
	return append(dst, '}')
}

func appendOutcomes(dst []byte, o *Outcomes) []byte {
	if o == nil {
		return append(dst, "null"...)
	}
	decode := "reject"
	if o.Decoded {
		decode = "accept"
	}
	dst = append(dst, `{"decode":{"outcome":"`+decode+`"},"verify":`...)
	dst = appendOutcome(dst, o.Verify)
	dst = append(dst, `,"serve":`...)
	dst = appendOutcome(dst, o.Serve)
	dst = append(dst, `,"serve_with_run_seal":`...)
	dst = appendOutcome(dst, o.ServeWithRunSeal)
	return append(dst, '}')
}

func appendOutcome(dst []byte, o *Outcome) []byte {
	switch {
	case o == nil:
		return append(dst, "null"...)
	case o.Err != nil:
		return append(dst, `{"outcome":"reject","error":"`+string(o.Err.Failure)+`"}`...)
	}
	return append(dst, `{"outcome":"accept","head":"`+o.Head.String()+`"}`...)
}
