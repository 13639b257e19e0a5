package server

import (
	"crypto/sha256"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chaind/chaind/segments"
)

func tokenFor(secret string, tenants ...string) Token {
	return Token{SHA256: sha256.Sum256([]byte(secret)), Tenants: tenants, AllTenants: len(tenants) == 0}
}

// static is a list of tokens that nobody exchanges.
func static(tokens ...Token) func() []Token { return func() []Token { return tokens } }

// TestTokensMayBeExchanged replaces the list under a running server: what was
// good is not any more, and an empty list lets nobody in.
func TestTokensMayBeExchanged(t *testing.T) {
	t.Parallel()
	var current atomic.Pointer[[]Token]
	current.Store(&[]Token{tokenFor("old")})
	h := newHandler(t, Config{Sidecars: loadTree(t, "two-run").sidecars(), Tokens: func() []Token { return *current.Load() }})
	status := func(secret string) int { return get(h, "GET", runURL, "Authorization", "Bearer "+secret).Code }
	if got := status("old"); got != http.StatusOK {
		t.Fatalf("old: %d", got)
	}
	current.Store(&[]Token{tokenFor("new")})
	if a, b := status("old"), status("new"); a != http.StatusUnauthorized || b != http.StatusOK {
		t.Errorf("after the exchange: old %d, new %d", a, b)
	}
	current.Store(&[]Token{})
	if got := status("new"); got != http.StatusUnauthorized {
		t.Errorf("without any token: %d", got)
	}
}

func TestTokensBindTenants(t *testing.T) {
	t.Parallel()
	b := loadTree(t, "two-run")
	h := newHandler(t, Config{Sidecars: b.sidecars(), Tokens: static(
		tokenFor("root"), tokenFor("empty", ""), tokenFor("acme", "acme"), tokenFor("both", "acme", ""),
	)})
	for _, c := range []struct {
		path, authorization string
		status              int
		typ                 string
	}{
		{runURL, "", 401, typeUnauthorized},
		{runURL, "Bearer", 401, typeUnauthorized},
		{runURL, "Bearer wrong", 401, typeUnauthorized},
		{runURL, "Basic root", 401, typeUnauthorized},
		{runURL, "Bearer " + strings.Repeat("x", maxTokenBytes+1), 401, typeUnauthorized},
		{runURL, "Bearer root", 200, ""},
		{runURL, "bearer root", 200, ""},
		{runURL, "Bearer empty", 200, ""},
		{runURL, "Bearer both", 200, ""},
		{runURL, "Bearer acme", 404, typeUnknownArtifact},
		{vectorURL, "Bearer acme", 404, typeUnknownArtifact},
		{"/v1/chains/" + keyPath, "Bearer acme", 404, typeUnknownChain},
		{"/v1/chains/" + keyPath + "/evidence", "Bearer acme", 404, typeUnknownChain},
		{"/v1/chains?tenant=other", "Bearer acme", 404, typeNotFound},
		{"/v1/chains", "Bearer both", 400, typeInvalidQuery},
		{"/metrics", "Bearer acme", 404, typeNotFound},
		{"/metrics", "Bearer root", 200, ""},
		{"/metrics", "", 401, typeUnauthorized},
		{"/healthz", "", 200, ""},
		{"/readyz", "", 200, ""},
	} {
		w := get(h, "GET", c.path, "Authorization", c.authorization)
		if w.Code != c.status {
			t.Errorf("%s with %.20q: %d, want %d", c.path, c.authorization, w.Code, c.status)
			continue
		}
		if c.typ != "" {
			wantProblem(t, w, c.status, c.typ)
		}
		if c.status == http.StatusUnauthorized && w.Header().Get("WWW-Authenticate") == "" {
			t.Errorf("%s: no challenge", c.path)
		}
	}
	w := get(h, "GET", runURL, "Authorization", "Bearer root")
	if w.Header().Get("Cache-Control") != "private, no-cache" || w.Header().Get("Vary") != "Authorization" {
		t.Errorf("caching: %q, Vary %q", w.Header().Get("Cache-Control"), w.Header().Get("Vary"))
	}
}

