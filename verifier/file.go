package verifier

import (
	"context"
	"fmt"
	"io"
)

// File verifies a file of any kind that [Detect] tells apart. Evidence bundles,
// and files that are nothing known, go to [Evidence]. Of a trust bundle the
// report says that it was not verified, with exit code 1: that is no verdict
// about it.
func File(ctx context.Context, r io.Reader, o Options) *Report {
	kind, whole, err := Detect(r)
	if err != nil {
		whole = failed{err}
	}
	if kind != KindTrustBundle {
		return Evidence(ctx, whole, o)
	}
	j := newJudge(&o)
	j.report.Kind = kind
	j.fail(CodeUnsupported, "this is a trust bundle; only evidence bundles can be verified here")
	return j.close("the file is not an evidence bundle")
}

// failed gives the error that ended the detection.
type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, fmt.Errorf("read file: %w", f.err) }
