package server

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
)

// TestH10_NoFlippedByteIsServed flips a bit in every byte of the stored bundle:
// the case of a letter, or its neighbour, in turn. An answer is an error, or else says the same as before: every hashed
// value, the head, the scope's place. What no digest covers may differ.
func TestH10_NoFlippedByteIsServed(t *testing.T) {
	t.Parallel()
	b, m := loadTree(t, "two-run"), NewMetrics("test", nil)
	h := newHandler(t, Config{Sidecars: b.sidecars(), Metrics: m})
	honest := b.get(headFile)
	stride := 1
	if testing.Short() {
		stride = 17
	}
	refusedCount := 0
	for at := 0; at < len(honest); at += stride {
		changed := bytes.Clone(honest)
		changed[at] ^= []byte{0x01, 0x20, 0x02}[at%3]
		b.put(headFile, changed)
		w := get(h, "GET", runURL)
		if w.Code != http.StatusOK {
			problemOf(t, w)
			refusedCount++
			continue
		}
		if why := differs(t, honest, w.Body.Bytes()); why != "" {
			t.Fatalf("byte %d (%.40q): served with another %s", at, honest[max(0, at-20):], why)
		}
	}
	if refusedCount < len(honest)/stride/2 {
		t.Errorf("only %d of %d changes were refused", refusedCount, len(honest)/stride)
	}
	// What the alert looks at.
	if told := metricValue(t, m, `chaind_verifications_total{result="refused"}`) + metricValue(t, m, `chaind_verifications_total{result="undecodable"}`); told != float64(refusedCount) {
		t.Errorf("%v refusals are counted, and there were %d", told, refusedCount)
	}
}

// differs names what in a served bundle is not the honest one's, apart from
// what neither hash nor signature covers: times, anchors, and in an unsigned
// bundle the scope beyond its place.
func differs(t *testing.T, honest, served []byte) string {
	t.Helper()
	a, _, err := segments.ReadBundle(bytes.NewReader(honest))
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := segments.ReadBundle(bytes.NewReader(served))
	if err != nil {
		return "form: " + err.Error()
	}
	switch {
	case len(a.Segments) != len(b.Segments):
		return "number of segments"
	case b.Head == nil || *a.Head != *b.Head:
		return "head"
	case a.Scope.PromptHash != b.Scope.PromptHash || a.Scope.ExecuteSessionID != b.Scope.ExecuteSessionID:
		return "place"
	}
	for i := range a.Segments {
		if a.Segments[i].Digest() != b.Segments[i].Digest() {
			return "segment " + strconv.Itoa(i)
		}
	}
	return ""
}

// TestPrefixesAreNotServed cuts the stored bundle everywhere.
func TestPrefixesAreNotServed(t *testing.T) {
	t.Parallel()
	h, b := vectorHandler(t)
	honest := b.get(headFile)
	for n := 0; n < len(honest); n += 7 {
		b.put(headFile, honest[:n])
		wantProblem(t, get(h, "GET", runURL), http.StatusInternalServerError, typeUnknownArtifact)
	}
}

