package store

import (
	"errors"
	"syscall"

	"github.com/chaind/chaind/events"
)

// FindingClass sorts what [Store.Check] finds.
type FindingClass string

const (
	// Torn: an interrupted write; repairable from the stream or the store.
	Torn FindingClass = "torn"
	// Mismatch: bytes differ from their digest.
	Mismatch FindingClass = "mismatch"
	// Contradiction: two values, each consistent in itself, that cannot both be true.
	Contradiction FindingClass = "contradiction"
)

// Finding is one thing that Check found wrong.
type Finding struct {
	Class  FindingClass
	Chain  events.Key // zero when it concerns no single chain
	Bucket string     // "" for pages
	Key    []byte     // key within the bucket, a copy
	Detail string     // one sentence
}

// CheckReport is the result of [Store.Check]. No findings and zero chains is an empty store, not a checked one:
// the counts say what was looked at.
type CheckReport struct {
	StoreID  string
	Chains   uint64
	Records  uint64 // journal records read and hashed
	Segments uint64 // segments re-hashed and linked, from genesis
	Values   uint64 // values whose own digest was checked
	Findings []Finding
	More     uint64 // findings beyond MaxFindings, counted only
}

// CheckProgress tells how far Check is.
type CheckProgress struct {
	Phase       string // "pages", "journal", "chains", "indexes"
	Done, Total uint64 // in units of the phase; Total 0: unknown
}

// Stats are sizes and counts of an open store.
type Stats struct {
	FileBytes         int64
	Chains            uint64 // chains ever seen
	Arrivals          uint64 // last arrival number
	PendingSeals      uint64
	FailingSeals      uint64 // pending with at least one failed attempt
	LastSealError     string // of the failing seal that failed last; "" when none fails
	SealJobs          uint64 // ever given, pending ones included
	PendingRejections uint64
	Rejections        uint64 // ever recorded, pending ones included
	LostRanges        uint64
	LostEvents        uint64 // sum of the lengths of the lost ranges
	LastWriteError    string // of the last append; "" when it succeeded
	WriteFault        WriteFault
	DamagedChains     uint64 // whose events are rejected as chain_damaged, since the store was opened; at most 1000 are counted
	LastDamage        string // of the one found last
}

// WriteFault says why the last write transaction failed.
type WriteFault string

const (
	NoFault       WriteFault = ""
	FaultReadOnly WriteFault = "read_only" // the file system takes no writes
	FaultDiskFull WriteFault = "disk_full"
	FaultBroken   WriteFault = "broken" // [ErrBroken]: open the store again
	FaultOther    WriteFault = "other"
)

func faultOf(err error) WriteFault {
	switch {
	case err == nil:
		return NoFault
	case errors.Is(err, ErrBroken):
		return FaultBroken
	case errors.Is(err, syscall.EROFS):
		return FaultReadOnly
	case isDiskFull(err):
		return FaultDiskFull
	}
	return FaultOther
}
