package store

import "time"

// Limits of the room, in one place.
const (
	// DefaultPage and MaxPage bound what one query returns.
	DefaultPage = 100
	MaxPage     = 1000

	// DefaultLockTimeout is how long Open waits for the file lock.
	DefaultLockTimeout = 2 * time.Second

	// DefaultCachedChains bounds the chains whose state stays in memory, at some
	// 2.5 KiB each. Reading one back costs as much as a dozen events.
	DefaultCachedChains = 1 << 17

	// maxRejectedPayload bounds the bytes of a rejected event that are kept.
	maxRejectedPayload = 1 << 20

	// maxPageBytes bounds the stored bytes that one page of a query copies out.
	maxPageBytes = 8 << 20
	// scanPerTx bounds the entries that one read transaction looks at.
	scanPerTx = 4096
	// scanPerPage bounds the entries that one filtered page looks at.
	scanPerPage = 1 << 17

	// maxGroup bounds the calls that share one transaction.
	maxGroup = 4096
	// maxReason bounds the bytes of text that FailSeal keeps.
	maxReason = 1 << 10
	// maxDamaged bounds the damaged chains that are counted.
	maxDamaged = 1000
	// maxLostPerChain bounds the lost ranges that a chain's record names.
	maxLostPerChain = 1000
	// maxSettingsPerEpoch bounds the records of stream settings of an epoch that
	// may be less than the one before; each one behind them is more, so they end.
	maxSettingsPerEpoch = 64
	// MaxFindings bounds the findings kept in a report of Check.
	MaxFindings = 1000
	// MaxCheckpoint bounds the bytes of a Checkpoint: the findings, and some.
	MaxCheckpoint = 16 << 20

	// markEvery is how many transactions the mark may be behind in one life. It
	// costs two fsyncs beside those of so many commits.
	markEvery = 4096
	// maxMarkSize bounds the bytes of the mark file.
	maxMarkSize = 256
	// minPageSize and maxPageSize are what a bbolt file may have, in bytes.
	minPageSize, maxPageSize = 1 << 10, 1 << 16
	// maxPageSpan bounds the pages of one run: the longest value and some.
	maxPageSpan = 1 << 16
	// mapAtLeast is the address space in bytes that a database is mapped into, on
	// 64-bit systems that give as much: one that outgrows it must be mapped anew,
	// for which a commit waits until no reader is left, and new readers wait for it.
	mapAtLeast = 64 << 30
	// mapGently is the same where the system does not give as much.
	mapGently = 64 << 20
	// minGrowth and growAtMost bound the bytes by which the file grows beyond what is needed.
	minGrowth, growAtMost = 32 << 10, 16 << 20
	// maxTreeDepth bounds the levels of a tree; an honest one has less than ten.
	maxTreeDepth = 64
)

// defaultFlush is from measurement: opening reads 524,288 entries in a third of a
// second. Where 100,000 chains take turns, a chain has five entries in its turn with
// a tail of that length, and two or three with half of it, which costs each event a tenth more.
var defaultFlush = flushLimits{tail: 1 << 19, slack: 1 << 15, pending: 256}
