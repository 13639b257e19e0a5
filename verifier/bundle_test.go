package verifier

import (
	"bytes"
	"context"
)

func verifyBundle(text []byte, o Options) *Report {
	return TrustBundle(context.Background(), bytes.NewReader(text), o)
}
