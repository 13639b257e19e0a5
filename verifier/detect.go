package verifier

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/chaind/chaind/segments"
)

// Kind is what a file is.
type Kind string

const (
	KindUnknown     Kind = "unknown"
	KindEvidence    Kind = "evidence"
	KindTrustBundle Kind = "trust-bundle"
)

// kindOfMember tells kinds apart by the names of their top-level members. Both
// have a member "signature".
var kindOfMember = map[string]Kind{
	"scope": KindEvidence, "chain": KindEvidence, "anchors": KindEvidence,
	"format": KindTrustBundle, "integrity": KindTrustBundle, "engine": KindTrustBundle,
	"evidence_closure": KindTrustBundle, "result": KindTrustBundle, "action": KindTrustBundle, "anchor": KindTrustBundle,
}

// Detect tells what a file is by its content, from the first telling name among
// its top-level members, and returns a reader that still gives all of it. It
// looks at the first 64 KiB and decides nothing else: a file detected as
// evidence may yet fail to decode. A file that cannot be told is KindUnknown;
// an error is one of r, other than io.EOF.
func Detect(r io.Reader) (Kind, io.Reader, error) {
	in := bufio.NewReaderSize(r, detectBytes)
	start, err := in.Peek(detectBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return KindUnknown, nil, err
	}
	return kindOf(start), in, nil
}

// firstLook is where nearly every file has told what it is.
const firstLook = 512 // bytes

func kindOf(start []byte) Kind {
	if kind := firstTelling(start[:min(len(start), firstLook)]); kind != KindUnknown {
		return kind
	}
	return firstTelling(start)
}

// firstTelling reads top-level names as far as the text goes.
func firstTelling(start []byte) Kind {
	dec := jsontext.NewDecoder(bytes.NewReader(segments.Shallow(start)), jsontext.AllowDuplicateNames(true))
	open, err := dec.ReadToken()
	if err != nil {
		return KindUnknown
	}
	if open.Kind() == jsontext.KindBeginArray {
		return KindEvidence // a bundle may be written as an array of its members
	}
	for dec.PeekKind() == jsontext.KindString {
		name, err := dec.ReadToken()
		if err != nil {
			return KindUnknown
		}
		if kind, telling := kindOfMember[name.String()]; telling {
			return kind
		}
		if err := dec.SkipValue(); err != nil {
			return KindUnknown
		}
	}
	return KindUnknown
}
