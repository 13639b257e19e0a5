package segments

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

const tinyBundle = `{"chain":{"segments":[]},"scope":{"schema_version":1,"prompt_hash":"p","execute_session_id":"s","catalog_cgs_hash":"c","domain_revision":0,"entry_id":"e"}}`

func readWithin(text string, maxBytes, maxItem int64) error {
	visit := func(*Segment) error { return nil }
	return newReader(strings.NewReader(text), visit, maxBytes, maxItem).bundle()
}

func TestBundleSizeLimit(t *testing.T) {
	t.Parallel()
	n := int64(len(tinyBundle))
	if err := readWithin(tinyBundle, n, n); err != nil {
		t.Errorf("a bundle of just the limit: %v", err)
	}
	for limit := range n {
		if err := readWithin(tinyBundle, limit, n); !errors.Is(err, ErrTooLarge) {
			t.Fatalf("limit %d: %v", limit, err)
		}
	}
}

func TestItemSizeLimit(t *testing.T) {
	t.Parallel()
	const max = 1 << 10
	space, name := strings.Repeat(" ", max+1), strings.Repeat("n", max+1)
	for what, text := range map[string]string{
		"whitespace before":      space + tinyBundle,
		"whitespace after":       tinyBundle + space,
		"whitespace in segments": strings.Replace(tinyBundle, "[", "["+space, 1),
		"long name":              strings.Replace(tinyBundle, "{", `{"`+name+`":1,`, 1),
		"long unknown value":     strings.Replace(tinyBundle, "{", `{"x":["`+name+`"],`, 1),
		"long segment":           strings.Replace(tinyBundle, "[]", `[{"x":"`+name+`"}]`, 1),
		"long scope":             strings.Replace(tinyBundle, `"p"`, `"`+name+`"`, 1),
	} {
		if err := readWithin(text, 1<<30, max); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", what, err)
		}
		if err := readWithin(text, 1<<30, 2*max); errors.Is(err, ErrTooLarge) {
			t.Errorf("%s below the limit: %v", what, err)
		}
	}
	many := strings.Replace(tinyBundle, "{", "{"+strings.Repeat(`"x":`+strings.Repeat(" ", max/2)+`1,`, 50), 1)
	if err := readWithin(many, 1<<30, max); err != nil {
		t.Errorf("many small items: %v", err)
	}
}

func TestMemberLimit(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range MaxMembers - 1 { // one is "x"
		fmt.Fprintf(&b, `"%x":0,`, i)
	}
	fits := strings.TrimSuffix(b.String(), ",")
	half := strings.Index(fits, `"7fff"`)
	nested := `{` + fits[:half] + `"x":{%s},`
	for _, in := range []string{`{"x":{%s},`, `{"x":0,%s,`, `{"x":{},%s,`, nested} {
		fits := fits
		if in == nested {
			fits = fits[half:]
		}
		text := strings.Replace(tinyBundle, "{", fmt.Sprintf(in, fits), 1)
		if err := readWithin(text, MaxBundleBytes, MaxSegmentBytes); err != nil {
			t.Errorf("%s: %v", in, err)
		}
		text = strings.Replace(tinyBundle, "{", fmt.Sprintf(in, `"more":0,`+fits), 1)
		if err := readWithin(text, MaxBundleBytes, MaxSegmentBytes); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s with one more: %v", in, err)
		}
	}
}

