package verifier

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chaind/chaind/segments"
)

// The names of these tests are the numbers of known failure cases of other
// projects: J for JSON, E for Ed25519, K for key lists, C for chains, V for
// verifiers.

// honest is the text of an honest unsigned bundle.
func honest(t testing.TB) string {
	t.Helper()
	return string(loadVector(t, "p01-full-run-unsigned").bundle)
}

// swap replaces the first old, which must be there.
func swap(t testing.TB, text, old, new string) string {
	t.Helper()
	if !strings.Contains(text, old) {
		t.Fatalf("%q is not in the text", old)
	}
	return strings.Replace(text, old, new, 1)
}

// refused wants exit code 4 in strict mode with exactly these codes, and no
// content from a file that did not decode.
func refused(t *testing.T, text string, codes ...Code) {
	t.Helper()
	r := verifyBytes([]byte(text), Options{})
	if r.ExitCode != ExitEnvelope || !slices.Equal(Codes(r.Errors), codes) {
		t.Errorf("%.80q: exit code %d, %v, want %v", text, r.ExitCode, Codes(r.Errors), codes)
	}
	if codes[0] == CodeDecode && (r.Scope != nil || r.ComputedHead != nil || r.SealCount != 0) { // J19
		t.Errorf("%.80q: content beside a decode error", text)
	}
}

func TestJStrings(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"J01 reversed pair":   `\ude00\ud83d`,
		"J01 two high halves": `\ud83d\ud83d`,
		"J03 raw ff":          "\xff",
		"J03 overlong":        "\xc0\xaf",
		"J03 raw surrogate":   "\xed\xa0\x80",
		"J03 control":         "\x01",
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, swap(t, honest(t), `"source_line":"`, `"source_line":"`+line), CodeDecode)
			refused(t, swap(t, honest(t), `"scope":{`, `"x":"`+line+`","scope":{`), CodeDecode)
		})
	}
}

func TestJNumbers(t *testing.T) {
	t.Parallel()
	for name, lexeme := range map[string]string{
		"J05 a": "-0", "J05 b": "-0.0", "J05 c": "-0e5", "J07 over": "1e400", "J07 under": "1e-400",
		"J11 hex": "0x1p4", "J11 zero": "01", "J11 plus": "+1", "J11 point": ".5", "J11 no digits": "5.", "J11 underscore": "1_000",
		"float": "1.0", "text": `"1"`,
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, swap(t, honest(t), `"emitted_at_ms":`, `"emitted_at_ms":`+lexeme+`,"y":`), CodeDecode)
		})
	}
}

// TestJ09 has a name twice: spelled alike and by escape, known and unknown, at
// every level, first honest and last honest (V09).
func TestJ09DuplicateNames(t *testing.T) {
	t.Parallel()
	for _, twice := range []string{
		`"seq":9,"seq":`, `"s\u0065q":9,"seq":`, `"\u0073eq":9,"seq":`,
	} {
		refused(t, swap(t, honest(t), `"seq":`, twice), CodeDuplicateMember)
	}
	refused(t, swap(t, honest(t), `"scope":{`, `"x":{"a":1,"\u0061":2},"scope":{`), CodeDuplicateMember, CodeUnknownMember)
	for _, extra := range []string{`"scope":null,`, `"scope":{},`} {
		text := swap(t, honest(t), `"chain":`, extra+`"chain":`)
		if r := verifyBytes([]byte(text), Options{}); r.ExitCode != ExitEnvelope {
			t.Errorf("%s: exit code %d", extra, r.ExitCode)
		}
	}
}

