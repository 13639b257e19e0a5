package verifier

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chaind/chaind/engine/naive"
	"github.com/chaind/chaind/keys"
)

// The known failure cases of verifiers (V), for trust bundles.

// V01: the payload changes, a new key signs, and the key comes with the file.
// With a pinned key it fails; without one the best state is SIGNED-UNPINNED.
func TestV01BundleBringsItsOwnKey(t *testing.T) {
	t.Parallel()
	honest := signedBundle(t, readFile(t, tesseraDir+"honest.tsb"), seed7)
	other := signedBundle(t, forge(t, honest, put("No further questions?", "result", "question")), seed9)
	trust := trustOf(t, hex7)
	if r := verifyBundle(honest, Options{Trust: trust}); r.ExitCode != ExitPass || r.Signature.State != keys.StateTrusted {
		t.Errorf("honest: %s, exit %d, %s", r.Verdict, r.ExitCode, r.Signature.State)
	}
	if r := verifyBundle(other, Options{Trust: trust}); r.ExitCode != ExitEnvelope || r.Signature.State != keys.StateUntrusted {
		t.Errorf("foreign key: %s, exit %d, %s", r.Verdict, r.ExitCode, r.Signature.State)
	}
	if r := verifyBundle(signedBundle(t, honest, seed9), Options{}); r.Signature.State != keys.StateUnpinned || !strings.Contains(r.Summary, "SIGNED-UNPINNED") {
		t.Errorf("unpinned: %s: %s", r.Signature.State, r.Summary)
	}
}

// V03: the signature is cut off.
func TestV03BundleStripped(t *testing.T) {
	t.Parallel()
	stripped := readFile(t, tesseraDir+"honest.tsb")
	for _, test := range []struct {
		o    Options
		exit int
	}{
		{Options{Trust: trustOf(t, hex7)}, ExitEnvelope},
		{Options{RequireSigned: true}, ExitEnvelope},
		{Options{Trust: trustOf(t, hex7), AllowUnsigned: true}, ExitPass},
		{Options{}, ExitPass},
	} {
		r := verifyBundle(stripped, test.o)
		consistent(t, "stripped", r)
		if r.ExitCode != test.exit || r.Signature.State != keys.StateUnsigned || test.exit != 0 && (r.Verdict != Untrusted || Codes(r.Errors)[0] != CodeSignatureNeeded) {
			t.Errorf("%+v: %s, exit %d, %s, %v", test.o, r.Verdict, r.ExitCode, r.Signature.State, Codes(r.Errors))
		}
	}
	// --allow-unsigned forgives nothing else.
	if r := verifyBundle(signedBundle(t, stripped, seed9), Options{Trust: trustOf(t, hex7), AllowUnsigned: true}); r.ExitCode != ExitEnvelope {
		t.Errorf("untrusted: exit %d", r.ExitCode)
	}
}

// Every state that a signature can have, and its exit code.
func TestBundleSignatureStates(t *testing.T) {
	t.Parallel()
	honest := readFile(t, tesseraDir+"honest.tsb")
	signed := signedBundle(t, honest, seed7)
	entry := func(status string) *keys.TrustList {
		return listOf(t, keys.FileEntry{PublicKey: hex7, Status: status, Comment: "ops"})
	}
	bad := tamper(signed, put(strings.Repeat("0", 128), "signature", "signature"))
	resealed := forge(t, signed, put("No further questions?", "result", "question"))
	for _, test := range []struct {
		name  string
		text  []byte
		trust *keys.TrustList
		state keys.State
		exit  int
		code  Code
	}{
		{"unsigned", honest, nil, keys.StateUnsigned, 0, CodeUnsigned},
		{"unpinned", signed, nil, keys.StateUnpinned, 0, ""},
		{"trusted", signed, entry("active"), keys.StateTrusted, 0, ""},
		{"retired", signed, entry("retired"), keys.StateRetired, 0, CodeRetiredKey},
		{"revoked", signed, entry("revoked"), keys.StateRevoked, 4, CodeRevokedKey},
		{"untrusted", signed, trustOf(t, hex9), keys.StateUntrusted, 4, CodeUntrustedKey},
		{"invalid", bad, entry("active"), keys.StateInvalid, 4, CodeSignatureInvalid},
		{"sealed again", resealed, entry("active"), keys.StateInvalid, 4, CodeSignatureInvalid},
		{"content changed under the root", tamper(signed, put(false, "result", "claims", 0, "verified")), entry("active"), keys.StateInvalid, 4, "leaf_mismatch"},
	} {
		r := verifyBundle(test.text, Options{Trust: test.trust})
		consistent(t, test.name, r)
		all := append(Codes(r.Errors), Codes(r.Warnings)...)
		if r.Signature.State != test.state || r.ExitCode != test.exit || test.code != "" && !slices.Contains(all, test.code) {
			t.Errorf("%s: %s, exit %d, %v", test.name, r.Signature.State, r.ExitCode, all)
		}
	}
}

