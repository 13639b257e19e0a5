package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/store"
)

// TestTimelinesOfARealStore reads every chain of the vectors in small pages:
// the segments link up to the head, and the attempts are those that were
// counted.
func TestTimelinesOfARealStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.handler(t)
	attempts := 0
	for i := range w.chains {
		c := &w.chains[i]
		t.Run(c.Chain, func(t *testing.T) {
			var prev *string
			got := walk(t, h, c.url()+"/segments?limit=2", func(t *testing.T, path string) ([]string, *string) {
				page := decode[segmentPage](t, get(h, "GET", path))
				var digests []string
				for _, s := range page.Segments {
					if prev == nil != (s.Prev == nil) || prev != nil && *prev != *s.Prev {
						t.Errorf("segment %d does not follow the one before", s.Seq)
					}
					if !strings.Contains(s.KindJCS, `"kind":"`+s.Kind+`"`) || s.EventID == "" || s.Arrival == 0 {
						t.Errorf("segment %d: %+v", s.Seq, s)
					}
					prev = &s.Digest
					digests = append(digests, s.Digest)
				}
				return digests, page.Next
			})
			if uint64(len(got)) != c.Segments || c.Head != nil && got[len(got)-1] != *c.Head {
				t.Errorf("%d segments that end in %v, want %d and %v", len(got), prev, c.Segments, c.Head)
			}
			tally := map[string]uint64{}
			walk(t, h, c.url()+"/attempts?limit=1", func(t *testing.T, path string) ([]string, *string) {
				page := decode[attemptPage](t, get(h, "GET", path))
				for _, a := range page.Attempts {
					tally[a.StepID+" "+string(a.Phase)]++
					attempts++
				}
				return nil, page.Next
			})
			for _, step := range c.Attempts {
				if tally[step.StepID+" begin"] != step.Begun || tally[step.StepID+" failed"] != step.Failed {
					t.Errorf("step %s: %v, want %+v", step.StepID, tally, step)
				}
			}
		})
	}
	if attempts == 0 {
		t.Error("no vector has an attempt")
	}
}

func TestRejectedOfOneChain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.handler(t)
	seen := 0
	for i := range w.chains {
		c := &w.chains[i]
		page := decode[rejectionPage](t, get(h, "GET", "/v1/rejected?tenant="+c.Tenant+"&prompt_hash="+c.PromptHash+"&session="+c.Session+"&chain="+c.Chain))
		if len(page.Rejected) != len(c.Rejected) {
			t.Errorf("%s: %d rejections, want %d", c.Chain, len(page.Rejected), len(c.Rejected))
		}
		seen += len(page.Rejected)
	}
	if seen == 0 {
		t.Error("no vector has a rejection")
	}
	wantProblem(t, get(h, "GET", "/v1/rejected?chain=only"), http.StatusBadRequest, typeInvalidQuery)
}

