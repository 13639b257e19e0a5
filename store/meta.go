package store

import "github.com/chaind/chaind/events"

// Names in the meta table.
var (
	metaIdentity = []byte("identity")
	metaCounters = []byte("counters")
)

// identity is written once, when the store is created.
type identity struct {
	schema    uint32
	id        string // 32 lower-case hex digits
	createdMS int64
}

func (i *identity) fields(c *codec) {
	c.uint32(&i.schema)
	text(c, &i.id)
	c.int64(&i.createdMS)
}

// counters is written by every transaction.
type counters struct {
	arrivals   uint64 // last arrival number given
	tail       uint64 // entries below it are in the states and lists of their chains
	chains     uint64 // last chain number given
	rejections uint64 // last rejection ID given
	published  uint64 // rejections up to it have been published
	jobs       uint64 // last job ID given
	pending    uint64 // seal jobs waiting
	failing    uint64 // of those, failed at least once
	lost       uint64 // last lost range ID given
	lostEvents uint64 // sum of the lengths of the lost ranges
	epochs     uint32 // last epoch given
}

func (n *counters) fields(c *codec) {
	for _, p := range []*uint64{&n.arrivals, &n.tail, &n.chains, &n.rejections, &n.published,
		&n.jobs, &n.pending, &n.failing, &n.lost, &n.lostEvents} {
		c.uint(p)
	}
	c.uint32(&n.epochs)
}

func (e *Epoch) fields(c *codec) {
	c.uint32(&e.Number)
	streamFields(c, &e.Stream)
	c.uint(&e.Base)
	c.uint(&e.Applied)
	text(c, &e.Why)
	c.int64(&e.StartedMS)
	c.uint(&e.ahead)
}

func (l *LostRange) fields(c *codec) {
	streamFields(c, &l.Stream)
	c.uint32(&l.Epoch)
	c.uint(&l.From)
	c.uint(&l.To)
	text(c, &l.Why)
	c.int64(&l.RecordedMS)
	c.uint(&l.Arrival)
}

func streamFields(c *codec, s *events.Stream) {
	text(c, &s.Name)
	c.int64(&s.CreatedNS)
}

// record is a value that can be coded either way.
type record interface{ fields(*codec) }

// read decodes the value under key into r; found is false when there is none.
func (v *view) read(t *table, key []byte, r record) (found bool, err error) {
	payload, err := v.get(t, key)
	if payload == nil || err != nil {
		return false, err
	}
	return true, decode(t, key, payload, r)
}

func decode(t *table, key, payload []byte, r record) error {
	c := codec{buf: payload, reading: true}
	r.fields(&c)
	if err := c.finish(); err != nil {
		return corrupt(t, key, err.Error())
	}
	return nil
}

// each decodes the values of a table from key on, in key order, into what
// make returns, and hands them to visit until it returns false.
func (v *view) each(t *table, from []byte, visit func(k, payload []byte) (more bool, err error)) error {
	b, err := v.bucket(t)
	if err != nil {
		return err
	}
	c := b.Cursor()
	for k, value := c.Seek(from); k != nil; k, value = c.Next() {
		payload, err := v.open(t, k, value)
		if err != nil {
			return err
		}
		if more, err := visit(k, payload); !more || err != nil {
			return err
		}
	}
	return nil
}