// TestJ13 hashes what JSON encoders like to escape; both spellings of the file
// have the head that the raw characters have.
func TestJ13EscapesDoNotReachTheHash(t *testing.T) {
	t.Parallel()
	raw := chainText(&segments.StepExecuted{StepID: "a", SourceLine: "<a>&\u2028\u007f", RequestFingerprints: []string{}})
	spelled := swap(t, raw, "<a>&\u2028\u007f", `\u003ca\u003e\u0026\u2028\u007f`)
	a, b := verifyBytes([]byte(raw), Options{}), verifyBytes([]byte(spelled), Options{})
	if a.ComputedHead == nil || b.ComputedHead == nil || *a.ComputedHead != *b.ComputedHead || b.check("head").Status != StatusPass {
		t.Errorf("heads %v and %v", a.ComputedHead, b.ComputedHead)
	}
	if !strings.Contains(raw, "<a>&\u2028\u007f") {
		t.Error("the written text escapes them")
	}
}

// chainText is a bundle of the given kinds, honestly linked.
func chainText(kinds ...segments.Kind) string {
	b := &segments.Bundle{Envelope: segments.Envelope{Scope: endlessScope}}
	var chain segments.Builder
	for _, k := range kinds {
		b.Segments = append(b.Segments, chain.Append(k, nil))
	}
	b.Head = chain.Head
	return string(segments.AppendBundle(nil, b))
}

func TestJ15ManyNames(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 80_000 {
		fmt.Fprintf(&b, `"k%06d":0,`, i)
	}
	text := swap(t, honest(t), `"scope":{`, `"x":{`+strings.TrimSuffix(b.String(), ",")+`},"scope":{`)
	start := time.Now()
	if r := verifyBytes([]byte(text), Options{}); r.ExitCode != ExitEnvelope {
		t.Errorf("exit code %d", r.ExitCode)
	}
	if took := time.Since(start); took > 5*time.Second { // quadratic: 30 s
		t.Errorf("took %v", took)
	}
}

func TestJ17PrototypeNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"__proto__", "constructor", "toString"} {
		refused(t, swap(t, honest(t), `"seq":0`, `"`+name+`":{"seq":1},"seq":0`), CodeUnknownMember)
	}
}

// TestJ21 tells null, absent and empty apart.
func TestJ21NullAbsentEmpty(t *testing.T) {
	t.Parallel()
	step := &segments.StepExecuted{StepID: "a", RequestFingerprints: []string{}}
	absent := chainText(step)
	empty := ""
	present := chainText(&segments.StepExecuted{StepID: "a", RequestFingerprints: []string{}, EntryID: &empty})
	null := swap(t, absent, `"step_index":0`, `"step_index":0,"entry_id":null`)
	a, p, n := verifyBytes([]byte(absent), Options{}), verifyBytes([]byte(present), Options{}), verifyBytes([]byte(null), Options{})
	if *a.ComputedHead == *p.ComputedHead {
		t.Error("absent and empty have the same head")
	}
	if *a.ComputedHead != *n.ComputedHead || !slices.Contains(Codes(n.Errors), CodeExplicitNull) {
		t.Errorf("null: %v", Codes(n.Errors))
	}
}

func TestJ23NotAnObject(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`"x"`, "7", "null", "true", "[]", "{}", "", " ", "\x00", "\ufeff" + honest(t), honest(t) + "{}"} {
		refused(t, text, CodeDecode)
		if r := verifyBytes([]byte(text), Options{Mode: Reference}); r.ExitCode != ExitEnvelope || r.Reference.Decoded {
			t.Errorf("reference: %.20q: exit code %d", text, r.ExitCode)
		}
	}
}

// signedWith is an honest bundle with any key and signature text.
func signedWith(t testing.TB, key, sig string) string {
	t.Helper()
	return strings.TrimSuffix(honest(t), "}") + fmt.Sprintf(`,"signature":{"public_key_hex":%q,"signature_hex":%q}}`, key, sig)
}

