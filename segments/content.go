package segments

import (
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// IntentDigest returns the digest of an intent (Plasm evidence format, section
// 9.1) and the length of the trimmed intent in UTF-8 bytes. A nil federated
// seed hash is hashed as null, which is what all emitters do.
func IntentDigest(intent, catalogCGSHash, entryID string, federatedSeedHash *string) (Digest, uint32) {
	return Sum(AppendIntentPreimage(nil, intent, catalogCGSHash, entryID, federatedSeedHash)),
		uint32(len(strings.TrimSpace(intent)))
}

// AppendIntentPreimage appends the bytes whose SHA-256 is the intent digest.
func AppendIntentPreimage(dst []byte, intent, catalogCGSHash, entryID string, federatedSeedHash *string) []byte {
	dst = AppendString(append(dst, `{"catalog_cgs_hash":`...), catalogCGSHash)
	dst = AppendString(append(dst, `,"entry_id":`...), entryID)
	dst = append(dst, `,"federated_seed_hash":`...)
	if federatedSeedHash == nil {
		dst = append(dst, "null"...)
	} else {
		dst = AppendString(dst, *federatedSeedHash)
	}
	dst = AppendString(append(dst, `,"intent":`...), strings.TrimSpace(intent))
	return append(dst, `,"schema_version":1}`...)
}

var errPlanNotObject = errors.New("plan is not a JSON object")

// PlanDigest returns the plan commit id of a comp given as JSON text (Plasm
// evidence format, section 9.2): of the members version, steps, bind and
// return, those that exist; a step of kind "map_body" has its body reduced in
// the same way, at any depth. Errors are those of [AppendSortedJSON], and one
// for a text that is no object.
func PlanDigest(comp []byte) (Digest, error) {
	preimage, err := AppendPlanPreimage(nil, comp)
	if err != nil {
		return Digest{}, err
	}
	return Sum(preimage), nil
}

// AppendPlanPreimage appends the bytes whose SHA-256 is the plan commit id.
func AppendPlanPreimage(dst, text []byte) ([]byte, error) { return appendPlan(dst, text, false) }

// PlanDigestOlder is [PlanDigest] in the spelling of [AppendSortedJSONOlder].
func PlanDigestOlder(text []byte) (Digest, error) {
	preimage, err := appendPlan(nil, text, true)
	if err != nil {
		return Digest{}, err
	}
	return Sum(preimage), nil
}

func appendPlan(dst, text []byte, older bool) ([]byte, error) {
	out, err := appendSorted(dst, text, comp, older)
	if err != nil {
		return dst, err
	}
	if out[len(dst)] != '{' {
		return dst, errPlanNotObject
	}
	return out, nil
}

// ParsedDigest returns the parsed expression digest: SHA-256 of the exact
// compact text in struct order (Plasm evidence format, section 9.3). Nothing
// is normalized, so only text that was never re-serialized gives the digest
// that the emitter wrote.
func ParsedDigest(parsed []byte) Digest { return Sum(parsed) }

// RunDigest returns the run bundle digest of a run snapshot in a scope (Plasm
// evidence format, section 9.4). Errors are those of [AppendSortedJSON] about
// the parsed preimage.
func RunDigest(scope *Scope, doc *SealDocument) (Digest, error) {
	preimage, err := AppendRunPreimage(nil, scope, doc)
	if err != nil {
		return Digest{}, err
	}
	return Sum(preimage), nil
}

// RunDigestOlder is [RunDigest] in the spelling of [AppendSortedJSONOlder].
func RunDigestOlder(scope *Scope, doc *SealDocument) (Digest, error) {
	preimage, err := appendRun(nil, scope, doc, true)
	if err != nil {
		return Digest{}, err
	}
	return Sum(preimage), nil
}

// AppendRunPreimage appends the bytes whose SHA-256 is the run bundle digest.
func AppendRunPreimage(dst []byte, scope *Scope, doc *SealDocument) ([]byte, error) {
	return appendRun(dst, scope, doc, false)
}

func appendRun(dst []byte, scope *Scope, doc *SealDocument, older bool) ([]byte, error) {
	out := AppendString(append(dst, `{"catalog_cgs_hash":`...), scope.CatalogCGSHash)
	out = strconv.AppendUint(append(out, `,"domain_revision":`...), uint64(scope.DomainRevision), 10)
	out = AppendString(append(out, `,"entry_id":`...), doc.EntryID)
	out, err := appendSorted(append(out, `,"parsed":`...), doc.ParsedPreimage, whole, older)
	if err != nil {
		return dst, err
	}
	fingerprints := slices.Sorted(slices.Values(doc.RequestFingerprints))
	out = appendStrings(append(out, `,"request_fingerprints":`...), fingerprints)
	line := strings.TrimSpace(strings.Join(doc.DisplayLines, "\n"))
	out = AppendString(append(out, `,"schema_version":1,"source_line":`...), line)
	return append(out, '}'), nil
}

const runIDPrefix = "pr"

// RunID returns the run id of a run bundle digest: "pr" and 64 lower-case
// hexadecimal digits.
func RunID(d Digest) string { return runIDPrefix + d.String() }

// ErrRunID is returned by [ParseRunID].
var ErrRunID = errors.New(`run id is not "pr" and 64 hexadecimal digits`)

// ParseRunID reads the form that paths and commands take: trimmed, digits of
// either case; it returns the lower-case id. Inside a bundle a run id is an
// opaque string that is compared as it is.
func ParseRunID(s string) (string, error) {
	s = strings.TrimSpace(s)
	digits, ok := strings.CutPrefix(s, runIDPrefix)
	if !ok || len(digits) != 2*len(Digest{}) {
		return "", ErrRunID
	}
	raw, err := hex.DecodeString(digits)
	if err != nil {
		return "", ErrRunID
	}
	return RunID(Digest(raw)), nil
}
