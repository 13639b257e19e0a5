package daemon

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"path/filepath"
	"time"

	"github.com/chaind/chaind/server"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/store"
)

// Reader answers the read API over the files of a stopped daemon, without
// listening anywhere.
type Reader struct {
	// Unsynced is what is noted of a failed sync of the database, which may show
	// what the disk never got; "": nothing.
	Unsynced string

	handler http.Handler
	store   *store.Store
	files   *sidecar.Dir
}

// OpenReader opens the data directory of a stopped daemon for reading;
// artifacts is its evidence directory, "" the default one; when that does not
// exist, evidence is kept elsewhere and only the database is read. While the
// daemon runs it holds the database, and the error says so.
func OpenReader(dataDir, artifacts string) (*Reader, error) {
	s, err := store.OpenReadOnly(store.Config{Dir: filepath.Join(dataDir, "store")})
	if err != nil {
		return nil, err
	}
	r := &Reader{store: s, Unsynced: s.Unsynced()}
	blobs, err := r.openBlobs(dataDir, artifacts)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	sidecars, err := sidecar.Open(context.Background(), sidecar.Config{Blobs: blobs})
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	if r.handler, err = server.New(server.Config{Store: s, Sidecars: sidecars, Pack: packer(s), TellCauses: true}); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *Reader) openBlobs(dataDir, artifacts string) (sidecar.Blobs, error) {
	named := artifacts != ""
	if !named {
		artifacts = filepath.Join(dataDir, "artifacts")
	}
	files, err := sidecar.OpenDirReadOnly(artifacts)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return sidecar.NewMemory(), nil
	}
	if err != nil {
		return nil, err
	}
	r.files = files
	return files, nil
}

// Get answers one request, as the daemon would.
func (r *Reader) Get(ctx context.Context, path string) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://stopped"+path, nil)
	if err != nil {
		return 0, nil, err
	}
	req.RequestURI = path
	a := &answer{header: http.Header{}, status: http.StatusOK}
	r.handler.ServeHTTP(a, req)
	return a.status, a.body.Bytes(), nil
}

// Close releases the files.
func (r *Reader) Close() error {
	err := r.store.Close()
	if r.files != nil {
		err = errors.Join(err, r.files.Close())
	}
	return err
}

// answer takes what a handler writes. Nobody is slow here, so deadlines are
// accepted and not kept.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header              { return a.header }
func (a *answer) WriteHeader(status int)           { a.status = status }
func (a *answer) Write(b []byte) (int, error)      { return a.body.Write(b) }
func (a *answer) SetWriteDeadline(time.Time) error { return nil }
func (a *answer) SetReadDeadline(time.Time) error  { return nil }
