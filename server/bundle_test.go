package server

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/sealer"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/store"
	"github.com/chaind/chaind/verifier"
)

func (w *world) pack(ctx context.Context, record *store.ChainRecord) ([]byte, error) {
	text, _, err := sealer.Pack(ctx, w.store, record, nil, nil)
	return []byte(text), err
}

// finishedChain is a sealed chain of the vectors that has run ids.
func (w *world) finishedChain(t *testing.T) *expectedChain {
	t.Helper()
	for i := range w.chains {
		if c := &w.chains[i]; c.Outcome != "open" && c.Conformity == "conforming" && len(c.RunIDs) > 0 {
			return c
		}
	}
	t.Fatal("no such chain in the vectors")
	return nil
}

// TestBundlesOfARealStore asks for the bundle of every chain of the vectors.
func TestBundlesOfARealStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seal(t)
	h := newHandler(t, Config{Store: w.store, Sidecars: w.sidecars, Logger: testLogger(t), Pack: w.pack})
	for i := range w.chains {
		c := &w.chains[i]
		t.Run(c.Tenant+" "+c.Chain, func(t *testing.T) {
			a := get(h, "GET", c.url()+"/bundle")
			if a.Code != http.StatusOK || a.Header().Get("Content-Type") != bundleMediaType || a.Header().Get("Chaind-Signature") != "UNSIGNED" {
				t.Fatalf("%d %v %.200q", a.Code, a.Header(), a.Body)
			}
			text := a.Body.Bytes()
			if a.Header().Get("ETag") != `"`+segments.Sum(text).String()+`"` || !strings.HasSuffix(a.Header().Get("Cache-Control"), "no-cache") {
				t.Errorf("%v", a.Header())
			}
			word := c.Outcome
			if c.Segments == 0 {
				word = "empty"
			}
			report := verifier.TrustBundle(t.Context(), bytes.NewReader(text), verifier.Options{})
			if run := report.Content.Run; run == nil || run.Word != word || run.Chain != c.Chain || run.Segments != c.Segments {
				t.Errorf("%s %+v", report.Summary, run)
			}
			if (report.ExitCode != 0 && report.ExitCode != 3) || c.Outcome == "open" && report.ExitCode != 3 {
				t.Errorf("exit %d: %s", report.ExitCode, report.Summary)
			}
			checkAddress(t, h, c, a.Header().Get("Content-Location"), a.Header().Get("Chaind-Root"), text)
		})
	}
}

// checkAddress: the address of exactly the bytes of a sealed bundle is cached for
// good, and an open chain's has none.
func checkAddress(t *testing.T, h http.Handler, c *expectedChain, address, root string, text []byte) {
	t.Helper()
	if c.Outcome == "open" {
		if address != "" || root != "" {
			t.Errorf("open chain has address %s, root %s", address, root)
		}
		return
	}
	a := get(h, "GET", address)
	if a.Code != http.StatusOK || !strings.HasSuffix(a.Header().Get("Cache-Control"), "immutable") || !bytes.Equal(a.Body.Bytes(), text) {
		t.Errorf("%s: %d %v", address, a.Code, a.Header())
	}
	if !strings.Contains(string(text), `"sha256:`+root+`"`) {
		t.Errorf("root %s is not that of the bundle", root)
	}
	wantProblem(t, get(h, "GET", c.url()+"/bundle?sha256="+strings.Repeat("0", 64)), 404, typeUnknownArtifact)
	wantProblem(t, get(h, "GET", c.url()+"/bundle?sha256=x"), 400, typeInvalidQuery)
	if a := get(h, "GET", c.url()+"/bundle", "If-None-Match", `"`+segments.Sum(text).String()+`"`); a.Code != http.StatusNotModified {
		t.Errorf("conditional request: %d", a.Code)
	}
}

// TestBundleOfARun: of the chains that carry a run id the best stands for it,
// and the others are named.
func TestBundleOfARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seal(t)
	h := newHandler(t, Config{Store: w.store, Sidecars: w.sidecars, Logger: testLogger(t), Pack: w.pack})
	carriers := map[string][]*expectedChain{}
	for i := range w.chains {
		c := &w.chains[i]
		for _, id := range c.RunIDs {
			at := "/execute/" + c.PromptHash + "/" + c.Session + "/artifacts/" + id + "/bundle"
			if c.Tenant != "_" {
				at = "/tenants/" + c.Tenant + at
			}
			carriers[at] = append(carriers[at], c)
		}
	}
	for at, chains := range carriers {
		a := get(h, "GET", at)
		report := verifier.TrustBundle(t.Context(), bytes.NewReader(a.Body.Bytes()), verifier.Options{})
		if a.Code != http.StatusOK || report.Content == nil || report.Content.Run == nil {
			t.Errorf("%s: %d %.200q", at, a.Code, a.Body)
			continue
		}
		links := a.Header().Values("Link")
		if len(links) != len(chains)-1 {
			t.Errorf("%s: %d chains, links %q", at, len(chains), links)
		}
		for _, c := range chains {
			named := strings.Contains(strings.Join(links, " "), c.url()+"/bundle>")
			if named == (c.Chain == report.Content.Run.Chain) {
				t.Errorf("%s: chain %s named: %v", at, c.Chain, named)
			}
		}
	}
	if len(carriers) == 0 {
		t.Fatal("no run ids in the vectors")
	}
	wantProblem(t, get(h, "GET", strings.Replace(runURL, "/evidence", "/bundle", 1)), 404, typeUnknownArtifact)
}