func TestKeyList(t *testing.T) {
	t.Parallel()
	key := func(text string) keys.PublicKey {
		k, err := keys.ParsePublicKey(text)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	signing := key("ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c")
	trust, _, err := keys.Merge([]keys.Entry{{PublicKey: signing, Comment: "today's", Status: keys.Active},
		{PublicKey: key("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"), Status: keys.Revoked}})
	if err != nil {
		t.Fatal(err)
	}
	sidecars := loadTree(t, "two-run").sidecars()
	bare := decode[keysDocument](t, get(newHandler(t, Config{Sidecars: sidecars}), "GET", "/v1/keys"))
	if bare.Pinned || bare.Signing != nil || len(bare.Trusted) != 0 {
		t.Errorf("without keys: %+v", bare)
	}
	h := newHandler(t, Config{Sidecars: sidecars, Trust: func() *keys.TrustList { return trust }, Signing: func() *keys.PublicKey { return &signing }})
	d := decode[keysDocument](t, get(h, "GET", "/v1/keys"))
	if !d.Pinned || len(d.Trusted) != 2 || d.Signing == nil || d.Signing.Status != keys.Active || d.Signing.Comment != "today's" || d.Signing.KeyID != signing.ID() {
		t.Errorf("%+v", d)
	}
}

// TestKeysComeWithoutNotesToTenants: comments of the trust list are the
// operator's; everything else about the keys is for whoever may verify.
func TestKeysComeWithoutNotesToTenants(t *testing.T) {
	t.Parallel()
	signing := keys.PublicKey{1, 2, 3}
	trust, _, err := keys.Merge([]keys.Entry{{PublicKey: signing, Comment: "for globex", Status: keys.Active}})
	if err != nil {
		t.Fatal(err)
	}
	h := newHandler(t, Config{Sidecars: loadTree(t, "two-run").sidecars(), Trust: func() *keys.TrustList { return trust },
		Signing: func() *keys.PublicKey { return &signing }, Tokens: static(tokenFor("root"), tokenFor("acme", "acme"))})
	for bearer, note := range map[string]string{"root": "for globex", "acme": ""} {
		d := decode[keysDocument](t, get(h, "GET", "/v1/keys", "Authorization", "Bearer "+bearer))
		if d.Signing.Comment != note || d.Trusted[0].Comment != note || d.Trusted[0].PublicKey != signing.String() {
			t.Errorf("%s is told %+v", bearer, d)
		}
	}
}

// TestPagesForPeople: the pages come with their own policy and without a
// token; what they would ask for needs one.
func TestPagesForPeople(t *testing.T) {
	t.Parallel()
	h := newHandler(t, Config{Sidecars: loadTree(t, "two-run").sidecars(), Store: brokenStore{store.ErrClosed},
		Tokens: func() []Token { return []Token{{SHA256: [32]byte{1}, AllTenants: true}} }})
	for _, path := range []string{"/", "/verify"} {
		w := get(h, "GET", path)
		policy := w.Header().Get("Content-Security-Policy")
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != htmlMediaType || w.Header().Get("ETag") == "" {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
		if !strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-") || !strings.Contains(policy, "frame-ancestors 'none'") ||
			strings.Contains(policy, "unsafe-inline") || strings.Contains(policy, "'unsafe-eval'") {
			t.Errorf("%s: policy %q", path, policy)
		}
	}
	if w := get(h, "GET", "/verifier.wasm.gz"); w.Code != http.StatusOK || w.Header().Get("Content-Encoding") != "" {
		t.Errorf("the verifier: %d %v", w.Code, w.Header())
	}
	wantProblem(t, get(h, "GET", "/v1/keys"), http.StatusUnauthorized, typeUnauthorized)
	wantProblem(t, get(h, "GET", "/index.html"), http.StatusNotFound, typeNotFound)
}

// TestTenThousandChainsList measures pages of a store with many chains.
func TestTenThousandChainsList(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a store")
	}
	h := newHandler(t, Config{Store: manyChains(t, 10_000), Sidecars: loadTree(t, "two-run").sidecars()})
	var pages []time.Duration
	found := walk(t, h, "/v1/chains?limit=200", func(t *testing.T, path string) ([]string, *string) {
		start := time.Now()
		w := get(h, "GET", path)
		pages = append(pages, time.Since(start))
		page := decode[chainPage](t, w)
		return make([]string, len(page.Chains)), page.Next
	})
	slices.Sort(pages)
	median, slowest := pages[len(pages)/2], pages[len(pages)-1]
	t.Logf("%d chains in %d pages of 200: median %v, slowest %v", len(found), len(pages), median, slowest)
	// The slowest page of a machine that others use says nothing of the code.
	if len(found) != 10_000 || median > 200*time.Millisecond {
		t.Errorf("%d chains, median page %v; want 10000 and 200 ms at most", len(found), median)
	}
}

func hexNumber(n, digits int) string { return fmt.Sprintf("%0*x", digits, n) }

// manyChains is a store with chains of one segment each.
func manyChains(t *testing.T, n int) *store.Store {
	t.Helper()
	s, err := store.Open(store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	batch := &events.Batch{Stream: events.Stream{Name: "EVIDENCE", CreatedNS: 1}}
	for i := range n {
		key := events.Key{Tenant: "acme", PromptHash: hexNumber(i%7, 64), Session: hexNumber(i/3, 32), Chain: "c" + hexNumber(i, 8)}
		payload := `{"v":1,"event_id":"1","kind":{"kind":"intent_bound","intent_len":2},"preimage":{"text":"go"},"scope":{"schema_version":1,"tenant_id":"acme","prompt_hash":"` +
			key.PromptHash + `","execute_session_id":"` + key.Session + `","catalog_cgs_hash":"` + hexNumber(1, 64) + `","domain_revision":0,"entry_id":"x"}}`
		m := events.Message{Subject: key.Subject(events.VerbIntent), Payload: []byte(payload), StreamSeq: uint64(i + 1), BrokerMS: 1767225600000}
		batch.Events = append(batch.Events, events.Decode(m, events.DefaultLimits))
		if len(batch.Events) == 1000 || i == n-1 {
			if _, err := s.Append(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
			batch.Events = nil
		}
	}
	return s
}

func TestTimelineFrom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.handler(t)
	for i := range w.chains {
		c := &w.chains[i]
		if c.Segments < 3 {
			continue
		}
		page := decode[segmentPage](t, get(h, "GET", c.url()+"/segments?from=2&limit=1"))
		if len(page.Segments) != 1 || page.Segments[0].Seq != 2 {
			t.Errorf("%s: %+v", c.Chain, page)
		}
		for _, bad := range []string{"from=-1", "from=x", "from=", "from=1&after=MQ", "limit=1001"} {
			wantProblem(t, get(h, "GET", c.url()+"/segments?"+bad), http.StatusBadRequest, typeInvalidQuery)
		}
		return
	}
	t.Fatal("no chain has three segments")
}
