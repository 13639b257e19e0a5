package engine_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/chaind/chaind/engine"
)

// domainVectors are the tables of testdata/tessera/domains-vectors.json that
// concern this package.
type domainVectors struct {
	Normalize [][2]string
	Tokenize  []json.RawMessage
}

func TestTextVectors(t *testing.T) {
	var v domainVectors
	if err := json.Unmarshal([]byte(readFile(t, "../testdata/tessera/domains-vectors.json")), &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Normalize) == 0 || len(v.Tokenize) == 0 {
		t.Fatal("the vectors are empty")
	}
	for _, pair := range v.Normalize {
		if got := engine.Normalize(pair[0]); got != pair[1] {
			t.Errorf("Normalize(%q) = %q, want %q", pair[0], got, pair[1])
		}
	}
	for _, raw := range v.Tokenize {
		var text string
		var want []string
		if err := json.Unmarshal(raw, &[]any{&text, &want}); err != nil {
			t.Fatal(err)
		}
		if got := engine.Tokens(text); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("Tokens(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestNormalize(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "",
		"Müller & Söhne":       "muellersoehne",
		"Mu\u0308ller":         "muller",
		"\u2121 ℡":             "",
		"½ ² ﬁ":                "122fi",
		"ẞ İ \u212a":           "ssik",
		"\U0001D7D8\U0001D7E1": "09",
		"テスト!":                 "",
		"\U0010FFFF\x00\x7f":   "",
		"①⑨⑩":                  "1910",
	} {
		if got := engine.Normalize(text); got != want {
			t.Errorf("Normalize(%q) = %q, want %q", text, got, want)
		}
	}
	kept := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if engine.Normalize(string(r)) != "" {
			kept++
		}
	}
	if kept != 1510 {
		t.Errorf("%d code points are kept, want 1510", kept)
	}
}

func TestTokens(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "",
		"a I x 7":                               "",
		"The tests: less gas, bus, THIS is ALL": "test les gas bus all",
		"Straße Übung ÄÖÜ":                      "strasse uebung aeoeue",
		"u\u0308ber":                            "ber",
		"Caf\u00e9":                             "caf",
		"xİz İİ":                                "xi",
		"A-1b_2c":                               "1b 2c",
		"\u212aelvin":                           "kelvin",
	} {
		if got := strings.Join(engine.Tokens(text), " "); got != want {
			t.Errorf("Tokens(%q) = %q, want %q", text, got, want)
		}
	}
	if got := engine.Lower("İÄ\u1e9e\u212aΣ"); got != "i\u0307äßkσ" {
		t.Errorf("Lower gives %q", got)
	}
}

func TestTextProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		n := engine.Normalize(s)
		if engine.Normalize(n) != n || strings.Trim(n, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			t.Fatalf("Normalize(%q) = %q", s, n)
		}
		for _, token := range engine.Tokens(s) {
			if len(token) < 2 || engine.Normalize(token) != token {
				t.Fatalf("Tokens(%q) has %q", s, token)
			}
		}
	})
}
