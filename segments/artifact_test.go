package segments_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaind/chaind/segments"
	"github.com/google/go-cmp/cmp"
)

func TestArtifactFrame(t *testing.T) {
	t.Parallel()
	blob := segments.AppendArtifactFrame([]byte{}, []byte(`{"a":1}`), []byte("body"))
	if want := "PLAR1\n\x00\x00\x00\x07{\"a\":1}body"; string(blob) != want {
		t.Fatalf("%q, want %q", blob, want)
	}
	metadata, body, err := segments.SplitArtifactFrame(blob)
	if err != nil || string(metadata) != `{"a":1}` || string(body) != "body" {
		t.Errorf("%s, %s, %v", metadata, body, err)
	}
	for n := range len(blob) - len("body") {
		metadata, body, err := segments.SplitArtifactFrame(blob[:n])
		if !errors.Is(err, segments.ErrArtifactFrame) || metadata != nil || body != nil {
			t.Errorf("prefix of %d: %q, %q, %v", n, metadata, body, err)
		}
	}
	if _, _, err := segments.SplitArtifactFrame([]byte("PLAR2\n\x00\x00\x00\x00{}")); !errors.Is(err, segments.ErrArtifactFrame) {
		t.Errorf("another magic: %v", err)
	}
	if _, _, err := segments.SplitArtifactFrame([]byte("PLAR1\n\xff\xff\xff\xff{}")); !errors.Is(err, segments.ErrArtifactFrame) {
		t.Errorf("huge length: %v", err)
	}
}

func TestSealDocument(t *testing.T) {
	t.Parallel()
	body := readFile(t, filepath.Join(plasm, "p01-full-run-unsigned", "artifact.json"))
	plain, err := segments.DecodeSealDocument(body)
	if err != nil || plain.EntryID != "tracker" || len(plain.DisplayLines) != 1 || !bytes.Contains(body, plain.ParsedPreimage) {
		t.Fatalf("%+v, %v", plain, err)
	}
	framed := segments.AppendArtifactFrame(nil, []byte(`{"content_type":"application/json","schema_version":3,"producer":"x"}`), body)
	for what, text := range map[string][]byte{
		"framed":   framed,
		"alias":    bytes.Replace(body, []byte(`"display_lines"`), []byte(`"expressions"`), 1),
		"unknown":  bytes.Replace(body, []byte(`{`), []byte(`{"x":1,"x":[2],`), 1),
		"identity": segments.AppendArtifactFrame(nil, []byte(`{"content_encoding":"identity"}`), body),
		"null":     segments.AppendArtifactFrame(nil, []byte(`{"content_encoding":null}`), body),
	} {
		got, err := segments.DecodeSealDocument(text)
		if diff := cmp.Diff(plain, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", what, err, diff)
		}
	}
	for n := range len(framed) {
		if doc, err := segments.DecodeSealDocument(framed[:n]); err == nil || doc != nil {
			t.Fatalf("prefix of %d: %+v", n, doc)
		}
	}
	noLines := bytes.Replace(body, []byte(`"display_lines"`), []byte(`"other"`), 1)
	if doc, err := segments.DecodeSealDocument(noLines); err != nil || len(doc.DisplayLines) != 0 {
		t.Errorf("no lines: %+v, %v", doc, err)
	}
}

func TestSealDocumentRefuses(t *testing.T) {
	t.Parallel()
	body := string(readFile(t, filepath.Join(plasm, "p01-full-run-unsigned", "artifact.json")))
	for what, text := range map[string]string{
		"both names":      strings.Replace(body, `{`, `{"expressions":[],`, 1),
		"both, empty":     strings.Replace(strings.Replace(body, `{`, `{"expressions":[],`, 1), `"Issue(41).close()"`, ``, 1),
		"same name twice": strings.Replace(body, `{`, `{"display_lines":[],`, 1),
		"lines null":      strings.Replace(body, `["Issue(41).close()"]`, `null`, 1),
		"array":           `["tracker",{},[],[]]`,
		"no entry":        strings.Replace(body, `"entry_id"`, `"entry"`, 1),
		"trailing":        body + `{}`,
		"J09 in parsed":   strings.Replace(body, `"parsed_preimage":{`, `"parsed_preimage":{"expr":{"op":"delete"},`, 1),
		"J09 by escape":   strings.Replace(body, `"parsed_preimage":{`, `"parsed_preimage":{"\u0065xpr":{"op":"delete"},`, 1),
		"J09 deep":        strings.Replace(body, `"parsed_preimage":{`, `"parsed_preimage":{"more":[{"a":1,"a":1}],`, 1),
		"empty":           ``,
	} {
		doc, err := segments.DecodeSealDocument([]byte(text))
		if _, ok := errors.AsType[*segments.DecodeError](err); !ok || doc != nil {
			t.Errorf("%s: %+v, %v", what, doc, err)
		}
	}
	zipped := segments.AppendArtifactFrame(nil, []byte(`{"content_encoding":"zstd"}`), []byte(body))
	if _, err := segments.DecodeSealDocument(zipped); !errors.Is(err, segments.ErrArtifactEncoded) {
		t.Errorf("encoded body: %v", err)
	}
	odd := segments.AppendArtifactFrame(nil, []byte(`[]`), []byte(body))
	if _, err := segments.DecodeSealDocument(odd); !errors.Is(err, segments.ErrArtifactFrame) {
		t.Errorf("metadata not an object: %v", err)
	}
}

