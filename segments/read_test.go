package segments_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/chaind/chaind/segments"
)

func read(text string) ([]segments.Deviation, error) {
	_, found, err := segments.ReadBundle(strings.NewReader(text))
	return found, err
}

func signedVector(t testing.TB) string {
	return string(readFile(t, filepath.Join(plasm, "p02-full-run-signed", "bundle.json")))
}

func TestEveryPrefixIsRefused(t *testing.T) {
	t.Parallel()
	text := signedVector(t)
	for n := range len(text) {
		b, _, err := segments.ReadBundle(strings.NewReader(text[:n]))
		if _, ok := errors.AsType[*segments.DecodeError](err); !ok || b != nil {
			t.Fatalf("prefix of %d bytes: %v, %v", n, b, err)
		}
	}
}

// A flipped bit either shows or changes nothing but what nobody vouches for:
// times and anchors, and of an unsigned bundle the scope.
func TestEveryFlippedBitShows(t *testing.T) {
	t.Parallel()
	names := []string{"p02-full-run-signed", "p04-unicode-and-escapes", "p05-optional-fields-present"}
	if testing.Short() {
		names = names[:1]
	}
	for _, name := range names {
		text := readFile(t, filepath.Join(plasm, name, "bundle.json"))
		honest := readBundle(t, name)
		check, want := checkHeads, vouched(honest)
		if honest.Signature != nil {
			check = checkSigned
		}
		survived := 0
		for i := range text {
			for bit := range 8 {
				text[i] ^= 1 << bit
				b, found, err := segments.ReadBundle(bytes.NewReader(text))
				if err == nil && len(found) == 0 && check(b) == nil {
					survived++
					if got := vouched(b); got != want {
						t.Fatalf("%s: bit %d of byte %d: %s", name, bit, i, got)
					}
				}
				text[i] ^= 1 << bit
			}
		}
		if survived == 0 {
			t.Errorf("%s: not even a flipped time survives: the test shows nothing", name)
		}
	}
}

// vouched is all of a bundle that hash and signature cover.
func vouched(b *segments.Bundle) string {
	b.Anchors = segments.Anchors{}
	if b.Signature == nil {
		b.Scope = segments.Scope{}
	}
	for i := range b.Segments {
		b.Segments[i].EmittedAtMS = nil
	}
	return string(segments.AppendBundle(nil, b))
}

func checkSigned(b *segments.Bundle) error {
	if err := checkHeads(b); err != nil {
		return err
	}
	if b.Signature == nil {
		return errors.New("signature is missing")
	}
	return segments.VerifySignature(b.Signature, &b.Scope, *b.Head)
}

func checkHeads(b *segments.Bundle) error {
	var w segments.Walk
	for i := range b.Segments {
		if err := w.Step(&b.Segments[i]); err != nil {
			return err
		}
	}
	if b.Head == nil || w.Head == nil || *b.Head != *w.Head {
		return errors.New("head is missing or wrong")
	}
	return nil
}

// Members of bundle, scope, chain and segment for hand-made texts.
const (
	okScope = `"scope":{"schema_version":1,"prompt_hash":"p","execute_session_id":"s","catalog_cgs_hash":"c","domain_revision":0,"entry_id":"e"}`
	okSeal  = `{"kind":"run_sealed","run_id":"r","run_bundle_digest":"abababababababababababababababababababababababababababababababab"}`
)

