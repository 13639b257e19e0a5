package daemon

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaind/chaind/store"
)

// TestCheckGoesOnInADamagedDatabase destroys the pages of a database that is
// open: both halves of a check end with findings, not with an error about the
// first thing that they met, and evidence is not called another store's because
// its chain cannot be read.
func TestCheckGoesOnInADamagedDatabase(t *testing.T) {
	t.Parallel()
	dir, url, list := t.TempDir(), startTestBroker(t), readEvents(t, "small")
	d := runDaemon(t, Config{DataDir: dir, NATS: NATSConfig{URL: url}})
	publishAll(t, url, list, nil)
	settled(t, d.HTTPURL, len(list))
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	s, err := store.OpenReadOnly(store.Config{Dir: filepath.Join(dir, "store")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	destroyPages(t, filepath.Join(dir, "store", store.DatabaseFile))
	report, err := s.Check(t.Context(), nil)
	if err != nil || len(report.Findings) == 0 {
		t.Errorf("check the database: %+v, %v", report, err)
	}
	evidence, err := CheckEvidence(t.Context(), s, filepath.Join(dir, "artifacts"), nil)
	if err != nil || len(evidence.Findings) != 1 || !strings.Contains(evidence.Findings[0].Detail, "the list of chains ends here") {
		t.Errorf("compare the evidence: %+v, %v", evidence, err)
	}
}

// destroyPages overwrites everything but the two meta pages, in place.
func destroyPages(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err == nil {
		metas := 2 * int64(os.Getpagesize())
		_, err = f.WriteAt(bytes.Repeat([]byte{0xa5}, int(info.Size()-metas)), metas)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}
