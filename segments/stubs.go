package segments

import (
	"crypto/ed25519"
	"io"
)

// ---- digest.go
type Digest [32]byte

func Sum(b []byte) Digest                    { panic("stub") }
func ParseDigest(s string) (Digest, error)   { panic("stub") } // strict: exactly 64 lower-case hex
func (d Digest) String() string              { panic("stub") }
func (d Digest) AppendHex(dst []byte) []byte { panic("stub") }

// ---- canonical.go: typed append encoders
const (
	ScopeSchemaVersion   = 1
	SegmentSchemaVersion = 2
	MaxSafeInteger       = 1<<53 - 1
)

func AppendString(dst []byte, s string) []byte                           { panic("stub") } // section 4 string
func AppendKindJCS(dst []byte, k Kind) []byte                            { panic("stub") } // sorted members
func AppendPreimage(dst []byte, seq uint64, prev *Digest, k Kind) []byte { panic("stub") } // section 7
func (s *Segment) Digest() Digest                                        { panic("stub") }
func AppendHeadMessage(dst []byte, scope *Scope, head Digest) []byte     { panic("stub") } // section 10

// ---- write.go: section 4
func AppendScope(dst []byte, s *Scope) []byte     { panic("stub") }
func AppendKind(dst []byte, k Kind) []byte        { panic("stub") }
func AppendSegment(dst []byte, s *Segment) []byte { panic("stub") }
func AppendAnchors(dst []byte, a *Anchors) []byte { panic("stub") }
func AppendBundle(dst []byte, b *Bundle) []byte   { panic("stub") }

// ---- chain.go
// Builder appends kinds to a chain.
type Builder struct {
	Next uint64  // seq of the next segment
	Head *Digest // digest of the last segment; nil: none yet
}

func (b *Builder) Append(k Kind, atMS *uint64) Segment { panic("stub") }

// Walk checks the links of a chain segment by segment (section 8).
type Walk struct {
	Count uint64
	Head  *Digest
}

func (w *Walk) Step(s *Segment) error { panic("stub") } // *BrokenPrevError{Seq, Index}

type BrokenPrevError struct {
	Seq   uint64 // the stored seq
	Index uint64 // position in the array
}

func (e *BrokenPrevError) Error() string { panic("stub") }

// ---- read.go: section 3
// Deviation is a place where the text is not what section 4 would write.
type Deviation struct {
	Code   string // duplicate_member, unknown_member, explicit_null, empty_optional, not_an_object, noncanonical_hex, noncanonical_uuid, unsafe_integer
	Path   string // JSON pointer
	Offset int64
}

// Read decodes a bundle, handing each segment to visit (which may keep it).
func Read(r io.Reader, visit func(*Segment) error) (*Envelope, []Deviation, error) { panic("stub") }

// ReadBundle keeps the segments.
func ReadBundle(r io.Reader) (*Bundle, []Deviation, error) { panic("stub") }

// ---- content.go: section 9
func AppendSortedJSON(dst, text []byte) ([]byte, error) { panic("stub") }
func IntentDigest(intent, catalogCGSHash, entryID string, federatedSeedHash *string) (Digest, uint32) {
	panic("stub")
}
func PlanDigest(comp []byte) (Digest, error)                    { panic("stub") }
func ParsedDigest(parsed []byte) Digest                         { panic("stub") } // of the exact text
func RunDigest(scope *Scope, doc *SealDocument) (Digest, error) { panic("stub") }
func RunID(d Digest) string                                     { panic("stub") }
func ParseRunID(s string) (string, error)                       { panic("stub") } // path form: trims, folds the digits

// ---- artifact.go: section 14
type SealDocument struct {
	EntryID             string
	ParsedPreimage      []byte // raw JSON text
	DisplayLines        []string
	RequestFingerprints []string
}

func DecodeSealDocument(body []byte) (*SealDocument, error)             { panic("stub") } // JSON body, or the framed PLAR1 blob
func AppendArtifactFrame(dst, metadata, body []byte) []byte             { panic("stub") }
func SplitArtifactFrame(blob []byte) (metadata, body []byte, err error) { panic("stub") }

// ---- sign.go: section 10
func Sign(key ed25519.PrivateKey, scope *Scope, head Digest) *Signature { panic("stub") }
func VerifySignature(sig *Signature, scope *Scope, head Digest) error   { panic("stub") } // steps 2-5 of section 10