// TestStandsFor orders chains of one run.
func TestStandsFor(t *testing.T) {
	t.Parallel()
	made := func(planned, ended bool, seq uint64) *store.ChainRecord {
		w := &store.ChainRecord{State: stateOf(planned), Epoch: 1, StreamSeq: seq}
		if ended {
			w.Fixed = &store.Fixed{}
		}
		return w
	}
	order := []*store.ChainRecord{
		made(true, false, 1), made(false, false, 9), made(false, true, 2), made(false, true, 8), made(true, true, 3), made(true, true, 7),
	}
	for i := range order {
		for j := range order {
			if got := standsFor(order[i], order[j]); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%d against %d: %d", i, j, got)
			}
		}
	}
}

// TestBundleRefusals: what is not there, not as it was, or not for the caller.
func TestBundleRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.finishedChain(t)
	cfg := Config{Store: w.store, Sidecars: w.sidecars, Logger: testLogger(t)}
	h := newHandler(t, cfg)
	wantProblem(t, get(h, "GET", c.url()+"/bundle"), 503, typeSealPending)
	w.seal(t)
	for i := range w.chains {
		if open := &w.chains[i]; open.Outcome == "open" {
			wantProblem(t, get(h, "GET", open.url()+"/bundle"), 409, typeChainOpen)
		}
	}
	wantProblem(t, get(h, "GET", c.url()+"x/bundle"), 404, typeUnknownChain)

	record := decode[chainDetail](t, get(h, "GET", c.url()))
	if record.BundleURL != c.url()+"/bundle" || record.Sealed.BundlePath == "" || record.Sealed.BundleSHA256 == nil {
		t.Fatalf("%+v", record.Sealed)
	}
	path := record.Sealed.BundlePath
	whole := w.blobs.get(path)
	if segments.Sum(whole).String() != *record.Sealed.BundleSHA256 || uint64(len(whole)) != record.Sealed.BundleBytes {
		t.Errorf("recorded %+v", record.Sealed)
	}
	if a := get(h, "GET", c.url()+"/bundle"); a.Code != 200 {
		t.Fatalf("%d", a.Code) // remembered from here on
	}
	for name, edit := range map[string]func([]byte) []byte{
		"a digit":     func(b []byte) []byte { return bytes.Replace(b, []byte(`["seq","1"]`), []byte(`["seq","2"]`), 1) },
		"white space": func(b []byte) []byte { return append(b, '\n') },
		"cut":         func(b []byte) []byte { return b[:len(b)/2] },
		"emptied":     func([]byte) []byte { return nil },
	} {
		w.blobs.put(path, whole)
		w.blobs.change(path, edit)
		p := wantProblem(t, get(h, "GET", c.url()+"/bundle"), 422, typeUnknownArtifact)
		if p.Detail == "" {
			t.Errorf("%s: no reason", name)
		}
	}
	if err := w.blobs.Remove(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	wantProblem(t, get(h, "GET", c.url()+"/bundle"), 500, typeEvidenceLost)
	w.blobs.put(path, whole)

	// Unsigned, and somebody is to be trusted.
	trust, _, err := keys.Merge([]keys.Entry{{PublicKey: public(newSigner(t, 1))}})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Trust = func() *keys.TrustList { return trust }
	wantProblem(t, get(newHandler(t, cfg), "GET", c.url()+"/bundle"), 422, typeUnknownArtifact)
	cfg.AllowUnsigned = true
	if a := get(newHandler(t, cfg), "GET", c.url()+"/bundle"); a.Code != 200 {
		t.Errorf("%d %s", a.Code, a.Body)
	}
	cfg.Tokens = func() []Token { return []Token{{SHA256: segments.Sum([]byte("t")), Tenants: []string{"elsewhere"}}} }
	wantProblem(t, get(newHandler(t, cfg), "GET", c.url()+"/bundle", "Authorization", "Bearer t"), 404, typeUnknownChain)
}

func stateOf(planned bool) *events.State {
	s := events.NewState(events.Key{})
	s.Order.Planned = planned
	return s
}
