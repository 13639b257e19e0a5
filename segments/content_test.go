package segments_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chaind/chaind/segments"
	"pgregory.net/rapid"
)

func TestSortedJSON(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		` { "b" : [ 1 , { "d":null , "c":true } ] , "a" : "x" } `:          `{"a":"x","b":[1,{"c":true,"d":null}]}`,
		`{"a":1,"b":2,"a":{"z":1,"y":2}}`:                                  `{"a":{"y":2,"z":1},"b":2}`,
		`{"a":1,"\u0061":2}`:                                               `{"a":2}`,
		`{"b":0,"a":1,"a":2,"a":3}`:                                        `{"a":3,"b":0}`,
		`{"__proto__":{"status":"approved"},"constructor":1,"toString":2}`: `{"__proto__":{"status":"approved"},"constructor":1,"toString":2}`,
		`{}`:                 `{}`,
		`[]`:                 `[]`,
		`"\u003ca\u003e&"`:   `"<a>&"`,
		`1e-400`:             `0.0`,
		`-1e-400`:            `-0.0`,
		`-0e5`:               `-0.0`,
		`1E16`:               `1e+16`,
		`9999999999999998.0`: `9999999999999998.0`,
		`123456789012345680`: `123456789012345680`,
		`1.5e300`:            `1.5e+300`,
		`0.00001`:            `0.00001`,
		`0.000012345`:        `0.000012345`,
		`0.0000012345`:       `1.2345e-6`,
		`12.5e1`:             `125.0`,
	} {
		got, err := segments.AppendSortedJSON([]byte("kept "), []byte(in))
		if err != nil || string(got) != "kept "+want {
			t.Errorf("%s: %s (%v), want %s", in, got, err, want)
		}
	}
}

func TestSortedJSONRefuses(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"", " ", "{}{}", "[1,]", "\ufeff1", `[0x1p4]`, `[01]`, `[+1]`, `[.5]`, `[5.]`, `[1_000]`, `[NaN]`, `[-]`,
		`{"n":1e400}`, `{"n":-1e400}`, `"\ud83d"`, "\"\xff\"", `{a:1}`, `{"a"}`, "\"\x1f\"",
		strings.Repeat("[", 129) + strings.Repeat("]", 129), strings.Repeat("[", 20_000),
	} {
		got, err := segments.AppendSortedJSON([]byte("kept"), []byte(in))
		if _, ok := errors.AsType[*segments.DecodeError](err); !ok || string(got) != "kept" {
			t.Errorf("%.40q: %s, %v", in, got, err)
		}
		if d, err := segments.PlanDigest([]byte(in)); err == nil || d != (segments.Digest{}) {
			t.Errorf("%.40q: a plan digest", in)
		}
		doc := &segments.SealDocument{ParsedPreimage: []byte(in)}
		if d, err := segments.RunDigest(&segments.Scope{}, doc); err == nil || d != (segments.Digest{}) {
			t.Errorf("%.40q: a run digest", in)
		}
	}
	deepest := strings.Repeat("[", 128) + strings.Repeat("]", 128)
	if _, err := segments.AppendSortedJSON(nil, []byte(deepest)); err != nil {
		t.Error(err)
	}
}

// Many keys, ascending or not, must not go quadratic (half a minute or more).
func TestSortedJSONOfManyKeys(t *testing.T) {
	t.Parallel()
	for what, key := range map[string]func(int) int{
		"ascending":  func(i int) int { return i },
		"descending": func(i int) int { return 80_000 - i },
		"mixed":      func(i int) int { return i * 7919 % 80_000 },
	} {
		var b strings.Builder
		for i := range 80_000 {
			fmt.Fprintf(&b, `,"k%06d":0`, key(i))
		}
		start := time.Now()
		got, err := segments.AppendSortedJSON(nil, []byte("{"+b.String()[1:]+"}"))
		if err != nil || len(got) != b.Len()+1 {
			t.Errorf("%s: %d bytes, %v", what, len(got), err)
		}
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("%s: %v", what, d)
		}
	}
}

func TestRustFloats(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		x := math.Float64frombits(rapid.Uint64().Draw(r, "bits"))
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return
		}
		lexeme := strconv.FormatFloat(x, 'e', 20, 64)
		got, err := segments.AppendSortedJSON(nil, []byte(lexeme))
		if err != nil {
			t.Fatal(lexeme, err)
		}
		back, err := strconv.ParseFloat(string(got), 64)
		if err != nil || math.Float64bits(back) != math.Float64bits(x) || !json.Valid(got) {
			t.Fatalf("%s became %s", lexeme, got)
		}
		shortest := strings.ReplaceAll(strings.TrimLeft(strconv.FormatFloat(math.Abs(x), 'e', -1, 64), "-"), ".", "")
		digits, _, _ := strings.Cut(shortest, "e")
		plain, _, _ := strings.Cut(string(got), "e")
		if s := strings.Trim(strings.NewReplacer(".", "", "-", "").Replace(plain), "0"); s != strings.Trim(digits, "0") {
			t.Fatalf("%s has digits %s, want %s", got, s, digits)
		}
		older, _ := segments.AppendSortedJSONOlder(nil, []byte(lexeme))
		if string(older) != strings.Replace(string(got), "e+", "e", 1) {
			t.Fatalf("older %s, newer %s", older, got)
		}
	})
}