// V05: what this program cannot execute is said to be so, check by check and
// claim by claim, and is not a pass.
func TestV05BundleOfAnUnknownDomain(t *testing.T) {
	t.Parallel()
	honest := readFile(t, tesseraDir+"honest.tsb")
	for name, edit := range map[string]func(map[string]any){
		"domain": func(doc map[string]any) {
			naive.Put(doc, "astrology", "engine", "domain")
			naive.Put(doc, "astrology", "result", "domain")
		},
		"version": put("9.9.9", "engine", "tessera_version"),
		"shapes":  put([]any{"a.shape.of.tomorrow"}, "engine", "claim_shapes"),
	} {
		r := verifyBundle(forge(t, honest, edit), Options{})
		consistent(t, name, r)
		if r.ExitCode != ExitDegraded || r.Verdict != Degraded || !strings.HasPrefix(r.Summary, "NOT-EVALUABLE: ") {
			t.Errorf("%s: %s, exit %d: %s", name, r.Verdict, r.ExitCode, r.Summary)
		}
		for _, check := range []string{"evidence", "upstreams", "claims", "answer"} {
			if c := r.check(check); c.Status != StatusSkipped || !strings.HasPrefix(c.Detail, "NOT-EVALUABLE: ") {
				t.Errorf("%s: check %s is %s: %s", name, check, c.Status, c.Detail)
			}
		}
		for _, check := range []string{"leaves", "root", "manifest"} {
			if c := r.check(check); c.Status != StatusPass {
				t.Errorf("%s: check %s is %s", name, check, c.Status)
			}
		}
		if !slices.Equal(verdicts(r), slices.Repeat([]ClaimVerdict{ClaimNotEvaluable}, 3)) {
			t.Errorf("%s: claims are %v", name, verdicts(r))
		}
		if broken := verifyBundle(tamper(forge(t, honest, edit), put("x", "result", "question")), Options{}); broken.ExitCode != ExitEnvelope {
			t.Errorf("%s: integrity is not checked: exit %d", name, broken.ExitCode)
		}
	}
}

// V07: JSON says what the report says, for every bundle that is at hand.
func TestV07BundleJSONAgrees(t *testing.T) {
	t.Parallel()
	honest := readFile(t, tesseraDir+"honest.tsb")
	files := map[string][]byte{"broken": tamper(honest, put("x", "result", "question")), "cut": honest[:1000], "nothing": nil}
	for _, name := range []string{"honest.tsb", "forged.tsb", "rca.tsb", "brief.tsb", "honest-public.tsb"} {
		files[name] = readFile(t, tesseraDir+name)
	}
	for _, name := range []string{"open.tsb", "failed.tsb", "disagreeing.tsb", "empty.tsb"} {
		files[name] = readFile(t, runDir+name)
	}
	for name, text := range files {
		r := verifyBundle(text, Options{})
		var got struct {
			Report, Kind, Verdict, Summary string
			ExitCode                       int `json:"exit_code"`
			Checks                         []Check
			Errors                         []struct{ Code Code }
			Bundle                         *struct {
				Claims []struct {
					Index    int
					Text     string
					Recorded bool
					Verdict  ClaimVerdict
				}
				Withheld struct{ Count int }
				Run      *struct{ Outcome string }
			}
		}
		line := r.AppendJSON(nil)
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, line)
		}
		mustBeSafe(t, string(line))
		if got.Report != ReportName || got.Kind != "trust-bundle" || got.Verdict != string(r.Verdict) || got.ExitCode != r.ExitCode || got.Summary != r.Summary || len(got.Errors) != len(r.Errors) {
			t.Errorf("%s: %+v", name, got)
		}
		if diff := cmp.Diff(r.Checks, got.Checks); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if (got.Bundle == nil) != (r.Content == nil) || got.Bundle != nil && (len(got.Bundle.Claims) != len(verdicts(r)) || got.Bundle.Withheld.Count != len(r.Content.Withheld)) {
			t.Errorf("%s: bundle %+v", name, got.Bundle)
		}
		for i := range verdicts(r) {
			if c := got.Bundle.Claims[i]; c.Index != i || c.Verdict != verdicts(r)[i] || c.Text != r.Content.Claims[i].Text {
				t.Errorf("%s: claim %d is %+v", name, i, c)
			}
		}
		if again := verifyBundle(text, Options{}).AppendJSON(nil); !bytes.Equal(line, again) {
			t.Errorf("%s: two reports differ", name)
		}
	}
}

