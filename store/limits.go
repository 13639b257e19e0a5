package store

import "time"

// Limits of the room, in one place.
const (
	// DefaultPage and MaxPage bound what one query returns.
	DefaultPage = 100
	MaxPage     = 1000

	// DefaultLockTimeout is how long Open waits for the file lock.
	DefaultLockTimeout = 2 * time.Second

	// DefaultCachedChains bounds the chains whose state stays in memory
	// although everything about them is in the database already.
	DefaultCachedChains = 16384

	// maxRejectedPayload bounds the bytes of a rejected event that are kept.
	maxRejectedPayload = 1 << 20

	// maxPageBytes bounds the stored bytes that one page of a query copies out.
	maxPageBytes = 8 << 20
	// scanPerTx bounds the entries that one read transaction looks at.
	scanPerTx = 4096
	// scanPerPage bounds the entries that one filtered page looks at.
	scanPerPage = 1 << 17
)