// TestForgeriesThatTheReferenceServes are consistent in themselves and lie in
// the wrong place, or rest on what the reference does not look at.
func TestForgeriesThatTheReferenceServes(t *testing.T) {
	t.Parallel()
	reseal := func(t *testing.T, b *blobs, edit func(*segments.Bundle)) {
		b.change(headFile, editBundle(t, edit))
	}
	for name, forge := range map[string]func(t *testing.T, b *blobs){
		"Q31 other head under the name": func(t *testing.T, b *blobs) {
			longer, _ := extend(t, b.get(headFile))
			b.put(headFile, longer)
		},
		"truncated with a recomputed head": func(t *testing.T, b *blobs) {
			reseal(t, b, func(bundle *segments.Bundle) {
				bundle.Segments = bundle.Segments[:len(bundle.Segments)-1]
				head := bundle.Segments[len(bundle.Segments)-1].Digest()
				bundle.Head = &head
			})
		},
		"bundle of another session": func(t *testing.T, b *blobs) {
			reseal(t, b, func(bundle *segments.Bundle) { bundle.Scope.ExecuteSessionID = strings.Repeat("0", 32) })
		},
		"bundle of another prompt": func(t *testing.T, b *blobs) {
			reseal(t, b, func(bundle *segments.Bundle) { bundle.Scope.PromptHash = strings.Repeat("0", 64) })
		},
		"pointer to a head that does not seal the run": func(t *testing.T, b *blobs) {
			if err := b.Remove(t.Context(), runFile); err != nil {
				t.Fatal(err)
			}
			other := loadTree(t, "legacy")
			legacy := other.get(sessionDir + "evidence/" + vectorRun + ".evidence.json")
			bundle, _, err := segments.ReadBundle(bytes.NewReader(legacy))
			if err != nil {
				t.Fatal(err)
			}
			bundle.Segments = bundle.Segments[:len(bundle.Segments)-1] // the seal
			head := bundle.Segments[len(bundle.Segments)-1].Digest()
			bundle.Head = &head
			b.put(sessionDir+"evidence/heads/"+head.String()+".evidence.json", segments.AppendBundle(nil, bundle))
			b.put(sessionDir+"evidence/run-heads/"+vectorRun+".head", []byte(head.String()))
		},
		"signature by a key of small order": func(t *testing.T, b *blobs) {
			reseal(t, b, func(bundle *segments.Bundle) {
				// Identity as key and as R, S = 0: fits every message (vector q23).
				identity := "01" + strings.Repeat("0", 62)
				bundle.Signature = &segments.Signature{PublicKeyHex: identity, SignatureHex: identity + strings.Repeat("0", 64)}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := loadTree(t, "two-run")
			h := newHandler(t, Config{Sidecars: b.sidecars(), Logger: testLogger(t)})
			if w := get(h, "GET", runURL); w.Code != http.StatusOK {
				t.Fatalf("honest: %d %s", w.Code, w.Body)
			}
			forge(t, b)
			wantProblem(t, get(h, "GET", runURL), http.StatusUnprocessableEntity, typeUnknownArtifact)
		})
	}
}

// TestStoredTrees reads the other vector trees: legacy form, dangling pointer,
// pointer that would leave the directory, head file under a wrong name.
func TestStoredTrees(t *testing.T) {
	t.Parallel()
	for tree, status := range map[string]int{"legacy": 200, "dangling": 200, "traversal": 404, "wrong-name": 422} {
		t.Run(tree, func(t *testing.T) {
			t.Parallel()
			h := newHandler(t, Config{Sidecars: loadTree(t, tree).sidecars()})
			w := get(h, "GET", runURL)
			if w.Code != status {
				t.Fatalf("status %d, want %d: %s", w.Code, status, w.Body)
			}
			if status != http.StatusOK {
				wantProblem(t, w, status, typeUnknownArtifact)
			}
		})
	}
}

func TestSealCheckIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(t *testing.T, b *blobs)
		path   string
		want   string
	}{
		"passed":        {func(*testing.T, *blobs) {}, runURL, "passed"},
		"second run":    {func(*testing.T, *blobs) {}, run2URL, "passed"},
		"by head":       {func(*testing.T, *blobs) {}, vectorURL, "not_requested"},
		"absent":        {func(t *testing.T, b *blobs) { b.Remove(t.Context(), runFile) }, runURL, "artifact_absent"},
		"no seal":       {func(t *testing.T, b *blobs) { b.put(runFile, []byte("PLAR1\n")) }, runURL, "artifact_undecodable"},
		"JSON body too": {func(t *testing.T, b *blobs) { b.put(runFile, bodyOf(t, b.get(runFile))) }, runURL, "passed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := loadTree(t, "two-run")
			c.change(t, b)
			w := get(newHandler(t, Config{Sidecars: b.sidecars()}), "GET", c.path)
			if got := w.Header().Get("Chaind-Seal-Check"); w.Code != http.StatusOK || got != c.want {
				t.Errorf("status %d, seal check %q, want %q", w.Code, got, c.want)
			}
			if got := w.Header().Get("Chaind-Signature"); got != "UNSIGNED" {
				t.Errorf("signature %q", got)
			}
			if got := w.Header().Get("Chaind-Class"); got != "heads" {
				t.Errorf("class %q", got)
			}
		})
	}
}