// TestE02 tries the small-order points and second spellings as keys, and as R,
// pinned and not (E04, E06: before any list is asked).
func TestE02SmallOrderKeys(t *testing.T) {
	t.Parallel()
	good := loadVector(t, "p02-full-run-signed").Inputs.Trusted[0]
	for _, point := range naiveWeak {
		for _, trusted := range [][]string{nil, {good}} {
			o := Options{Trust: trustOf(t, trusted...)}
			r := verifyBytes([]byte(signedWith(t, point, "01"+strings.Repeat("00", 63))), o)
			if !slices.Contains(Codes(r.Errors), CodeWeakPublicKey) || r.ExitCode != ExitEnvelope || r.Signature.State != "INVALID" {
				t.Errorf("key %s: %v, %s", point, Codes(r.Errors), r.Signature.State)
			}
			r = verifyBytes([]byte(signedWith(t, good, point+strings.Repeat("00", 32))), o)
			if !slices.Contains(Codes(r.Errors), CodeSignatureInvalid) || r.Signature.State != "INVALID" {
				t.Errorf("R %s: %v, %s", point, Codes(r.Errors), r.Signature.State)
			}
		}
	}
	alias := "f0" + strings.Repeat("ff", 30) + "7f" // y = p+3
	r := verifyBytes([]byte(signedWith(t, alias, strings.Repeat("01", 64))), Options{})
	if !slices.Contains(Codes(r.Errors), CodeWeakPublicKey) {
		t.Errorf("alias: %v", Codes(r.Errors))
	}
}

// TestE08 has keys and signatures of every wrong length, and things that are
// not hexadecimal.
func TestE08WrongLengthKeys(t *testing.T) {
	t.Parallel()
	v := loadVector(t, "p02-full-run-signed")
	b, _, err := segments.ReadBundle(bytes.NewReader(v.bundle))
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []Mode{Strict, Reference} {
		o := v.options(t, mode)
		for _, n := range []int{0, 1, 31, 33, 64, 1000} {
			for _, text := range []string{
				signedWith(t, strings.Repeat("ab", n), b.Signature.SignatureHex),
				signedWith(t, b.Signature.PublicKeyHex, strings.Repeat("ab", n+1)),
				signedWith(t, strings.Repeat("zz", n), b.Signature.SignatureHex),
			} {
				r := verifyBytes([]byte(text), o)
				if r.ExitCode != ExitEnvelope || !slices.Contains(Codes(r.Errors), CodeSignatureInvalid) || r.Signature.State != "INVALID" {
					t.Errorf("%s, %d bytes: exit code %d, %v", mode, n, r.ExitCode, Codes(r.Errors))
				}
			}
		}
	}
}

// TestE14 pastes signatures that the right key made over other messages.
func TestE14OtherProtocols(t *testing.T) {
	t.Parallel()
	v := loadVector(t, "p02-full-run-signed")
	b, _, err := segments.ReadBundle(bytes.NewReader(v.bundle))
	if err != nil {
		t.Fatal(err)
	}
	head := *b.Head
	message := segments.AppendHeadMessage(nil, &b.Scope, head)
	for name, signed := range map[string][]byte{
		"bare digest": head[:], "digest text": []byte(head.String()), "message and more": append(message, '\n'),
		"self-test": []byte("chaind: self-test of a signing key\n"), "sha-256 of message": digestOf(message),
	} {
		sig := hex.EncodeToString(sign7(signed))
		r := verifyBytes([]byte(signedWith(t, b.Signature.PublicKeyHex, sig)), v.options(t, Strict))
		if !slices.Equal(Codes(r.Errors), []Code{CodeSignatureInvalid}) {
			t.Errorf("%s: %v", name, Codes(r.Errors))
		}
	}
}

func digestOf(b []byte) []byte { d := segments.Sum(b); return d[:] }

