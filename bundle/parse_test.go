package bundle

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// mustValue parses a text that is known to be good.
func mustValue(tb testing.TB, text string) Value {
	tb.Helper()
	v, err := ParseValue(text)
	if err != nil {
		tb.Fatalf("parse %.80q: %v", text, err)
	}
	return v
}

func wantCode(tb testing.TB, err error, want Code) {
	tb.Helper()
	var fault *FormatError
	if !errors.As(err, &fault) || fault.Code != want {
		tb.Errorf("got error %v, want code %s", err, want)
	}
}

// TestCanonicalVectors: appendix D.1 of the format.
func TestCanonicalVectors(t *testing.T) {
	for _, tt := range []struct{ text, canon, sum string }{
		{`null`, `null`, "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"},
		{`[]`, `[]`, "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"},
		{`{ }`, `{}`, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"},
		{`{"b":1,"a":[true,false,null]}`, `{"a":[true,false,null],"b":1}`, "087e44ed138472a81a4a0f8ae84e8f358d0d957d27f51123952aa88c007b1f9f"},
		{`{"\ud800\udc00":2,"\ufb01":1}`, "{\"\ufb01\":1,\"\U00010000\":2}", "1b1655169ce54ef7bf5f224584ec08167dd21b8fe75cb5a5ace3ad4ec4b9a21a"},
		{`"é\u2028\u007f\u0001\u000b\b\f\n\r\t\/<>&\"\\"`, "\"é\u2028\x7f" + `\u0001\u000b\b\f\n\r\t/<>&\"\\"`, "7f92d3c9d45751604f047e43891bef025d482af9339b080e6445d0f7adab2f5a"},
		{`{"x":1.0,"y":-0.0,"z":1e+16,"w":1e-05,"v":0.1}`, `{"v":0.1,"w":1e-05,"x":1.0,"y":-0.0,"z":1e+16}`, "3b51ad69d80fa5561e795c4767004ba7f66321aa338e083401b8754253fd9977"},
	} {
		v := mustValue(t, tt.text)
		if got := string(v.AppendCanonical(nil)); got != tt.canon {
			t.Errorf("canon(%s) = %s, want %s", tt.text, got, tt.canon)
		}
		if got := v.Digest(); got != "sha256:"+tt.sum || Digest([]byte(tt.canon)) != got {
			t.Errorf("digest(%s) = %s, want %s", tt.text, got, tt.sum)
		}
		if !v.EqualCanonical([]byte(tt.canon)) || v.EqualCanonical([]byte(tt.canon+" ")) || v.EqualCanonical([]byte(tt.canon[1:])) {
			t.Errorf("EqualCanonical(%s) is wrong", tt.text)
		}
		if again := mustValue(t, tt.canon); !again.doc.at(0).canonical() {
			t.Errorf("%s is canonical and not recognised as such", tt.canon)
		}
	}
}

// TestNumberForms: what is kept and what is refused, format section 1.3.
func TestNumberForms(t *testing.T) {
	for _, token := range []string{
		"0", "-1", "1.0", "0.875", "-0.0", "0.0", "100000000000000000000", "1000000000000000.0", "1e+16", "0.0001", "1e-05",
		"1.2345678901234567e+19", "5e-324", "1.7976931348623157e+308", "-2.5e-07", "9007199254740993", strings.Repeat("9", MaxDigits), "-" + strings.Repeat("9", MaxDigits),
	} {
		if v := mustValue(t, token); v.Text() != token || v.Kind() != Number {
			t.Errorf("%s is read as %s %q", token, v.Kind(), v.Text())
		}
	}
	for _, token := range []string{
		"-0", "-0e5", "1e5", "1E5", "1e+5", "1.50", "1.00", "1e400", "-1e400", "1e-400", "1e16", "1E+16", "1e-5", "1e-005", "0.00001", "10000000000000000.0",
		"0.10000000000000001", "NaN", "Infinity", "-Infinity", strings.Repeat("9", MaxDigits+1), "0e0", "0.00",
	} {
		_, err := ParseValue("[" + token + "]")
		wantCode(t, err, NumberForm)
	}
	for _, token := range []string{"0x1p4", "01", "+1", ".5", "5.", "1_000", "-", "1e", "1e+", "--1", "0b1", "1.e5", "-a", "१"} {
		_, err := ParseValue("[" + token + "]")
		wantCode(t, err, Syntax)
	}
}

// TestFloatLayout compares 100,000 doubles with the texts of the reference's
// runtime, whose lines have this SHA-256.
func TestFloatLayout(t *testing.T) {
	h := sha256.New()
	n := 0
	for i := uint64(0); n < 100000; i++ {
		sum := sha256.Sum256(binary.LittleEndian.AppendUint64(nil, i))
		for k := range 4 {
			bits := binary.LittleEndian.Uint64(sum[8*k:])
			if f := math.Float64frombits(bits); math.IsNaN(f) || math.IsInf(f, 0) {
				continue
			}
			if k%2 == 1 { // into the range that is written without an exponent
				bits = bits&0x800FFFFFFFFFFFFF | (1023-20+bits>>52&63)<<52
			}
			h.Write(append(AppendFloat(nil, math.Float64frombits(bits)), '\n'))
			n++
		}
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != "55b7c1f2daa3d38ecd3e16e243185b05ce3dad10b4fbe68ab9c351549f990a7a" {
		t.Errorf("digest of the texts is %s", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("AppendFloat wrote an infinity")
		}
	}()
	AppendFloat(nil, math.Inf(1))
}

func TestFloatRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64().Draw(t, "f")
		if math.IsInf(f, 0) || math.IsNaN(f) {
			return
		}
		text := string(AppendFloat(nil, f))
		back, err := strconv.ParseFloat(text, 64)
		if err != nil || math.Float64bits(back) != math.Float64bits(f) {
			t.Fatalf("%v is written %s", f, text)
		}
		if v, err := ParseValue(text); err != nil || v.Text() != text {
			t.Fatalf("%s is refused: %v", text, err)
		}
	})
}