// TestReadinessTellsStrangersNamesAlone: details name chains and files.
func TestReadinessTellsStrangersNamesAlone(t *testing.T) {
	t.Parallel()
	b := loadTree(t, "two-run")
	causes := func() []Cause {
		return []Cause{{CauseDamage, "chain acme/secret-session"}, {CauseDamage, "file /srv/secret"}, {CauseLag, "7 events"}}
	}
	h := newHandler(t, Config{Sidecars: b.sidecars(), Ready: causes, Tokens: static(tokenFor("root"), tokenFor("acme", "acme"))})
	for _, bearer := range []string{"", "Bearer wrong", "Bearer acme"} {
		w := get(h, "GET", "/readyz", "Authorization", bearer)
		want := `{"ready":false,"causes":[{"cause":"damaged","detail":"` + detailElsewhere + `"},{"cause":"lag","detail":"` + detailElsewhere + `"}]}`
		if w.Code != http.StatusServiceUnavailable || w.Body.String() != want {
			t.Errorf("%q: %d %s", bearer, w.Code, w.Body)
		}
	}
	w := get(h, "GET", "/readyz", "Authorization", "Bearer root")
	if got := w.Body.String(); !strings.Contains(got, "secret-session") || !strings.Contains(got, "/srv/secret") || !strings.Contains(got, "7 events") {
		t.Errorf("an operator is told %s", got)
	}
}

// TestAnotherTenantsRunLooksUnknown compares the two answers byte by byte.
func TestAnotherTenantsRunLooksUnknown(t *testing.T) {
	t.Parallel()
	b := loadTree(t, "two-run")
	h := newHandler(t, Config{Sidecars: b.sidecars(), Tokens: static(tokenFor("acme", "acme"))})
	foreign := get(h, "GET", runURL, "Authorization", "Bearer acme")
	unknown := get(h, "GET", "/tenants/acme"+runURL, "Authorization", "Bearer acme")
	if foreign.Code != http.StatusNotFound || foreign.Body.String() != unknown.Body.String() || flat(foreign.Header()) != flat(unknown.Header()) {
		t.Errorf("%d %s\n%d %s", foreign.Code, foreign.Body, unknown.Code, unknown.Body)
	}
}

// TestQ34_TenantInTheScopeCounts serves a bundle that lies without a tenant in
// its path, as Plasm writes them, and names one.
func TestQ34_TenantInTheScopeCounts(t *testing.T) {
	t.Parallel()
	b := loadTree(t, "two-run")
	b.change(headFile, editBundle(t, func(bundle *segments.Bundle) { bundle.Scope.TenantID = "acme" }))
	h := newHandler(t, Config{Sidecars: b.sidecars(), Tokens: static(tokenFor("empty", ""), tokenFor("both", "", "acme"))})
	wantProblem(t, get(h, "GET", runURL, "Authorization", "Bearer empty"), http.StatusNotFound, typeUnknownArtifact)
	if w := get(h, "GET", runURL, "Authorization", "Bearer both"); w.Code != http.StatusOK {
		t.Errorf("status %d", w.Code)
	}
}

func TestBadTokensStopTheStart(t *testing.T) {
	t.Parallel()
	b := loadTree(t, "two-run")
	for name, tokens := range map[string][]Token{
		"no digest":  {{AllTenants: true}},
		"no tenants": {{SHA256: sha256.Sum256([]byte("a"))}},
		"twice":      {tokenFor("a"), tokenFor("b"), tokenFor("a", "acme")},
	} {
		if _, err := New(Config{Sidecars: b.sidecars(), Tokens: static(tokens...)}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := New(Config{}); err == nil {
		t.Error("no sidecars: accepted")
	}
}
