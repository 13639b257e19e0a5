package daemon

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/chaind/chaind/server"
)

const (
	// tokenPrefix lets people and secret scanners tell a token from other text.
	tokenPrefix = "chaind_"
	tokenBytes  = 32 // of randomness in a token
	// maxTokens bounds a token file; every request compares them all.
	maxTokens = 1000
	// emptyTenant spells the empty tenant where a word is needed, as in subjects.
	emptyTenant = "_"
)

// ErrNoTokens means that a token file names no token: nobody could read, which
// is hardly meant, and "everybody" even less.
var ErrNoTokens = errors.New("names no token")

// TokenEntry is one bearer of a token file: a YAML list whose entries have
// sha256 (64 hex digits, of the token as sent), either tenants ("_" is the
// empty one) or all_tenants: true, and a comment. The token itself is kept
// nowhere.
type TokenEntry struct {
	SHA256     string   `yaml:"sha256" json:"sha256"`
	Tenants    []string `yaml:"tenants" json:"tenants"`
	AllTenants bool     `yaml:"all_tenants" json:"all_tenants"`
	Comment    string   `yaml:"comment" json:"comment"`
}

// NewToken makes a token with 256 bits of randomness, and the entry that lets
// its bearer read the tenants; none means all of them.
func NewToken(tenants []string, comment string) (secret string, entry TokenEntry, err error) {
	raw := make([]byte, tokenBytes)
	rand.Read(raw) // never fails; it ends the program when the system has no randomness
	secret = tokenPrefix + base64.RawURLEncoding.EncodeToString(raw)
	sum := sha256.Sum256([]byte(secret))
	entry = TokenEntry{SHA256: hex.EncodeToString(sum[:]), Tenants: append([]string{}, tenants...), AllTenants: len(tenants) == 0, Comment: comment}
	if _, err := entry.token(); err != nil {
		return "", TokenEntry{}, fmt.Errorf("make token: %w", err)
	}
	return secret, entry, nil
}

// YAML is the entry as it stands in a token file.
func (e TokenEntry) YAML() string {
	var b strings.Builder
	fmt.Fprintf(&b, "- sha256: %s\n", e.SHA256)
	if e.AllTenants {
		b.WriteString("  all_tenants: true\n")
	} else {
		quoted := make([]string, len(e.Tenants))
		for i, t := range e.Tenants {
			quoted[i] = `"` + t + `"` // a tenant may look like a number
		}
		fmt.Fprintf(&b, "  tenants: [%s]\n", strings.Join(quoted, ", "))
	}
	if e.Comment != "" {
		fmt.Fprintf(&b, "  comment: %q\n", e.Comment)
	}
	return b.String()
}

// AddToken appends an entry to a token file, which is created with mode 0600
// when it is not there, and makes it durable. What is there must be a token file.
func AddToken(path string, entry TokenEntry) (err error) {
	if err := appendable(path, entry); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.WriteString(entry.YAML()); err != nil {
		return err
	}
	return f.Sync()
}

// appendable refuses a file that the entry would not make a longer token file.
func appendable(path string, entry TokenEntry) error {
	text, err := readBounded(path, maxListBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && len(text) > 0 && text[len(text)-1] != '\n' {
		err = errors.New("its last line does not end")
	}
	if err == nil {
		_, err = parseTokens(append(text, entry.YAML()...))
	}
	if err != nil {
		return fmt.Errorf("add token to %s: as a token file it would be wrong: %w", path, err)
	}
	return nil
}

// LoadTokens reads a token file strictly. Errors name the line of an entry
// and never its content: somebody may have put the token itself there.
func LoadTokens(path string) ([]server.Token, error) {
	if err := guardList(path); err != nil {
		return nil, fmt.Errorf("read token file: %w", err)
	}
	text, err := readBounded(path, maxListBytes)
	if err != nil {
		return nil, fmt.Errorf("read token file: %w", err)
	}
	tokens, err := parseTokens(text)
	if err != nil {
		return nil, fmt.Errorf("read token file %s: %w", path, err)
	}
	return tokens, nil
}

func parseTokens(text []byte) ([]server.Token, error) {
	list, err := parseList(text, entryForm{texts: []string{"sha256", "comment"}, lists: []string{"tenants"}, switches: []string{"all_tenants"}})
	switch {
	case err != nil:
		return nil, err
	case len(list) == 0:
		return nil, ErrNoTokens
	case len(list) > maxTokens:
		return nil, fmt.Errorf("line %d: more than %d tokens", list[maxTokens].line, maxTokens)
	}
	tokens := make([]server.Token, len(list))
	lines := map[[sha256.Size]byte]int{}
	for i, e := range list {
		entry := TokenEntry{SHA256: e.texts["sha256"], Tenants: e.lists["tenants"], AllTenants: e.on["all_tenants"]}
		if tokens[i], err = entry.token(); err != nil {
			return nil, fmt.Errorf("line %d: entry %d: %w", e.line, i+1, err)
		}
		if earlier, twice := lines[tokens[i].SHA256]; twice {
			return nil, fmt.Errorf("line %d: entry %d: the token stands twice, first in line %d", e.line, i+1, earlier)
		}
		lines[tokens[i].SHA256] = e.line
	}
	if err := server.CheckTokens(tokens); err != nil {
		return nil, err
	}
	return tokens, nil
}

func (e *TokenEntry) token() (server.Token, error) {
	var t server.Token
	sum, err := hex.DecodeString(e.SHA256)
	switch {
	case err != nil || len(sum) != sha256.Size:
		return server.Token{}, errors.New("sha256 is not 64 hex digits; chaind token prints the digest, the token itself does not belong here")
	case e.AllTenants == (len(e.Tenants) > 0):
		return server.Token{}, errors.New("give either tenants or all_tenants: true")
	}
	copy(t.SHA256[:], sum)
	t.AllTenants = e.AllTenants
	for _, name := range e.Tenants {
		if !isTenant(name) {
			return server.Token{}, errors.New("a tenant is 1 to 64 letters, digits, hyphens or underscores; _ is the empty one")
		}
		if name == emptyTenant {
			name = ""
		}
		if slices.Contains(t.Tenants, name) {
			return server.Token{}, errors.New("a tenant is named twice")
		}
		t.Tenants = append(t.Tenants, name)
	}
	return t, nil
}

func isTenant(s string) bool {
	return len(s) >= 1 && len(s) <= 64 && !strings.ContainsFunc(s, func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_')
	})
}

// tokenBook holds the tokens that are in use. They may be exchanged while the
// daemon runs; a reload that fails changes nothing.
type tokenBook struct {
	path   string // "": nobody is asked for a token
	tokens atomic.Pointer[[]server.Token]
}

func (b *tokenBook) load() error {
	if b.path == "" {
		return nil
	}
	tokens, err := LoadTokens(b.path)
	if err != nil {
		return err
	}
	b.tokens.Store(&tokens)
	return nil
}

// source is what the server asks; nil: it asks nobody for a token.
func (b *tokenBook) source() func() []server.Token {
	if b.path == "" {
		return nil
	}
	return func() []server.Token { return *b.tokens.Load() }
}
