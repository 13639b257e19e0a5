package natsobj

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/sidecar"
)

// Put implements [sidecar.Blobs].
func (b *Bucket) Put(ctx context.Context, name string, body sidecar.Body) error {
	return b.put(ctx, name, body, false)
}

// PutOnce implements [sidecar.Blobs].
func (b *Bucket) PutOnce(ctx context.Context, name string, body sidecar.Body) error {
	return b.put(ctx, name, body, true)
}

func (b *Bucket) put(ctx context.Context, name string, body sidecar.Body, once bool) error {
	if err := check(ctx, name); err != nil {
		return fmt.Errorf("write blob: %w", err)
	}
	w, err := measure(name, body, once)
	if err == nil {
		defer b.lock(name)()
		err = b.retry(ctx, func(ctx context.Context) error { return b.attempt(ctx, w) })
	}
	if conflict, ok := errors.AsType[*sidecar.ConflictError](err); ok {
		return conflict
	}
	if err != nil {
		return fmt.Errorf("write blob %q: %w", name, err)
	}
	return nil
}

// write is what is to be written.
type write struct {
	name string
	body sidecar.Body
	once bool
	sum  [sha256.Size]byte
	size int64
}

// measure runs the body once, to know what it writes.
func measure(name string, body sidecar.Body, once bool) (*write, error) {
	w, h := &write{name: name, body: body, once: once}, sha256.New()
	if err := body(&counter{h, &w.size}); err != nil {
		return nil, err
	}
	if w.size > maxObject {
		return nil, sidecar.ErrTooLarge
	}
	h.Sum(w.sum[:0])
	return w, nil
}

type counter struct {
	io.Writer
	n *int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	*c.n += int64(n)
	return n, err
}

// attempt writes unless the bytes are there. A crash after the pieces leaves
// pieces; one after the description leaves the old pieces beside the new.
func (b *Bucket) attempt(ctx context.Context, w *write) error {
	old, err := b.look(ctx, w.name)
	if err != nil {
		return err
	}
	if old.live() {
		have, err := b.sum(ctx, &old)
		switch {
		case err != nil:
			return err
		case have == w.sum && !old.odd:
			return nil
		case w.once:
			return &sidecar.ConflictError{Name: w.name}
		}
	}
	info := b.newInfo(w.name, old.revision, w.sum, w.size)
	if err := b.upload(ctx, &info, w.body); err != nil {
		return err
	}
	err = b.describe(ctx, &info, old.revision)
	if isWrongLast(err) {
		return b.raced(ctx, &info)
	}
	if err != nil || old.NUID == info.NUID {
		return err
	}
	// The bytes are there; that old pieces could not be removed is no failure.
	_ = b.drop(ctx, w.name, old.NUID)
	return nil
}

// describe publishes a description in the place of a revision.
func (b *Bucket) describe(ctx context.Context, info *Info, replaces uint64) error {
	text, err := json.Marshal(info)
	if err != nil {
		return err
	}
	m := nats.NewMsg(b.infoSubject(info.Name))
	m.Data = text
	m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	_, err = b.js.PublishMsg(ctx, m, jetstream.WithExpectLastSequencePerSubject(replaces), jetstream.WithExpectStream("OBJ_"+b.name))
	return err
}

// raced removes our pieces when another description was first; it may also be
// our own, from an attempt whose answer was lost. Nothing can describe these
// pieces later: they belong to a revision that is replaced already.
func (b *Bucket) raced(ctx context.Context, info *Info) error {
	now, err := b.look(ctx, info.Name)
	if err == nil && now.NUID != info.NUID {
		err = b.drop(ctx, info.Name, info.NUID)
	}
	if err != nil {
		return err
	}
	return errRaced
}

// errOtherPieces: what lies under a nuid is not the beginning of its content.
var errOtherPieces = errors.New("other pieces are there")

// upload stores the content, beginning after the pieces that an earlier attempt
// left. Each piece is published on the condition that the one before it is the
// last, so one that arrives late or twice is refused.
func (b *Bucket) upload(ctx context.Context, info *Info, body sidecar.Body) error {
	err := b.uploadOnce(ctx, info, body)
	if errors.Is(err, errOtherPieces) {
		if err = b.drop(ctx, info.Name, info.NUID); err == nil {
			err = b.uploadOnce(ctx, info, body)
		}
	}
	if isWrongLast(err) || errors.Is(err, errOtherPieces) {
		return errRaced
	}
	return err
}

func (b *Bucket) uploadOnce(ctx context.Context, info *Info, body sidecar.Body) error {
	u := &upload{ctx: ctx, bucket: b, subject: b.pieceSubject(info.NUID), resuming: true}
	if err := body(u); err != nil {
		return err
	}
	if err := u.flush(); err != nil || !u.resuming {
		return err
	}
	_, err := u.there()
	switch {
	case err == nil: // one more than the content has
		return errOtherPieces
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil
	}
	return err
}

// upload is a writer that stores pieces.
type upload struct {
	ctx      context.Context
	bucket   *Bucket
	subject  string
	piece    []byte
	last     uint64 // sequence of the piece before; 0: none
	resuming bool   // there may be pieces of an earlier attempt
}

func (u *upload) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(pieceBytes-len(u.piece), len(rest))
		u.piece, rest = append(u.piece, rest[:n]...), rest[n:]
		if len(u.piece) == pieceBytes {
			if err := u.flush(); err != nil {
				return 0, err
			}
		}
	}
	return len(p), nil
}

// there reads the piece after the last one.
func (u *upload) there() (*jetstream.RawStreamMsg, error) {
	return u.bucket.stream.GetMsg(u.ctx, u.last+1, jetstream.WithGetMsgSubject(u.subject))
}

func (u *upload) flush() error {
	if len(u.piece) == 0 {
		return nil
	}
	if u.resuming {
		m, err := u.there()
		switch {
		case err == nil && bytes.Equal(m.Data, u.piece):
			u.last, u.piece = m.Sequence, u.piece[:0]
			return nil
		case err == nil:
			return errOtherPieces
		case !errors.Is(err, jetstream.ErrMsgNotFound):
			return err
		}
		u.resuming = false
	}
	ack, err := u.bucket.js.Publish(u.ctx, u.subject, u.piece, jetstream.WithExpectLastSequencePerSubject(u.last))
	if err != nil {
		return err
	}
	u.last, u.piece = ack.Sequence, u.piece[:0]
	return nil
}
