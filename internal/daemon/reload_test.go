package daemon

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/chaind/chaind/server"
)

// TestReloadTellsWhereAFileIsWrongAndNotWhatStandsThere: the configuration file
// may hold a password, and whoever may read the readiness need not know it.
func TestReloadTellsWhereAFileIsWrongAndNotWhatStandsThere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ err, want string }{
		{"parse configuration c.yaml: line 7: nats-password-hunter2: set twice", "parse configuration c.yaml: line 7 is wrong"},
		{"parse configuration c.yaml: [3:12] unexpected hunter2", "parse configuration c.yaml: [3:12] is wrong"},
		{"open c.yaml: permission denied", "open c.yaml: permission denied"},
	} {
		d := &Daemon{cfg: Config{Relevel: func() error { return errors.New(c.err) }}, log: slog.New(slog.DiscardHandler), keys: &keyring{log: slog.New(slog.DiscardHandler)}}
		d.reloading = d.reloadables()
		d.reload(context.Background())
		causes := d.reloading.causes()
		if len(causes) != 1 || causes[0].Name != server.CauseLogLevel || !strings.HasSuffix(causes[0].Detail, c.want) {
			t.Errorf("%s: %+v", c.err, causes)
		}
	}
}