// TestE16 has a signature that is there and empty. null decodes as unsigned and
// is refused for its form.
func TestE16EmptySignature(t *testing.T) {
	t.Parallel()
	for text, code := range map[string]Code{
		"null": CodeExplicitNull, `""`: CodeDecode, "{}": CodeDecode, `{"alg":"none"}`: CodeDecode, "[]": CodeDecode, "0": CodeDecode, "false": CodeDecode,
	} {
		bundle := strings.TrimSuffix(honest(t), "}") + `,"signature":` + text + "}"
		refused(t, bundle, code)
		o := Options{Trust: trustOf(t, loadVector(t, "p02-full-run-signed").Inputs.Trusted...)}
		if r := verifyBytes([]byte(bundle), o); r.ExitCode != ExitEnvelope || r.Signature.State != "UNSIGNED" && r.Signature.State != "" {
			t.Errorf("%s pinned: exit code %d, %s", text, r.ExitCode, r.Signature.State)
		}
	}
}

func TestC02NothingIsNotValid(t *testing.T) {
	t.Parallel()
	empty := chainText()
	signed := swap(t, empty, `"segments":[]`, `"segments":[],"head":"`+strings.Repeat("0", 64)+`"`) // V15
	for _, text := range []string{empty, signed} {
		for _, mode := range []Mode{Strict, Reference} {
			r := verifyBytes([]byte(text), Options{Mode: mode})
			if r.Verdict != Empty || r.ExitCode != ExitEnvelope {
				t.Errorf("%s: %s, exit code %d", mode, r.Verdict, r.ExitCode)
			}
			for _, name := range []string{"topology", "head", "numbering"} {
				if c := r.check(name); c.Status == StatusPass {
					t.Errorf("%s: check %s passed on nothing", mode, name)
				}
			}
		}
	}
}

// TestC08 moves a segment and presents one run as another.
func TestC08FromAnotherRun(t *testing.T) {
	t.Parallel()
	plan := segments.Sum([]byte("plan"))
	commit := &segments.CompCommitted{PlanCommitIDHex: plan.String(), CompSemanticSHA256: plan, StepTopo: []string{"a"}}
	step := func(line string) *segments.StepExecuted {
		return &segments.StepExecuted{StepID: "a", SourceLine: line, RequestFingerprints: []string{}}
	}
	a := chainText(commit, step("one"), &segments.RunSealed{RunID: segments.RunID(plan), RunBundleDigest: plan})
	moved := swap(t, a, `"source_line":"one"`, `"source_line":"two"`)
	if r := verifyBytes([]byte(moved), Options{}); !slices.Contains(Codes(r.Errors), CodeBrokenPrev) || r.ExitCode != ExitEnvelope {
		t.Errorf("moved: %v", Codes(r.Errors))
	}
	head := segments.Sum(nil)
	for name, o := range map[string]Options{
		"head":     {ExpectHead: &head},
		"plan":     {ExpectPlan: strings.Repeat("0", 64)},
		"run":      {RunID: "pr" + strings.Repeat("0", 64)},
		"location": {Location: &Location{PromptHash: "other", Session: "s"}},
	} {
		want := map[string]int{"head": 4, "plan": 2, "run": 2, "location": 4}[name]
		if r := verifyBytes([]byte(a), o); r.ExitCode != want {
			t.Errorf("expected %s: exit code %d, want %d", name, r.ExitCode, want)
		}
	}
}

// TestV01 signs a changed bundle anew and puts the new key in.
func TestV01KeyFromTheBundle(t *testing.T) {
	t.Parallel()
	forged := loadVector(t, "n13-key-not-trusted") // validly signed by seed 09
	if r := verifyBytes(forged.bundle, forged.options(t, Strict)); r.Verdict != Untrusted || r.ExitCode != ExitEnvelope || r.Signature.State != "UNTRUSTED" {
		t.Errorf("pinned: %s, exit code %d, %s", r.Verdict, r.ExitCode, r.Signature.State)
	}
	r := verifyBytes(forged.bundle, Options{})
	if r.Signature.State != "SIGNED-UNPINNED" || r.ExitCode != ExitPass || !strings.Contains(r.Summary, "SIGNED-UNPINNED") {
		t.Errorf("unpinned: %s, exit code %d: %s", r.Signature.State, r.ExitCode, r.Summary)
	}
	if c := r.check("trust"); c.Status != StatusNotApplicable {
		t.Errorf("trust is said to be checked: %+v", c)
	}
}

