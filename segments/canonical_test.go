package segments_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chaind/chaind/segments"
	"github.com/gowebpki/jcs"
	"pgregory.net/rapid"
)

// The oracle: the written segment, taken apart by a JSON library, put together
// as a preimage and canonicalized by a JCS library.
func oraclePreimage(t testing.TB, s *segments.Segment) []byte {
	t.Helper()
	var prev any
	if s.Prev != nil {
		prev = s.Prev.String()
	}
	text, err := json.Marshal(map[string]any{
		"schema_version": segments.SegmentSchemaVersion, "seq": s.Seq, "prev": prev,
		"kind": json.RawMessage(segments.AppendKind(nil, s.Kind)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return transform(t, text)
}

func transform(t testing.TB, text []byte) []byte {
	t.Helper()
	out, err := jcs.Transform(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

func checkPreimage(t testing.TB, s *segments.Segment) {
	t.Helper()
	got := segments.AppendPreimage([]byte("x"), s.Seq, s.Prev, s.Kind)
	want := append([]byte("x"), oraclePreimage(t, s)...)
	if !bytes.Equal(got, want) {
		t.Fatalf("preimage\n%s\nwant\n%s", got, want)
	}
	if s.Digest() != segments.Sum(want[1:]) {
		t.Fatal("digest is not that of the preimage")
	}
}

func TestPreimageIsJCS(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		s := genSegment.Draw(r, "segment")
		checkPreimage(t, &s)
		if got, want := segments.AppendKindJCS(nil, s.Kind), transform(t, segments.AppendKind(nil, s.Kind)); !bytes.Equal(got, want) {
			t.Fatalf("kind %s, want %s", got, want)
		}
		checkDecodesFromJCS(t, s.Kind)
	})
}

// checkDecodesFromJCS reads a kind back from canonical order, which is exact
// while integers are safe.
func checkDecodesFromJCS(t testing.TB, k segments.Kind) {
	t.Helper()
	back, found, err := segments.DecodeKind(segments.AppendKindJCS(nil, k))
	if segments.CheckKind(k) != nil {
		return
	}
	if err != nil || len(found) != 0 || !bytes.Equal(segments.AppendKind(nil, back), segments.AppendKind(nil, k)) {
		t.Fatalf("%s does not come back: %v, %v", segments.AppendKindJCS(nil, k), found, err)
	}
}

func TestHeadMessageIsJCS(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		scope, head := genScope.Draw(r, "scope"), genDigest.Draw(r, "head")
		text, err := json.Marshal(map[string]any{
			"schema_version": 2, "chain_head": head.String(), "scope": json.RawMessage(segments.AppendScope(nil, &scope)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := segments.AppendHeadMessage(nil, &scope, head), transform(t, text); !bytes.Equal(got, want) {
			t.Fatalf("message %s, want %s", got, want)
		}
	})
}

func FuzzPreimage(f *testing.F) {
	requireCorpus(f, "FuzzPreimage")
	f.Fuzz(func(t *testing.T, kind uint8, seq, n uint64, a, b string, digest []byte, options uint8) {
		if !utf8.ValidString(a) || !utf8.ValidString(b) {
			return
		}
		var d segments.Digest
		copy(d[:], digest)
		s := segments.Segment{Seq: seq, Kind: fuzzKind(kind, n, a, b, d, options)}
		if options&4 != 0 {
			s.Prev = &d
		}
		checkPreimage(t, &s)
		text := segments.AppendSegment(nil, &s)
		back, _, err := segments.DecodeSegment(text)
		if err != nil || !bytes.Equal(segments.AppendSegment(nil, back), text) {
			t.Fatalf("%s does not come back: %v", text, err)
		}
	})
}

func fuzzKind(kind uint8, n uint64, a, b string, d segments.Digest, options uint8) segments.Kind {
	var text *string
	var index *uint64
	if options&1 != 0 {
		text = &b
	}
	if options&2 != 0 {
		index = &n
	}
	switch kind % 4 {
	case 0:
		return &segments.IntentBound{IntentDigest: d, IntentLen: uint32(n)}
	case 1:
		return &segments.CompCommitted{PlanCommitIDHex: a, CompSemanticSHA256: d, StepTopo: strings.Fields(b)}
	case 2:
		return &segments.StepExecuted{StepID: a, StepIndex: uint32(n), EntryID: text, RequestFingerprints: strings.Split(b, ","), SourceLine: b, ParsedExprDigest: d}
	}
	return &segments.RunSealed{RunID: a, StepID: text, ResourceIndex: index, RunBundleDigest: d}
}

// requireCorpus fails when the committed seeds of a fuzz target are gone.
func requireCorpus(t testing.TB, target string) {
	t.Helper()
	if seeds, err := os.ReadDir(filepath.Join("testdata/fuzz", target)); err != nil || len(seeds) == 0 {
		t.Fatalf("no committed seeds for %s: %v", target, err)
	}
}

// One line pins the whole encoding: the chain of ten thousand segments.
func TestAccumulatedHead(t *testing.T) {
	t.Parallel()
	b := chainOf(honest(10_000))
	const head = "d797ac19dd23fe8d97c2a80b58cb0df16ab0c5f5bad802fc305db4e35d0d850d"
	if got := b.Head.String(); got != head {
		t.Errorf("head %s, want %s", got, head)
	}
	const file = "3b629b3cabb254b49e8c0c2ffd6d8c650c5e228496360b1e5b10051d47aefb7e"
	if got := segments.Sum(segments.AppendBundle(nil, b)).String(); got != file {
		t.Errorf("file %s, want %s", got, file)
	}
}

func TestUnsafeIntegersCollide(t *testing.T) {
	t.Parallel()
	seal := func(n uint64) *segments.Segment {
		return &segments.Segment{Kind: &segments.RunSealed{RunID: "r", ResourceIndex: &n}}
	}
	a, b := seal(1<<53), seal(1<<53+1)
	if a.Digest() != b.Digest() {
		t.Error("2^53 and 2^53+1 no longer collide as they do in the reference")
	}
	if err := a.Check(); err == nil {
		t.Error("an unsafe integer passes the check")
	}
	if seal(1<<53-1).Digest() == seal(1<<53-2).Digest() {
		t.Error("safe integers collide")
	}
	pre := segments.AppendPreimage(nil, 1<<64-1, nil, seal(0).Kind)
	if !bytes.HasSuffix(pre, []byte(`"seq":18446744073709552000}`)) {
		t.Errorf("largest seq: %s", pre)
	}
}

// Strings that are not UTF-8 do not reach the encoders from our decoders.
// Built by hand they keep apart, nothing turns into U+FFFD, no reader takes
// the bytes, and Check names the fault.
func TestInvalidUTF8IsNeverReplaced(t *testing.T) {
	t.Parallel()
	seen := map[segments.Digest]string{}
	for _, bad := range []string{"\xff", "\xfe", "\xc0\xaf", "\xed\xa0\x80", "a\x80", "\ufffd"} {
		s := &segments.Segment{Kind: &segments.StepExecuted{StepID: bad}}
		if other, twice := seen[s.Digest()]; twice {
			t.Errorf("%q and %q have one digest", bad, other)
		}
		seen[s.Digest()] = bad
		text := segments.AppendSegment(nil, s)
		_, _, err := segments.DecodeSegment(text)
		if valid := bad == "\ufffd"; (err == nil) != valid || (s.Check() == nil) != valid {
			t.Errorf("%q: decode %v, check %v", bad, err, s.Check())
		}
		if err := (&segments.Scope{TenantID: bad}).Check(); (err == nil) != (bad == "\ufffd") {
			t.Errorf("%q in a scope: %v", bad, err)
		}
	}
}

// Fields that concatenate to the same text must not hash alike.
func TestDelimitersDoNotCollide(t *testing.T) {
	t.Parallel()
	step := func(a, b string, fps ...string) segments.Digest {
		s := segments.Segment{Kind: &segments.StepExecuted{StepID: a, SourceLine: b, RequestFingerprints: fps}}
		return s.Digest()
	}
	seen := map[segments.Digest]bool{}
	n := 0
	for _, sep := range []string{"|", "\n", "\x00", `","source_line":"`} {
		for _, d := range []segments.Digest{
			step("a"+sep+"b", "c"), step("a", "b"+sep+"c"), step("a", "b", sep+"c"), step("a", "b", sep, "c"),
		} {
			seen[d] = true
			n++
		}
	}
	if len(seen) != n {
		t.Errorf("%d of %d digests are distinct", len(seen), n)
	}
}

func TestAbsentAndEmptyDiffer(t *testing.T) {
	t.Parallel()
	empty := ""
	zero := uint64(0)
	kinds := []segments.Kind{
		&segments.RunSealed{}, &segments.RunSealed{StepID: &empty}, &segments.RunSealed{ResourceIndex: &zero},
		&segments.StepExecuted{}, &segments.StepExecuted{EntryID: &empty}, &segments.StepExecuted{RequestFingerprints: []string{""}},
	}
	seen := map[string]bool{}
	for _, k := range kinds {
		seen[string(segments.AppendKindJCS(nil, k))] = true
	}
	if len(seen) != len(kinds) {
		t.Errorf("%d of %d canonical forms are distinct", len(seen), len(kinds))
	}
}
