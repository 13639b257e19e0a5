package verifier

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

func TestEscape(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain text, naïve 日本 😀":    "plain text, naïve 日本 😀",
		"":                          "",
		"a\nb\tc\rd":                `a\nb\tc\rd`,
		"\x1b[31mred\x1b[0m":        `\x1b[31mred\x1b[0m`,
		"\x1b]8;;http://x\x07y":     `\x1b]8;;http://x\ay`,
		"\u202etxt.exe\u2066":       `\u202etxt.exe\u2066`,
		"a\u00a0b\u2028c\u200bd":    `a\u00a0b\u2028c\u200bd`,
		"\x7f\u0085\u009b":          `\x7f\u0085\u009b`,
		"\xff\xc0\xaf":              `\xff\xc0\xaf`,
		"\U000e0041":                `\U000e0041`,
		`back\slash "quote" 'tick'`: `back\slash "quote" 'tick'`,
		"\ufffd":                    "\ufffd",

		"\u3164\uffa0\u115f\u17b4\u034f": `\u3164\uffa0\u115f\u17b4\u034f`,
		"a\ufe0f\u180b\u2800\u3000":      `a\ufe0f\u180b\u2800\u3000`,
		"e\u0301 \u05d0\u05d1":           "e\u0301 \u05d0\u05d1",
	} {
		if got := Escape(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", maxQuoted)
	for _, in := range []string{long, "a" + long, strings.Repeat("a", maxQuoted+1)} {
		if got := clip(in); len(got) > maxQuoted+len("…") || !utf8.ValidString(got) {
			t.Errorf("%d bytes, %q", len(got), got)
		}
	}
	if clip("a") != "a" {
		t.Error("a short text is cut")
	}
}

func FuzzEscape(f *testing.F) {
	for _, text := range []string{"plain", "\x1b[2K\x1b[1A VERIFIED", "\u202e", "\xff\x00", "\U000e0041\u2028"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Escape(text)
		for _, r := range got {
			if r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x2028 || r == 0x2029 {
				t.Fatalf("%U in %q", r, got)
			}
		}
		if !utf8.ValidString(got) || Escape(got) != got {
			t.Fatalf("%q escapes to %q", got, Escape(got))
		}
		var back string
		quoted := appendText(nil, text)
		if err := json.Unmarshal(quoted, &back); err != nil || back != strings.ToValidUTF8(text, "\ufffd") && utf8.ValidString(text) {
			t.Fatalf("%q is written as %s: %q, %v", text, quoted, back, err)
		}
	})
}

func TestDetect(t *testing.T) {
	t.Parallel()
	for _, v := range loadVectors(t) {
		want := KindEvidence
		switch v.Name {
		case "n39-decode-bom":
			want = KindUnknown
		}
		if got := detect(t, v.bundle); got != want {
			t.Errorf("%s: %s", v.Name, got)
		}
	}
	bundles, err := os.ReadDir("../testdata/tessera")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, entry := range bundles {
		if strings.HasSuffix(entry.Name(), ".tsb") {
			found++
			if got := detect(t, readFile(t, "../testdata/tessera/"+entry.Name())); got != KindTrustBundle {
				t.Errorf("%s: %s", entry.Name(), got)
			}
		}
	}
	if found == 0 {
		t.Error("no trust bundles to try")
	}
	for _, text := range []string{"", " ", "7", `"scope"`, `{"x":1}`, `{"signature":null}`, `{"x":`, "\x7fELF", "execute/", "{"} {
		if got := detect(t, []byte(text)); got != KindUnknown {
			t.Errorf("%q: %s", text, got)
		}
	}
	if got := detect(t, []byte(`{"signature":{"a":[1]},"anchors":{},"chain":`)); got != KindEvidence {
		t.Errorf("signature first: %s", got)
	}
	for before, want := range map[int]Kind{400: KindTrustBundle, firstLook: KindTrustBundle, 60_000: KindTrustBundle, detectBytes: KindUnknown} {
		if got := detect(t, []byte(`{"signature":"`+strings.Repeat("a", before)+`","format":{}}`)); got != want {
			t.Errorf("the telling name comes after %d bytes: %s, want %s", before, got, want)
		}
	}
	if _, _, err := Detect(iotest.ErrReader(io.ErrClosedPipe)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%v", err)
	}
}

// File judges each kind as the function of that kind does.
func TestFile(t *testing.T) {
	t.Parallel()
	tsb := readFile(t, "../testdata/tessera/forged.tsb")
	r := File(context.Background(), bytes.NewReader(tsb), Options{})
	if !bytes.Equal(r.AppendJSON(nil), verifyBundle(tsb, Options{}).AppendJSON(nil)) || r.Kind != KindTrustBundle {
		t.Errorf("%s %s: a trust bundle is judged otherwise", r.Kind, r.Verdict)
	}
	v := loadVector(t, "p02-full-run-signed")
	o := v.options(t, Strict)
	got, want := File(context.Background(), bytes.NewReader(v.bundle), o), verifyBytes(v.bundle, o)
	if !bytes.Equal(got.AppendJSON(nil), want.AppendJSON(nil)) {
		t.Error("evidence is judged otherwise")
	}
	r = File(context.Background(), iotest.ErrReader(io.ErrClosedPipe), Options{})
	if r.ExitCode != ExitEnvelope || Codes(r.Errors)[0] != CodeUnreadable {
		t.Errorf("unreadable: exit code %d, %v", r.ExitCode, Codes(r.Errors))
	}
}

// detect also holds that nothing of the file is lost.
func detect(t testing.TB, text []byte) Kind {
	t.Helper()
	kind, r, err := Detect(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(all, text) {
		t.Fatalf("%d of %d bytes, %v", len(all), len(text), err)
	}
	return kind
}

func FuzzDetect(f *testing.F) {
	f.Add([]byte(`{"signature":null,"format":{}}`))
	f.Add([]byte(`{"scope":`))
	f.Add(loadVector(f, "p01-full-run-unsigned").bundle)
	f.Fuzz(func(t *testing.T, text []byte) {
		kind := detect(t, text)
		if kind == KindTrustBundle && verifyBytes(text, Options{}).ExitCode == ExitPass {
			t.Fatal("a trust bundle verifies as evidence")
		}
	})
}
