package segments

import (
	"io"
	"sync"
)

// Scanned is a segment as [Scan] hands it out.
type Scanned struct {
	Segment
	Digest  Digest // of its preimage
	Offset  int64  // of its text in the input, in bytes
	Length  int64  // of its text, in bytes
	Written bool   // its text is what [AppendSegment] writes for it
}

// maxWorkers bounds the goroutines of a [Scan]: finding where segments end takes
// about a fifth of the work and is done by one, so that more would wait for it.
const maxWorkers = 8

// Scan is [Read] for a caller who looks at each segment once, and faster: it
// digests the segments too, decodes them into memory that it uses again, and with
// workers above 1 does both on so many goroutines (8 at most). Envelope,
// deviations, errors, and the order and number of visits are those of Read; only
// r is read further ahead of the visits, by a constant.
//
// visit runs on the caller's goroutine. What it is given is valid until it
// returns, except strings and the StepTopo of a commit: these may be kept, but
// hold the text around them, 64 KiB of it, in memory; cloned, they do not.
func Scan(r io.Reader, workers int, visit func(*Scanned) error) (*Envelope, []Deviation, error) {
	return scan(r, newCrew(min(workers, maxWorkers), batchBytes, visit))
}

func scan(r io.Reader, c *crew) (*Envelope, []Deviation, error) {
	b := newReader(r, nil, MaxBundleBytes, MaxSegmentBytes)
	b.crew, c.found = c, &b.deviations
	err := b.bundle()
	c.stop()
	if err != nil {
		return nil, b.deviations.list, err
	}
	return &b.env, b.deviations.list, nil
}

// crew decodes the segments of a scan in batches. All fields belong to the
// goroutine of the reader; a worker has nothing but the batch that it is given,
// until it says that the batch is done.
//
// The reader alone sees errors in the text between segments, workers those in a
// segment, visit its own. Batches are looked at in the order of the text, and
// nothing after the first error is: what lies further on was read in vain.
type crew struct {
	visit func(*Scanned) error
	found *deviations // of the reader
	bytes int         // of text that fit into a batch

	jobs    chan *batch // to the workers; nil: there are none, the reader does the work
	running sync.WaitGroup
	filling *batch   // nil: none begun
	ahead   []*batch // with the workers, oldest first
	spare   []*batch
	most    int   // of ahead
	err     error // the first one of a segment or its visit, after which nothing is looked at
}

func newCrew(workers, bytes int, visit func(*Scanned) error) *crew {
	c := &crew{visit: visit, bytes: bytes}
	if workers > 1 {
		c.most = workers + 2
		c.jobs = make(chan *batch, c.most)
		for range workers {
			c.running.Go(func() {
				for b := range c.jobs {
					b.decode()
					b.done <- struct{}{}
				}
			})
		}
	}
	return c
}

// stop ends the workers and waits for them.
func (c *crew) stop() {
	if c.jobs != nil {
		close(c.jobs)
		c.running.Wait()
	}
}

// take gets the text of the next segment, which at leads to.
func (c *crew) take(at *cursor) error {
	if c.filling != nil && len(c.filling.text)+len(at.text) > c.bytes {
		if err := c.hand(); err != nil {
			return err
		}
	}
	if c.filling == nil {
		c.filling = c.fresh()
		c.filling.begin(at)
	}
	c.filling.add(at)
	if len(at.text) <= c.bytes {
		return nil
	}
	// Batches of long segments would take memory by their number.
	return c.finish()
}

func (c *crew) fresh() *batch {
	if n := len(c.spare); n > 0 {
		b := c.spare[n-1]
		c.spare = c.spare[:n-1]
		return b
	}
	return &batch{done: make(chan struct{}, 1)}
}

// hand gives the batch being filled to the workers.
func (c *crew) hand() error {
	b := c.filling
	c.filling = nil
	if b == nil {
		return nil
	}
	if c.jobs == nil {
		b.decode()
		return c.look(b)
	}
	c.jobs <- b
	c.ahead = append(c.ahead, b)
	if len(c.ahead) < c.most {
		return nil
	}
	return c.oldest()
}

func (c *crew) oldest() error {
	b := c.ahead[0]
	c.ahead = append(c.ahead[:0], c.ahead[1:]...)
	<-b.done
	return c.look(b)
}

// finish looks at everything that was taken.
func (c *crew) finish() error {
	if c.err != nil {
		return c.err
	}
	err := c.hand()
	for err == nil && len(c.ahead) > 0 {
		err = c.oldest()
	}
	return err
}

// look passes on what a batch has come to. Deviations of a segment come before
// its visit, and those after the one that visit ends the reading at are as
// if they had not been read.
func (c *crew) look(b *batch) error {
	for i := range b.decoded {
		c.merge(b.rooms[i].found.list)
		if c.err = c.visit(&b.rooms[i].Scanned); c.err != nil {
			return c.err
		}
	}
	if b.err != nil {
		c.merge(b.rooms[b.decoded].found.list)
		c.err = b.err
		return c.err
	}
	b.shrink()
	c.spare = append(c.spare, b)
	return nil
}

func (c *crew) merge(found []Deviation) {
	for _, d := range found {
		if !c.found.full(d.Code) {
			c.found.add(d)
		}
	}
}
