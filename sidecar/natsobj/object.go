package natsobj

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/sidecar"
)

// Info describes an object, as the clients of the object store write it.
type Info struct {
	Name    string   `json:"name"`
	Options *Options `json:"options,omitempty"`
	Bucket  string   `json:"bucket"`
	NUID    string   `json:"nuid"`             // names the subject of the pieces
	Size    uint64   `json:"size"`             // bytes
	MTime   string   `json:"mtime"`            // not maintained: the message's own time counts
	Chunks  uint32   `json:"chunks"`           // pieces
	Digest  string   `json:"digest,omitempty"` // "SHA-256=" and padded base64url
	Deleted bool     `json:"deleted,omitempty"`
}

// Options are how the content is kept.
type Options struct {
	Link      *Link  `json:"link,omitempty"` // the object is another one's name
	ChunkSize uint32 `json:"max_chunk_size,omitempty"`
}

// Link names another object.
type Link struct {
	Bucket string `json:"bucket"`
	Name   string `json:"name,omitempty"`
}

// noTime is what clients write into mtime.
const noTime = "0001-01-01T00:00:00Z"

// object is what lies under a name.
type object struct {
	Info
	revision uint64 // sequence of the description; 0: none
	odd      bool   // the description is none, or a link
}

func (o *object) live() bool { return o.revision > 0 && !o.Deleted }

// look reads the description of an object; the zero object when there is none.
func (b *Bucket) look(ctx context.Context, name string) (object, error) {
	m, err := b.stream.GetLastMsgForSubject(ctx, b.infoSubject(name))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return object{}, nil
	}
	if err != nil {
		return object{}, err
	}
	o := object{revision: m.Sequence}
	if len(m.Data) > maxInfo || json.Unmarshal(m.Data, &o.Info) != nil || o.Name != name ||
		o.Options != nil && o.Options.Link != nil || o.Chunks > 0 && !validNUID(o.NUID) {
		return object{revision: m.Sequence, odd: true}, nil
	}
	return o, nil
}

// validNUID keeps a forged description from naming other subjects than its own.
func validNUID(nuid string) bool {
	return nuid != "" && len(nuid) <= 128 && !strings.ContainsFunc(nuid, func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// nuidPrefix is common to all nuids that we give to a name.
func nuidPrefix(name string) string {
	h := sha256.Sum256([]byte(name))
	return hex.EncodeToString(h[:16])
}

// newInfo describes content that is to replace a revision of a name.
func (b *Bucket) newInfo(name string, replaces uint64, sum [sha256.Size]byte, size int64) Info {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%d\x00%x", name, replaces, sum)
	return Info{
		Name: name, Options: &Options{ChunkSize: pieceBytes}, Bucket: b.name, NUID: nuidPrefix(name) + hex.EncodeToString(h.Sum(nil)),
		Size: uint64(size), MTime: noTime, Chunks: uint32((size + pieceBytes - 1) / pieceBytes),
		Digest: "SHA-256=" + base64.URLEncoding.EncodeToString(sum[:]),
	}
}

// copyTo writes the pieces that are there, at most as many as described. That
// they are the described content is for the caller to find out.
func (b *Bucket) copyTo(ctx context.Context, o *object, w io.Writer) error {
	total := 0
	for n, next := uint32(0), uint64(1); n < o.Chunks; n++ {
		m, err := b.stream.GetMsg(ctx, next, jetstream.WithGetMsgSubject(b.pieceSubject(o.NUID)))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if total += len(m.Data); total > maxObject {
			return sidecar.ErrTooLarge
		}
		if _, err := w.Write(m.Data); err != nil {
			return err
		}
		next = m.Sequence + 1
	}
	return nil
}

// sum digests what lies there.
func (b *Bucket) sum(ctx context.Context, o *object) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	if err := b.copyTo(ctx, o, h); err != nil {
		return sum, err
	}
	h.Sum(sum[:0])
	return sum, nil
}

// Open implements [sidecar.Blobs]: the content is copied, so that nothing
// changes it while it is open. Content that is not what its description says is
// handed out as it lies there, as a damaged file would be; a description that
// is none, or a link, gives [sidecar.ErrNotRegular].
func (b *Bucket) Open(ctx context.Context, name string) (io.ReadSeekCloser, error) {
	if err := check(ctx, name); err != nil {
		return nil, fmt.Errorf("open blob: %w", err)
	}
	var s *spool
	err := b.retry(ctx, func(ctx context.Context) (err error) {
		s, err = b.open(ctx, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open blob %q: %w", name, err)
	}
	return s, nil
}

func (b *Bucket) open(ctx context.Context, name string) (*spool, error) {
	o, err := b.look(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case !o.live():
		return nil, fs.ErrNotExist
	case o.odd:
		return nil, sidecar.ErrNotRegular
	}
	s, h := &spool{dir: b.temp}, sha256.New()
	err = b.copyTo(ctx, &o, io.MultiWriter(h, s))
	if err == nil && o.Digest != "SHA-256="+base64.URLEncoding.EncodeToString(h.Sum(nil)) {
		// Replaced while it was read, or damaged.
		err = b.unchanged(ctx, name, o.revision)
	}
	if err == nil {
		err = s.rewind()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (b *Bucket) unchanged(ctx context.Context, name string, revision uint64) error {
	o, err := b.look(ctx, name)
	if err == nil && o.revision != revision {
		err = errRaced
	}
	return err
}