// TestRefusedTexts: nothing but strict JSON is read, whatever is wrong with it.
func TestRefusedTexts(t *testing.T) {
	for _, tt := range []struct {
		text string
		code Code
	}{
		{"", Truncated}, {" \n", Truncated}, {"[1", Truncated}, {`"a`, Truncated}, {`"\`, Truncated}, {`{"a"`, Truncated}, {`{"a":`, Truncated}, {`{"a":1`, Truncated}, {`[1,`, Truncated}, {"{", Truncated}, {`"\u12`, Syntax},
		{"\xef\xbb\xbf{}", ByteOrderMark}, {"{}x", TrailingData}, {"{}{}", TrailingData}, {"{}\x00", TrailingData},
		{"\"\xff\"", InvalidUTF8}, {"\"\xc0\xaf\"", InvalidUTF8}, {"\"\xed\xa0\x80\"", InvalidUTF8}, {"\"\xf4\x90\x80\x80\"", InvalidUTF8}, {"{\"\xff\":1}", InvalidUTF8},
		{`"\ude00\ud83d"`, LoneSurrogate}, {`"\ud83d\ud83d"`, LoneSurrogate}, {`"\ud83d"`, LoneSurrogate}, {`"\ud83dx"`, LoneSurrogate}, {`"\udc00"`, LoneSurrogate}, {`{"\ud800":1}`, LoneSurrogate}, {`"\ud83d\n"`, LoneSurrogate},
		{"\"a\nb\"", ControlChar}, {"\"\x00\"", ControlChar}, {"\"\x1f\"", ControlChar},
		{`{"a":1,"a":2}`, DuplicateMember}, {`{"a":1,"\u0061":2}`, DuplicateMember}, {`{"b":{"a":1,"c":1,"a":2}}`, DuplicateMember}, {`{"b":1,"a":2,"b":3}`, DuplicateMember}, {`{"":1,"":2}`, DuplicateMember},
		{`{"a":1,}`, Syntax}, {`[1,]`, Syntax}, {`[,1]`, Syntax}, {`{,}`, Syntax}, {`{a:1}`, Syntax}, {`{'a':1}`, Syntax}, {`{1:1}`, Syntax}, {`{"a" 1}`, Syntax}, {`[1 2]`, Syntax}, {`{"a":1 "b":2}`, Syntax},
		{`[tru]`, Syntax}, {`True`, Syntax}, {`[nul]`, Syntax}, {`undefined`, Syntax}, {"\v{}", Syntax}, {"\u00a0{}", Syntax}, {`"\x41"`, Syntax}, {`"\u00g0"`, Syntax}, {`// x`, Syntax}, {`]`, Syntax}, {`[}`, Syntax},
	} {
		v, err := ParseValue(tt.text)
		if wantCode(t, err, tt.code); v != (Value{}) {
			t.Errorf("%q: a value came with the error", tt.text)
		}
	}
}

func TestDepthLimit(t *testing.T) {
	nested := func(open, end string, n int) string { return strings.Repeat(open, n) + "1" + strings.Repeat(end, n) }
	for _, c := range [][2]string{{"[", "]"}, {`{"a":`, "}"}, {`[{"a":`, "}]"}} {
		step := strings.Count(c[0], "[") + strings.Count(c[0], "{")
		if _, err := ParseValue(nested(c[0], c[1], MaxDepth/step)); err != nil {
			t.Errorf("depth %d with %s: %v", MaxDepth, c[0], err)
		}
		_, err := ParseValue(nested(c[0], c[1], MaxDepth/step+1))
		wantCode(t, err, TooDeep)
		_, err = ParseValue(strings.Repeat(c[0], 1<<20))
		wantCode(t, err, TooDeep)
	}
}

func TestValueLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("6 MB of input")
	}
	n := MaxValues * 4 / 3
	_, err := ParseValue("[" + strings.Repeat("0,", n+2) + "0]")
	wantCode(t, err, TooManyValues)
	if v := mustValue(t, "["+strings.Repeat("0,", n/2)+"0]"); v.Len() != n/2+1 {
		t.Errorf("read %d items", v.Len())
	}
}

// TestJ15ManyAscendingNames: neither ascending, descending nor equal names take
// more than n log n.
func TestJ15ManyAscendingNames(t *testing.T) {
	const n = 80000
	var up, down strings.Builder
	for i := range n {
		fmt.Fprintf(&up, `"k%06d":0,`, i)
		fmt.Fprintf(&down, `"k%06d":0,`, n-i)
	}
	start := time.Now()
	canon := mustValue(t, "{"+up.String()+`"z":0}`)
	mustValue(t, "{"+down.String()+`"a":0}`).Digest()
	_, err := ParseValue("{" + down.String() + `"k000001":0}`)
	wantCode(t, err, DuplicateMember)
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	if canon.Len() != n+1 {
		t.Errorf("read %d members", canon.Len())
	}
}

// TestJ21AbsentNullEmptyZero: null, absent, empty and zero hash differently.
func TestJ21AbsentNullEmptyZero(t *testing.T) {
	seen := map[string]string{}
	for _, text := range []string{`{"a":null}`, `{}`, `{"a":""}`, `{"a":0}`, `{"a":0.0}`, `{"a":false}`, `{"a":[]}`, `{"a":{}}`} {
		d := mustValue(t, text).Digest()
		if other, ok := seen[d]; ok {
			t.Errorf("%s and %s have one digest", text, other)
		}
		seen[d] = text
	}
}

// TestValueViews: accessors on every kind, the absent one included.
func TestValueViews(t *testing.T) {
	v := mustValue(t, ` { "n" : null , "t" : true, "f":false, "i":-7, "s":"a\u0041\n\ud83d\ude00", "a":[1,[2],{"x":3}], "o":{} } `)
	for name, kind := range map[string]Kind{"n": Null, "t": Bool, "f": Bool, "i": Number, "s": String, "a": Array, "o": Object, "zz": Absent} {
		if got := v.Get(name).Kind(); got != kind {
			t.Errorf("%s is %s, want %s", name, got, kind)
		}
		if v.Get(name).Get("x").Kind() != Absent {
			t.Errorf("%s has a member x", name)
		}
	}
	if got := v.Get("s").Text(); got != "aA\n\U0001F600" {
		t.Errorf("s is %q", got)
	}
	if v.Get("t").True() != true || v.Get("f").True() || v.Get("i").Text() != "-7" || v.Get("n").Text() != "" || (Value{}).Text() != "" {
		t.Error("a scalar is read wrongly")
	}
	if v.Get("a").Len() != 3 || v.Len() != 7 || v.Get("o").Len() != 0 || v.Get("s").Len() != 0 || (Value{}).Len() != 0 {
		t.Error("a length is wrong")
	}
	for i, item := range v.Get("a").Items() {
		if i == 1 {
			if item.Len() != 1 {
				t.Error("an item is wrong")
			}
			break
		}
	}
	for name := range v.Members() {
		if name != "n" {
			t.Error("members are out of order")
		}
		break
	}
	if (Value{}).EqualCanonical(nil) {
		t.Error("nothing equals nothing")
	}
}

// TestSizeBoundsTheCanonicalForm: no canonical form is longer than the text it
// was read from.
func TestSizeBoundsTheCanonicalForm(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`null`, `"\u0041\/\u0001\u0008\ud83d\ude00\u00e9"`, ` { "b" : 1.0 , "a" : [ ] } `, `"é"`, `[1e-05,-0.0]`} {
		v, err := ParseValue(text)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(v.AppendCanonical(nil)); v.Size() < n || v.Size() > len(text) {
			t.Errorf("%s: size %d, canonical %d", text, v.Size(), n)
		}
	}
	if (Value{}).Size() != 0 {
		t.Error("the absent value has a size")
	}
}