// TestSealDocumentSaysWhatItIsOf: whatever else stands there is passed over, as the
// reference does.
func TestSealDocumentSaysWhatItIsOf(t *testing.T) {
	t.Parallel()
	body := string(readFile(t, filepath.Join(plasm, "p01-full-run-unsigned", "artifact.json")))
	bare := strings.NewReplacer(`"run_id":`, `"x":`, `"prompt_hash":`, `"y":`).Replace(body)
	for what, c := range map[string]struct{ members, run, prompt string }{
		"all":      {`"run_id":"pr1","prompt_hash":"p",`, "pr1", "p"},
		"none":     {``, "", ""},
		"odd":      {`"run_id":null,"prompt_hash":{"a":1,"a":2},`, "", ""},
		"repeated": {`"run_id":"one","run_id":"two","zz":1,"zz":2,`, "one", ""},
	} {
		doc, err := segments.DecodeSealDocument([]byte(strings.Replace(bare, "{", "{"+c.members, 1)))
		if err != nil || doc.RunID != c.run || doc.PromptHash != c.prompt {
			t.Errorf("%s: %+v, %v", what, doc, err)
		}
	}
}

func TestSignature(t *testing.T) {
	t.Parallel()
	v := tables(t)
	seed, err := hex.DecodeString(v.Keys[0].SeedHex)
	if err != nil {
		t.Fatal(err)
	}
	b := readBundle(t, "p02-full-run-signed")
	sig := segments.Sign(ed25519.NewKeyFromSeed(seed), &b.Scope, *b.Head)
	want := &segments.Signature{PublicKeyHex: v.Signature.PublicKeyHex, SignatureHex: v.Signature.SignatureHex}
	if diff := cmp.Diff(want, sig); diff != "" || v.Signature.ChainHead != b.Head.String() || *b.Signature != *want {
		t.Fatal(diff)
	}
	if got := segments.AppendHeadMessage(nil, &b.Scope, *b.Head); string(got) != v.Signature.Preimage {
		t.Errorf("message %s", got)
	}
	key, text := sig.PublicKeyHex, sig.SignatureHex
	flipped := strings.Replace(text, text[:1], string('0'+(text[0]-'0'+1)%10), 1)
	for _, tt := range []struct {
		what, key, sig string
		want           error
	}{
		{"as written", key, text, nil},
		{"padded, upper case", " " + strings.ToUpper(key) + "\n", "\u00a0" + strings.ToUpper(text), nil},
		{"short key", key[2:], text, segments.ErrSignatureMalformed},
		{"odd key", key[1:], text, segments.ErrSignatureMalformed},
		{"key with prefix", "0x" + key[2:], text, segments.ErrSignatureMalformed},
		{"no signature", key, "", segments.ErrSignatureMalformed},
		{"long signature", key, text + "00", segments.ErrSignatureMalformed},
		{"BOM is not trimmed", key, "\ufeff" + text, segments.ErrSignatureMalformed},
		{"flipped", key, flipped, segments.ErrSignatureMismatch},
		{"other key", v.Keys[1].PublicKeyHex, text, segments.ErrSignatureMismatch},
		{"no point", "02" + strings.Repeat("00", 31), text, segments.ErrSignatureMismatch},
	} {
		err := segments.VerifySignature(&segments.Signature{PublicKeyHex: tt.key, SignatureHex: tt.sig}, &b.Scope, *b.Head)
		if err != tt.want {
			t.Errorf("%s: %v, want %v", tt.what, err, tt.want)
		}
	}
	other := b.Scope
	other.TenantID = "t"
	if err := segments.VerifySignature(sig, &other, *b.Head); err != segments.ErrSignatureMismatch {
		t.Errorf("another scope: %v", err)
	}
}

func TestVectorSignatures(t *testing.T) {
	t.Parallel()
	signed := 0
	for _, name := range vectors(t) {
		var want expected
		readJSON(t, filepath.Join(plasm, name, "expected.json"), &want)
		if want.Reference.Decode.Outcome != "accept" {
			continue
		}
		b := readBundle(t, name)
		if b.Signature == nil || b.Head == nil || slices.Contains(want.Strict.Errors, "untrusted_key") {
			continue
		}
		signed++
		err := segments.VerifySignature(b.Signature, &b.Scope, *b.Head)
		if bad := slices.Contains(want.Strict.Errors, "signature_invalid"); (err != nil) != bad {
			t.Errorf("%s: %v", name, err)
		}
	}
	if signed < 8 {
		t.Errorf("only %d signed vectors", signed)
	}
}

func FuzzSealDocument(f *testing.F) {
	requireCorpus(f, "FuzzSealDocument")
	f.Fuzz(func(t *testing.T, text []byte) {
		doc, err := segments.DecodeSealDocument(text)
		if (doc == nil) != (err != nil) {
			t.Fatalf("%+v beside %v", doc, err)
		}
		if err != nil {
			return
		}
		// Only a number beyond binary64 may keep a document from a digest.
		if _, err := segments.RunDigest(&segments.Scope{}, doc); err != nil && !strings.Contains(err.Error(), "binary64") {
			t.Fatal(err)
		}
	})
}
