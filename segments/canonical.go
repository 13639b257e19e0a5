package segments

import (
	"fmt"
	"math/bits"
	"strconv"
	"sync"
)

const (
	ScopeSchemaVersion   = 1         // of every scope that we write
	SegmentSchemaVersion = 2         // inside segment and signature preimages
	MaxSafeInteger       = 1<<53 - 1 // above it JCS rounds, and digests collide
)

const lowerHex = "0123456789abcdef"

// AppendString appends s as a JSON string with the fewest escapes (Plasm
// evidence format, section 4; the same as RFC 8785, section 3.2.2.2).
//
// s must be UTF-8. Bytes that are not are copied as they stand: the outcome is
// then no JSON, every reader refuses it, and two different strings never get
// the same bytes (nothing becomes U+FFFD). Our decoders never yield such
// strings; [Segment.Check] and [Scope.Check] find them in values built by hand.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := literal(s, 0); i < len(s); i = literal(s, start) {
		dst = appendEscape(append(dst, s[start:i]...), s[i])
		start = i + 1
	}
	return append(append(dst, s[start:]...), '"')
}

// literal is the place, from i on, of the first byte of s that is escaped, or
// the length of s. Eight bytes are looked at together: of a control character,
// a quote or a backslash the top bit is set, by a borrow from it, where it was not
// before. A borrow that runs on can only mark a byte behind such a one.
func literal(s string, i int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; len(s)-i >= 8; i += 8 {
		b := s[i : i+8]
		word := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		quotes, slashes := word^(ones*'"'), word^(ones*'\\')
		special := ((word-ones*' ')&^word | (quotes-ones)&^quotes | (slashes-ones)&^slashes) & tops
		if special != 0 {
			return i + bits.TrailingZeros64(special)/8
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return append(dst, '\\', 'u', '0', '0', lowerHex[c>>4], lowerHex[c&15])
}

func appendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendString(dst, s)
	}
	return append(dst, ']')
}

// appendJCSUint prints n as RFC 8785 does: as a binary64 in ECMAScript
// spelling, which below 1e21 never has an exponent.
func appendJCSUint(dst []byte, n uint64) []byte {
	if n <= MaxSafeInteger {
		return strconv.AppendUint(dst, n, 10)
	}
	return strconv.AppendFloat(dst, float64(n), 'f', -1, 64)
}

// AppendKindJCS appends the canonical JSON (RFC 8785) of k, members sorted,
// absent ones left out. An integer above [MaxSafeInteger] is rounded to
// binary64, as the reference does (Plasm evidence format, section 6).
func AppendKindJCS(dst []byte, k Kind) []byte {
	switch k := k.(type) {
	case *IntentBound:
		return k.appendJCS(dst)
	case *CompCommitted:
		return k.appendJCS(dst)
	case *StepExecuted:
		return k.appendJCS(dst)
	case *RunSealed:
		return k.appendJCS(dst)
	}
	panic(fmt.Sprintf("segments: kind of type %T", k))
}

func (k *IntentBound) appendJCS(dst []byte) []byte {
	dst = k.IntentDigest.AppendHex(append(dst, `{"intent_digest":"`...))
	dst = strconv.AppendUint(append(dst, `","intent_len":`...), uint64(k.IntentLen), 10)
	return append(dst, `,"kind":"intent_bound"}`...)
}

func (k *CompCommitted) appendJCS(dst []byte) []byte {
	dst = k.CompSemanticSHA256.AppendHex(append(dst, `{"comp_semantic_sha256":"`...))
	dst = AppendString(append(dst, `","kind":"comp_committed","plan_commit_id_hex":`...), k.PlanCommitIDHex)
	dst = appendStrings(append(dst, `,"step_topo":`...), k.StepTopo)
	return append(dst, '}')
}

