package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chaind/chaind/sidecar"
)

// hugeEvidence holds more than is read.
type hugeEvidence struct{ Sidecars }

func (hugeEvidence) ReadRun(context.Context, sidecar.Place, string) (*sidecar.Found, error) {
	return nil, fmt.Errorf("read blob: %w", sidecar.ErrTooLarge)
}

// TestTooLargeIsNotForTheMoment: what will never be served does not ask to be
// asked for again.
func TestTooLargeIsNotForTheMoment(t *testing.T) {
	t.Parallel()
	w := get(newHandler(t, Config{Sidecars: hugeEvidence{loadTree(t, "two-run").sidecars()}, Logger: testLogger(t)}), http.MethodGet, runURL)
	p := wantProblem(t, w, http.StatusInternalServerError, typeInternal)
	if w.Header().Get("Retry-After") != "" || !strings.Contains(p.Detail, "verify the file") {
		t.Errorf("%q, %v", p.Detail, w.Header())
	}
}

// TestManyRangesAreOneAnswer: an answer is never larger than the content by
// more than the parts of a few ranges cost.
func TestManyRangesAreOneAnswer(t *testing.T) {
	t.Parallel()
	h, b := vectorHandler(t)
	whole := len(b.get(headFile))
	for _, n := range []int{2, maxRanges, maxRanges + 1, 1000} {
		var ranges []string
		for i := range n {
			ranges = append(ranges, fmt.Sprintf("%d-%d", i, i))
		}
		w := get(h, http.MethodGet, runURL, "Range", "bytes="+strings.Join(ranges, ","))
		want := http.StatusPartialContent
		if n > maxRanges {
			want = http.StatusOK
		}
		if w.Code != want || w.Body.Len() > whole+maxRanges*256 {
			t.Errorf("%d ranges: %d, %d bytes of %d", n, w.Code, w.Body.Len(), whole)
		}
	}
}
