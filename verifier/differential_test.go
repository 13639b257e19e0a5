package verifier

import (
	"bytes"
	"slices"
	"testing"

	"github.com/chaind/chaind/segments"
)

// compare holds both implementations against each other. Where a file does not
// decode the codes are not compared: a stream that ends at its first fault
// cannot know what follows.
func compare(t *testing.T, bundle []byte, in naiveInputs) {
	t.Helper()
	want := naiveJudge(bundle, in)
	o := Options{RunID: in.runID}
	if in.trusted != nil {
		o.Trust = trustOf(t, in.trusted...)
	}
	if in.artifact != "" {
		doc, err := segments.DecodeSealDocument([]byte(in.artifact))
		if err != nil {
			t.Fatal(err)
		}
		o.Artifact = doc
	}
	if in.prompt != "" {
		o.Location = &Location{PromptHash: in.prompt, Session: in.session}
	}
	compareStrict(t, verifyBytes(bundle, o), want)
	o.Mode = Reference
	got := verifyBytes(bundle, o).Reference
	if got.Decoded != want.decoded {
		t.Fatalf("reference decodes: %v, naive says %v", got.Decoded, want.decoded)
	}
	names := []string{outcomeName(got.Verify), outcomeName(got.Serve), outcomeName(got.ServeWithRunSeal)}
	if expected := []string{want.verify, want.serve, want.seal}; !slices.Equal(names, expected) {
		t.Fatalf("reference: %v, naive says %v", names, expected)
	}
}

func compareStrict(t *testing.T, got *Report, want naiveVerdict) {
	t.Helper()
	if !want.decoded {
		for _, code := range Codes(got.Errors) {
			if code != CodeDecode && code != CodeDuplicateMember {
				t.Fatalf("undecodable, yet %s", code)
			}
		}
		if got.ExitCode != ExitEnvelope {
			t.Fatalf("undecodable, yet exit code %d", got.ExitCode)
		}
		return
	}
	if codes := Codes(got.Errors); !slices.Equal(codes, want.errors) {
		t.Fatalf("errors %v, naive says %v", codes, want.errors)
	}
	if codes := Codes(got.Warnings); !slices.Equal(codes, want.warnings) {
		t.Fatalf("warnings %v, naive says %v", codes, want.warnings)
	}
}

func outcomeName(o *Outcome) string {
	switch {
	case o == nil:
		return ""
	case o.Err != nil:
		return string(o.Err.Failure)
	}
	return "accept"
}

// vectorInputs are a vector's inputs for the second implementation.
func (v *vector) naive(t testing.TB) naiveInputs {
	t.Helper()
	in := naiveInputs{trusted: v.Inputs.Trusted, runID: v.Inputs.RunID}
	if len(in.trusted) == 0 {
		in.trusted = nil
	}
	if v.Inputs.Artifact != "" {
		in.artifact = string(readFile(t, v.dir+"/"+v.Inputs.Artifact))
	}
	if v.Inputs.Location != nil {
		in.prompt, in.session = v.Inputs.Location.PromptHash, v.Inputs.Location.SessionID
	}
	return in
}

// textsOnly says whether the second implementation can digest the snapshot.
func textsOnly(in naiveInputs) (ok bool) {
	defer func() { ok = recover() == nil }()
	if in.artifact != "" {
		(&naiveChain{scope: naiveRecord{"catalog_cgs_hash": "", "domain_revision": uint64(0)}}).seal(in)
	}
	return true
}

func TestDifferentialVectors(t *testing.T) {
	t.Parallel()
	compared := 0
	for _, v := range loadVectors(t) {
		in := v.naive(t)
		if !textsOnly(in) {
			in.artifact, in.runID = "", ""
		}
		t.Run(v.Name, func(t *testing.T) { compare(t, v.bundle, in) })
		compared++
	}
	if compared != 73 {
		t.Errorf("%d compared", compared)
	}
}

// FuzzDifferential mutates bundles; how chooses the inputs.
func FuzzDifferential(f *testing.F) {
	p01, p02 := loadVector(f, "p01-full-run-unsigned"), loadVector(f, "p02-full-run-signed")
	for _, v := range loadVectors(f) {
		f.Add(v.bundle, byte(0))
		f.Add(v.bundle, byte(0xff))
	}
	full := p02.naive(f)
	f.Fuzz(func(t *testing.T, bundle []byte, how byte) {
		if len(bundle) > 1<<16 {
			t.Skip()
		}
		in := naiveInputs{}
		if how&1 != 0 {
			in.trusted = full.trusted
		}
		if how&2 != 0 {
			in.runID = full.runID
		}
		if how&4 != 0 && in.runID != "" {
			in.artifact = full.artifact
		}
		if how&8 != 0 {
			in.prompt, in.session = full.prompt, full.session
		}
		compare(t, bundle, in)
		if how&16 != 0 { // a second document must change the verdict of both
			compare(t, bytes.Join([][]byte{bundle, p01.bundle}, nil), in)
		}
	})
}
