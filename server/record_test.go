package server

import (
	"bytes"
	"crypto/ed25519"
	"net/http"
	"path"
	"strings"
	"testing"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
)

// routes are the addresses under which the evidence of a sealed chain is served.
func (c *expectedChain) routes() []string {
	urls := []string{c.url() + "/evidence"}
	if !strings.Contains(*c.Sidecar, "/heads/") {
		return urls
	}
	session := "/execute/" + c.PromptHash + "/" + c.Session
	if c.Tenant != "_" {
		session = "/tenants/" + c.Tenant + session
	}
	urls = append(urls, session+"/evidence/heads/"+*c.Head)
	for _, id := range c.RunIDs {
		urls = append(urls, session+"/artifacts/"+id+"/evidence")
	}
	return urls
}

// conforming returns a sealed chain under heads/ with a run.
func (w *world) conforming(t *testing.T) *expectedChain {
	t.Helper()
	for i := range w.chains {
		if c := &w.chains[i]; c.Sidecar != nil && len(c.RunIDs) > 0 && strings.Contains(*c.Sidecar, "/heads/") {
			return c
		}
	}
	t.Fatal("no conforming chain with a run")
	return nil
}

func (c *expectedChain) pointer(runID string) string {
	return strings.Replace(path.Dir(*c.Sidecar), "/heads", "/run-heads/", 1) + runID + ".head"
}

func wantRefused(t *testing.T, h http.Handler, url string) problem {
	t.Helper()
	w := get(h, "GET", url)
	if tag := w.Header().Get("ETag"); tag != "" || strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
		t.Errorf("%s: refused bytes have tag %s, caching %s", url, tag, w.Header().Get("Cache-Control"))
	}
	return wantProblem(t, w, http.StatusUnprocessableEntity, typeUnknownArtifact)
}

func wantRecord(t *testing.T, h http.Handler, url, record string) {
	t.Helper()
	for range 2 { // judged, then remembered
		w := get(h, "GET", url)
		if got := w.Header().Get("Chaind-Record"); w.Code != http.StatusOK || got != record {
			t.Fatalf("%s: status %d, record %q, want %q: %.300s", url, w.Code, got, record, w.Body)
		}
	}
}

// TestH10_SealedEvidenceIsComparedWithItsRecord changes what no digest in the
// bundle covers, on every route under which the bundle is served.
func TestH10_SealedEvidenceIsComparedWithItsRecord(t *testing.T) {
	t.Parallel()
	other := newSigner(t, 3)
	for name, edit := range map[string]func(*segments.Bundle){
		"time":    func(b *segments.Bundle) { b.Segments[0].EmittedAtMS = new(uint64(1)) },
		"anchors": func(b *segments.Bundle) { b.Anchors.PlanCommitRef = new("elsewhere") },
		"scope":   func(b *segments.Bundle) { b.Scope.EntryID = "other" },
		"logical": func(b *segments.Bundle) { b.Scope.LogicalSessionID = new("other") },
		"signed by another": func(b *segments.Bundle) {
			b.Scope.EntryID = "other"
			b.Signature = segments.Sign(other, &b.Scope, *b.Head)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.seal(t)
			h := w.handler(t)
			for i := range w.chains {
				c := &w.chains[i]
				if c.Sidecar == nil {
					continue
				}
				honest := w.blobs.get(*c.Sidecar)
				for _, url := range c.routes() {
					wantRecord(t, h, url, recordMatched)
				}
				w.blobs.change(*c.Sidecar, editBundle(t, edit))
				for _, url := range c.routes() {
					wantRefused(t, h, url)
				}
				wantRefused(t, h, c.routes()[len(c.routes())-1])
				w.blobs.put(*c.Sidecar, honest)
				for _, url := range c.routes() {
					wantRecord(t, h, url, recordMatched)
				}
				if err := w.blobs.Remove(t.Context(), *c.Sidecar); err != nil {
					t.Fatal(err)
				}
				for _, url := range c.routes() {
					wantProblem(t, get(h, "GET", url), http.StatusInternalServerError, typeEvidenceLost)
				}
			}
		})
	}
}

