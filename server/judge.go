package server

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/verifier"
)

// Values of the header Chaind-Seal-Check.
const (
	sealPassed       = "passed"
	sealAbsent       = "artifact_absent"
	sealUndecodable  = "artifact_undecodable"
	sealNotRequested = "not_requested"
)

// judge verifies stored bytes. An error means that there is no verdict (the
// caller gave up); everything about the bytes is in the verdict.
func judge(ctx context.Context, q *question, stored, snapshot []byte) (verdict, error) {
	bundle, _, err := segments.ReadBundle(bytes.NewReader(stored))
	if err != nil {
		return verdict{problem: undecodable(err.Error()), result: resultUndecodable, tenant: q.place.Tenant}, nil
	}
	v := verdict{result: resultPassed, tenant: bundle.Scope.TenantID, seal: sealNotRequested}
	options := verifier.Options{
		Trust: q.trust, AllowUnsigned: q.allowUnsigned, RunID: q.runID,
		Location: &verifier.Location{PromptHash: q.place.PromptHash, Session: q.place.Session},
	}
	if q.place.Tenant != "" { // Plasm keeps bundles of every tenant under paths without one
		options.Location.Tenant = &q.place.Tenant
	}
	if q.head != (segments.Digest{}) {
		options.Location.FileName = q.head.String() + ".evidence.json"
	}
	if q.runID != "" {
		options.Artifact, v.seal = decodeSnapshot(snapshot)
	}
	report := verifier.Evidence(ctx, bytes.NewReader(stored), options)
	if err := ctx.Err(); err != nil {
		return verdict{}, err
	}
	v.signature, v.signer = report.Signature.State, report.Signature.PublicKey
	if report.ComputedHead != nil {
		v.head = report.ComputedHead.String()
	}
	v.asStored = bytes.Equal(segments.AppendBundle(make([]byte, 0, len(stored)), bundle), stored)
	if why := objection(q, bundle, options.Artifact, report); why != "" {
		v.problem, v.result = refused(why), resultRefused
	}
	return v, nil
}

// decodeSnapshot reads a snapshot for the seal check. The reference skips the
// check in silence when it cannot; we say so.
func decodeSnapshot(snapshot []byte) (doc *segments.SealDocument, state string) {
	if snapshot == nil {
		return nil, sealAbsent
	}
	doc, err := segments.DecodeSealDocument(snapshot)
	if err != nil {
		return nil, sealUndecodable
	}
	return doc, sealPassed
}

// objection is the first reason not to serve a decoded bundle; "": none. For a
// conforming chain that is what the reference says, in its words, since the
// format exchanges them; then, for every chain, what strict verification says
// beyond the spelling, which is gone from the bundle written anew, and beyond
// what puts the chain into its class.
func objection(q *question, bundle *segments.Bundle, artifact *segments.SealDocument, report *verifier.Report) string {
	if q.class == sidecar.Heads {
		if why := referenceObjection(bundle, q.trust, q.runID, artifact); why != "" {
			return why
		}
	}
	if report.ComputedHead == nil && len(report.Errors) == 0 {
		return "the verification did not run: " + report.Summary
	}
	for i := range report.Errors {
		switch code := report.Errors[i].Code; {
		case slices.Contains(spelling(), code), slices.Contains(forgiven(q.class), code):
		case slices.Contains(signatureCodes(), code):
			return "signature verification failed"
		default:
			return report.Errors[i].Detail
		}
	}
	return ""
}

func referenceObjection(bundle *segments.Bundle, trust *keys.TrustList, runID string, artifact *segments.SealDocument) string {
	var err error
	if artifact == nil {
		_, err = verifier.Serve(bundle, trust)
	} else {
		_, err = verifier.ServeWithSeal(bundle, trust, runID, artifact)
	}
	if err == nil {
		return ""
	}
	if refusal, ok := errors.AsType[*verifier.ReferenceError](err); ok {
		return refusal.Problem()
	}
	return err.Error()
}

// spelling are the codes for deviations that writing a bundle anew removes.
func spelling() []verifier.Code {
	return []verifier.Code{
		verifier.CodeDuplicateMember, verifier.CodeUnknownMember, verifier.CodeExplicitNull, verifier.CodeEmptyOptional,
		verifier.CodeNotAnObject, verifier.CodeNoncanonicalHex, verifier.CodeNoncanonicalUUID,
	}
}

// forgiven are the codes that put a chain into its class.
func forgiven(class sidecar.Class) []verifier.Code {
	switch class {
	case sidecar.Unplanned:
		return []verifier.Code{verifier.CodeCompMissing}
	case sidecar.Nonconforming:
		return []verifier.Code{verifier.CodeCompMissing, verifier.CodeTopoMismatch, verifier.CodeKindOrder}
	}
	return nil
}

// signatureCodes are told in the format's one sentence about signatures.
func signatureCodes() []verifier.Code {
	return []verifier.Code{
		verifier.CodeSignatureNeeded, verifier.CodeUntrustedKey, verifier.CodeRevokedKey, verifier.CodeSignatureInvalid, verifier.CodeWeakPublicKey,
	}
}
