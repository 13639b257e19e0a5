package segments

import (
	"fmt"
	"strconv"
)

// The functions of this file append what section 4 of the Plasm evidence
// format writes: compact, members in the order of the tables of section 2,
// absent ones left out, u64 exactly.

// AppendScope appends s as it stands in a bundle.
func AppendScope(dst []byte, s *Scope) []byte {
	dst = strconv.AppendUint(append(dst, `{"schema_version":`...), uint64(s.SchemaVersion), 10)
	if s.TenantID != "" {
		dst = AppendString(append(dst, `,"tenant_id":`...), s.TenantID)
	}
	if s.LogicalSessionID != nil {
		dst = AppendString(append(dst, `,"logical_session_id":`...), *s.LogicalSessionID)
	}
	dst = AppendString(append(dst, `,"prompt_hash":`...), s.PromptHash)
	dst = AppendString(append(dst, `,"execute_session_id":`...), s.ExecuteSessionID)
	dst = AppendString(append(dst, `,"catalog_cgs_hash":`...), s.CatalogCGSHash)
	dst = strconv.AppendUint(append(dst, `,"domain_revision":`...), uint64(s.DomainRevision), 10)
	dst = AppendString(append(dst, `,"entry_id":`...), s.EntryID)
	return append(dst, '}')
}

// AppendKind appends k as it stands in a bundle, the tag first.
func AppendKind(dst []byte, k Kind) []byte {
	switch k := k.(type) {
	case *IntentBound:
		return k.append(dst)
	case *CompCommitted:
		return k.append(dst)
	case *StepExecuted:
		return k.append(dst)
	case *RunSealed:
		return k.append(dst)
	}
	panic(fmt.Sprintf("segments: kind of type %T", k))
}

func (k *IntentBound) append(dst []byte) []byte {
	dst = k.IntentDigest.AppendHex(append(dst, `{"kind":"intent_bound","intent_digest":"`...))
	dst = strconv.AppendUint(append(dst, `","intent_len":`...), uint64(k.IntentLen), 10)
	return append(dst, '}')
}

func (k *CompCommitted) append(dst []byte) []byte {
	dst = AppendString(append(dst, `{"kind":"comp_committed","plan_commit_id_hex":`...), k.PlanCommitIDHex)
	dst = k.CompSemanticSHA256.AppendHex(append(dst, `,"comp_semantic_sha256":"`...))
	dst = appendStrings(append(dst, `","step_topo":`...), k.StepTopo)
	return append(dst, '}')
}

func (k *StepExecuted) append(dst []byte) []byte {
	dst = AppendString(append(dst, `{"kind":"step_executed","step_id":`...), k.StepID)
	dst = strconv.AppendUint(append(dst, `,"step_index":`...), uint64(k.StepIndex), 10)
	if k.EntryID != nil {
		dst = AppendString(append(dst, `,"entry_id":`...), *k.EntryID)
	}
	dst = appendStrings(append(dst, `,"request_fingerprints":`...), k.RequestFingerprints)
	dst = AppendString(append(dst, `,"source_line":`...), k.SourceLine)
	dst = k.ParsedExprDigest.AppendHex(append(dst, `,"parsed_expr_digest":"`...))
	return append(dst, `"}`...)
}

func (k *RunSealed) append(dst []byte) []byte {
	dst = AppendString(append(dst, `{"kind":"run_sealed","run_id":`...), k.RunID)
	if k.StepID != nil {
		dst = AppendString(append(dst, `,"step_id":`...), *k.StepID)
	}
	if k.ResourceIndex != nil {
		dst = strconv.AppendUint(append(dst, `,"resource_index":`...), *k.ResourceIndex, 10)
	}
	dst = k.RunBundleDigest.AppendHex(append(dst, `,"run_bundle_digest":"`...))
	return append(dst, `"}`...)
}

// AppendSegment appends s as it stands in a bundle.
func AppendSegment(dst []byte, s *Segment) []byte {
	dst = strconv.AppendUint(append(dst, `{"seq":`...), s.Seq, 10)
	if s.Prev != nil {
		dst = append(s.Prev.AppendHex(append(dst, `,"prev":"`...)), '"')
	}
	dst = AppendKind(append(dst, `,"kind":`...), s.Kind)
	if s.EmittedAtMS != nil {
		dst = strconv.AppendUint(append(dst, `,"emitted_at_ms":`...), *s.EmittedAtMS, 10)
	}
	return append(dst, '}')
}

// AppendAnchors appends a as it stands in a bundle, {} when it is zero (a
// bundle then leaves the whole member out).
func AppendAnchors(dst []byte, a *Anchors) []byte {
	dst = append(dst, '{')
	open := len(dst)
	if a.PlanCommitRef != nil {
		dst = AppendString(append(dst, `"plan_commit_ref":`...), *a.PlanCommitRef)
	}
	if a.TraceID != nil {
		dst = AppendString(append(separate(dst, open), `"trace_id":`...), *a.TraceID)
	}
	if a.PlanCallIndex != nil {
		dst = strconv.AppendUint(append(separate(dst, open), `"plan_call_index":`...), *a.PlanCallIndex, 10)
	}
	return append(dst, '}')
}

// separate appends a comma unless nothing was written since open.
func separate(dst []byte, open int) []byte {
	if len(dst) == open {
		return dst
	}
	return append(dst, ',')
}

// AppendSignature appends s as it stands in a bundle.
func AppendSignature(dst []byte, s *Signature) []byte {
	dst = AppendString(append(dst, `{"public_key_hex":`...), s.PublicKeyHex)
	dst = AppendString(append(dst, `,"signature_hex":`...), s.SignatureHex)
	return append(dst, '}')
}

// AppendBundle appends the exact bytes of b's file. [BundleWriter] writes the
// same bytes without holding the chain.
func AppendBundle(dst []byte, b *Bundle) []byte {
	dst = appendPreamble(dst, &b.Scope)
	for i := range b.Segments {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendSegment(dst, &b.Segments[i])
	}
	return appendEpilogue(dst, b.Head, &b.Anchors, b.Signature)
}

func appendPreamble(dst []byte, s *Scope) []byte {
	dst = AppendScope(append(dst, `{"scope":`...), s)
	return append(dst, `,"chain":{"segments":[`...)
}

func appendEpilogue(dst []byte, head *Digest, a *Anchors, sig *Signature) []byte {
	dst = append(dst, ']')
	if head != nil {
		dst = append(head.AppendHex(append(dst, `,"head":"`...)), '"')
	}
	dst = append(dst, '}')
	if *a != (Anchors{}) {
		dst = AppendAnchors(append(dst, `,"anchors":`...), a)
	}
	if sig != nil {
		dst = AppendSignature(append(dst, `,"signature":`...), sig)
	}
	return append(dst, '}')
}