// V09: two members with one name, whichever comes first.
func TestV09BundleMemberTwice(t *testing.T) {
	t.Parallel()
	honest := string(readFile(t, tesseraDir+"honest.tsb"))
	forged := naive.MustParse(string(readFile(t, tesseraDir+"forged.tsb")))
	member := `"result":` + naive.Canon(forged["result"])
	for name, text := range map[string]string{
		"first":   "{" + member + "," + honest[1:],
		"last":    strings.TrimSuffix(honest, "}\n") + "," + member + "}\n",
		"escaped": "{" + strings.Replace(member, "result", `r\u0065sult`, 1) + "," + honest[1:],
		"deep":    strings.Replace(honest, `"grounded":`, `"grounded":true,"grounded":`, 1),
	} {
		r := verifyBundle([]byte(text), Options{})
		if r.ExitCode != ExitEnvelope || r.Verdict != Broken || Codes(r.Errors)[0] != "duplicate_member" || r.Content != nil {
			t.Errorf("%s: %s, exit %d: %s", name, r.Verdict, r.ExitCode, r.Summary)
		}
	}
}

// V11: the verdict that the file states is not believed, nor repeated as ours.
func TestV11BundleStoredVerdict(t *testing.T) {
	t.Parallel()
	honest := readFile(t, tesseraDir+"honest.tsb")
	r := verifyBundle(forge(t, honest, func(doc map[string]any) {
		naive.Put(doc, "A fabricated claim not from the evidence.", "result", "claims", 0, "text")
		naive.Put(doc, true, "result", "all_verified")
	}), Options{})
	if r.ExitCode != ExitSemantic || r.Content.Claims[0].Verdict != ClaimUnsupported || !r.Content.Claims[0].Recorded {
		t.Errorf("exit %d, %+v", r.ExitCode, r.Content.Claims[0])
	}
	r = verifyBundle(forge(t, honest, put(false, "result", "claims", 0, "verified")), Options{})
	if r.ExitCode != ExitSemantic || r.Content.Claims[0].Verdict != ClaimAltered {
		t.Errorf("flipped: exit %d, %+v", r.ExitCode, r.Content.Claims[0])
	}
	r = verifyBundle(forge(t, honest, put(false, "result", "all_verified")), Options{})
	if r.ExitCode != ExitSemantic || r.check("answer").Status != StatusFail {
		t.Errorf("all_verified: exit %d", r.ExitCode)
	}
}