func TestV03Stripped(t *testing.T) {
	t.Parallel()
	v := loadVector(t, "q02-signature-stripped")
	o := v.options(t, Strict)
	if r := verifyBytes(v.bundle, o); r.ExitCode != ExitEnvelope || r.Verdict != Untrusted {
		t.Errorf("%s, exit code %d", r.Verdict, r.ExitCode)
	}
	o.AllowUnsigned = true
	if r := verifyBytes(v.bundle, o); r.ExitCode != ExitPass || !slices.Contains(Codes(r.Warnings), CodeUnsigned) || r.check("trust").Status != StatusSkipped {
		t.Errorf("allowed: exit code %d, %+v", r.ExitCode, r.check("trust"))
	}
	for _, mode := range []Mode{Strict, Reference} {
		if r := verifyBytes(v.bundle, Options{Mode: mode, RequireSigned: true}); r.ExitCode != ExitEnvelope {
			t.Errorf("%s, required: exit code %d", mode, r.ExitCode)
		}
	}
	// The opt-out forgives nothing but a missing signature.
	bad := loadVector(t, "n11-wrong-signature")
	if r := verifyBytes(bad.bundle, Options{AllowUnsigned: true, Trust: o.Trust}); r.ExitCode != ExitEnvelope {
		t.Errorf("invalid: exit code %d", r.ExitCode)
	}
}

// TestV17 deletes or replaces the value of each member of an honest bundle.
func TestV17MalformedMembers(t *testing.T) {
	t.Parallel()
	v := loadVector(t, "p02-full-run-signed")
	tree, err := naiveParse(v.bundle)
	if err != nil {
		t.Fatal(err)
	}
	deep := strings.Repeat("[", 1000) + strings.Repeat("]", 1000)
	bad := []string{"null", "[]", "{}", `""`, "-1", "1e9", "true", strings.Repeat("[", 100_000), deep, ""}
	whole, _, err := segments.ReadBundle(bytes.NewReader(v.bundle))
	if err != nil {
		t.Fatal(err)
	}
	tried, passed := 0, 0
	for _, text := range mutants(tree, bad) {
		verifyBytes([]byte(text), v.options(t, Reference))
		r := verifyBytes([]byte(text), v.options(t, Strict))
		tried++
		if r.ExitCode == ExitEnvelope || r.ExitCode == ExitSemantic {
			continue
		}
		passed++
		got, _, err := segments.ReadBundle(strings.NewReader(text))
		if err != nil || r.ExitCode != ExitPass {
			t.Fatalf("exit code %d, %v", r.ExitCode, err)
		}
		if err := sameEvidence(whole, got); err != nil {
			t.Errorf("passes: %v", err)
		}
	}
	if tried < 300 || passed == 0 || passed > tried/10 {
		t.Errorf("%d of %d mutants pass", passed, tried)
	}
}

func TestV19Bombs(t *testing.T) {
	t.Parallel()
	for name, filler := range map[string]string{"blank": " ", "digits": "1", "nesting": "[", "text": "a"} {
		start := map[string]string{"text": `{"x":"`, "digits": `{"x":`, "nesting": `{"x":`, "blank": `{"x":`}[name]
		r := Evidence(context.Background(), io.MultiReader(strings.NewReader(start), forever(filler)), Options{})
		if r.ExitCode != ExitEnvelope || r.Verdict != Broken {
			t.Errorf("%s: %s, exit code %d", name, r.Verdict, r.ExitCode)
		}
	}
}

// forever gives the same byte again and again.
type forever string

func (f forever) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = f[0]
	}
	return len(p), nil
}

