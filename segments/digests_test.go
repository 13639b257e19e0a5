package segments_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaind/chaind/segments"
)

// digestTables mirrors testdata/plasm/digests.json.
type digestTables struct {
	Keys []struct {
		SeedHex      string `json:"seed_hex"`
		PublicKeyHex string `json:"public_key_hex"`
	}
	IntentDigest []struct {
		Intent            string
		CatalogCGSHash    string  `json:"catalog_cgs_hash"`
		EntryID           string  `json:"entry_id"`
		FederatedSeedHash *string `json:"federated_seed_hash"`
		Preimage          string
		IntentDigest      string `json:"intent_digest"`
		IntentLen         uint32 `json:"intent_len"`
	} `json:"intent_digest"`
	PlanCommitID []struct {
		Comp            string `json:"comp_json_text"`
		Preimage        string
		PlanCommitIDHex string `json:"plan_commit_id_hex"`
	} `json:"plan_commit_id"`
	ParsedExprDigest []struct {
		Parsed string `json:"parsed_json_text"`
		Digest string `json:"parsed_expr_digest"`
		Sorted string `json:"digest_if_members_were_sorted"`
	} `json:"parsed_expr_digest"`
	RunBundleDigest []struct {
		Label  string
		Inputs struct {
			CatalogCGSHash      string   `json:"catalog_cgs_hash"`
			DomainRevision      uint32   `json:"domain_revision"`
			EntryID             string   `json:"entry_id"`
			SourceLine          string   `json:"source_line"`
			Parsed              string   `json:"parsed_json_text"`
			RequestFingerprints []string `json:"request_fingerprints"`
		}
		Preimage   string
		Digest     string `json:"run_bundle_digest"`
		RunID      string `json:"run_id"`
		OlderRunID string `json:"run_id_with_serde_json_before_1_0_147"`
	} `json:"run_bundle_digest"`
	Numbers []struct {
		Lexeme string
		JCS    string
		Value  string `json:"serde_json_value"`
		Older  string `json:"serde_json_value_before_1_0_147"`
	}
	NameOrder struct {
		Input     string
		UTF8Order string `json:"serde_json_utf8_order"`
	} `json:"name_order"`
	StringEscapes struct {
		Input, JCS string
		SerdeJSON  string `json:"serde_json"`
	} `json:"string_escapes"`
	Trim       []struct{ Input, Trimmed string }
	DigestText []struct{ Text, Reference, Strict string } `json:"digest_text"`
	RunIDWire  []struct {
		Text string
		Path bool `json:"path_segment_or_seal_helper_which_trim_first"`
	} `json:"run_id_wire"`
	Signature struct {
		ChainHead    string `json:"chain_head"`
		Preimage     string
		PublicKeyHex string `json:"public_key_hex"`
		SignatureHex string `json:"signature_hex"`
	}
}

func tables(t testing.TB) *digestTables {
	t.Helper()
	var d digestTables
	readJSON(t, filepath.Join(plasm, "digests.json"), &d)
	if len(d.Keys) < 3 || len(d.IntentDigest) < 4 || len(d.PlanCommitID) < 2 || len(d.ParsedExprDigest) < 5 ||
		len(d.RunBundleDigest) < 11 || len(d.Numbers) < 29 || len(d.Trim) < 10 || len(d.DigestText) < 10 || len(d.RunIDWire) < 9 {
		t.Fatal("a table of digests.json is short or was not read")
	}
	return &d
}

func TestIntentDigests(t *testing.T) {
	t.Parallel()
	for _, v := range tables(t).IntentDigest {
		pre := segments.AppendIntentPreimage(nil, v.Intent, v.CatalogCGSHash, v.EntryID, v.FederatedSeedHash)
		if string(pre) != v.Preimage {
			t.Errorf("%q: preimage %s, want %s", v.Intent, pre, v.Preimage)
		}
		d, n := segments.IntentDigest(v.Intent, v.CatalogCGSHash, v.EntryID, v.FederatedSeedHash)
		if d.String() != v.IntentDigest || n != v.IntentLen {
			t.Errorf("%q: %v, %d", v.Intent, d, n)
		}
	}
}

