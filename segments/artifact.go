package segments

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// artifactMagic starts a stored run snapshot (Plasm evidence format, section
// 14). Then follow:
//
//	offset 6   4 bytes  length n of the metadata, big-endian
//	offset 10  n bytes  metadata, a JSON object
//	offset 10+n         body, a JSON object, to the end
const artifactMagic = "PLAR1\n"

// These errors are returned for stored run snapshots.
var (
	ErrArtifactFrame   = errors.New("artifact frame is malformed")
	ErrArtifactEncoded = errors.New("artifact body has a content encoding")
)

// AppendArtifactFrame appends a stored run snapshot. metadata must be shorter
// than 4 GiB; longer panics.
func AppendArtifactFrame(dst, metadata, body []byte) []byte {
	if uint64(len(metadata)) > math.MaxUint32 {
		panic("segments: artifact metadata of 4 GiB or more")
	}
	dst = binary.BigEndian.AppendUint32(append(dst, artifactMagic...), uint32(len(metadata)))
	return append(append(dst, metadata...), body...)
}

// SplitArtifactFrame takes a stored run snapshot apart; the parts alias blob.
// The error is [ErrArtifactFrame].
func SplitArtifactFrame(blob []byte) (metadata, body []byte, err error) {
	rest, ok := bytes.CutPrefix(blob, []byte(artifactMagic))
	if !ok || len(rest) < 4 {
		return nil, nil, ErrArtifactFrame
	}
	n, rest := binary.BigEndian.Uint32(rest), rest[4:]
	if uint64(n) > uint64(len(rest)) {
		return nil, nil, ErrArtifactFrame
	}
	return rest[:n:n], rest[n:], nil
}

// SealDocument is what a run seal needs of a run snapshot (Plasm evidence
// format, section 14).
type SealDocument struct {
	EntryID             string
	ParsedPreimage      []byte   // raw JSON text
	DisplayLines        []string // joined with "\n" they are the source line
	RequestFingerprints []string

	// What the snapshot says that it is of. The seal does not cover it and the
	// reference does not read it; "" where it is absent or no string.
	RunID, PromptHash string
}

var documentFields = []field[SealDocument]{
	{"entry_id", required, func(c *cursor, d *SealDocument) error { return c.str(&d.EntryID) }},
	{"parsed_preimage", required, readParsed},
	{"display_lines", defaulted, readLines},
	{"request_fingerprints", required, func(c *cursor, d *SealDocument) error { return c.strs(&d.RequestFingerprints) }},
	{"expressions", defaulted, readLines}, // the older name of display_lines
	{"run_id", ignored, func(c *cursor, d *SealDocument) error { return c.noted(&d.RunID) }},
	{"prompt_hash", ignored, func(c *cursor, d *SealDocument) error { return c.noted(&d.PromptHash) }},
}

// noted keeps a string, of several the first, and passes over anything else.
func (c *cursor) noted(dst *string) error {
	if c.peek() != '"' || *dst != "" {
		return c.skip()
	}
	return c.str(dst)
}

func readParsed(c *cursor, d *SealDocument) error {
	c.space()
	start, around := c.pos, c.found
	c.found = new(deviations)
	err := c.skip()
	twice := c.found.count[DuplicateMember] > 0
	c.found = around
	if err != nil {
		return err
	}
	// The digest takes the last of equal names, another reader the first: the seal
	// would hold for what that one does not see.
	if twice {
		return c.fail(start, "a name is there twice")
	}
	d.ParsedPreimage = bytes.Clone(c.text[start:c.pos])
	return nil
}

func readLines(c *cursor, d *SealDocument) error {
	if d.DisplayLines != nil {
		return c.fail(c.pos, "display lines are there under both of their names")
	}
	return c.strs(&d.DisplayLines)
}

// DecodeSealDocument reads a run snapshot: its JSON body, or the framed blob
// as stored. Members that the seal does not need are ignored, "expressions"
// stands for an absent "display_lines", and the result shares no memory with
// the input. A name that is twice in one object of the parsed preimage is an error,
// as it is for the reference, which reads that into its own types. Errors: *[DecodeError], [ErrArtifactFrame], [ErrArtifactEncoded].
func DecodeSealDocument(text []byte) (*SealDocument, error) {
	if bytes.HasPrefix(text, []byte(artifactMagic)) {
		metadata, body, err := SplitArtifactFrame(text)
		if err != nil {
			return nil, err
		}
		if err := checkEncoding(metadata); err != nil {
			return nil, err
		}
		text = body
	}
	doc := new(SealDocument)
	if err := decodeText(text, doc, documentFields); err != nil {
		return nil, err
	}
	return doc, nil
}

type artifactMetadata struct{ contentEncoding string }

var metadataFields = []field[artifactMetadata]{
	{"content_encoding", optional, func(c *cursor, m *artifactMetadata) error { return c.str(&m.contentEncoding) }},
}

func checkEncoding(metadata []byte) error {
	var m artifactMetadata
	if err := decodeText(metadata, &m, metadataFields); err != nil {
		return fmt.Errorf("%w: %w", ErrArtifactFrame, err)
	}
	if m.contentEncoding != "" && m.contentEncoding != "identity" {
		return ErrArtifactEncoded
	}
	return nil
}

// decodeText reads one JSON object into dst.
func decodeText[T any](text []byte, dst *T, fields []field[T]) error {
	c, err := newCursor(text)
	if err != nil {
		return err
	}
	if c.text[0] != '{' {
		return c.fail(0, "want an object")
	}
	return decodeObject(c, dst, fields)
}
