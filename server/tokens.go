package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"slices"
	"strings"
)

// Token lets the bearer of one secret read some tenants. The secret itself is
// not kept.
type Token struct {
	SHA256     [sha256.Size]byte // of the token as the bearer sends it
	Tenants    []string          // "" is the empty tenant
	AllTenants bool              // every tenant, and /metrics
}

// access is what the caller of one request may read.
type access struct {
	all     bool
	tenants []string
}

func (a access) may(tenant string) bool { return a.all || slices.Contains(a.tenants, tenant) }

// CheckTokens refuses a token without a digest, one that may read nothing, and
// one that occurs twice.
func CheckTokens(tokens []Token) error {
	for i, t := range tokens {
		if t.SHA256 == ([sha256.Size]byte{}) || !t.AllTenants && len(t.Tenants) == 0 {
			return errors.New("check tokens: a token needs a digest, and tenants or all of them")
		}
		if slices.ContainsFunc(tokens[:i], func(o Token) bool { return o.SHA256 == t.SHA256 }) {
			return errors.New("check tokens: a token occurs twice")
		}
	}
	return nil
}

// authorize finds what the caller may read. Where no tokens are asked for that
// is everything. Every token is compared, in constant time, so that the time
// taken tells nothing.
func (s *server) authorize(r *http.Request) (access, error) {
	if s.Tokens == nil {
		return access{all: true}, nil
	}
	tokens := s.Tokens()
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || secret == "" || len(secret) > maxTokenBytes {
		return access{}, unauthorized()
	}
	sum := sha256.Sum256([]byte(secret))
	found := -1
	for i := range tokens {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], tokens[i].SHA256[:]), i, found)
	}
	if found < 0 {
		return access{}, unauthorized()
	}
	return access{all: tokens[found].AllTenants, tenants: tokens[found].Tenants}, nil
}

func unauthorized() *problem {
	return &problem{typeUnauthorized, http.StatusUnauthorized, "Unauthorized", "a bearer token that this server knows is required"}
}