func TestPlanDigests(t *testing.T) {
	t.Parallel()
	for _, v := range tables(t).PlanCommitID {
		pre, err := segments.AppendPlanPreimage(nil, []byte(v.Comp))
		if err != nil || string(pre) != v.Preimage {
			t.Errorf("preimage %s (%v), want %s", pre, err, v.Preimage)
		}
		if d, err := segments.PlanDigest([]byte(v.Comp)); err != nil || d.String() != v.PlanCommitIDHex {
			t.Errorf("digest %v (%v), want %s", d, err, v.PlanCommitIDHex)
		}
	}
}

func TestParsedDigests(t *testing.T) {
	t.Parallel()
	for _, v := range tables(t).ParsedExprDigest {
		if d := segments.ParsedDigest([]byte(v.Parsed)); d.String() != v.Digest {
			t.Errorf("%s: %v", v.Parsed, d)
		}
		sorted, err := segments.AppendSortedJSON(nil, []byte(v.Parsed))
		if d := segments.Sum(sorted); err != nil || d.String() != v.Sorted {
			t.Errorf("%s: sorted %v, %v", v.Parsed, d, err)
		}
	}
}

func TestRunDigests(t *testing.T) {
	t.Parallel()
	older := 0
	for _, v := range tables(t).RunBundleDigest {
		scope := &segments.Scope{CatalogCGSHash: v.Inputs.CatalogCGSHash, DomainRevision: v.Inputs.DomainRevision}
		doc := &segments.SealDocument{
			EntryID: v.Inputs.EntryID, ParsedPreimage: []byte(v.Inputs.Parsed),
			DisplayLines:        strings.Split(v.Inputs.SourceLine, "\n"),
			RequestFingerprints: v.Inputs.RequestFingerprints,
		}
		pre, err := segments.AppendRunPreimage(nil, scope, doc)
		if err != nil || string(pre) != v.Preimage {
			t.Errorf("%s: preimage %s (%v), want %s", v.Label, pre, err, v.Preimage)
		}
		d, err := segments.RunDigest(scope, doc)
		if err != nil || d.String() != v.Digest || segments.RunID(d) != v.RunID {
			t.Errorf("%s: %v, %v", v.Label, d, err)
		}
		if v.OlderRunID == "" {
			v.OlderRunID = v.RunID
		} else {
			older++
		}
		if d, err := segments.RunDigestOlder(scope, doc); err != nil || segments.RunID(d) != v.OlderRunID {
			t.Errorf("%s: older %v, %v", v.Label, d, err)
		}
	}
	if older == 0 {
		t.Error("no vector tells the spellings apart")
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, v := range tables(t).Numbers {
		got, err := segments.AppendSortedJSON(nil, []byte(v.Lexeme))
		if err != nil || string(got) != v.Value {
			t.Errorf("%s: %s (%v), want %s", v.Lexeme, got, err, v.Value)
		}
		if v.Older == "" {
			v.Older = v.Value
		}
		got, err = segments.AppendSortedJSONOlder(nil, []byte(v.Lexeme))
		if err != nil || string(got) != v.Older {
			t.Errorf("%s: older %s (%v), want %s", v.Lexeme, got, err, v.Older)
		}
	}
}

func TestNameOrderAndEscapes(t *testing.T) {
	t.Parallel()
	d := tables(t)
	for _, v := range [][2]string{
		{d.NameOrder.Input, d.NameOrder.UTF8Order},
		{d.StringEscapes.Input, d.StringEscapes.SerdeJSON},
	} {
		if got, err := segments.AppendSortedJSON(nil, []byte(v[0])); err != nil || string(got) != v[1] {
			t.Errorf("%s (%v), want %s", got, err, v[1])
		}
	}
	if d.StringEscapes.JCS != d.StringEscapes.SerdeJSON {
		t.Error("one string encoder no longer serves both forms")
	}
}

func TestTrim(t *testing.T) {
	t.Parallel()
	for _, v := range tables(t).Trim {
		if got := strings.TrimSpace(v.Input); got != v.Trimmed {
			t.Errorf("%q: %q, want %q", v.Input, got, v.Trimmed)
		}
	}
}

func TestDigestText(t *testing.T) {
	t.Parallel()
	for _, v := range tables(t).DigestText {
		d, err := segments.ParseDigest(v.Text)
		if (err == nil) != (v.Strict == "accept") || err == nil && d.String() != v.Text || err != nil && d != (segments.Digest{}) {
			t.Errorf("%q: %v, %v", v.Text, d, err)
		}
		kind := append(segments.AppendString([]byte(`{"kind":"intent_bound","intent_len":0,"intent_digest":`), v.Text), '}')
		k, found, err := segments.DecodeKind(kind)
		if (err == nil) != (v.Reference == "accept") {
			t.Errorf("%q in a bundle: %v", v.Text, err)
		}
		if err != nil {
			continue
		}
		if got := k.(*segments.IntentBound).IntentDigest.String(); got != strings.ToLower(strings.TrimSpace(v.Text)) {
			t.Errorf("%q reads as %s", v.Text, got)
		}
		if (len(found) == 0) != (v.Strict == "accept") {
			t.Errorf("%q: deviations %v", v.Text, found)
		}
	}
}

func TestRunIDText(t *testing.T) {
	t.Parallel()
	for _, v := range tables(t).RunIDWire {
		got, err := segments.ParseRunID(v.Text)
		if (err == nil) != v.Path {
			t.Errorf("%q: %v", v.Text, err)
		}
		if err == nil && got != "pr"+strings.ToLower(strings.TrimSpace(v.Text)[2:]) || err != nil && got != "" {
			t.Errorf("%q reads as %q", v.Text, got)
		}
	}
}

// segmentsFile is a vector's segments.json.
type segmentsFile struct {
	Segments []struct {
		Seq              uint64
		Preimage, Digest string
	}
	SignaturePreimage *string `json:"signature_preimage"`
}

func TestVectorPreimages(t *testing.T) {
	t.Parallel()
	paths, _ := filepath.Glob(plasm + "/*/segments.json")
	if len(paths) != 8 {
		t.Fatalf("%d files", len(paths))
	}
	for _, path := range paths {
		var want segmentsFile
		readJSON(t, path, &want)
		b := readBundle(t, filepath.Base(filepath.Dir(path)))
		if len(b.Segments) != len(want.Segments) {
			t.Fatalf("%s: %d segments", path, len(b.Segments))
		}
		for i, s := range b.Segments {
			pre := segments.AppendPreimage(nil, s.Seq, s.Prev, s.Kind)
			if string(pre) != want.Segments[i].Preimage || s.Digest().String() != want.Segments[i].Digest {
				t.Errorf("%s, segment %d: %s", path, i, pre)
			}
		}
		if want.SignaturePreimage != nil {
			got := segments.AppendHeadMessage(nil, &b.Scope, *b.Head)
			if string(got) != *want.SignaturePreimage {
				t.Errorf("%s: head message %s", path, got)
			}
		}
	}
}

func readBundle(t testing.TB, vector string) *segments.Bundle {
	t.Helper()
	b, _, err := segments.ReadBundle(bytes.NewReader(readFile(t, filepath.Join(plasm, vector, "bundle.json"))))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestVectorArtifacts(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, name := range vectors(t) {
		var want expected
		readJSON(t, filepath.Join(plasm, name, "expected.json"), &want)
		if want.Inputs.Artifact == "" || want.Inputs.RunID == "" || want.Reference.Decode.Outcome != "accept" {
			continue
		}
		seen++
		b := readBundle(t, name)
		doc, err := segments.DecodeSealDocument(readFile(t, filepath.Join(plasm, name, want.Inputs.Artifact)))
		if err != nil {
			t.Fatal(name, err)
		}
		d, err := segments.RunDigest(&b.Scope, doc)
		if err != nil {
			t.Fatal(name, err)
		}
		sealed := false
		for _, s := range b.Segments {
			k, ok := s.Kind.(*segments.RunSealed)
			sealed = sealed || ok && k.RunID == want.Inputs.RunID && k.RunBundleDigest == d
		}
		bad := slices.Contains(want.Strict.Errors, "run_seal_mismatch") || slices.Contains(want.Strict.Errors, "run_not_sealed")
		if sealed == bad {
			t.Errorf("%s: sealed %v, errors %v", name, sealed, want.Strict.Errors)
		}
	}
	if seen < 30 {
		t.Errorf("only %d artifacts", seen)
	}
}