func chainText(segments string) string {
	return `{` + okScope + `,"chain":{"segments":[` + segments + `]}}`
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 127) + strings.Repeat("]", 127)
	kind := func(s string) string { return chainText(`{"seq":0,"kind":` + s + `}`) }
	for name, text := range map[string]string{
		"empty":                    "",
		"scalar":                   `7`,
		"null":                     `null`,
		"string":                   `"x"`,
		"empty array":              `[]`,
		"empty object":             `{}`,
		"no chain":                 `{` + okScope + `}`,
		"no scope":                 `{"chain":{"segments":[]}}`,
		"chain null":               `{` + okScope + `,"chain":null}`,
		"scope null":               `{"scope":null,"chain":{"segments":[]}}`,
		"segments null":            `{` + okScope + `,"chain":{"segments":null}}`,
		"segments an object":       `{` + okScope + `,"chain":{"segments":{}}}`,
		"no segments":              `{` + okScope + `,"chain":{}}`,
		"chain twice":              `{` + okScope + `,"chain":{"segments":[]},"chain":{"segments":[]}}`,
		"chain twice by escape":    `{` + okScope + `,"chain":{"segments":[]},"ch\u0061in":{"segments":[]}}`,
		"head twice":               `{` + okScope + `,"chain":{"segments":[],"head":null,"head":null}}`,
		"anchors null":             `{` + okScope + `,"chain":{"segments":[]},"anchors":null}`,
		"tenant null":              strings.Replace(chainText(""), `"prompt_hash"`, `"tenant_id":null,"prompt_hash"`, 1),
		"signature without key":    `{` + okScope + `,"chain":{"segments":[]},"signature":{"signature_hex":""}}`,
		"long bundle array":        `[["1"],[[]],{},null,1]`,
		"long segment array":       chainText(`[0,null,` + okSeal + `,null,null]`),
		"short segment array":      chainText(`[0,null]`),
		"segment null":             chainText(`null`),
		"seq missing":              chainText(`{"kind":` + okSeal + `}`),
		"seq null":                 chainText(`{"seq":null,"kind":` + okSeal + `}`),
		"seq a string":             chainText(`{"seq":"0","kind":` + okSeal + `}`),
		"seq with exponent":        chainText(`{"seq":2e0,"kind":` + okSeal + `}`),
		"seq negative":             chainText(`{"seq":-1,"kind":` + okSeal + `}`),
		"seq true":                 chainText(`{"seq":true,"kind":` + okSeal + `}`),
		"seq with leading zero":    chainText(`{"seq":01,"kind":` + okSeal + `}`),
		"seq with plus":            chainText(`{"seq":+1,"kind":` + okSeal + `}`),
		"seq hexadecimal":          chainText(`{"seq":0x1,"kind":` + okSeal + `}`),
		"seq with underscore":      chainText(`{"seq":1_0,"kind":` + okSeal + `}`),
		"seq beyond u64":           chainText(`{"seq":18446744073709551616,"kind":` + okSeal + `}`),
		"time beyond u64":          chainText(`{"seq":0,"emitted_at_ms":99999999999999999999,"kind":` + okSeal + `}`),
		"kind missing":             chainText(`{"seq":0}`),
		"kind null":                kind(`null`),
		"kind without tag":         kind(`{"run_id":"r"}`),
		"kind empty array":         kind(`[]`),
		"tag null":                 kind(strings.Replace(okSeal, `"run_sealed"`, `null`, 1)),
		"tag a number":             kind(`[3,"r",null,null,"` + strings.Repeat("ab", 32) + `"]`),
		"tag twice":                kind(strings.Replace(okSeal, `}`, `,"kind":"run_sealed"}`, 1)),
		"tag in upper case":        kind(strings.Replace(okSeal, `run_sealed`, `RUN_SEALED`, 1)),
		"member of another case":   kind(strings.Replace(okSeal, `run_id`, `Run_ID`, 1)),
		"topology null":            kind(`{"kind":"comp_committed","plan_commit_id_hex":"","step_topo":null,"comp_semantic_sha256":"` + strings.Repeat("ab", 32) + `"}`),
		"topology with a number":   kind(`{"kind":"comp_committed","plan_commit_id_hex":"","step_topo":[1],"comp_semantic_sha256":"` + strings.Repeat("ab", 32) + `"}`),
		"unknown member too deep":  `{"x":` + `[` + deep + `]` + `,` + okScope + `,"chain":{"segments":[]}}`,
		"raw control character":    strings.Replace(chainText(""), `"p"`, "\"\x01\"", 1),
		"reversed surrogates":      strings.Replace(chainText(""), `"p"`, `"\ude00\ud83d"`, 1),
		"two high surrogates":      strings.Replace(chainText(""), `"p"`, `"\ud83d\ud83d"`, 1),
		"surrogate in unknown":     `{"x":"\ud83d",` + okScope + `,"chain":{"segments":[]}}`,
		"overlong UTF-8":           strings.Replace(chainText(""), `"p"`, "\"\xc0\xaf\"", 1),
		"surrogate as UTF-8":       strings.Replace(chainText(""), `"p"`, "\"\xed\xa0\x80\"", 1),
		"bad UTF-8 in a name":      "{\"\xff\":1," + okScope + `,"chain":{"segments":[]}}`,
		"trailing comma":           `{` + okScope + `,"chain":{"segments":[]},}`,
		"comment":                  `{` + okScope + `,"chain":{"segments":[/**/]}}`,
		"trailing brace":           chainText("") + `}`,
		"trailing NUL":             chainText("") + "\x00",
		"trailing text":            chainText("") + ` x`,
		"byte order mark":          "\ufeff" + chainText(""),
		"BOM after the text":       chainText("") + "\ufeff",
		"vertical tab":             "\v" + chainText(""),
		"single quotes":            strings.Replace(chainText(""), `"p"`, `'p'`, 1),
		"literal in upper case":    strings.Replace(chainText(""), `[]`, `[NULL]`, 1),
		"braced simple UUID":       `{` + okScope + `,"chain":{"segments":[]},"anchors":{"trace_id":"{550e8400e29b41d4a716446655440000}"}}`,
		"UUID with misplaced dash": `{` + okScope + `,"chain":{"segments":[]},"anchors":{"trace_id":"550e840-0e29b-41d4-a716-446655440000"}}`,
		"UUID unbalanced":          `{` + okScope + `,"chain":{"segments":[]},"anchors":{"trace_id":"{550e8400-e29b-41d4-a716-446655440000]"}}`,
	} {
		b, _, err := segments.ReadBundle(strings.NewReader(text))
		if _, ok := errors.AsType[*segments.DecodeError](err); !ok || b != nil {
			t.Errorf("%s: %v, %v", name, b, err)
		}
	}
}