// V13: a cited record is withheld, so the claim cannot be evaluated; and a
// record that nothing commits to cannot be withheld.
func TestV13BundleWithholdsTheInconvenient(t *testing.T) {
	t.Parallel()
	honest := readFile(t, tesseraDir+"honest.tsb")
	doc := naive.MustParse(string(honest))
	cited := naive.At(doc, "result", "claims", 0, "support", 0, "id").(string)
	hide := func(doc map[string]any) {
		nodes := naive.At(doc, "evidence_closure", "graph", "nodes").([]any)
		for i := range nodes {
			if naive.At(nodes[i], "record", "id") == cited {
				nodes[i] = map[string]any{"redacted": true, "record": map[string]any{"id": cited}}
			}
		}
		naive.Put(doc, map[string]any{"redacted": true}, "evidence_closure", "kb")
	}
	r := verifyBundle(tamper(honest, hide), Options{})
	consistent(t, "cited", r)
	if r.ExitCode != ExitDegraded || r.Content.Claims[0].Verdict != ClaimWithheld || !strings.Contains(r.Summary, "2 items withheld") || r.check("answer").Status != StatusSkipped {
		t.Errorf("cited: %s, exit %d, %v: %s", r.Verdict, r.ExitCode, verdicts(r), r.Summary)
	}
	r = verifyBundle(tamper(honest, func(doc map[string]any) {
		hide(doc)
		naive.Remove(doc, "integrity", "leaves", "node:"+cited)
	}), Options{})
	if r.ExitCode != ExitEnvelope {
		t.Errorf("no commitment: exit %d", r.ExitCode)
	}
}

// V15: signed, and nothing in it.
func TestV15BundleEmpty(t *testing.T) {
	t.Parallel()
	r := verifyBundle(readFile(t, runDir+"empty.tsb"), Options{})
	if r.Verdict != Empty || r.ExitCode != ExitDegraded {
		t.Errorf("run: %s, exit %d", r.Verdict, r.ExitCode)
	}
	bare := forge(t, readFile(t, tesseraDir+"honest.tsb"), func(doc map[string]any) {
		for _, list := range []string{"nodes", "edges", "mentions", "resolutions"} {
			naive.Put(doc, []any{}, "evidence_closure", "graph", list)
		}
		naive.Put(doc, []any{}, "evidence_closure", "kb", "records")
		naive.Put(doc, []any{}, "result", "claims")
	})
	r = verifyBundle(signedBundle(t, bare, seed7), Options{Trust: trustOf(t, hex7)})
	if r.Verdict == Pass || r.ExitCode == ExitPass {
		t.Errorf("grounded on nothing: %s, exit %d: %s", r.Verdict, r.ExitCode, r.Summary)
	}
	refusal := forge(t, bare, func(doc map[string]any) {
		naive.Put(doc, false, "result", "grounded")
		naive.Put(doc, true, "result", "refused")
		naive.Put(doc, "no", "result", "refusal")
	})
	r = verifyBundle(signedBundle(t, refusal, seed7), Options{Trust: trustOf(t, hex7)})
	consistent(t, "refusal", r)
	if r.Verdict != Empty || r.ExitCode != ExitDegraded || r.Signature.State != keys.StateTrusted {
		t.Errorf("nothing at all: %s, exit %d: %s", r.Verdict, r.ExitCode, r.Summary)
	}
}

// V17: each member deleted, or of another type, sealed again and not. No panic,
// and under the old seal never a pass where the content is not the same.
func TestV17BundleMalformedMembers(t *testing.T) {
	t.Parallel()
	for file, stride := range map[string]int{e1Path: 1, runDir + "failed.tsb": 11} {
		if testing.Short() {
			stride *= 3
		}
		t.Run(file, func(t *testing.T) { malform(t, readFile(t, file), stride) })
	}
	deep := strings.Repeat("[", 1_000_000)
	for _, text := range []string{deep, `{"format":` + deep, `{"action":` + strings.Repeat(`{"a":`, 300)} {
		if r := verifyBundle([]byte(text), Options{}); r.ExitCode != ExitEnvelope {
			t.Errorf("nested: exit %d", r.ExitCode)
		}
	}
}

// malform spoils every value of a bundle, or one of stride.
func malform(t *testing.T, honest []byte, stride int) {
	wrong := []any{nil, []any{}, map[string]any{}, "", naive.Number("-1"), true, naive.Number("1" + strings.Repeat("0", 400))}
	tried := 0
	try := func(name string, edit func(map[string]any)) {
		for i, text := range [][]byte{tamper(honest, edit), resealed(honest, edit)} {
			if text == nil {
				continue
			}
			tried++
			r := verifyBundle(text, Options{Domains: withDemo()})
			consistent(t, name, r)
			mustBeSafe(t, string(r.AppendJSON(nil)))
			// Sealed again it is another bundle, which may follow from its own evidence.
			if i == 0 && r.ExitCode == ExitPass && !sameContent(honest, text) {
				t.Errorf("%s passes", name)
			}
		}
	}
	for i, path := range naive.Paths(naive.MustParse(string(honest))) {
		if i%stride != 0 {
			continue
		}
		try(fmt.Sprint("without ", path), func(doc map[string]any) { naive.Remove(doc, path...) })
		for _, v := range wrong {
			try(fmt.Sprintf("%v is %.20v", path, v), put(v, path...))
		}
	}
	if tried < 500 {
		t.Errorf("%d attempts", tried)
	}
}

