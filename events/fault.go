package events

import "strconv"

// rank orders what can be wrong with one message; the lowest counts. The
// class malformed stands at two places: before the id can be read (the text)
// and after (the shapes).
type rank uint8

const (
	rankSubject rank = iota
	rankSize
	rankText
	rankDepth
	rankDuplicate
	rankID
	rankInteger
	rankUnknown
	rankShape
	rankScope
	rankDigest
	rankTopo
	rankRunID
	rankNone
)

var rankClass = [...]Class{
	rankSubject:   BadSubject,
	rankSize:      TooLarge,
	rankText:      Malformed,
	rankDepth:     TooDeep,
	rankDuplicate: DuplicateName,
	rankID:        BadID,
	rankInteger:   UnsafeInteger,
	rankUnknown:   UnknownMember,
	rankShape:     Malformed,
	rankScope:     ScopeContradiction,
	rankDigest:    DigestMismatch,
	rankTopo:      TopoMismatch,
	rankRunID:     RunIDMismatch,
}

// AfterConflict reports whether the class ranks after conflict, so that an
// event with such a fault is decoded in full and may prove a conflict first.
func (c Class) AfterConflict() bool {
	switch c {
	case ScopeContradiction, DigestMismatch, TopoMismatch, RunIDMismatch:
		return true
	}
	return false
}

// verdict keeps the fault that counts among those found so far.
type verdict struct {
	rank  rank
	fault *Fault
}

func (v *verdict) add(r rank, detail string) {
	if v.fault != nil && v.rank <= r {
		return
	}
	v.rank, v.fault = r, &Fault{Class: rankClass[r], Detail: detail}
}

// quoted shows a name out of a payload without its control characters.
func quoted(name []byte) string {
	if len(name) > maxQuotedName {
		return strconv.QuoteToASCII(string(name[:maxQuotedName])) + "..."
	}
	return strconv.QuoteToASCII(string(name))
}
