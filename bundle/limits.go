package bundle

// Limits of the reader. They bound memory by a multiple of the file's size.
const (
	MaxBytes  = 1 << 30 // bytes of a file
	MaxDepth  = 200     // open arrays and objects, the outermost counted as 1
	MaxDigits = 4300    // digits of an integer
	MaxValues = 1 << 21 // values (names included) that a text may have beside one for each 8 bytes
	MaxChain  = 16      // bundles above one another in a chain
)

// Names and constants of the format.
const (
	FormatName       = "tessera-trust-bundle"
	FormatMajor      = 1
	Canonicalization = "tessera-canonical-json-1"
	KindFull         = "full-graph-snapshot" // closure kind of a single decision
	KindChain        = "chain-snapshot"      // closure kind of a chain
	Algorithm        = "ed25519"
)