// Objects beside each other share no limit.
func TestMemberLimitIsForOpenObjects(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range MaxMembers/2 + 10 {
		fmt.Fprintf(&b, `"%x":0,`, i)
	}
	some := strings.TrimSuffix(b.String(), ",")
	segment := `{"seq":0,` + some + `,"kind":{"kind":"intent_bound","intent_digest":"` + strings.Repeat("0", 64) + `","intent_len":0}}`
	chain := `"chain":{"segments":[` + segment + "," + segment + "," + segment + `]},`
	text := strings.Replace(tinyBundle, `"chain":{"segments":[]},`, `"x":{`+some+`},"y":[{`+some+`},{`+some+`}],`+chain, 1)
	for what, read := range map[string]func(io.Reader) error{
		"Read": func(r io.Reader) error { _, _, err := Read(r, func(*Segment) error { return nil }); return err },
		"Scan": func(r io.Reader) error { _, _, err := Scan(r, 2, func(*Scanned) error { return nil }); return err },
	} {
		if err := read(strings.NewReader(text)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		around := strings.Replace(tinyBundle, `{"chain":{"segments":[]},`, "{"+strings.ReplaceAll(some, `":`, `z":`)+","+chain, 1)
		if err := read(strings.NewReader(around)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s, with as many around them: %v", what, err)
		}
	}
}

// TestLongNamesAreNotKept: what is remembered of a member that the format does
// not have does not depend on the length of its name.
func TestLongNamesAreNotKept(t *testing.T) {
	const names, long = 64, 1 << 20
	i := 0
	filler := strings.Repeat("x", long)
	pending := "{"
	body := readerFunc(func(p []byte) (int, error) {
		if pending == "" {
			switch {
			case i < names:
				pending = fmt.Sprintf(`"%d%s":0,`, i, filler)
			case i == names:
				pending = tinyBundle[1:]
			default:
				return 0, io.EOF
			}
			i++
		}
		n := copy(p, pending)
		pending = pending[n:]
		return n, nil
	})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b := newReader(body, func(*Segment) error { return nil }, MaxBundleBytes, MaxSegmentBytes)
	err := b.record([]member{
		{"scope", required, b.scope}, {"anchors", defaulted, b.anchors}, {"signature", optional, b.signature},
		{"chain", required, func() error {
			runtime.GC()
			runtime.ReadMemStats(&after)
			return b.chain()
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); after.HeapAlloc == 0 || grown > names*long/4 {
		t.Errorf("%d bytes are held for %d names of %d bytes", grown, names, long)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestNamesAreEqualByTheirBytes: long names differ at their ends, short ones by
// zero bytes.
func TestNamesAreEqualByTheirBytes(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 30, 31, 32, 33, 64, 4000} {
		stem := strings.Repeat("a", n)
		for _, pair := range [][2]string{{stem + "b", stem + "c"}, {stem, stem + "a"}, {stem + `\u0000`, stem}, {stem + `\u0000`, stem + `\u0000\u0000`}} {
			for _, object := range []string{`{"x":{%s},"chain":`, `{%s,"chain":`} {
				in := func(a, b string) string { return fmt.Sprintf(object, fmt.Sprintf(`"n%s":0,"n%s":0`, a, b)) }
				for twice, text := range map[bool]string{false: in(pair[0], pair[1]), true: in(pair[0], pair[0])} {
					_, found, err := Read(strings.NewReader(strings.Replace(tinyBundle, `{"chain":`, text, 1)), func(*Segment) error { return nil })
					got := slices.ContainsFunc(found, func(d Deviation) bool { return d.Code == DuplicateMember })
					if err != nil || got != twice {
						t.Fatalf("%.80s: duplicate %t, %v", text, got, err)
					}
				}
			}
		}
	}
}

// TestDeepTextIsRefusedBeforeItIsDecoded: jsontext, which calls itself for each
// level, never sees the depth that would end a stack; the fault names the place,
// and one before it comes first.
func TestDeepTextIsRefusedBeforeItIsDecoded(t *testing.T) {
	t.Parallel()
	const levels = 9000 // jsontext itself takes 10,000
	deepest := strings.Repeat("[", levels) + strings.Repeat("]", levels)
	quoted := `"` + strings.Repeat(`[{\"\\`, levels) + `"`
	for _, c := range []struct{ text, path, reason string }{
		{strings.Repeat("[", levels), "/0", "nested deeper than 128"},
		{strings.Repeat(`{"a":`, levels), "/a", "nested deeper than 128"},
		{strings.Replace(tinyBundle, "{", `{"x":`+deepest+`,`, 1), "/x", "nested deeper than 128"},
		{strings.Replace(tinyBundle, "[]", `[{"kind":`+deepest+`}]`, 1), "/chain/segments/0", "nested deeper than 128"},
		{strings.Replace(tinyBundle, "{", `{"x":`+quoted+`,`, 1), "", ""},
		{strings.Replace(tinyBundle, "{", `{"x":`+quoted+`,"y":`+deepest+`,`, 1), "/y", "nested deeper than 128"},
		{`{"chain" 1,"x":` + deepest + `}`, "/chain", "not strict JSON"},
	} {
		for _, r := range []io.Reader{strings.NewReader(c.text), iotest.OneByteReader(strings.NewReader(c.text))} {
			_, _, err := Read(r, func(*Segment) error { return nil })
			var fault *DecodeError
			switch errors.As(err, &fault); {
			case c.reason == "" && err != nil, c.reason != "" && fault == nil:
				t.Errorf("%.40s…: %v", c.text, err)
			case fault != nil && (!strings.HasPrefix(fault.Reason, c.reason) || fault.Path != c.path):
				t.Errorf("%.40s…: %v, want %s at %s", c.text, err, c.reason, c.path)
			}
		}
	}
	for _, text := range []string{deepest, strings.Repeat("[", levels)} {
		if _, _, err := DecodeKind([]byte(text)); err == nil || !strings.Contains(err.Error(), "nested deeper than 128") {
			t.Errorf("decode kind: %v", err)
		}
	}
	for text, want := range map[string]int{deepest: maxNested, quoted: len(quoted), "[" + quoted + deepest: 1 + len(quoted) + maxNested - 1} {
		if got := len(Shallow([]byte(text))); got != want {
			t.Errorf("%d bytes of %.20s… are shallow, want %d", got, text, want)
		}
	}
}
