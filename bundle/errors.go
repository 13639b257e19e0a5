package bundle

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Code names what is wrong with a text or an envelope. Codes are stable.
type Code string

// Codes of a text that is not strict JSON in the sense of the package doc.
const (
	InvalidUTF8     Code = "invalid_utf8"
	ByteOrderMark   Code = "byte_order_mark"
	TooLarge        Code = "too_large"
	TooManyValues   Code = "too_many_values"
	TooDeep         Code = "too_deep"
	Syntax          Code = "syntax"
	Truncated       Code = "truncated"
	TrailingData    Code = "trailing_data"
	ControlChar     Code = "control_character"
	LoneSurrogate   Code = "lone_surrogate"
	NumberForm      Code = "number_form" // a number whose text is not the one form its value has
	DuplicateMember Code = "duplicate_member"
)

// Codes of a document that is no bundle of this format.
const (
	MissingMember     Code = "missing_member"
	WrongType         Code = "wrong_type"
	NotABundle        Code = "not_a_bundle"
	UnsupportedMajor  Code = "unsupported_major"
	AnchorPresent     Code = "anchor_present"
	ChainTooDeep      Code = "chain_too_deep"
	DuplicateNode     Code = "duplicate_node"
	DuplicateUpstream Code = "duplicate_upstream"
	NoCommitment      Code = "no_commitment" // withheld, and the manifest has no leaf for it
	BadSignature      Code = "bad_signature_section"
)

// Codes of findings: the envelope can be read and is broken.
const (
	OtherCanonicalization Code = "other_canonicalization"
	NotADigest            Code = "not_a_digest"
	UnexpectedMember      Code = "unexpected_member"
	MissingLeaf           Code = "missing_leaf"
	UnexpectedLeaf        Code = "unexpected_leaf"
	LeafMismatch          Code = "leaf_mismatch"
	RootMismatch          Code = "root_mismatch"
	SignatureInvalid      Code = "signature_invalid"
	SignatureWithoutRoot  Code = "signature_without_root"
)

// FormatError is a fault that leaves nothing to judge: the text is not strict
// JSON, or the document is not a bundle.
type FormatError struct {
	Code   Code
	Where  string // "offset 17" in a text, or a path such as "nodes[3].record"
	Detail string
}

func (e *FormatError) Error() string {
	switch {
	case e.Where == "":
		return e.Detail
	case e.Detail == "":
		return e.Where + ": " + string(e.Code)
	}
	return e.Where + ": " + e.Detail
}

// Finding is one way in which a readable envelope is broken.
type Finding struct {
	Code   Code
	Where  string // leaf name, member path, or "root"
	Detail string // one sentence without the final period; text of the file in it is quoted, see Quote
}

func (f Finding) String() string { return f.Detail }

// Quote makes text of a file fit for a message: in double quotes, with
// everything that does not print as an escape, and cut when it is long.
func Quote(s string) string {
	const most = 120
	if len(s) <= most {
		return strconv.Quote(s)
	}
	cut := most
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%q… (%d bytes)", s[:cut], len(s))
}

// QuoteList quotes the first texts of a list and counts the rest.
func QuoteList(list []string) string {
	const most = 16
	var out []string
	for _, s := range list[:min(most, len(list))] {
		out = append(out, Quote(s))
	}
	if len(list) > most {
		out = append(out, fmt.Sprintf("%d more", len(list)-most))
	}
	return strings.Join(out, ", ")
}

func faultf(code Code, where, format string, args ...any) *FormatError {
	return &FormatError{Code: code, Where: where, Detail: fmt.Sprintf(format, args...)}
}
