package verifier

import (
	"context"
	"fmt"
	"io"
)

// File verifies a file of any kind that [Detect] tells apart. Evidence bundles,
// and files that are nothing known, go to [Evidence], trust bundles to
// [TrustBundle].
func File(ctx context.Context, r io.Reader, o Options) *Report {
	kind, whole, err := Detect(r)
	if err != nil {
		whole = failed{err}
	}
	if kind == KindTrustBundle {
		return TrustBundle(ctx, whole, o)
	}
	return Evidence(ctx, whole, o)
}

// failed gives the error that ended the detection.
type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, fmt.Errorf("read file: %w", f.err) }