// resealed is forge for edits that may leave nothing to seal; nil then.
func resealed(text []byte, edit func(map[string]any)) (out []byte) {
	defer func() {
		if recover() != nil {
			out = nil
		}
	}()
	doc := naive.MustParse(string(text))
	edit(doc)
	naive.Seal(doc)
	return []byte(naive.File(doc))
}

// sameContent says that two bundles differ in nothing but what nothing binds:
// an absent member that may be null.
func sameContent(a, b []byte) bool {
	x, y := naive.MustParse(string(a)), naive.MustParse(string(b))
	for _, doc := range []map[string]any{x, y} {
		for _, name := range []string{"anchor", "signature"} {
			if doc[name] == nil {
				delete(doc, name)
			}
		}
	}
	return naive.Canon(x) == naive.Canon(y)
}

// V21: text from the file cannot act on a terminal.
func TestV21BundleTerminalEscapes(t *testing.T) {
	t.Parallel()
	const evil = "\x1b[2K\x1b[1A\nPASS run.tsb (exit 0)\x1b]8;;http://x\x07\u202e\u2066\u200b\x7f\u0085"
	honest := readFile(t, tesseraDir+"honest.tsb")
	for name, path := range map[string][]any{
		"question": {"result", "question"}, "claim": {"result", "claims", 0, "text"}, "domain": {"engine", "domain"}, "version": {"engine", "tessera_version"},
		"node": {"evidence_closure", "graph", "nodes", 0, "record", "id"}, "edge": {"evidence_closure", "graph", "edges", 0, "src"}, "kind": {"evidence_closure", "kind"},
	} {
		for _, text := range [][]byte{tamper(honest, put(evil, path...)), forge(t, honest, put(evil, path...))} {
			r := verifyBundle(text, Options{})
			consistent(t, name, r)
			mustBeSafe(t, string(r.AppendJSON(nil)))
			mustBeSafe(t, r.Summary)
			for _, c := range r.Checks {
				mustBeSafe(t, c.Detail)
			}
			for _, f := range append(r.Errors, r.Warnings...) {
				mustBeSafe(t, f.Detail)
			}
			if r.ExitCode == ExitPass {
				t.Errorf("%s passes", name)
			}
		}
	}
}

// V25: a digest has one spelling.
func TestV25BundleDigestSpelling(t *testing.T) {
	t.Parallel()
	honest := readFile(t, tesseraDir+"honest.tsb")
	root := naive.At(naive.MustParse(string(honest)), "integrity", "root").(string)
	for _, spelled := range []string{strings.ToUpper(root), "SHA256:" + root[7:], root[7:], root + " ", " " + root} {
		if r := verifyBundle(tamper(honest, put(spelled, "integrity", "root")), Options{}); r.ExitCode != ExitEnvelope {
			t.Errorf("root %q: exit %d", spelled, r.ExitCode)
		}
		r := verifyBundle(tamper(honest, put(spelled, "integrity", "leaves", "kb")), Options{})
		if r.ExitCode != ExitEnvelope || !slices.Contains(Codes(r.Errors), "not_a_digest") {
			t.Errorf("leaf %q: exit %d, %v", spelled, r.ExitCode, Codes(r.Errors))
		}
	}
	signed := signedBundle(t, honest, seed7)
	key := naive.At(naive.MustParse(string(signed)), "signature", "public_key").(string)
	for _, spelled := range []string{strings.ToUpper(key), key + " ", "0x" + key[2:]} {
		if r := verifyBundle(tamper(signed, put(spelled, "signature", "public_key")), Options{}); r.ExitCode != ExitEnvelope || r.Signature.State != keys.StateInvalid {
			t.Errorf("key %q: exit %d, %s", spelled, r.ExitCode, r.Signature.State)
		}
	}
}

