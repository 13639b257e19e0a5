package daemon

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/chaind/chaind/store"
)

// DamagedError is a database that was to be backed up, or that is in a backup,
// and in which a check finds what does not fit.
type DamagedError struct {
	Findings uint64 `json:"findings"`
	First    string `json:"first"`
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the database is damaged: %d findings, the first: %s", e.Findings, e.First)
}

// inspect checks the database that was copied, rather than the one it was copied
// from: this one is what somebody will restore.
func (b *backupSet) inspect(ctx context.Context, m *Manifest, anyway bool) error {
	err := checkCopy(ctx, b.root.Name())
	if damage, ok := errors.AsType[*DamagedError](err); ok && anyway {
		m.Findings, m.Finding = damage.Findings, damage.First
		return nil
	}
	return err
}

// checkCopy checks the database in a backup, and changes nothing there.
func checkCopy(ctx context.Context, dir string) error {
	s, err := store.OpenReadOnly(store.Config{Dir: filepath.Join(dir, "store")})
	if err != nil {
		return damaging(err)
	}
	report, err := s.Check(ctx, nil)
	if err := errors.Join(err, s.Close()); err != nil {
		return damaging(err)
	}
	if n := uint64(len(report.Findings)) + report.More; n > 0 {
		return &DamagedError{Findings: n, First: describeFinding(report.Findings[0])}
	}
	return nil
}

// damaging tells a database that cannot be read for what is in it from one that
// cannot be read.
func damaging(err error) error {
	for _, class := range []error{store.ErrCorrupt, store.ErrTruncated, store.ErrForeign} {
		if errors.Is(err, class) {
			return &DamagedError{Findings: 1, First: err.Error()}
		}
	}
	return err
}