func TestDeviations(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 127) + strings.Repeat("]", 127)
	seal := func(extra string) string {
		return chainText(`{"seq":0,"kind":` + strings.Replace(okSeal, `}`, extra+`}`, 1) + `}`)
	}
	anchors := func(s string) string { return `{` + okScope + `,"chain":{"segments":[]},"anchors":` + s + `}` }
	for _, tt := range []struct{ name, text, want string }{
		{"none", seal(""), ""},
		{"chain first", `{"chain":{"segments":[]},` + okScope + `}`, ""},
		{"whitespace", " \t\r\n" + seal("") + "\n", ""},
		{"tag last", chainText(`{"seq":0,"kind":{"run_bundle_digest":"` + strings.Repeat("ab", 32) + `","run_id":"}\"{","kind":"run_sealed"}}`), ""},
		{"escaped name", strings.Replace(seal(""), `"seq"`, `"s\u0065q"`, 1), ""},
		{"deepest", `{"x":` + deep + `,` + okScope + `,"chain":{"segments":[]}}`, "unknown_member /x"},
		{"unknown in kind", seal(`,"a/b~":1`), "unknown_member /chain/segments/0/kind/a~1b~0"},
		{"unknown twice", seal(`,"x":1,"\u0078":2`), "unknown_member /chain/segments/0/kind/x; unknown_member /chain/segments/0/kind/x; duplicate_member /chain/segments/0/kind/x"},
		{"twice inside unknown", seal(`,"x":[{"y":1,"y":2}]`), "unknown_member /chain/segments/0/kind/x; duplicate_member /chain/segments/0/kind/x/0/y"},
		{"unknown in chain", strings.Replace(seal(""), `"segments"`, `"x":{"a":{},"a":{}},"segments"`, 1), "unknown_member /chain/x; duplicate_member /chain/x/a"},
		{"unknown in bundle twice", strings.Replace(seal(""), `"scope"`, `"x":1,"x":2,"scope"`, 1), "unknown_member /x; unknown_member /x; duplicate_member /x"},
		{"null step id", seal(`,"step_id":null`), "explicit_null /chain/segments/0/kind/step_id"},
		{"null head and signature", `{` + okScope + `,"chain":{"segments":[],"head":null},"signature":null}`, "explicit_null /chain/head; explicit_null /signature"},
		{"empty tenant", strings.Replace(seal(""), `"prompt_hash"`, `"tenant_id":"","prompt_hash"`, 1), "empty_optional /scope/tenant_id"},
		{"empty anchors", anchors("{ }"), "empty_optional /anchors"},
		{"anchors array", anchors("[]"), "not_an_object /anchors"},
		{"anchors with nulls", anchors(`{"trace_id":null}`), "explicit_null /anchors/trace_id"},
		{"UUID simple", anchors(`{"trace_id":"550E8400E29B41D4A716446655440000"}`), "noncanonical_uuid /anchors/trace_id"},
		{"UUID braced", anchors(`{"trace_id":"{550e8400-e29b-41d4-a716-446655440000}"}`), "noncanonical_uuid /anchors/trace_id"},
		{"UUID URN", anchors(`{"trace_id":"urn:uuid:550e8400-e29b-41d4-a716-446655440000"}`), "noncanonical_uuid /anchors/trace_id"},
		{"UUID canonical", anchors(`{"trace_id":"550e8400-e29b-41d4-a716-446655440000"}`), ""},
		{"large call index", anchors(`{"plan_call_index":9007199254740992}`), "unsafe_integer /anchors/plan_call_index"},
		{"largest safe", anchors(`{"plan_call_index":9007199254740991}`), ""},
		{"large seq and time", chainText(`{"seq":9007199254740992,"kind":` + okSeal + `,"emitted_at_ms":18446744073709551615}`), "unsafe_integer /chain/segments/0/seq; unsafe_integer /chain/segments/0/emitted_at_ms"},
		{"signature texts", `{` + okScope + `,"chain":{"segments":[]},"signature":{"public_key_hex":"AB","signature_hex":"x"}}`, "noncanonical_hex /signature/public_key_hex; noncanonical_hex /signature/signature_hex"},
		{"everything an array", `[[1,"",null,"p","s","c",0,"e"],[[[0,null,["run_sealed","r",null,null,"` + strings.Repeat("ab", 32) + `"]]]]]`,
			"not_an_object ; not_an_object /0; empty_optional /0/1; explicit_null /0/2; not_an_object /1; not_an_object /1/0/0; explicit_null /1/0/0/1; not_an_object /1/0/0/2; explicit_null /1/0/0/2/2; explicit_null /1/0/0/2/3"},
	} {
		found, err := read(tt.text)
		var got []string
		for _, d := range found {
			got = append(got, d.Code+" "+d.Path)
			checkOffset(t, tt.name, tt.text, d)
		}
		if err != nil || strings.Join(got, "; ") != tt.want {
			t.Errorf("%s: %s (%v), want %s", tt.name, strings.Join(got, "; "), err, tt.want)
		}
	}
}

