package segments

// The codes of a [Deviation] (Plasm evidence format, section 16): what keeps
// a text from being what section 4 would write for the decoded value, order
// of members and whitespace aside.
const (
	DuplicateMember  = "duplicate_member"  // a name twice in one object, known or unknown, at any depth
	UnknownMember    = "unknown_member"    // a name that the object does not have
	ExplicitNull     = "explicit_null"     // null for an optional member
	EmptyOptional    = "empty_optional"    // "tenant_id":"" or "anchors":{}
	NotAnObject      = "not_an_object"     // an array where section 2 has an object
	NoncanonicalHex  = "noncanonical_hex"  // digest, key or signature not in lower-case digits of the right length
	NoncanonicalUUID = "noncanonical_uuid" // trace_id not hyphenated lower case
	UnsafeInteger    = "unsafe_integer"    // above MaxSafeInteger
)

// Deviation is a place where the text is not what section 4 would write,
// though the reference decodes it.
type Deviation struct {
	Code   string // one of the constants above
	Path   string // JSON pointer (RFC 6901); names over 64 bytes are cut and end in "…"
	Offset int64  // of the place in the input, in bytes
}

// deviations keeps the first few of each code.
type deviations struct {
	list  []Deviation
	count map[string]int
}

func (d *deviations) full(code string) bool { return d.count[code] >= MaxDeviationsPerCode }

func (d *deviations) add(v Deviation) {
	if d.count == nil {
		d.count = make(map[string]int)
	}
	d.count[v.Code]++
	d.list = append(d.list, v)
}
