package server

import (
	"bytes"
	"context"
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
	options := verifier.Options{Mode: verifier.Reference, Trust: q.trust, AllowUnsigned: q.allowUnsigned, RunID: q.runID}
	v := verdict{result: resultPassed, tenant: bundle.Scope.TenantID, seal: sealNotRequested}
	if q.runID != "" {
		options.Artifact, v.seal = decodeSnapshot(snapshot)
	}
	if q.class != sidecar.Heads {
		options.Mode = verifier.Strict
		options.Location = &verifier.Location{PromptHash: q.place.PromptHash, Session: q.place.Session}
	}
	report := verifier.Evidence(ctx, bytes.NewReader(stored), options)
	if err := ctx.Err(); err != nil {
		return verdict{}, err
	}
	v.signature = report.Signature.State
	if report.ComputedHead != nil {
		v.head = report.ComputedHead.String()
	}
	v.asStored = bytes.Equal(segments.AppendBundle(make([]byte, 0, len(stored)), bundle), stored)
	if why := objection(q, bundle, report); why != "" {
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

// objection is the first reason not to serve a decoded bundle; "": none. First
// what the reference would say, then what it does not look at.
func objection(q *question, bundle *segments.Bundle, report *verifier.Report) string {
	var why string
	if q.class == sidecar.Heads {
		why = referenceObjection(report)
	} else {
		why = classObjection(q.class, report)
	}
	switch {
	case why != "":
		return why
	case bundle.Signature != nil && weak(bundle.Signature.PublicKeyHex):
		return "signature verification failed"
	case report.Signature.State.Refused(q.trust != nil, q.allowUnsigned):
		return "signature verification failed"
	case report.ComputedHead == nil:
		return "evidence chain is empty"
	case q.head != (segments.Digest{}) && q.head != *report.ComputedHead:
		return "chain head mismatch: expected " + q.head.String() + ", got " + report.ComputedHead.String()
	case bundle.Scope.PromptHash != q.place.PromptHash || bundle.Scope.ExecuteSessionID != q.place.Session:
		return "scope mismatch: the bundle belongs to another session than its place"
	case q.place.Tenant != "" && bundle.Scope.TenantID != q.place.Tenant:
		return "scope mismatch: the bundle belongs to another tenant than its place"
	case q.runID != "" && !seals(bundle, q.runID):
		return "run seal digest mismatch for run_id " + q.runID
	}
	return ""
}

// referenceObjection is what the reference's procedure says, in its words: the
// format exchanges them. An outcome that is missing is not a pass.
func referenceObjection(report *verifier.Report) string {
	if report.Reference == nil || report.Reference.Serve == nil {
		return "the verification did not run: " + report.Summary
	}
	outcome := report.Reference.Serve
	if report.Reference.ServeWithRunSeal != nil {
		outcome = report.Reference.ServeWithRunSeal
	}
	if outcome.Err != nil {
		return outcome.Err.Problem()
	}
	return ""
}

// classObjection allows an unplanned or nonconforming chain exactly what puts
// it into its class.
func classObjection(class sidecar.Class, report *verifier.Report) string {
	forgiven := []verifier.Code{verifier.CodeCompMissing}
	if class == sidecar.Nonconforming {
		forgiven = append(forgiven, verifier.CodeTopoMismatch, verifier.CodeKindOrder)
	}
	for i := range report.Errors {
		if !slices.Contains(forgiven, report.Errors[i].Code) {
			return report.Errors[i].Detail
		}
	}
	return ""
}

// weak tells whether a key is one that no honest signer has: under a key of
// small order one signature fits many messages.
func weak(publicKeyHex string) bool {
	_, err := keys.ParsePublicKey(publicKeyHex)
	return err != nil
}

// seals tells whether a run is sealed in the bundle.
func seals(bundle *segments.Bundle, runID string) bool {
	return slices.ContainsFunc(bundle.Segments, func(s segments.Segment) bool {
		sealed, ok := s.Kind.(*segments.RunSealed)
		return ok && sealed.RunID == runID
	})
}