// checkOffset expects what the deviation is about at its offset.
func checkOffset(t *testing.T, name, text string, d segments.Deviation) {
	t.Helper()
	want := map[string]string{
		segments.UnknownMember: `"`, segments.DuplicateMember: `"`, segments.ExplicitNull: "null", segments.NotAnObject: "[",
		segments.NoncanonicalHex: `"`, segments.NoncanonicalUUID: `"`, segments.UnsafeInteger: "",
	}[d.Code]
	if d.Code == segments.UnsafeInteger {
		want = text[d.Offset : d.Offset+1]
		if want < "0" || want > "9" {
			t.Errorf("%s: no digit at offset %d", name, d.Offset)
		}
	}
	if !strings.HasPrefix(text[d.Offset:], want) {
		t.Errorf("%s: %s at offset %d, where %.10q is", name, d.Code, d.Offset, text[d.Offset:])
	}
}

func TestDeviationsAreCapped(t *testing.T) {
	t.Parallel()
	var members strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&members, `"%s%d":1,`, strings.Repeat("é", 100), i)
	}
	text := `{` + members.String() + `"signature":null,` + okScope + `,"chain":{"segments":[]}}`
	found, err := read(text)
	if err != nil || len(found) != segments.MaxDeviationsPerCode+1 {
		t.Fatalf("%d deviations, %v", len(found), err)
	}
	if last := found[len(found)-1]; last.Code != segments.ExplicitNull {
		t.Errorf("a code got lost: %+v", last)
	}
	if p := found[0].Path; p != "/"+strings.Repeat("é", 32)+"…" {
		t.Errorf("path %q", p)
	}
}

