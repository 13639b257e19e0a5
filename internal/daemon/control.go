package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/chaind/chaind/store"
)

// controlFile is a Unix socket in the data directory, for the user that the
// daemon runs as and nobody else: the read API on the network changes nothing and
// writes no files.
//
//	POST /backup?to=DIR&artifacts=BOOL&damaged_anyway=BOOL
//	                                   → the manifest, or {"error": TEXT, "damage": DamagedError or null}
//	POST /compact                      → store.CompactReport, or {"error": TEXT}
const controlFile = "control.sock"

const controlHeader = 5 * time.Second // for the header of a request

// openControl listens. A socket that cannot be is no reason not to run: there are
// no backups and compactions then while the daemon does.
func (d *Daemon) openControl(context.Context) error {
	path := filepath.Join(d.cfg.DataDir, controlFile)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("listen for control: %w", err) // we hold the store, so it was of somebody who died
	}
	l, err := net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		d.log.Warn("no backups while the daemon runs: the control socket cannot be opened", "err", err)
		return nil
	}
	d.control = l
	d.onClose(func() error {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	return nil
}

func (d *Daemon) serveControl(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /backup", d.postBackup)
	mux.HandleFunc("POST /compact", d.postCompact)
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: controlHeader, BaseContext: func(net.Listener) context.Context { return ctx }}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(d.control) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	err := srv.Close()
	<-done
	return err
}

func (d *Daemon) postBackup(w http.ResponseWriter, r *http.Request) {
	to := r.URL.Query().Get("to")
	if !filepath.IsAbs(to) {
		tell(w, http.StatusBadRequest, refusal{Error: "to is not an absolute path"})
		return
	}
	artifacts, _ := strconv.ParseBool(r.URL.Query().Get("artifacts"))
	anyway, _ := strconv.ParseBool(r.URL.Query().Get("damaged_anyway"))
	m, err := d.backup(r.Context(), to, artifacts, anyway)
	if err != nil {
		d.log.Error("backup failed", "to", to, "err", err)
		damage, _ := errors.AsType[*DamagedError](err)
		tell(w, http.StatusInternalServerError, refusal{err.Error(), damage})
		return
	}
	d.log.Info("backup done", "to", to, "files", len(m.Files))
	tell(w, http.StatusOK, m)
}

// postCompact holds up intake while the database is copied; what the broker
// delivers again meanwhile is recognised.
func (d *Daemon) postCompact(w http.ResponseWriter, r *http.Request) {
	report, err := d.store.Compact(r.Context(), nil)
	if err != nil {
		d.log.Error("compaction failed", "err", err)
		tell(w, http.StatusInternalServerError, refusal{Error: err.Error()})
		return
	}
	tell(w, http.StatusOK, report)
}

// refusal is the answer when something could not be done.
type refusal struct {
	Error  string        `json:"error"`
	Damage *DamagedError `json:"damage"` // null: for another reason
}

func tell(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a failed write means that the caller has gone
}

// ErrNotRunning: no daemon listens in the data directory.
var ErrNotRunning = errors.New("no daemon is running in this data directory")

// AskBackup has the running daemon of a data directory make a backup, into
// cfg.To, which is absolute. It returns ErrNotRunning when there is none, and a
// [*DamagedError] as Backup does.
func AskBackup(ctx context.Context, cfg BackupConfig) (*Manifest, error) {
	query := url.Values{"to": {cfg.To}, "artifacts": {strconv.FormatBool(cfg.Artifacts)}, "damaged_anyway": {strconv.FormatBool(cfg.DamagedAnyway)}}
	m := new(Manifest)
	if err := ask(ctx, cfg.DataDir, "/backup?"+query.Encode(), m); err != nil {
		return nil, fmt.Errorf("ask for a backup: %w", err)
	}
	return m, nil
}

// AskCompact has the running daemon of a data directory compact its database. It
// returns ErrNotRunning when there is none.
func AskCompact(ctx context.Context, dataDir string) (*store.CompactReport, error) {
	r := new(store.CompactReport)
	if err := ask(ctx, dataDir, "/compact", r); err != nil {
		return nil, fmt.Errorf("ask for a compaction: %w", err)
	}
	return r, nil
}

// ask posts to the daemon's control socket and reads the answer.
func ask(ctx context.Context, dataDir, path string, answer any) error {
	var dialer net.Dialer
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, "unix", filepath.Join(dataDir, controlFile))
		if err != nil {
			return nil, errors.Join(ErrNotRunning, err)
		}
		return conn, nil
	}}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://daemon"+path, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxManifest))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		var said refusal
		_ = json.Unmarshal(text, &said)
		if said.Damage != nil {
			return said.Damage
		}
		return fmt.Errorf("the daemon could not do it: %s", or(said.Error, res.Status))
	}
	return json.Unmarshal(text, answer)
}
