package segments

import (
	"errors"
	"fmt"
	"strings"
	"testing"
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
	for i := range MaxMembers {
		fmt.Fprintf(&b, `"%x":0,`, i)
	}
	fits := strings.TrimSuffix(b.String(), ",")
	for _, in := range []string{`{"x":{%s},`, `{%s,`} {
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