// The reference's duplicate error is also the deviation that strict callers
// report.
func TestDuplicateKnownMember(t *testing.T) {
	t.Parallel()
	found, err := read(chainText(`{"seq":0,"seq":0,"kind":` + okSeal + `}`))
	e, ok := errors.AsType[*segments.DecodeError](err)
	if !ok || e.Path != "/chain/segments/0/seq" || len(found) != 1 || found[0].Code != segments.DuplicateMember {
		t.Errorf("%v, %v", err, found)
	}
}

func TestReadPassesErrorsOn(t *testing.T) {
	t.Parallel()
	text := signedVector(t)
	broken := io.MultiReader(strings.NewReader(text[:900]), iotest.ErrReader(io.ErrNoProgress))
	if _, _, err := segments.ReadBundle(broken); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("read error: %v", err)
	}
	after := io.MultiReader(strings.NewReader(text), iotest.ErrReader(io.ErrNoProgress))
	if _, _, err := segments.ReadBundle(after); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("read error after the text: %v", err)
	}
	stop := errors.New("stop")
	n := 0
	env, _, err := segments.Read(strings.NewReader(text), func(*segments.Segment) error {
		if n++; n == 2 {
			return stop
		}
		return nil
	})
	if err != stop || n != 2 || env != nil {
		t.Errorf("visit error: %v after %d, %v", err, n, env)
	}
	for _, r := range []io.Reader{iotest.OneByteReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text))} {
		if _, found, err := segments.ReadBundle(r); err != nil || len(found) != 0 {
			t.Errorf("odd reader: %v, %v", err, found)
		}
	}
}

// endless yields an honest bundle of n segments without holding it.
type endless struct {
	chain segments.Builder
	n     uint64
	buf   []byte
	head  bool
}

func (e *endless) Read(p []byte) (int, error) {
	for len(e.buf) < len(p) && e.chain.Next < e.n {
		entry := "tracker"
		s := e.chain.Append(honestStep("step", int(e.chain.Next), &entry), nil)
		switch {
		case s.Seq == 0:
			e.buf = append(e.buf, `{`+okScope+`,"chain":{"segments":[`...)
		default:
			e.buf = append(e.buf, ',')
		}
		e.buf = segments.AppendSegment(e.buf, &s)
	}
	if e.chain.Next == e.n && !e.head {
		e.head = true
		e.buf = append(e.buf, `],"head":"`+e.chain.Head.String()+`"}}`...)
	}
	n := copy(p, e.buf)
	e.buf = append(e.buf[:0], e.buf[n:]...)
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func TestMemoryDoesNotGrowWithTheChain(t *testing.T) {
	n, limit := uint64(200_000), uint64(8<<20)
	if testing.Short() {
		n = 20_000
	}
	source := &endless{n: n}
	var walk segments.Walk
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	env, found, err := segments.Read(source, func(s *segments.Segment) error {
		if walk.Count%(n/4) == n/8 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			if now.HeapAlloc > before.HeapAlloc+limit {
				return fmt.Errorf("%d bytes on the heap at segment %d", now.HeapAlloc-before.HeapAlloc, walk.Count)
			}
		}
		return walk.Step(s)
	})
	if err != nil || len(found) != 0 || walk.Count != n || *env.Head != *walk.Head {
		t.Errorf("%d segments, %v, %v", walk.Count, found, err)
	}
}

func FuzzReadBundle(f *testing.F) {
	requireCorpus(f, "FuzzReadBundle")
	for _, name := range vectors(f) {
		f.Add(readFile(f, filepath.Join(plasm, name, "bundle.json")))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		b, _, err := segments.ReadBundle(bytes.NewReader(text))
		if err != nil {
			if b != nil {
				t.Fatal("a bundle beside an error")
			}
			return
		}
		once := segments.AppendBundle(nil, b)
		again, found, err := segments.ReadBundle(bytes.NewReader(once))
		if err != nil {
			t.Fatalf("%s: %v", once, err)
		}
		for _, d := range found {
			if d.Code != segments.UnsafeInteger && (d.Code != segments.NoncanonicalHex || !strings.HasPrefix(d.Path, "/signature/")) {
				t.Fatalf("written anew %s: %+v", once, d)
			}
		}
		if twice := segments.AppendBundle(nil, again); !bytes.Equal(once, twice) {
			t.Fatalf("%s\nthen\n%s", once, twice)
		}
	})
}
