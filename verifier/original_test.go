package verifier

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/iotest"
)

func (r *Report) check(name string) Check {
	for _, c := range r.Checks {
		if c.Name == name {
			return c
		}
	}
	return Check{}
}

// TestV33 reformats an honest bundle on the way: it verifies, and the report
// says that these are not the emitter's bytes. Altered content is another thing.
func TestV33Reformatted(t *testing.T) {
	t.Parallel()
	v := loadVector(t, "p02-full-run-signed")
	o := v.options(t, Strict)
	text := string(v.bundle)
	for name, test := range map[string]struct {
		text   string
		status Status
		exit   int
	}{
		"as written":     {text, StatusPass, ExitPass},
		"final newline":  {text + "\n", StatusWarn, ExitPass},
		"crlf":           {strings.ReplaceAll(text, `,"`, ",\r\n\""), StatusWarn, ExitPass},
		"leading blank":  {" " + text, StatusWarn, ExitPass},
		"escaped letter": {strings.Replace(text, `"source_line":"I`, `"source_line":"\u0049`, 1), StatusWarn, ExitPass},
		"pretty":         {string(loadVector(t, "p08-reordered-pretty").bundle), StatusWarn, ExitEnvelope}, // unsigned
		"altered":        {strings.Replace(text, `"source_line":"I`, `"source_line":"J`, 1), StatusPass, ExitEnvelope},
	} {
		r := verifyBytes([]byte(test.text), o)
		if got := r.check("bytes"); got.Status != test.status || r.ExitCode != test.exit {
			t.Errorf("%s: bytes %s, exit code %d (%s)", name, got.Status, r.ExitCode, r.Summary)
		}
	}
}

// Chunks of any size give the same answer.
func TestOriginalInSmallReads(t *testing.T) {
	t.Parallel()
	for _, v := range loadVectors(t) {
		if v.Reference.Decode.Outcome != "accept" {
			continue
		}
		o := v.options(t, Strict)
		whole := verifyBytes(v.bundle, o)
		small := Evidence(context.Background(), iotest.OneByteReader(bytes.NewReader(v.bundle)), o)
		if a, b := whole.AppendJSON(nil), small.AppendJSON(nil); !bytes.Equal(a, b) {
			t.Errorf("%s:\n%s\n%s", v.Name, a, b)
		}
		// generate.mjs says which bundles its writer did not write itself.
		foreign := strings.HasPrefix(v.Name, "p08") || len(v.Strict.Errors) > 0
		if !foreign && whole.check("bytes").Status != StatusPass {
			t.Errorf("%s: %+v", v.Name, whole.check("bytes"))
		}
	}
}