func (k *StepExecuted) appendJCS(dst []byte) []byte {
	dst = append(dst, '{')
	if k.EntryID != nil {
		dst = append(AppendString(append(dst, `"entry_id":`...), *k.EntryID), ',')
	}
	dst = k.ParsedExprDigest.AppendHex(append(dst, `"kind":"step_executed","parsed_expr_digest":"`...))
	dst = appendStrings(append(dst, `","request_fingerprints":`...), k.RequestFingerprints)
	dst = AppendString(append(dst, `,"source_line":`...), k.SourceLine)
	dst = AppendString(append(dst, `,"step_id":`...), k.StepID)
	dst = strconv.AppendUint(append(dst, `,"step_index":`...), uint64(k.StepIndex), 10)
	return append(dst, '}')
}

func (k *RunSealed) appendJCS(dst []byte) []byte {
	dst = append(dst, `{"kind":"run_sealed"`...)
	if k.ResourceIndex != nil {
		dst = appendJCSUint(append(dst, `,"resource_index":`...), *k.ResourceIndex)
	}
	dst = k.RunBundleDigest.AppendHex(append(dst, `,"run_bundle_digest":"`...))
	dst = AppendString(append(dst, `","run_id":`...), k.RunID)
	if k.StepID != nil {
		dst = AppendString(append(dst, `,"step_id":`...), *k.StepID)
	}
	return append(dst, '}')
}

// AppendPreimage appends the bytes whose SHA-256 is the digest of a segment
// (Plasm evidence format, section 7). Given enough room in dst it does not
// allocate.
func AppendPreimage(dst []byte, seq uint64, prev *Digest, k Kind) []byte {
	dst = AppendKindJCS(append(dst, `{"kind":`...), k)
	if prev == nil {
		dst = append(dst, `,"prev":null`...)
	} else {
		dst = append(prev.AppendHex(append(dst, `,"prev":"`...)), '"')
	}
	dst = appendJCSUint(append(dst, `,"schema_version":2,"seq":`...), seq)
	return append(dst, '}')
}

// Digest returns the SHA-256 of the segment's preimage. It takes memory of its own
// for preimages over 256 KiB, and otherwise only until some calls at once, each
// with the longest preimage, have left theirs for the next, after a collection
// again.
func (s *Segment) Digest() Digest {
	room := preimages.Get().(*[]byte)
	preimage := AppendPreimage((*room)[:0], s.Seq, s.Prev, s.Kind)
	if cap(preimage) <= maxPreimageRoom {
		*room = preimage
	}
	d := Sum(preimage)
	preimages.Put(room)
	return d
}

// preimages holds memory for the preimages of single segments.
var preimages = sync.Pool{New: func() any { return new(make([]byte, 0, 1<<10)) }}

// AppendHeadMessage appends the bytes that a head signature signs (Plasm
// evidence format, section 10): canonical JSON of scope and head.
func AppendHeadMessage(dst []byte, scope *Scope, head Digest) []byte {
	dst = head.AppendHex(append(dst, `{"chain_head":"`...))
	dst = append(dst, `","schema_version":2,"scope":`...)
	return append(scope.appendJCS(dst), '}')
}

func (s *Scope) appendJCS(dst []byte) []byte {
	dst = AppendString(append(dst, `{"catalog_cgs_hash":`...), s.CatalogCGSHash)
	dst = strconv.AppendUint(append(dst, `,"domain_revision":`...), uint64(s.DomainRevision), 10)
	dst = AppendString(append(dst, `,"entry_id":`...), s.EntryID)
	dst = AppendString(append(dst, `,"execute_session_id":`...), s.ExecuteSessionID)
	if s.LogicalSessionID != nil {
		dst = AppendString(append(dst, `,"logical_session_id":`...), *s.LogicalSessionID)
	}
	dst = AppendString(append(dst, `,"prompt_hash":`...), s.PromptHash)
	dst = strconv.AppendUint(append(dst, `,"schema_version":`...), uint64(s.SchemaVersion), 10)
	if s.TenantID != "" {
		dst = AppendString(append(dst, `,"tenant_id":`...), s.TenantID)
	}
	return append(dst, '}')
}