// invent writes a transcript of another course of the same run, consistent in
// itself, under its own head, and returns that.
func invent(t *testing.T, w *world, c *expectedChain, sign ed25519.PrivateKey) (text []byte, head segments.Digest) {
	t.Helper()
	text = editBundle(t, func(b *segments.Bundle) {
		var prev *segments.Digest
		for i := range b.Segments {
			s := &b.Segments[i]
			if step, ok := s.Kind.(*segments.StepExecuted); ok {
				step.SourceLine = "harmless()"
			}
			s.Prev = prev
			head = s.Digest()
			prev = new(head)
		}
		b.Head, b.Signature = &head, nil
		if sign != nil {
			b.Signature = segments.Sign(sign, &b.Scope, head)
		}
	})(w.blobs.get(*c.Sidecar))
	if head.String() == *c.Head {
		t.Fatal("nothing was invented")
	}
	w.blobs.put(path.Dir(*c.Sidecar)+"/"+head.String()+".evidence.json", text)
	return text, head
}

// TestH10_InventedTranscriptOfASealedRun leads a run that was sealed here to a
// transcript that was not.
func TestH10_InventedTranscriptOfASealedRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seal(t)
	h, c := w.handler(t), w.conforming(t)
	run := c.RunIDs[0]
	url := c.routes()[2]
	text, head := invent(t, w, c, newSigner(t, 3))
	w.blobs.put(c.pointer(run), []byte(head.String()))
	wantRefused(t, h, url)

	if err := w.blobs.Remove(t.Context(), c.pointer(run)); err != nil {
		t.Fatal(err)
	}
	legacy := path.Dir(path.Dir(*c.Sidecar)) + "/" + run + ".evidence.json"
	w.blobs.put(legacy, text)
	wantRefused(t, h, url)
	w.blobs.put(legacy, w.blobs.get(*c.Sidecar)) // what was sealed, in the older form
	wantRecord(t, h, url, recordMatched)
	w.blobs.change(legacy, editBundle(t, func(b *segments.Bundle) { b.Scope.EntryID = "other" }))
	wantRefused(t, h, url)
}

// TestH10_ConformingTranscriptOfARunThatWasNot puts under heads/ what an
// unplanned chain should have been.
func TestH10_ConformingTranscriptOfARunThatWasNot(t *testing.T) {
	t.Parallel()
	honest := newWorld(t)
	honest.seal(t)
	c := honest.conforming(t)
	w := emptyWorld(t)
	key := w.twin(t, c, "unplanned", func(payload string) (string, bool) { return payload, !strings.Contains(payload, `"comp_committed"`) })
	w.seal(t)
	record, err := w.store.Chain(key)
	if err != nil || record.Seal == nil || record.Seal.Class != "unplanned" {
		t.Fatalf("%+v, %v", record.Seal, err)
	}
	w.blobs.put(*c.Sidecar, honest.blobs.get(*c.Sidecar))
	w.blobs.put(c.pointer(c.RunIDs[0]), []byte(*c.Head))
	if p := wantRefused(t, w.handler(t), c.routes()[2]); !strings.Contains(p.Detail, "not in a chain with head "+*c.Head) {
		t.Errorf("detail %q", p.Detail)
	}
}

// TestEvidenceThatTheStoreDoesNotKnow is Plasm's own, beside a store.
func TestEvidenceThatTheStoreDoesNotKnow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := newHandler(t, Config{Sidecars: loadTree(t, "two-run").sidecars(), Store: w.store, Logger: testLogger(t)})
	wantRecord(t, h, runURL, recordUnknown)
	wantRecord(t, h, vectorURL, recordUnknown)
	wantProblem(t, get(h, "GET", strings.Replace(vectorURL, vectorHead, strings.Repeat("0", 64), 1)), http.StatusNotFound, typeUnknownArtifact)
}

// TestEvidenceBeforeItsSealIsOnRecord is what a crash, or a store that was
// restored and is told of its chains again, leaves for a while.
func TestEvidenceBeforeItsSealIsOnRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seal(t)
	again := newWorld(t)
	c := w.conforming(t)
	h := newHandler(t, Config{Sidecars: w.sidecars, Store: again.store, Logger: testLogger(t)})
	for _, url := range c.routes()[1:] {
		wantRecord(t, h, url, recordPending)
	}
	_, head := invent(t, w, c, nil)
	w.blobs.put(c.pointer(c.RunIDs[0]), []byte(head.String()))
	wantRefused(t, h, c.routes()[2])
}