func bodyOf(t *testing.T, blob []byte) []byte {
	t.Helper()
	_, body, err := segments.SplitArtifactFrame(blob)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// unreadableSnapshot cannot read snapshots, though there may be some.
type unreadableSnapshot struct{ Sidecars }

func (unreadableSnapshot) ReadSnapshot(context.Context, sidecar.Place, string) ([]byte, error) {
	return nil, errors.New("input/output error")
}

func TestUnreadableSnapshotIsNotAbsent(t *testing.T) {
	t.Parallel()
	h := newHandler(t, Config{Sidecars: unreadableSnapshot{loadTree(t, "two-run").sidecars()}})
	wantProblem(t, get(h, "GET", runURL), http.StatusServiceUnavailable, typeUnavailable)
}

// TestServedFormIsTheFormats rewrites what a lenient reader accepts.
func TestServedFormIsTheFormats(t *testing.T) {
	t.Parallel()
	b := loadTree(t, "two-run")
	honest := b.get(headFile)
	loose := bytes.Replace(honest, []byte(`{"scope":{`), []byte("\n{ \"unknown\": [1, {}],\t\"scope\" : {"), 1)
	loose = bytes.Replace(loose, []byte(vectorHead), []byte(strings.ToUpper(vectorHead)), 1)
	b.put(headFile, loose)
	h := newHandler(t, Config{Sidecars: b.sidecars()})
	for range 2 { // judged, then remembered
		w := get(h, "GET", runURL)
		if w.Code != http.StatusOK || !bytes.Equal(w.Body.Bytes(), honest) {
			t.Fatalf("status %d, body %.200q", w.Code, w.Body)
		}
		if w.Header().Get("ETag") != `"`+segments.Sum(honest).String()+`"` {
			t.Error("the tag is not the digest of the bytes sent")
		}
	}
}

// TestSignatureStates judges one signed bundle by several lists.
func TestSignatureStates(t *testing.T) {
	t.Parallel()
	signer, other := newSigner(t, 1), newSigner(t, 2)
	list := func(key keys.PublicKey, status keys.Status) *keys.TrustList {
		l, _, err := keys.Merge([]keys.Entry{{PublicKey: key, Status: status}})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	sign := func(bundle *segments.Bundle) { bundle.Signature = segments.Sign(signer, &bundle.Scope, *bundle.Head) }
	for name, c := range map[string]struct {
		edit          func(*segments.Bundle)
		trust         *keys.TrustList
		allowUnsigned bool
		status        int
		state         string
	}{
		"unpinned":           {sign, nil, false, 200, "SIGNED-UNPINNED"},
		"trusted":            {sign, list(public(signer), keys.Active), false, 200, "TRUSTED"},
		"retired":            {sign, list(public(signer), keys.Retired), false, 200, "RETIRED"},
		"revoked":            {sign, list(public(signer), keys.Revoked), false, 422, ""},
		"untrusted":          {sign, list(public(other), keys.Active), false, 422, ""},
		"Q14 stripped":       {nil, list(public(signer), keys.Active), false, 422, ""},
		"unsigned allowed":   {nil, list(public(signer), keys.Active), true, 200, "UNSIGNED"},
		"untrusted, allowed": {sign, list(public(other), keys.Active), true, 422, ""},
		"scope changed after signing": {func(b *segments.Bundle) { sign(b); b.Scope.EntryID += "x" },
			nil, false, 422, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := loadTree(t, "two-run")
			if c.edit != nil {
				b.change(headFile, editBundle(t, c.edit))
			}
			h := newHandler(t, Config{Sidecars: b.sidecars(), Trust: func() *keys.TrustList { return c.trust }, AllowUnsigned: c.allowUnsigned})
			w := get(h, "GET", runURL)
			if w.Code != c.status || w.Header().Get("Chaind-Signature") != c.state {
				t.Fatalf("status %d, state %q: %.200s", w.Code, w.Header().Get("Chaind-Signature"), w.Body)
			}
			if c.status != http.StatusOK {
				if p := wantProblem(t, w, 422, typeUnknownArtifact); p.Detail != "signature verification failed" {
					t.Errorf("detail %q", p.Detail)
				}
			}
		})
	}
}

// TestVerdictFollowsTheTrustList exchanges the list while the server runs.
func TestVerdictFollowsTheTrustList(t *testing.T) {
	t.Parallel()
	signer := newSigner(t, 1)
	b := loadTree(t, "two-run")
	b.change(headFile, editBundle(t, func(bundle *segments.Bundle) {
		bundle.Signature = segments.Sign(signer, &bundle.Scope, *bundle.Head)
	}))
	var current *keys.TrustList
	h := newHandler(t, Config{Sidecars: b.sidecars(), Trust: func() *keys.TrustList { return current }})
	for _, c := range []struct {
		status keys.Status
		code   int
	}{{keys.Active, 200}, {keys.Revoked, 422}, {keys.Retired, 200}, {keys.Revoked, 422}} {
		var err error
		if current, _, err = keys.Merge([]keys.Entry{{PublicKey: public(signer), Status: c.status}}); err != nil {
			t.Fatal(err)
		}
		if w := get(h, "GET", runURL); w.Code != c.code {
			t.Errorf("%s: status %d, want %d", c.status, w.Code, c.code)
		}
	}
}
