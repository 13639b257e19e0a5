package bundle_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine/naive"
)

const vectors = "../testdata/tessera/"

func readFile(tb testing.TB, path string) string {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

func mustParse(tb testing.TB, text string) *bundle.Bundle {
	tb.Helper()
	b, err := bundle.Parse(text)
	if err != nil {
		tb.Fatalf("parse bundle: %v", err)
	}
	return b
}

func mustIntegrity(tb testing.TB, b *bundle.Bundle) *bundle.Integrity {
	tb.Helper()
	check, err := b.CheckIntegrity()
	if err != nil {
		tb.Fatalf("check integrity: %v", err)
	}
	return check
}

func wantCode(tb testing.TB, err error, want bundle.Code) {
	tb.Helper()
	var fault *bundle.FormatError
	if !errors.As(err, &fault) || fault.Code != want {
		tb.Errorf("got error %v, want code %s", err, want)
	} else if fault.Error() == "" {
		tb.Error("the error says nothing")
	}
}

func found(findings []bundle.Finding) []string {
	var out []string
	for _, f := range findings {
		out = append(out, string(f.Code)+" "+f.Where)
	}
	return out
}

// published are the bundles that the reference published, and one that a
// forger re-sealed; all of their envelopes are intact.
var published = []struct {
	name, root string
	leaves     int
	withheld   int
}{
	{"honest", "sha256:5cc23099dccc6f8969c1281e8f4cfb283a58527903918d47a64af68271d54903", 372, 0},
	{"forged", "sha256:fbcbe69d1d2d2d914c92298c88dd5b5f5d227058b632d53afdee733c7ccac3e1", 372, 0},
	{"rca", "sha256:0ecaeaff0deb308092232f0dfc181b567ce17cec79729445f78c8ad4855deb2c", 153, 0},
	{"brief", "sha256:f06590016bf520526776dd26d59f036c0b61e82466aa44e5d00a860b938b8ac9", 22, 0},
	{"honest-public", "sha256:5cc23099dccc6f8969c1281e8f4cfb283a58527903918d47a64af68271d54903", 372, 337},
}

func TestPublishedBundles(t *testing.T) {
	for _, p := range published {
		t.Run(p.name, func(t *testing.T) {
			text := readFile(t, vectors+p.name+".tsb")
			b, err := bundle.Read(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if !b.Canonical || b.Bytes != int64(len(text)) {
				t.Errorf("canonical %t, %d bytes", b.Canonical, b.Bytes)
			}
			check := mustIntegrity(t, b)
			if check.Root != p.root || check.Stored != p.root || check.Leaves != p.leaves || len(check.Withheld) != p.withheld || len(check.Findings) > 0 {
				t.Errorf("root %s, %d leaves, %d withheld, findings %v", check.Root, check.Leaves, len(check.Withheld), found(check.Findings))
			}
			if got := string(b.Doc.AppendCanonical(nil)) + "\n"; got != text {
				t.Error("the canonical form is not the file")
			}
			if got := naive.File(naive.MustParse(text)); got != text {
				t.Error("the naive canonical form is not the file")
			}
			if sig, err := b.CheckSignature(); err != nil || sig.Signed {
				t.Errorf("signature %+v, %v", sig, err)
			}
			testReformatted(t, text, p.root)
		})
	}
}

// testReformatted: a copy with other white space, member order and escapes
// verifies, and is told apart (case V33).
func testReformatted(t *testing.T, text, root string) {
	t.Helper()
	for name, copied := range map[string]string{
		"spaced":     spaced(text),
		"no newline": strings.TrimSuffix(text, "\n"),
		"crlf":       strings.TrimSuffix(text, "\n") + "\r\n",
		"two lines":  text + "\n",
		"leading":    " " + text,
	} {
		b := mustParse(t, copied)
		check := mustIntegrity(t, b)
		if b.Canonical || check.Root != root || len(check.Findings) > 0 {
			t.Errorf("%s: canonical %t, root %s, findings %v", name, b.Canonical, check.Root, found(check.Findings))
		}
		if got := string(b.Doc.AppendCanonical(nil)) + "\n"; got != text {
			t.Errorf("%s: the canonical form is not the original", name)
		}
	}
}

// spaced puts white space around every mark outside strings, turns the
// outermost members around, and escapes each letter e.
func spaced(text string) string {
	doc := naive.MustParse(text)
	var b strings.Builder
	b.WriteByte('{')
	keys := naive.Keys(doc)
	slices.Reverse(keys)
	for i, key := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(naive.Canon(key) + ":" + naive.Canon(doc[key]))
	}
	b.WriteByte('}')
	return respace(b.String())
}

func respace(text string) string {
	var b strings.Builder
	inside, escaped := false, false
	for _, r := range text {
		switch {
		case inside && !escaped && r == 'e':
			b.WriteString(`\u0065`)
		case inside || !strings.ContainsRune("{}[],:", r):
			b.WriteRune(r)
		default:
			b.WriteString("\t" + string(r) + " \r\n")
		}
		switch {
		case escaped:
			escaped = false
		case r == '"':
			inside = !inside
		case r == '\\':
			escaped = inside
		}
	}
	return b.String()
}

func TestReadFaults(t *testing.T) {
	if _, err := bundle.Read(iotest.ErrReader(io.ErrUnexpectedEOF)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
	_, err := bundle.Read(strings.NewReader("[]"))
	wantCode(t, err, bundle.WrongType)
}

// TestNotABundle: what Parse demands of the outer shape, in its order.
func TestNotABundle(t *testing.T) {
	e1 := readFile(t, "testdata/e1.tsb")
	for _, tt := range []struct {
		name string
		edit func(doc map[string]any)
		code bundle.Code
	}{
		{"no format", func(d map[string]any) { delete(d, "format") }, bundle.MissingMember},
		{"format is text", func(d map[string]any) { d["format"] = "x" }, bundle.WrongType},
		{"no name", func(d map[string]any) { naive.Remove(d, "format", "name") }, bundle.NotABundle},
		{"other name", func(d map[string]any) { naive.Put(d, "tessera-approval", "format", "name") }, bundle.NotABundle},
		{"major 2", func(d map[string]any) { naive.Put(d, naive.Number("2"), "format", "major") }, bundle.UnsupportedMajor},
		{"major 1.0", func(d map[string]any) { naive.Put(d, naive.Number("1.0"), "format", "major") }, bundle.UnsupportedMajor},
		{"major true", func(d map[string]any) { naive.Put(d, true, "format", "major") }, bundle.UnsupportedMajor},
		{"major text", func(d map[string]any) { naive.Put(d, "1", "format", "major") }, bundle.UnsupportedMajor},
		{"anchor of another bundle (case V27)", func(d map[string]any) { d["anchor"] = map[string]any{"root": "x"} }, bundle.AnchorPresent},
		{"anchor false", func(d map[string]any) { d["anchor"] = false }, bundle.AnchorPresent},
		{"no engine", func(d map[string]any) { delete(d, "engine") }, bundle.MissingMember},
		{"engine is a list", func(d map[string]any) { d["engine"] = []any{} }, bundle.WrongType},
		{"no closure", func(d map[string]any) { delete(d, "evidence_closure") }, bundle.MissingMember},
		{"closure is null", func(d map[string]any) { d["evidence_closure"] = nil }, bundle.WrongType},
	} {
		doc := naive.MustParse(e1)
		tt.edit(doc)
		b, err := bundle.Parse(naive.File(doc))
		if wantCode(t, err, tt.code); b != nil {
			t.Errorf("%s: a bundle came with the error", tt.name)
		}
	}
	for _, text := range []string{`"x"`, `7`, `null`, `[]`, `true`} { // case J23
		_, err := bundle.Parse(text)
		wantCode(t, err, bundle.WrongType)
	}
	_, err := bundle.Parse("") // case J23
	wantCode(t, err, bundle.Truncated)
	for _, second := range []string{`"result":{},`, `"resul\u0074":1,`} { // case V09
		_, err := bundle.Parse("{" + second + e1[1:])
		wantCode(t, err, bundle.DuplicateMember)
	}
}

// TestIntegrityFindings: every deviation of the envelope is found and named,
// and several are found together.
func TestIntegrityFindings(t *testing.T) {
	zero := "sha256:" + strings.Repeat("0", 64)
	for _, tt := range []struct {
		name   string
		edit   func(d map[string]any)
		reseal bool
		want   []string
	}{
		{"intact", func(d map[string]any) {}, false, nil},
		{"leaf tampered", func(d map[string]any) { naive.Put(d, zero, "integrity", "leaves", "action") }, false, []string{"leaf_mismatch action"}},
		{"root tampered", func(d map[string]any) { naive.Put(d, zero, "integrity", "root") }, false, []string{"root_mismatch root"}},
		{"root is a number", func(d map[string]any) { naive.Put(d, naive.Number("1"), "integrity", "root") }, false, []string{"root_mismatch root"}},
		{"record named", func(d map[string]any) {
			naive.Put(d, "Pump P-9 failed its pressure test.", "evidence_closure", "graph", "nodes", 1, "record", "text")
		}, false, []string{"leaf_mismatch node:pump:P-9", "root_mismatch root"}},
		{"two records and the kb", func(d map[string]any) {
			naive.Put(d, "x", "evidence_closure", "graph", "nodes", 0, "kind")
			naive.Put(d, "x", "evidence_closure", "graph", "nodes", 2, "kind")
			naive.Put(d, "x", "evidence_closure", "kb", "records", 1, "text")
		}, false, []string{"leaf_mismatch kb", "leaf_mismatch node:pump:P-7", "leaf_mismatch node:site:A", "root_mismatch root"}},
		{"unknown member of a node is sealed", func(d map[string]any) { naive.Put(d, "x", "evidence_closure", "graph", "nodes", 0, "note") }, false,
			[]string{"leaf_mismatch node:pump:P-7", "root_mismatch root"}},
		{"node dropped", func(d map[string]any) { naive.Remove(d, "evidence_closure", "graph", "nodes", 0) }, false,
			[]string{"unexpected_leaf node:pump:P-7", "root_mismatch root"}},
		{"node added", func(d map[string]any) {
			n := naive.Clone(naive.At(d, "evidence_closure", "graph", "nodes", 0))
			naive.Put(n, "pump:P-8", "record", "id")
			naive.Put(d, append(naive.At(d, "evidence_closure", "graph", "nodes").([]any), n), "evidence_closure", "graph", "nodes")
		}, false, []string{"missing_leaf node:pump:P-8", "root_mismatch root"}},
		{"nodes in another order are not sealed", func(d map[string]any) {
			slices.Reverse(naive.At(d, "evidence_closure", "graph", "nodes").([]any))
		}, false, nil},
		{"edges in another order are", func(d map[string]any) {
			slices.Reverse(naive.At(d, "evidence_closure", "graph", "edges").([]any))
		}, false, []string{"leaf_mismatch graph.edges", "root_mismatch root"}},
		{"number form counts", func(d map[string]any) {
			naive.Put(d, naive.Number("1"), "evidence_closure", "graph", "resolutions", 0, "confidence")
		}, false, []string{"leaf_mismatch graph.resolutions", "root_mismatch root"}},
		{"action smuggled", func(d map[string]any) { d["action"] = "pay" }, false, []string{"leaf_mismatch action", "root_mismatch root"}},
		{"top-level member", func(d map[string]any) { d["smuggled"] = "x"; d["also"] = nil }, false, []string{"unexpected_member "}},
		{"upstream in a full snapshot", func(d map[string]any) { naive.Put(d, []any{}, "evidence_closure", "upstream") }, true, []string{"unexpected_member evidence_closure"}},
		{"graph member", func(d map[string]any) { naive.Put(d, []any{}, "evidence_closure", "graph", "hints") }, true, []string{"unexpected_member evidence_closure.graph"}},
		{"integrity member", func(d map[string]any) { naive.Put(d, "x", "integrity", "note") }, false, []string{"unexpected_member integrity"}},
		{"other canonicalization", func(d map[string]any) { naive.Put(d, "jcs", "integrity", "canonicalization") }, false, []string{"other_canonicalization integrity.canonicalization"}},
		{"canonicalization is null", func(d map[string]any) { naive.Put(d, nil, "integrity", "canonicalization") }, false, []string{"other_canonicalization integrity.canonicalization"}},
		{"leaf is a number", func(d map[string]any) { naive.Put(d, naive.Number("7"), "integrity", "leaves", "kb") }, false,
			[]string{"not_a_digest kb", "missing_leaf kb"}},
		{"leaf dropped", func(d map[string]any) { naive.Remove(d, "integrity", "leaves", "kb") }, false, []string{"missing_leaf kb"}},
		{"leaf added", func(d map[string]any) { naive.Put(d, zero, "integrity", "leaves", "node:ghost") }, false, []string{"unexpected_leaf node:ghost"}},
	} {
		doc := naive.MustParse(readFile(t, "testdata/e1.tsb"))
		tt.edit(doc)
		if tt.reseal {
			naive.Seal(doc)
		}
		check := mustIntegrity(t, mustParse(t, naive.File(doc)))
		if diff := cmp.Diff(tt.want, found(check.Findings)); diff != "" {
			t.Errorf("%s: findings (-want +got):\n%s", tt.name, diff)
		}
		for _, f := range check.Findings {
			if f.String() == "" {
				t.Errorf("%s: a finding says nothing", tt.name)
			}
		}
	}
}

// TestDigestSpelling: a digest has one spelling, and another is never taken for
// it (case V25), not even where a withheld item makes it a commitment.
func TestDigestSpelling(t *testing.T) {
	for _, spell := range []func(string) string{
		strings.ToUpper,
		func(s string) string { return "SHA256" + s[6:] },
		func(s string) string { return s[7:] },
		func(s string) string { return s + " " },
		func(s string) string { return " " + s },
		func(s string) string { return s[:70] },
		func(s string) string { return "sha256:" + strings.ToUpper(s[7:]) },
		func(string) string { return "" },
	} {
		doc := naive.MustParse(readFile(t, "testdata/e1.tsb"))
		leaf := naive.At(doc, "integrity", "leaves", "kb").(string)
		naive.Put(doc, spell(leaf), "integrity", "leaves", "kb")
		got := found(mustIntegrity(t, mustParse(t, naive.File(doc))).Findings)
		if want := []string{"not_a_digest kb", "leaf_mismatch kb"}; !slices.Equal(got, want) {
			t.Errorf("%q: findings %v", spell(leaf), got)
		}
		naive.Put(doc, map[string]any{"redacted": true}, "evidence_closure", "kb")
		naive.Seal(doc)
		got = found(mustIntegrity(t, mustParse(t, naive.File(doc))).Findings)
		if want := []string{"not_a_digest kb"}; !slices.Equal(got, want) {
			t.Errorf("%q as a commitment: findings %v", spell(leaf), got)
		}
	}
	if bundle.IsDigest("") || !bundle.IsDigest("sha256:"+strings.Repeat("a", 64)) || bundle.IsDigest("sha256:"+strings.Repeat("g", 64)) {
		t.Error("IsDigest is wrong")
	}
}

// TestUnreadableEnvelopes: sections that the manifest needs, missing or of the
// wrong type.
func TestUnreadableEnvelopes(t *testing.T) {
	for _, tt := range []struct {
		path []any
		put  any // nil: removed
		code bundle.Code
	}{
		{[]any{"integrity"}, nil, bundle.MissingMember},
		{[]any{"integrity"}, "x", bundle.WrongType},
		{[]any{"integrity", "canonicalization"}, nil, bundle.MissingMember},
		{[]any{"integrity", "leaves"}, nil, bundle.MissingMember},
		{[]any{"integrity", "leaves"}, []any{}, bundle.WrongType},
		{[]any{"integrity", "root"}, nil, bundle.MissingMember},
		{[]any{"result"}, nil, bundle.MissingMember},
		{[]any{"action"}, nil, bundle.MissingMember},
		{[]any{"evidence_closure", "kind"}, nil, bundle.MissingMember},
		{[]any{"evidence_closure", "kb"}, nil, bundle.MissingMember},
		{[]any{"evidence_closure", "graph"}, nil, bundle.MissingMember},
		{[]any{"evidence_closure", "graph"}, "x", bundle.WrongType},
		{[]any{"evidence_closure", "graph", "edges"}, nil, bundle.MissingMember},
		{[]any{"evidence_closure", "graph", "nodes"}, nil, bundle.MissingMember},
		{[]any{"evidence_closure", "graph", "nodes"}, "x", bundle.WrongType},
		{[]any{"evidence_closure", "graph", "nodes", 1}, "x", bundle.WrongType},
		{[]any{"evidence_closure", "graph", "nodes", 1, "record"}, nil, bundle.MissingMember},
		{[]any{"evidence_closure", "graph", "nodes", 1, "record"}, "x", bundle.WrongType},
		{[]any{"evidence_closure", "graph", "nodes", 1, "record", "id"}, nil, bundle.MissingMember},
		{[]any{"evidence_closure", "graph", "nodes", 1, "record", "id"}, true, bundle.WrongType},
		{[]any{"evidence_closure", "graph", "nodes", 1, "record", "id"}, "site:A", bundle.DuplicateNode},
		{[]any{"evidence_closure", "graph", "nodes", 1}, map[string]any{"redacted": true}, bundle.MissingMember},
		{[]any{"evidence_closure", "graph", "nodes", 1}, map[string]any{"redacted": true, "record": map[string]any{"id": true}}, bundle.WrongType},
		{[]any{"evidence_closure", "graph", "nodes", 1}, map[string]any{"redacted": true, "record": map[string]any{"id": "ghost"}}, bundle.NoCommitment},
		{[]any{"evidence_closure", "kind"}, bundle.KindChain, bundle.MissingMember},
	} {
		doc := naive.MustParse(readFile(t, "testdata/e1.tsb"))
		if tt.put == nil {
			naive.Remove(doc, tt.path...)
		} else {
			naive.Put(doc, tt.put, tt.path...)
		}
		check, err := mustParse(t, naive.File(doc)).CheckIntegrity()
		if wantCode(t, err, tt.code); check != nil {
			t.Errorf("%v: a check came with the error", tt.path)
		}
	}
}

// TestWithheld: markers, their commitments, and what is only like a marker.
func TestWithheld(t *testing.T) {
	e1 := readFile(t, "testdata/e1.tsb")
	marker := func(id string) any {
		return map[string]any{"redacted": true, "record": map[string]any{"id": id}}
	}
	doc := naive.MustParse(e1)
	naive.Put(doc, marker("pump:P-9"), "evidence_closure", "graph", "nodes", 1)
	naive.Put(doc, map[string]any{"redacted": true}, "evidence_closure", "kb")
	redacted := naive.File(doc)
	if len(redacted) != 3473 {
		t.Errorf("the redacted file has %d bytes", len(redacted))
	}
	check := mustIntegrity(t, mustParse(t, redacted))
	if want := []string{"pump:P-9", "kb"}; !slices.Equal(check.Withheld, want) || len(check.Findings) > 0 || check.Root != check.Stored {
		t.Errorf("withheld %q, findings %v", check.Withheld, found(check.Findings))
	}

	naive.Put(doc, map[string]any{"redacted": true}, "evidence_closure", "graph")
	check = mustIntegrity(t, mustParse(t, naive.File(doc)))
	if want := []string{"kb", "graph"}; !slices.Equal(check.Withheld, want) || len(check.Findings) > 0 {
		t.Errorf("graph withheld: %q, findings %v", check.Withheld, found(check.Findings))
	}
	naive.Remove(doc, "integrity", "leaves", "graph.edges")
	_, err := mustParse(t, naive.File(doc)).CheckIntegrity()
	wantCode(t, err, bundle.NoCommitment)

	for _, like := range []any{
		map[string]any{"redacted": "true"}, map[string]any{"redacted": naive.Number("1")}, map[string]any{"redacted": true, "x": nil},
		map[string]any{"redacted": true, "record": "x"}, map[string]any{"redacted": true, "record": map[string]any{"id": "a", "text": "b"}},
		map[string]any{"redacted": true, "record": map[string]any{}}, map[string]any{"record": nil}, []any{true}, true,
	} {
		doc := naive.MustParse(e1)
		naive.Put(doc, like, "evidence_closure", "kb")
		check := mustIntegrity(t, mustParse(t, naive.File(doc)))
		if len(check.Withheld) > 0 || !slices.Contains(found(check.Findings), "leaf_mismatch kb") {
			t.Errorf("%v: withheld %q, findings %v", like, check.Withheld, found(check.Findings))
		}
	}
	for _, v := range []any{map[string]any{"redacted": true, "record": nil}, map[string]any{"redacted": true}} {
		doc := naive.MustParse(e1)
		naive.Put(doc, v, "evidence_closure", "kb")
		if check := mustIntegrity(t, mustParse(t, naive.File(doc))); len(check.Findings) > 0 || len(check.Withheld) != 1 {
			t.Errorf("%v is not taken for withheld", v)
		}
	}
}

// TestNeverWithheld: sections whose content cannot be withheld.
func TestNeverWithheld(t *testing.T) {
	for leaf, path := range map[string][]any{
		"action": {"action"}, "engine": {"engine"}, "closure.kind": {"evidence_closure", "kind"},
		"upstream:sha256:0ecaeaff0deb308092232f0dfc181b567ce17cec79729445f78c8ad4855deb2c": {"evidence_closure", "upstream", 0},
	} {
		text := readFile(t, vectors+"brief.tsb")
		doc := naive.MustParse(text)
		marker := map[string]any{"redacted": true}
		if path[len(path)-1] == 0 {
			marker["integrity"] = naive.At(doc, append(path, "integrity")...)
		}
		naive.Put(doc, marker, path...)
		b, err := bundle.Parse(naive.File(doc))
		if err != nil {
			t.Fatal(err)
		}
		check, err := b.CheckIntegrity()
		if err != nil {
			t.Errorf("%s: %v", leaf, err)
		} else if len(check.Withheld) > 0 || leaf != "closure.kind" && !slices.Contains(found(check.Findings), "leaf_mismatch "+leaf) || len(check.Findings) == 0 {
			t.Errorf("%s: withheld %q, findings %v", leaf, check.Withheld, found(check.Findings))
		}
	}
}

// TestSealedForgery: whoever re-seals gets an intact envelope; that is all
// integrity can say.
func TestSealedForgery(t *testing.T) {
	doc := naive.MustParse(readFile(t, vectors+"honest.tsb"))
	naive.Put(doc, "forged", "evidence_closure", "graph", "nodes", 7, "record", "text")
	naive.Seal(doc)
	if check := mustIntegrity(t, mustParse(t, naive.File(doc))); len(check.Findings) > 0 {
		t.Errorf("findings %v", found(check.Findings))
	}
}

// TestChainDepth: sixteen bundles above one another are read, seventeen are
// not, and nothing is verified before that is known.
func TestChainDepth(t *testing.T) {
	link := func(inner string) string {
		return fmt.Sprintf(`{"engine":{},"evidence_closure":{"upstream":[{},%s]},"format":{"major":1,"name":"tessera-trust-bundle"}}`, inner)
	}
	text := `{"engine":{},"evidence_closure":{},"format":{"major":1,"name":"tessera-trust-bundle"}}`
	for depth := 0; depth <= bundle.MaxChain; depth++ {
		if b := mustParse(t, text); b.ChainDepth() != depth {
			t.Errorf("depth %d is counted as %d", depth, b.ChainDepth())
		}
		text = link(text)
	}
	_, err := bundle.Parse(text)
	wantCode(t, err, bundle.ChainTooDeep)
}

func TestChainLeaves(t *testing.T) {
	brief := readFile(t, vectors+"brief.tsb")
	for _, tt := range []struct {
		name string
		edit func(d map[string]any)
		want []string
		code bundle.Code
	}{
		{"byte inside an upstream", func(d map[string]any) { naive.Put(d, "x", "evidence_closure", "upstream", 1, "result", "question") },
			[]string{"leaf_mismatch upstream:sha256:5cc23099dccc6f8969c1281e8f4cfb283a58527903918d47a64af68271d54903", "root_mismatch root"}, ""},
		{"upstream dropped", func(d map[string]any) { naive.Remove(d, "evidence_closure", "upstream", 1) },
			[]string{"unexpected_leaf upstream:sha256:5cc23099dccc6f8969c1281e8f4cfb283a58527903918d47a64af68271d54903", "root_mismatch root"}, ""},
		{"upstreams in another order", func(d map[string]any) { slices.Reverse(naive.At(d, "evidence_closure", "upstream").([]any)) }, nil, ""},
		{"upstream twice", func(d map[string]any) {
			naive.Put(d, naive.At(d, "evidence_closure", "upstream", 0), "evidence_closure", "upstream", 1)
		}, nil, bundle.DuplicateUpstream},
		{"upstream is no list", func(d map[string]any) { naive.Put(d, nil, "evidence_closure", "upstream") }, nil, bundle.WrongType},
		{"upstream is text", func(d map[string]any) { naive.Put(d, "x", "evidence_closure", "upstream", 0) }, nil, bundle.WrongType},
		{"upstream without integrity", func(d map[string]any) { naive.Remove(d, "evidence_closure", "upstream", 0, "integrity") }, nil, bundle.MissingMember},
		{"upstream without root", func(d map[string]any) { naive.Remove(d, "evidence_closure", "upstream", 0, "integrity", "root") }, nil, bundle.MissingMember},
		{"root is a number", func(d map[string]any) {
			naive.Put(d, naive.Number("1"), "evidence_closure", "upstream", 0, "integrity", "root")
		}, nil, bundle.WrongType},
	} {
		doc := naive.MustParse(brief)
		tt.edit(doc)
		check, err := mustParse(t, naive.File(doc)).CheckIntegrity()
		if tt.code != "" {
			wantCode(t, err, tt.code)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		} else if diff := cmp.Diff(tt.want, found(check.Findings)); diff != "" {
			t.Errorf("%s: findings (-want +got):\n%s", tt.name, diff)
		}
	}
}
