package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"golang.org/x/crypto/bcrypt"
)

// TestAddATenantWithoutARestart does what docs/howto/add-a-tenant.md says to a
// server that runs: the user of the page is let in after a reload, and those that
// were there stay connected.
func TestAddATenantWithoutARestart(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"nats.conf", "tenants.conf"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(readHouse(t, "configs/"+name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The server reads the whole file again: what a test needs stands in it.
	conf := strings.NewReplacer("0.0.0.0:4222", "127.0.0.1:-1", "http: 127.0.0.1:8222", "", "/data/jetstream", filepath.Join(dir, "jetstream")).
		Replace(readHouse(t, "configs/nats.conf"))
	if err := os.WriteFile(filepath.Join(dir, "nats.conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	options := natsOptionsFile(t, filepath.Join(dir, "nats.conf"))
	options.StoreDir = filepath.Join(dir, "jetstream")
	srv := startNATS(t, options)
	acme, err := nats.Connect(srv.ClientURL(), nats.UserInfo("acme", natsAcmePassword), nats.NoReconnect())
	if err != nil {
		t.Fatal(err)
	}
	defer acme.Close()
	globex := func() error {
		conn, err := nats.Connect(srv.ClientURL(), nats.UserInfo("globex", "globex-secret"))
		if err == nil {
			conn.Close()
		}
		return err
	}

	user := blocks(t, "docs/howto/add-a-tenant.md", "Who may write: the NATS server", "text")[0]
	for _, m := range regexp.MustCompile(`"[^"]*(?:acme|EVIDENCE)[^"]*"`).FindAllString(readHouse(t, "configs/tenants.conf"), -1) {
		if want := strings.ReplaceAll(m, "acme", "globex"); !strings.Contains(user, want) {
			t.Errorf("the page's user lacks %s, which the sample's has", want)
		}
	}
	addUser(t, dir, strings.Replace(user, `"$2a$11$…"`, "$GLOBEX_NATS_PASSWORD", 1))
	if err := srv.Reload(); err == nil || globex() == nil {
		t.Errorf("a variable that the server does not have: reload %v", err)
	}
	hash, err := bcrypt.GenerateFromPassword([]byte("globex-secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	addUser(t, dir, strings.Replace(user, "$2a$11$…", string(hash), 1))
	if err := srv.Reload(); err != nil {
		t.Fatal(err)
	}
	if err := globex(); err != nil {
		t.Errorf("globex after the reload: %v", err)
	}
	if err := acme.Flush(); err != nil {
		t.Errorf("acme was cut off: %v", err)
	}
}

// addUser writes the sample's users and one more.
func addUser(t *testing.T, dir, user string) {
	t.Helper()
	text := readHouse(t, "configs/tenants.conf")
	at := strings.LastIndex(text, "  ]\n}")
	if at < 0 {
		t.Fatal("the sample of users does not end as it did")
	}
	if err := os.WriteFile(filepath.Join(dir, "tenants.conf"), []byte(text[:at]+user+text[at:]), 0o600); err != nil {
		t.Fatal(err)
	}
}
