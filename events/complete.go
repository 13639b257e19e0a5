package events

import "github.com/chaind/chaind/segments"

// An emitter keeps the digests of the serializer that it was built with, which
// spells large floats in one of two ways (quirk 10 of the evidence format):
// both are tried, today's first.
var (
	runDigests  = [...]func(*segments.Scope, *segments.SealDocument) (segments.Digest, error){segments.RunDigest, segments.RunDigestOlder}
	planDigests = [...]func([]byte) (segments.Digest, error){segments.PlanDigest, segments.PlanDigestOlder}
)

// needsScope reports whether the event's preimage can only be hashed with the
// session's scope: the intent digest covers catalog and entry, the run digest
// catalog and revision.
func (e *Event) needsScope() bool {
	switch e.Kind.(type) {
	case *segments.IntentBound:
		return e.Preimage.Text != nil
	case *segments.RunSealed:
		return e.Preimage.Artifact != nil
	}
	return false
}

// complete computes the digest of an event that needsScope, fills it in when
// it was left out and compares it when it was stated. The fault is nil,
// digest_mismatch or run_id_mismatch.
func (e *Event) complete(scope *segments.Scope) *Fault {
	switch kind := e.Kind.(type) {
	case *segments.IntentBound:
		return e.completeIntent(kind, scope)
	case *segments.RunSealed:
		return e.completeRun(kind, scope)
	}
	return nil
}

func (e *Event) completeIntent(kind *segments.IntentBound, scope *segments.Scope) *Fault {
	d, n := segments.IntentDigest(*e.Preimage.Text, scope.CatalogCGSHash, scope.EntryID, nil)
	if e.DigestStated && d != kind.IntentDigest {
		return &Fault{DigestMismatch, "preimage.text does not give intent_digest"}
	}
	if n != kind.IntentLen {
		return &Fault{DigestMismatch, "preimage.text has not intent_len bytes"}
	}
	kind.IntentDigest = d
	return nil
}

func (e *Event) completeRun(kind *segments.RunSealed, scope *segments.Scope) *Fault {
	doc, err := segments.DecodeSealDocument(e.Preimage.Artifact)
	if err != nil {
		return &Fault{DigestMismatch, "preimage.artifact is no run snapshot"}
	}
	for _, digest := range runDigests {
		d, err := digest(scope, doc)
		if err != nil {
			return &Fault{DigestMismatch, "preimage.artifact has no run bundle digest"}
		}
		named := kind.RunID == segments.RunID(d)
		if e.DigestStated && d == kind.RunBundleDigest || !e.DigestStated && named {
			kind.RunBundleDigest = d
			return runIDFault(named)
		}
	}
	if e.DigestStated {
		return &Fault{DigestMismatch, "preimage.artifact does not give run_bundle_digest"}
	}
	return runIDFault(false)
}

func runIDFault(named bool) *Fault {
	if named {
		return nil
	}
	return &Fault{RunIDMismatch, "run_id is not pr and the run bundle digest"}
}