// TestV21 puts terminal escapes into every text that a report could show.
func TestV21TerminalEscapes(t *testing.T) {
	t.Parallel()
	evil := "\x1b[2K\x1b[1A VERIFIED \u202e\u2066 \x1b]8;;http://x\x07link\x1b]8;;\x07\r\nPASS\u009b31m\u007f\u00ad\u200b\ufeff"
	plan := segments.Sum([]byte("plan"))
	b := []byte(chainText(
		&segments.CompCommitted{PlanCommitIDHex: evil, CompSemanticSHA256: plan, StepTopo: []string{evil, evil + "2"}},
		&segments.StepExecuted{StepID: evil + "3", RequestFingerprints: []string{}, SourceLine: evil},
		&segments.RunSealed{RunID: evil, RunBundleDigest: plan}))
	evilKey := bytes.TrimSuffix(b, []byte("}"))
	evilKey = append(evilKey, `,"signature":{"public_key_hex":`...)
	evilKey = append(segments.AppendString(evilKey, evil), `,"signature_hex":""}}`...)
	unknown := append([]byte(`{`), append(segments.AppendString(nil, evil), ':')...)
	unknown = append(append(unknown, `1,`...), b[1:]...)
	for _, text := range [][]byte{b, evilKey, unknown, b[:len(b)-30]} {
		for _, mode := range []Mode{Strict, Reference} {
			r := verifyBytes(text, Options{Mode: mode, RunID: evil + "?", ExpectPlan: evil,
				Location: &Location{PromptHash: evil, Session: evil, FileName: evil}})
			for _, f := range slices.Concat(r.Errors, r.Warnings) {
				mustBeSafe(t, f.Detail)
			}
			for _, c := range r.Checks {
				mustBeSafe(t, c.Detail)
			}
			mustBeSafe(t, r.Summary)
			mustBeSafe(t, string(r.AppendJSON(nil)))
		}
	}
}

func mustBeSafe(t *testing.T, text string) {
	t.Helper()
	for _, r := range text {
		if r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0 || strings.ContainsRune("\u202e\u2066\u00ad\u200b\ufeff\u2028", r) {
			t.Errorf("%U is in %q", r, text)
			return
		}
	}
}

// TestV25 spells digests in other ways: refused for the form, not taken for
// altered content.
func TestV25DigestSpelling(t *testing.T) {
	t.Parallel()
	head := text(verifyBytes([]byte(honest(t)), Options{}).ComputedHead)
	for _, spelled := range []string{strings.ToUpper(head), " " + head, head + "\n"} {
		quoted := string(segments.AppendString(nil, spelled))
		refused(t, swap(t, honest(t), `"head":"`+head+`"`, `"head":`+quoted), CodeNoncanonicalHex)
	}
	for _, spelled := range []string{"sha256:" + head, "0x" + head, head[:63], ""} {
		refused(t, swap(t, honest(t), `"head":"`+head, `"head":"`+spelled), CodeDecode)
	}
}

func TestV29NeverSealed(t *testing.T) {
	t.Parallel()
	v := loadVector(t, "q05-truncated-head-recomputed")
	if r := verifyBytes(v.bundle, v.options(t, Strict)); r.Verdict != Unsealed || r.ExitCode != ExitDegraded {
		t.Errorf("%s, exit code %d", r.Verdict, r.ExitCode)
	}
	if r := verifyBytes(v.bundle, v.options(t, Reference)); r.Verdict != Pass || r.ExitCode != ExitPass {
		t.Errorf("reference: %s, exit code %d", r.Verdict, r.ExitCode)
	}
}

// TestV31 changes a payload and leaves every digest and link alone.
func TestV31PayloadChanged(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]Code{"n03-payload-tampered": CodeBrokenPrev, "n04-last-payload-tampered": CodeHeadMismatch} {
		v := loadVector(t, name)
		r := verifyBytes(v.bundle, v.options(t, Strict))
		if r.Verdict != Broken || !slices.Contains(Codes(r.Errors), code) {
			t.Errorf("%s: %s, %v", name, r.Verdict, Codes(r.Errors))
		}
	}
}
