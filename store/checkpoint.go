package store

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// ErrCheckpoint: a check cannot go on from there.
var ErrCheckpoint = fmt.Errorf("the checkpoint is of another database, or the database has changed since")

// Checkpoint is how far a check has come: what it has counted and found, and
// what is next. The zero value is the beginning. A check goes on from the last
// batch of values, or the last chain, that was looked at whole; the pages are
// walked in one piece.
//
// It is good for a database that nobody has written since, which it knows by the
// number of the last transaction. Bytes of the part behind it that have changed
// otherwise are for the next whole check to find. Its bytes carry a checksum
// against accidents, and no more: whoever can write the file can say that
// nothing was found.
type Checkpoint struct {
	tx uint64   // transaction that the database was left by
	n  counters // at the start

	phase uint64 // the next one
	table uint64 // the next one of the phase, where it has many
	from  []byte // first key of the table that was not looked at
	done  uint64 // values of the table that were
	entry uint64 // last entry of the journal that was
	chain uint64 // last chain that was

	report CheckReport

	// What the journal holds, and what was found of it from the other side.
	inLists, listed [numLists]uint64
	holding, held   uint64
	numbered        uint64 // chains that a name leads to
	unsealed        uint64 // finished chains without a seal result
	waiting         uint64 // seal jobs
	epochs          uint64
	lost, lostEvent uint64
	settings        uint64 // number of the record seen last

	unsettled [][]byte // keys of runs whose segment was not there, at most MaxFindings
}

// mark lets the caller have the place, between two steps.
func (c *checker) mark() {
	*c.kept = c.place
	c.kept.from = bytes.Clone(c.place.from) // which is written over
}

// enter begins a phase.
func (c *checker) enter(phase uint64) {
	c.place.phase, c.place.table, c.place.from, c.place.done = phase, 0, nil, 0
	c.mark()
}

var checkpointMagic = []byte("chaind check 1\n")

// MarshalBinary is a line that names the format, the fields, and the XXH64 of
// both in 8 bytes, big-endian. The error is always nil.
func (p *Checkpoint) MarshalBinary() ([]byte, error) {
	c := codec{buf: bytes.Clone(checkpointMagic)}
	p.fields(&c)
	return binary.BigEndian.AppendUint64(c.buf, xxhash.Sum64(c.buf)), nil
}

// UnmarshalBinary reads what MarshalBinary wrote. The error says that it is
// something else; p is not to be used then.
func (p *Checkpoint) UnmarshalBinary(b []byte) error {
	body, ok := bytes.CutPrefix(b, checkpointMagic)
	if !ok || len(body) < 8 || len(b) > MaxCheckpoint {
		return errCoding
	}
	end := len(b) - 8
	if binary.BigEndian.Uint64(b[end:]) != xxhash.Sum64(b[:end]) {
		return fmt.Errorf("its checksum differs: %w", errCoding)
	}
	*p = Checkpoint{}
	c := codec{buf: b[len(checkpointMagic):end], reading: true}
	p.fields(&c)
	return c.finish()
}

func (p *Checkpoint) fields(c *codec) {
	c.uint(&p.tx)
	p.n.fields(c)
	for _, n := range []*uint64{&p.phase, &p.table, &p.done, &p.entry, &p.chain, &p.holding, &p.held, &p.numbered,
		&p.unsealed, &p.waiting, &p.epochs, &p.lost, &p.lostEvent, &p.settings} {
		c.uint(n)
	}
	for l := range numLists {
		c.uint(&p.inLists[l])
		c.uint(&p.listed[l])
	}
	c.bytes(&p.from)
	p.report.fields(c)
	many(c, &p.unsettled, (*codec).bytes)
}

func (r *CheckReport) fields(c *codec) {
	text(c, &r.StoreID)
	for _, n := range []*uint64{&r.Chains, &r.Records, &r.Segments, &r.Values, &r.More} {
		c.uint(n)
	}
	many(c, &r.Findings, func(c *codec, f *Finding) {
		text(c, &f.Class)
		c.key(&f.Chain)
		text(c, &f.Bucket)
		c.bytes(&f.Key)
		text(c, &f.Detail)
	})
}

// many codes a list of at most MaxFindings elements.
func many[T any](c *codec, p *[]T, one func(*codec, *T)) {
	n := uint64(len(*p))
	c.uint(&n)
	if n > MaxFindings {
		c.err = errCoding
		return
	}
	if c.reading && n > 0 {
		*p = make([]T, n)
	}
	for i := range *p {
		if one(c, &(*p)[i]); c.err != nil {
			return
		}
	}
}