// Sorting is idempotent and blind to the order of members.
func FuzzSortedJSON(f *testing.F) {
	requireCorpus(f, "FuzzSortedJSON")
	f.Fuzz(func(t *testing.T, text []byte) {
		once, err := segments.AppendSortedJSON(nil, text)
		if err != nil {
			if len(once) != 0 {
				t.Fatal("output beside an error")
			}
			return
		}
		twice, err := segments.AppendSortedJSON(nil, once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%s, then %s (%v)", once, twice, err)
		}
		if !json.Valid(once) {
			t.Fatalf("%s is no JSON", once)
		}
		older, err := segments.AppendSortedJSONOlder(nil, once)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := segments.AppendSortedJSON(nil, older); err != nil || !bytes.Equal(back, once) {
			t.Fatalf("by the older spelling %s, want %s", back, once)
		}
	})
}

func TestPlanReduction(t *testing.T) {
	t.Parallel()
	const base = `{"bind":{},"return":1,"steps":{"m":{"body":{"return":2,"steps":{"i":{"body":{"version":3},"kind":"map_body"}}},"kind":"map_body"}},"version":2}`
	want, err := segments.PlanDigest([]byte(base))
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{
		"order":       `{"version":2,"steps":{"m":{"kind":"map_body","body":{"steps":{"i":{"kind":"map_body","body":{"version":3}}},"return":2}}},"return":1,"bind":{}}`,
		"names":       strings.Replace(base, `{"bind"`, `{"name":"x","metadata":{"y":1e5},"bind"`, 1),
		"inner names": strings.Replace(base, `{"version":3}`, `{"name":"x","version":3,"zzz":[]}`, 1),
		"last wins":   strings.Replace(base, `{"bind":{}`, `{"bind":1,"bind":{}`, 1),
		"kind wins":   strings.Replace(base, `"kind":"map_body"}},"version":2`, `"kind":"other","kind":"map_body"}},"version":2`, 1),
	} {
		if text == base {
			t.Fatalf("%s: nothing was changed", what)
		}
		if got, err := segments.PlanDigest([]byte(text)); err != nil || got != want {
			t.Errorf("%s: another digest (%v)", what, err)
		}
	}
	for what, text := range map[string]string{
		"not a map body":     strings.Replace(base, `"kind":"map_body"}},"version":2`, `"kind":"map_body","kind":"map"}},"version":2`, 1),
		"body of other kind": strings.Replace(base, `{"version":3},"kind":"map_body"`, `{"name":"x","version":3},"kind":"map"`, 1),
		"name below":         strings.Replace(base, `"bind":{}`, `"bind":{"name":1}`, 1),
		"member gone":        strings.Replace(base, `"bind":{},`, ``, 1),
		"step member":        strings.Replace(base, `{"m":{`, `{"m":{"name":1,`, 1),
	} {
		if got, err := segments.PlanDigest([]byte(text)); err != nil || got == want {
			t.Errorf("%s: the same digest (%v)", what, err)
		}
	}
	for _, text := range []string{`[]`, `1`, `null`, `"x"`, ``} {
		if _, err := segments.PlanDigest([]byte(text)); err == nil {
			t.Errorf("%s is a plan", text)
		}
	}
	for text, want := range map[string]string{
		`{"x":1}`:              `{}`,
		`{"steps":[{"b":{}}]}`: `{"steps":[{"b":{}}]}`,
		`{"steps":{"m":null}}`: `{"steps":{"m":null}}`,
		`{"steps":{"m":{"kind":"map_body","body":[1]}}}`: `{"steps":{"m":{"body":[1],"kind":"map_body"}}}`,
	} {
		if got, err := segments.AppendPlanPreimage(nil, []byte(text)); err != nil || string(got) != want {
			t.Errorf("%s: %s (%v), want %s", text, got, err, want)
		}
	}
	older, err := segments.PlanDigestOlder([]byte(`{"version":1e16}`))
	if err != nil || older != segments.Sum([]byte(`{"version":1e16}`)) {
		t.Errorf("older spelling: %v, %v", older, err)
	}
}
