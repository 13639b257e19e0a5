package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
	"go.etcd.io/bbolt"
)

// sumSize is the length of the checksum that ends every value.
const sumSize = 8

// table is one bucket. Its tag enters the checksum of its values, so that a
// value found in another table does not fit.
type table struct {
	name string
	tag  byte
	fill float64 // how full pages are left; append-only tables never split
}

const (
	fillAppend = 0.98
	fillRandom = bbolt.DefaultFillPercent
)

var (
	tableMeta       = &table{"meta", 'm', fillRandom}         // name → what the name says
	tableJournal    = &table{"journal", 'j', fillAppend}      // arrival → entry
	tablePreimages  = &table{"preimages", 'p', fillAppend}    // arrival → texts
	tableRejections = &table{"rejections", 'r', fillAppend}   // rejection ID → rejection
	tableSeen       = &table{"rejected_at", 'a', fillAppend}  // epoch, stream sequence → rejection ID
	tableChains     = &table{"chains", 'c', fillRandom}       // chain number → chain record
	tableNames      = &table{"chain_names", 'n', fillRandom}  // chain name → chain number
	tableIDs        = &table{"event_ids", 'i', fillRandom}    // chain number, event id → holder
	tableLists      = &table{"chain_lists", 'l', fillRandom}  // chain number, list, first ordinal → arrivals
	tableRuns       = &table{"runs", 'u', fillRandom}         // run id, chain number → segment
	tableFixed      = &table{"fixed", 'f', fillAppend}        // chain number → chain as of its end
	tableJobs       = &table{"seal_jobs", 'b', fillAppend}    // job ID → seal job
	tableSeals      = &table{"seal_results", 's', fillRandom} // chain number → seal result
	tableEpochs     = &table{"epochs", 'e', fillRandom}       // epoch → epoch
	tableLost       = &table{"lost", 'x', fillAppend}         // lost range ID → lost range
)

// tables returns every table of the layout.
func tables() []*table {
	return []*table{
		tableMeta, tableJournal, tablePreimages, tableRejections, tableSeen, tableChains, tableNames, tableIDs,
		tableLists, tableRuns, tableFixed, tableJobs, tableSeals, tableEpochs, tableLost,
	}
}

// view is one transaction, read by one goroutine.
type view struct {
	tx  *bbolt.Tx
	h   xxhash.Digest
	sum [sumSize]byte
	id  []byte // the key of an id that is looked up

	horizon uint64   // last arrival number that the transaction knows
	replays *replays // of readers; nil: the writer, which keeps states itself

	lastTable  *table // the table asked for last, and its bucket
	lastBucket *bbolt.Bucket
}

func newView(tx *bbolt.Tx) *view { return &view{tx: tx} }

// checksum covers table, key and payload, so that no value fits elsewhere. It is
// valid until the next one is computed.
func (v *view) checksum(t *table, key, payload []byte) []byte {
	head := sumHead(t, key)
	v.h.Reset()
	v.h.Write(head[:])
	v.h.Write(key)
	v.h.Write(payload)
	return binary.BigEndian.AppendUint64(v.sum[:0], v.h.Sum64())
}

func sumHead(t *table, key []byte) (head [5]byte) {
	head[0] = t.tag
	binary.BigEndian.PutUint32(head[1:], uint32(len(key)))
	return head
}

// matches tells whether a payload has the checksum that stands behind it: the
// present one, or that of schema version 1.
func (v *view) matches(t *table, key, payload, sum []byte) bool {
	return string(v.checksum(t, key, payload)) == string(sum) || string(oldChecksum(t, key, payload)) == string(sum)
}

// oldChecksum is what values had in schema version 1.
func oldChecksum(t *table, key, payload []byte) []byte {
	head, h := sumHead(t, key), sha256.New()
	h.Write(head[:])
	h.Write(key)
	h.Write(payload)
	return h.Sum(nil)[:sumSize]
}

// open checks a stored value and returns its payload, which is part of the
// mapped file: it must not outlive the transaction.
func (v *view) open(t *table, key, value []byte) ([]byte, error) {
	if len(value) < sumSize {
		return nil, corrupt(t, key, "value is shorter than its checksum")
	}
	payload := value[:len(value)-sumSize]
	if !v.matches(t, key, payload, value[len(payload):]) {
		return nil, corrupt(t, key, "value does not match its checksum")
	}
	return payload, nil
}

// get returns the checked payload under key; nil: there is none.
func (v *view) get(t *table, key []byte) ([]byte, error) {
	b, err := v.bucket(t)
	if err != nil {
		return nil, err
	}
	value := b.Get(key)
	if value == nil {
		return nil, nil
	}
	return v.open(t, key, value)
}

func (v *view) bucket(t *table) (*bbolt.Bucket, error) {
	if v.lastTable == t {
		return v.lastBucket, nil
	}
	b := v.tx.Bucket([]byte(t.name))
	if b == nil {
		return nil, missing(t, nil, "the bucket")
	}
	v.lastTable, v.lastBucket = t, b
	return b, nil
}

// corrupt says that a value is not what was written.
func corrupt(t *table, key []byte, detail string) *CorruptError {
	return &CorruptError{Bucket: t.name, Key: bytes.Clone(key), Class: Mismatch, Detail: detail}
}

// missing says that something which another value speaks of is not there.
func missing(t *table, key []byte, detail string) *CorruptError {
	return &CorruptError{Bucket: t.name, Key: bytes.Clone(key), Class: Torn, Detail: detail + " is missing"}
}

// contradicts says that a value, itself unharmed, cannot be true beside another.
func contradicts(t *table, key []byte, detail string) *CorruptError {
	return &CorruptError{Bucket: t.name, Key: bytes.Clone(key), Class: Contradiction, Detail: detail}
}

// Keys are big-endian, so that they sort as the numbers do.

func number(k []byte) uint64 { return binary.BigEndian.Uint64(k) }

func key64(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func seenKey(epoch uint32, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(nil, epoch), seq)
}

func idKey(dst []byte, no uint64, id string) []byte {
	return append(binary.BigEndian.AppendUint64(dst, no), id...)
}

func listKey(no uint64, l listing, ordinal uint64) []byte {
	k := append(key64(no), byte(l))
	return binary.BigEndian.AppendUint64(k, ordinal)
}

func runKey(runID string, no uint64) []byte {
	return binary.BigEndian.AppendUint64(append([]byte(runID), 0), no)
}
