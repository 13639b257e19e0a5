package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
)

// longRun is a store with one honest bundle of n steps, and its address.
func longRun(b *testing.B, n int) (http.Handler, string, []byte) {
	b.Helper()
	bundle := &segments.Bundle{}
	bundle.Scope = segments.Scope{SchemaVersion: 1, PromptHash: vectorHash, ExecuteSessionID: vectorSession,
		CatalogCGSHash: vectorHead, DomainRevision: 1, EntryID: "tracker"}
	topo := make([]string, n)
	for i := range topo {
		topo[i] = "step" + strconv.Itoa(i)
	}
	sum := segments.Sum([]byte("plan"))
	var chain segments.Builder
	add := func(k segments.Kind) {
		bundle.Segments = append(bundle.Segments, chain.Append(k, new(uint64(1767225600000))))
	}
	add(&segments.CompCommitted{PlanCommitIDHex: sum.String(), CompSemanticSHA256: sum, StepTopo: topo})
	for i, id := range topo {
		add(&segments.StepExecuted{StepID: id, StepIndex: uint32(i), SourceLine: "tracker.list(project: 7)", RequestFingerprints: []string{sum.String()}})
	}
	bundle.Head = chain.Head
	text := segments.AppendBundle(nil, bundle)
	m := sidecar.NewMemory()
	place := sidecar.Place{PromptHash: vectorHash, Session: vectorSession}
	if err := m.Put(context.Background(), place.EvidencePath(sidecar.Heads, *chain.Head), sidecar.Bytes(text)); err != nil {
		b.Fatal(err)
	}
	s, err := sidecar.Open(context.Background(), sidecar.Config{Blobs: m})
	if err != nil {
		b.Fatal(err)
	}
	h, err := New(Config{Sidecars: s})
	if err != nil {
		b.Fatal(err)
	}
	return h, headURL(place, *chain.Head), text
}

// BenchmarkEvidence serves remembered evidence; the limit is one SHA-256 of
// the same bytes, measured in the same run, and reported as a ratio.
func BenchmarkEvidence(b *testing.B) {
	h, path, text := longRun(b, 1000)
	r := httptest.NewRequest("GET", path, nil)
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != http.StatusOK || !bytes.Equal(w.Body.Bytes(), text) {
		b.Fatalf("status %d: %.200s", w.Code, w.Body)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		h.ServeHTTP(discard{http.Header{}}, r)
	}
	b.ReportMetric(hashTime(text).Seconds()*float64(b.N)/b.Elapsed().Seconds(), "of-sha256")
}

// BenchmarkJudge verifies the same evidence without a remembered verdict.
func BenchmarkJudge(b *testing.B) {
	_, _, text := longRun(b, 1000)
	q := question{place: sidecar.Place{PromptHash: vectorHash, Session: vectorSession}, class: sidecar.Heads}
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if v, err := judge(context.Background(), &q, text, nil); err != nil || v.problem != nil {
			b.Fatal(v.problem, err)
		}
	}
	b.ReportMetric(hashTime(text).Seconds()*float64(b.N)/b.Elapsed().Seconds(), "of-sha256")
}

// hashTime is the time of one SHA-256, the best of many.
func hashTime(text []byte) time.Duration {
	best := time.Hour
	for range 50 {
		start := time.Now()
		sha256.Sum256(text)
		best = min(best, time.Since(start))
	}
	return best
}

// discard is a response writer that keeps nothing.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}
