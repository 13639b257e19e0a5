package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/internal/daemon"
)

// TestPublishNamesWhatIsNotPermitted publishes as a user of configs/nats.conf who
// may not: for another tenant, and without an inbox prefix. Neither waits for a
// deadline, and each says what to do.
func TestPublishNamesWhatIsNotPermitted(t *testing.T) {
	srv := startNATS(t, natsOptions(t, "nats.conf"))
	startDaemon(t, daemon.Config{NATS: daemon.NATSConfig{URL: srv.ClientURL(), User: "chaind", Password: natsDaemonPassword}, HTTP: daemon.HTTPConfig{Listen: "off"}})
	lines := func(tenant string) string {
		key := events.Key{Tenant: tenant, PromptHash: strings.Repeat("0a", 32), Session: strings.Repeat("0b", 16), Chain: "c"}
		path := filepath.Join(t.TempDir(), "run.jsonl")
		if err := os.WriteFile(path, []byte(`{"subject":"`+key.Subject(events.VerbSeal)+`","payload":"{}"}`+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		name   string
		args   []string
		code   int
		wanted []string
	}{
		{"another tenant", []string{lines("globex"), "--inbox-prefix", "_INBOX_acme"}, exitCannot, []string{"no permission to subscribe", "for this tenant"}},
		{"another tenant, no receipts", []string{lines("globex"), "--inbox-prefix", "_INBOX_acme", "--wait", "0"}, exitCannot, []string{"line 1: ", "publish permission denied", "for this tenant"}},
		{"no inbox prefix", []string{lines("acme")}, exitCannot, []string{"line 1: ", "inbox prefix", "--inbox-prefix"}},
		{"wrong inbox prefix", []string{lines("acme"), "--inbox-prefix", "_INBOX_globex"}, exitCannot, []string{"no permission to subscribe below _INBOX_globex", "--inbox-prefix"}},
		{"the right one", []string{lines("acme"), "--inbox-prefix", "_INBOX_acme", "--wait", "0"}, exitOK, []string{"1 sent"}},
	} {
		var said bytes.Buffer
		args := append([]string{"publish", "--nats-url", srv.ClientURL(), "--nats-user", "acme", "--nats-password", natsAcmePassword}, c.args...)
		code := run(t.Context(), args, strings.NewReader(""), &said, &said)
		if code != c.code || strings.Contains(said.String(), "deadline") {
			t.Errorf("%s: exit %d, %s", c.name, code, said.String())
		}
		for _, want := range c.wanted {
			if !strings.Contains(said.String(), want) {
				t.Errorf("%s: no %q in %s", c.name, want, said.String())
			}
		}
	}
}
