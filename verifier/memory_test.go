package verifier

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
)

// watched gives a text piece by piece and notes how much memory is in use.
type watched struct {
	pieces  func() string // "": no more
	pending string
	given   int
	peak    uint64
}

func (w *watched) Read(p []byte) (int, error) {
	if w.pending == "" {
		if w.pending = w.pieces(); w.pending == "" {
			return 0, io.EOF
		}
	}
	n := copy(p, w.pending)
	w.pending = w.pending[n:]
	const every = 16 << 20
	if before := w.given; (before+n)/every != before/every {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		w.peak = max(w.peak, m.HeapAlloc)
	}
	w.given += n
	return n, nil
}

// TestMemoryOfHostileEvidence: nothing in a file that the format does not have is
// kept, wherever it stands and however long it is.
func TestMemoryOfHostileEvidence(t *testing.T) {
	const pieces, long = 64, 2 << 20
	filler := strings.Repeat("x", long)
	scope := `{"scope":{"schema_version":1,"prompt_hash":"p","execute_session_id":"s","catalog_cgs_hash":"c","domain_revision":0,"entry_id":"e"},`
	name := func(i int) string { return fmt.Sprintf(`"%d%s":0,`, i, filler) }
	value := func(i int) string { return fmt.Sprintf(`"%d":"%s",`, i, filler) }
	for what, c := range map[string]struct {
		before string
		piece  func(int) string
		after  string
	}{
		"names beside the scope":     {"{", name, scope[1:] + `"chain":{"segments":[]}}`},
		"names behind the scope":     {scope, name, `"chain":{"segments":[]}}`},
		"values behind the scope":    {scope, value, `"chain":{"segments":[]}}`},
		"names beside the segments":  {scope + `"chain":{`, name, `"segments":[]}}`},
		"names behind the segments":  {scope + `"chain":{"segments":[],`, name, `"head":null}}`},
		"values behind the chain":    {scope + `"chain":{"segments":[]},`, value, `"signature":null}`},
		"long names of each segment": {scope + `"chain":{"segments":[`, func(i int) string { return "{" + name(i) + `"seq":0,"kind":{"kind":"x"}},` }, `{}]}}`},
		"long step ids": {scope + `"chain":{"segments":[`, func(i int) string {
			return fmt.Sprintf(`{"seq":%d,"kind":{"kind":"step_executed","step_id":"%s","step_index":0,"request_fingerprints":[],"source_line":"","parsed_expr_digest":"%064d"}},`, i, filler, i)
		}, `{}]}}`},
		"long run ids": {scope + `"chain":{"segments":[`, func(i int) string {
			return fmt.Sprintf(`{"seq":%d,"kind":{"kind":"run_sealed","run_id":"%s","run_bundle_digest":"%064d"}},`, i, filler, i)
		}, `{}]}}`},
		"long plan ids": {scope + `"chain":{"segments":[`, func(i int) string {
			return fmt.Sprintf(`{"seq":%d,"kind":{"kind":"comp_committed","plan_commit_id_hex":"%s","comp_semantic_sha256":"%064d","step_topo":[]}},`, i, filler, i)
		}, `{}]}}`},
	} {
		at := -1
		w := &watched{}
		w.pieces = func() string {
			defer func() { at++ }()
			switch {
			case at < 0:
				return c.before
			case at < pieces:
				return c.piece(at)
			case at == pieces:
				return c.after
			}
			return ""
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		r := Evidence(context.Background(), w, Options{})
		if r.ExitCode == ExitPass {
			t.Errorf("%s: passes", what)
		}
		if grown := int64(w.peak) - int64(m.HeapAlloc); grown > pieces*long*5/8 {
			t.Errorf("%s: %d MiB in use after %d MiB (%s)", what, grown>>20, w.given>>20, r.Summary)
		}
	}
}