// V27: a proof that belongs to another entry. This version of the format has
// none: whatever stands in the reserved member, or beside it, is refused before
// anything is judged, so that no proof can be shown that nobody compared with
// this root. The signature is the one thing that is bound to a root, and that of
// another bundle does not hold.
func TestV27BundleProofOfAnother(t *testing.T) {
	t.Parallel()
	honest, other := readFile(t, tesseraDir+"honest.tsb"), readFile(t, tesseraDir+"rca.tsb")
	root := naive.At(naive.MustParse(string(other)), "integrity", "root")
	for name, proof := range map[string]any{
		"object": map[string]any{"root": root, "log": "https://log.example", "path": []any{}}, "text": root, "false": false, "list": []any{}, "number": naive.Number("0"),
	} {
		for _, text := range [][]byte{tamper(honest, put(proof, "anchor")), forge(t, honest, put(proof, "anchor")), signedFirst(t, honest, put(proof, "anchor"))} {
			if r := verifyBundle(text, Options{}); r.ExitCode != ExitEnvelope || r.Verdict != Broken || Codes(r.Errors)[0] != "anchor_present" || r.Content != nil {
				t.Errorf("%s: %s, exit %d, %v", name, r.Verdict, r.ExitCode, Codes(r.Errors))
			}
		}
	}
	for _, beside := range []string{"inclusion", "timestamp"} {
		if r := verifyBundle(forge(t, honest, put(map[string]any{"root": root}, beside)), Options{}); r.ExitCode != ExitEnvelope || !slices.Contains(Codes(r.Errors), "unexpected_member") {
			t.Errorf("%s: exit %d, %v", beside, r.ExitCode, Codes(r.Errors))
		}
	}
	borrowed := naive.At(naive.MustParse(string(signedBundle(t, other, seed7))), "signature")
	if r := verifyBundle(tamper(honest, put(borrowed, "signature")), Options{}); r.ExitCode != ExitEnvelope || r.Signature.State != keys.StateInvalid {
		t.Errorf("signature of another bundle: exit %d, %s", r.ExitCode, r.Signature.State)
	}
}

// signedFirst edits a bundle after it was signed.
func signedFirst(t *testing.T, text []byte, edit func(map[string]any)) []byte {
	return tamper(signedBundle(t, text, seed7), edit)
}

// V29: a run that never ended.
func TestV29BundleNeverSealed(t *testing.T) {
	t.Parallel()
	r := verifyBundle(signedBundle(t, readFile(t, runDir+"open.tsb"), seed7), Options{Trust: trustOf(t, hex7)})
	if r.Verdict != Unsealed || r.ExitCode != ExitDegraded || r.Content.Run.Outcome != "open" {
		t.Errorf("%s, exit %d: %s", r.Verdict, r.ExitCode, r.Summary)
	}
}

// V33: a tool on the way laid the file out anew. The content is what it was, and
// the report says that the bytes are not.
func TestV33BundleReformatted(t *testing.T) {
	t.Parallel()
	honest := readFile(t, tesseraDir+"honest.tsb")
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, honest, "", "  "); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"indented":   pretty.Bytes(),
		"crlf":       bytes.ReplaceAll(pretty.Bytes(), []byte("\n"), []byte("\r\n")),
		"no newline": bytes.TrimSuffix(honest, []byte("\n")),
		"two":        append(bytes.Clone(honest), '\n'),
	} {
		r := verifyBundle(text, Options{})
		consistent(t, name, r)
		if r.ExitCode != ExitPass || !slices.Contains(Codes(r.Warnings), CodeNotCanonical) || r.check("bytes").Status != StatusWarn {
			t.Errorf("%s: exit %d, %v", name, r.ExitCode, Codes(r.Warnings))
		}
	}
	if r := verifyBundle(honest, Options{}); slices.Contains(Codes(r.Warnings), CodeNotCanonical) {
		t.Error("the canonical file is said not to be")
	}
	if r := verifyBundle(append([]byte("\xef\xbb\xbf"), honest...), Options{}); r.ExitCode != ExitEnvelope {
		t.Errorf("byte order mark: exit %d", r.ExitCode)
	}
}
