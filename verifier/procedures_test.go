package verifier

import (
	"bytes"
	"errors"
	"testing"

	"github.com/chaind/chaind/segments"
)

// The procedures over a bundle in memory say what the streaming report says.
func TestProceduresAgreeWithVectors(t *testing.T) {
	t.Parallel()
	ran := 0
	for _, v := range loadVectors(t) {
		b, _, err := segments.ReadBundle(bytes.NewReader(v.bundle))
		if (err == nil) != (v.Reference.Decode.Outcome == "accept") {
			t.Fatalf("%s: %v", v.Name, err)
		}
		if err != nil {
			continue
		}
		o := v.options(t, Reference)
		head, err := Verify(b, o.Trust)
		compareResult(t, v.Name+" verify", head, err, v.Reference.Verify)
		head, err = Serve(b, o.Trust)
		compareResult(t, v.Name+" serve", head, err, v.Reference.Serve)
		if o.Artifact != nil {
			ran++
			head, err = ServeWithSeal(b, o.Trust, o.RunID, o.Artifact)
			compareResult(t, v.Name+" serve with seal", head, err, v.Reference.ServeWithRunSeal)
		}
	}
	if ran < 40 {
		t.Errorf("%d seals checked", ran)
	}
}

func compareResult(t *testing.T, name string, head segments.Digest, err error, want *expectedOutcome) {
	t.Helper()
	var refused *ReferenceError
	switch {
	case err == nil:
		if want.Outcome != "accept" || head.String() != want.Head {
			t.Errorf("%s: head %s, want %+v", name, head, want)
		}
	case !errors.As(err, &refused):
		t.Errorf("%s: %v is no ReferenceError", name, err)
	case string(refused.Failure) != want.Error || refused.Problem() != want.Message || head != (segments.Digest{}):
		t.Errorf("%s: %v, want %+v", name, err, want)
	}
}

func TestEmit(t *testing.T) {
	t.Parallel()
	read := func(name string) *segments.Bundle {
		b, _, err := segments.ReadBundle(bytes.NewReader(loadVector(t, name).bundle))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, want := range map[string]Failure{
		"p02-full-run-signed":       "",
		"n11-wrong-signature":       "", // not looked at
		"n01-broken-prev":           "", // the last segment alone is hashed
		"n10-empty-chain":           EmptyChain,
		"n05-wrong-head":            HeadMismatch,
		"n04-last-payload-tampered": HeadMismatch,
		"q01-head-missing":          HeadMismatch,
		"n09-no-comp":               MissingCompCommitted,
		"n06-steps-reordered":       StepTopoMismatch,
	} {
		b := read(name)
		head, err := Emit(b)
		var refused *ReferenceError
		if errors.As(err, &refused) != (want != "") || refused != nil && refused.Failure != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		if err == nil && head != *b.Head {
			t.Errorf("%s: head %s", name, head)
		}
	}
	_, err := Emit(read("q01-head-missing"))
	var refused *ReferenceError
	if !errors.As(err, &refused) || refused.Problem() != "chain head mismatch: expected 5730719ed51e2821d8475bfd39459b2ba46119d73156d430ea25a67f0777e3a2, got null" {
		t.Errorf("%v", err)
	}
}

func TestCompID(t *testing.T) {
	t.Parallel()
	b, _, err := segments.ReadBundle(bytes.NewReader(loadVector(t, "q17-second-comp-ignored").bundle))
	if err != nil {
		t.Fatal(err)
	}
	var first string
	for _, s := range b.Segments {
		if k, ok := s.Kind.(*segments.CompCommitted); ok && first == "" {
			first = k.PlanCommitIDHex
		}
	}
	if err := CompID(b, first); err != nil {
		t.Error(err)
	}
	var refused *ReferenceError
	if err := CompID(b, first+" "); !errors.As(err, &refused) || refused.Failure != CompCommitMismatch {
		t.Errorf("%v", err)
	}
	if err := CompID(&segments.Bundle{}, first); !errors.As(err, &refused) || refused.Failure != MissingCompCommitted {
		t.Errorf("%v", err)
	}
}
