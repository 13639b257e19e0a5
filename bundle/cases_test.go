package bundle

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/iotest"
)

// The names of these tests are the numbers of known failure cases of other
// projects: J for JSON, V for verifiers of bundles.

func TestJ01ReversedSurrogates(t *testing.T) {
	refuse(t, LoneSurrogate, `{"k":"\ude00\ud83d"}`, `{"k":"\ud83d\ud83d"}`, `{"\ude00":1}`)
}

func TestJ03InvalidUTF8(t *testing.T) {
	refuse(t, InvalidUTF8, "{\"k\":\"\xff\"}", "{\"k\":\"\xc0\xaf\"}", "{\"k\":\"\xed\xa0\x80\"}")
}

func TestJ05NegativeZero(t *testing.T) {
	refuse(t, NumberForm, `{"n":-0}`, `{"n":-0e5}`, `{"n":-0e0}`)
	if a, b := mustValue(t, `{"n":-0.0}`), mustValue(t, `{"n":0.0}`); a.Digest() == b.Digest() {
		t.Error("-0.0 and 0.0, two doubles of the format, share their canonical bytes")
	}
}

func TestJ07OverflowAndUnderflow(t *testing.T) {
	refuse(t, NumberForm, `{"n":1e400}`, `{"n":-1e400}`, `{"n":1e-400}`, `{"n":1E+400}`)
}

func TestJ09DuplicateNames(t *testing.T) {
	refuse(t, DuplicateMember, `{"kind":"intent","kind":"seal"}`, `{"a":1,"\u0061":2}`, `{"x":[{"a":1,"b":2,"a":1}]}`)
}

func TestJ11LooseNumbers(t *testing.T) {
	refuse(t, Syntax, `[0x1p4]`, `[01]`, `[+1]`, `[.5]`, `[5.]`, `[1_000]`)
}

func TestJ13Escaping(t *testing.T) {
	const canon = "{\"t\":\"<a>&\u2028\x7f\"}"
	v := mustValue(t, `{"t":"\u003ca>&\u2028\u007f"}`)
	if got := string(v.AppendCanonical(nil)); got != canon {
		t.Errorf("canonical bytes %q", got)
	}
}

func TestJ17InheritedNames(t *testing.T) {
	v := mustValue(t, `{"__proto__":{"status":"approved"},"constructor":1,"toString":2}`)
	if v.Get("status").Kind() != Absent || v.Len() != 3 || v.Get("toString").Text() != "2" {
		t.Error("a name is lost or inherited")
	}
}

func TestJ19NothingBesideAnError(t *testing.T) {
	for _, text := range []string{`[1,0`, `[null,x]`, `{"a":1,"a":2}`, `[1]]`} {
		if v, err := ParseValue(text); err == nil || v != (Value{}) {
			t.Errorf("%s: %v beside %v", text, v.Kind(), err)
		}
		if b, err := Parse(text); err == nil || b != nil {
			t.Errorf("%s: a bundle beside %v", text, err)
		}
	}
}

func TestJ23TopLevelIsAnObject(t *testing.T) {
	for _, text := range []string{`"x"`, `7`, `null`, `[]`} {
		_, err := Parse(text)
		wantCode(t, err, WrongType)
	}
	_, err := Parse("")
	wantCode(t, err, Truncated)
}

func TestV09TwoResults(t *testing.T) {
	e1 := readFixture(t)
	for _, second := range []string{`"result":{},`, `"resul\u0074":{"grounded":true},`} {
		_, err := Parse("{" + second + e1[1:])
		wantCode(t, err, DuplicateMember)
		_, err = Parse(strings.Replace(e1, `"signature":null`, second+`"signature":null`, 1))
		wantCode(t, err, DuplicateMember)
	}
}

// TestV19LimitWhileReading: the reader stops at the limit, however much there
// would be.
func TestV19LimitWhileReading(t *testing.T) {
	e1 := readFixture(t)
	if _, err := readUpTo(iotest.OneByteReader(strings.NewReader(e1)), int64(len(e1))); err != nil {
		t.Error(err)
	}
	_, err := readUpTo(strings.NewReader(e1), int64(len(e1))-1)
	wantCode(t, err, TooLarge)
	endless := &zeros{}
	_, err = readUpTo(endless, 1<<20)
	wantCode(t, err, TooLarge)
	if endless.read > 2<<20 {
		t.Errorf("%d bytes were read", endless.read)
	}
}

// zeros never ends.
type zeros struct{ read int }

func (z *zeros) Read(p []byte) (int, error) {
	clear(p)
	z.read += len(p)
	return len(p), nil
}

func TestV33Reformatted(t *testing.T) {
	e1 := readFixture(t)
	for _, text := range []string{e1 + "\n", strings.TrimSuffix(e1, "\n"), strings.ReplaceAll(e1, "\n", "\r\n"), strings.ReplaceAll(e1, `":`, `" : `)} {
		b, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if check, err := b.CheckIntegrity(); err != nil || len(check.Findings) > 0 || b.Canonical {
			t.Errorf("canonical %t, %v", b.Canonical, err)
		}
	}
	b, err := Parse(strings.Replace(e1, "3 bar", "4 bar", 1))
	if err != nil {
		t.Fatal(err)
	}
	if check, err := b.CheckIntegrity(); err != nil || len(check.Findings) == 0 || !b.Canonical {
		t.Errorf("changed content is taken for a changed layout: canonical %t, %v", b.Canonical, err)
	}
}

func refuse(t *testing.T, code Code, texts ...string) {
	t.Helper()
	for _, text := range texts {
		_, err := ParseValue(text)
		var fault *FormatError
		if !errors.As(err, &fault) || fault.Code != code {
			t.Errorf("%s: got %v, want %s", text, err, code)
		}
	}
}

func readFixture(tb testing.TB) string {
	tb.Helper()
	b, err := os.ReadFile("testdata/e1.tsb")
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}
