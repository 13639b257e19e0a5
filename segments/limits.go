package segments

import "errors"

// Limits on what a reader accepts. They bound memory, not evidence: no honest
// emitter comes near them.
const (
	MaxBundleBytes  = 16 << 30 // of one bundle, whitespace included
	MaxSegmentBytes = 16 << 20 // of one segment, or of any other member beside the chain, whitespace before it included
	MaxDepth        = 128      // of nested objects and arrays in any JSON text
	MaxMembers      = 1 << 16  // whose names are not known, of one object and those around it

	MaxDeviationsPerCode = 16 // kept; a code that occurred is never lost

	maxPreimageRoom = 256 << 10 // bytes that are kept for the next preimage

	maxPathName = 64 // bytes of one member name in a path, before escaping
)

// ErrTooLarge is wrapped by the errors for input beyond [MaxBundleBytes],
// [MaxSegmentBytes] or [MaxMembers].
var ErrTooLarge = errors.New("input exceeds a size limit")