// TestEvidenceThatARestoredStoreForgot is of a run that the store knows by
// another chain only. What the daemon's own key signed is served.
func TestEvidenceThatARestoredStoreForgot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seal(t)
	c, signer, other := w.conforming(t), newSigner(t, 1), newSigner(t, 2)
	_, head := invent(t, w, c, signer)
	w.blobs.put(c.pointer(c.RunIDs[0]), []byte(head.String()))
	ours := public(signer)
	for _, x := range []struct {
		key    *keys.PublicKey
		status int
	}{{&ours, 200}, {new(public(other)), 422}, {nil, 422}} {
		h := newHandler(t, Config{Sidecars: w.sidecars, Store: w.store, Signing: func() *keys.PublicKey { return x.key }, Logger: testLogger(t)})
		if got := get(h, "GET", c.routes()[2]); got.Code != x.status {
			t.Errorf("key %v: status %d, want %d: %s", x.key, got.Code, x.status, got.Body)
		}
	}
}

// TestChainsThatShareAHead are served the bytes that stand, which both records
// name.
func TestChainsThatShareAHead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.conforming(t)
	twin := w.twin(t, c, "twin", unchanged)
	w.seal(t)
	record, err := w.store.Chain(twin)
	if err != nil || record.Seal == nil || record.Seal.Head.String() != *c.Head {
		t.Fatalf("%+v, %v", record, err)
	}
	h := w.handler(t)
	for _, url := range append(c.routes(), chainURL(twin)+"/evidence") {
		wantRecord(t, h, url, recordMatched)
	}
	a, b := get(h, "GET", c.url()+"/evidence"), get(h, "GET", chainURL(twin)+"/evidence")
	if !bytes.Equal(a.Body.Bytes(), b.Body.Bytes()) {
		t.Error("two bodies under one head")
	}
	// One is forged and another chain with this head waits for its seal: the
	// record that there is counts.
	w.twin(t, c, "waiting", unchanged)
	w.blobs.change(*c.Sidecar, editBundle(t, func(b *segments.Bundle) { b.Scope.EntryID = "other" }))
	for _, url := range c.routes() {
		wantRefused(t, h, url)
	}
}

func unchanged(payload string) (string, bool) { return payload, true }

// otherScope gives a chain's events another scope.
func otherScope(payload string) (string, bool) {
	return strings.ReplaceAll(payload, `"catalog_cgs_hash":`, `"logical_session_id":"other","catalog_cgs_hash":`), true
}

// TestOneHeadOfTwoScopes: no scope is in a head, so two chains of a session may
// share it and say different things. The first one's bytes stand; they are not
// served as the second one's, whose trust bundle holds what it says itself.
func TestOneHeadOfTwoScopes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seal(t)
	c := w.conforming(t)
	honest := w.blobs.get(*c.Sidecar)
	other := w.twin(t, c, "other-scope", otherScope)
	w.seal(t)
	record, err := w.store.Chain(other)
	if err != nil || record.Seal == nil || record.Seal.Head == nil || record.Seal.Head.String() != *c.Head || record.Seal.Path != "" || *record.State.Scope == (segments.Scope{}) {
		t.Fatalf("%+v, %v", record.Seal, err)
	}
	h := w.handler(t)
	for _, url := range c.routes() {
		wantRecord(t, h, url, recordMatched)
	}
	p := wantProblem(t, get(h, "GET", chainURL(other)+"/evidence"), http.StatusConflict, typeHeadTaken)
	if !strings.Contains(p.Detail, *c.Head) || !strings.Contains(p.Detail, chainURL(other)+"/bundle") {
		t.Errorf("detail %q", p.Detail)
	}
	d := decode[chainDetail](t, get(h, "GET", chainURL(other)))
	if d.EvidenceURL != nil || d.Sealed == nil || d.Sealed.SHA256 != nil || d.Sealed.Path != "" {
		t.Errorf("evidence %v, sealed %+v", d.EvidenceURL, d.Sealed)
	}
	if got := get(h, "GET", chainURL(other)+"/bundle"); got.Code != http.StatusOK {
		t.Errorf("trust bundle: %d %s", got.Code, got.Body)
	}
	if !bytes.Equal(w.blobs.get(*c.Sidecar), honest) {
		t.Error("the first bytes do not stand")
	}
	// With the second chain's scope the file is nobody's evidence.
	w.blobs.change(*c.Sidecar, editBundle(t, func(b *segments.Bundle) { b.Scope.LogicalSessionID = new("other") }))
	for _, url := range c.routes() {
		wantRefused(t, h, url)
	}
}
