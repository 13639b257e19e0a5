package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaind/chaind/internal/daemon"
)

// wrongShapes are ways to write the value of a setting that is to be one text;
// %s is the secret.
var wrongShapes = []string{
	"{%s}", "{%s: x}", "{%s: {%[1]s: %[1]s}}", "[%s]", "[[%s]]", "[{%s: x}]", "&%s x", "*%s", "!%s x", "!!str %s", "&a %s", "{? %s}",
	">%s\n  x", "|%s\n  x", "\"%s", "'%s", "%%%s", "@%s", "`%s", "%s: %[1]s", "\n  %s: x", "\n  - %s\n  - {%[1]s: x}", "\n  ? %s\n  : x", "\n\t%s",
	"{%s", "[%s", "%s}\n}", "\"\\%s\"", "x\n%s: x", "x\n%s\n", "{%s: 1, %[1]s: 2}",
}

// secretPlaces are where secrets stand, or are pasted by mistake, in the
// configuration file.
var secretPlaces = []string{
	"nats:\n  url: nats://127.0.0.1:1\n  user: a\n  password: ", "nats:\n  url: ", "trusted-pubkey: ", "signing-key: ", "signing-key-passphrase: ",
	"http:\n  tokens: ", "nats:\n  creds: ", "nats:\n  key: ", "nats-password", "nats:\n  pasword: ", "secret: ", "log-level: info\n",
}

// TestNoSecretInMessagesAboutYAML writes secrets in every wrong shape, and looks
// for them in all that config and serve say.
func TestNoSecretInMessagesAboutYAML(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	dir := t.TempDir()
	for i, place := range secretPlaces {
		for j, shape := range wrongShapes {
			file := filepath.Join(dir, fmt.Sprintf("%d-%d.yaml", i, j))
			if err := os.WriteFile(file, []byte(place+fmt.Sprintf(shape, secret)+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			_ = run(t.Context(), []string{"config", "--config", file}, strings.NewReader(""), io.Discard, &said)
			if place == "signing-key: " || place == "signing-key-passphrase: " || strings.HasSuffix(place, "tokens: ") || strings.HasSuffix(place, "creds: ") || strings.HasSuffix(place, "key: ") {
				if strings.Contains(said.String(), "no such file") {
					continue // the name of a file, in a shape that is one after all
				}
			}
			if strings.Contains(said.String(), secret) {
				t.Errorf("%s%s: %s", place, shape, said.String())
			}
		}
	}
	file := filepath.Join(dir, "serve.yaml")
	if err := os.WriteFile(file, []byte("nats: {password: {hunter2}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	code := run(t.Context(), []string{"serve", "--config", file}, strings.NewReader(""), &said, &said)
	if code != exitUsage || strings.Contains(said.String(), secret) || !strings.Contains(said.String(), "line 1: nats-password: expected a text") {
		t.Errorf("serve: exit %d, %s", code, said.String())
	}
}

// TestNoSecretAfterAReload breaks the configuration, the token file and the trust
// file of a running daemon, with secrets in them: neither log nor readiness
// repeat one, and both name file and line.
func TestNoSecretAfterAReload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const key = "ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c"
	file := write("c.yaml", "log-level: info\n")
	token, entry, err := daemon.NewToken(nil, "")
	if err != nil {
		t.Fatal(err)
	}
	tokens := write("tokens.yaml", entry.YAML())
	trust := write("trust.yaml", "- public_key: "+key+"\n")
	_, a, ctx := commandLine(t, "config", "--config", file)
	a.parsed = ctx
	var log lockedBuffer
	reload := make(chan struct{})
	info := startDaemon(t, daemon.Config{Reload: reload, Relevel: a.relevel, NATS: daemon.NATSConfig{Listen: "127.0.0.1:-1"}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		HTTP: daemon.HTTPConfig{Listen: "127.0.0.1:0", Tokens: tokens}, Keys: daemon.KeyConfig{TrustFile: trust}})
	for name, broken := range map[string]string{"mapping": "{hunter2}", "list": "[hunter2]", "anchor": "&hunter2 x", "header": ">hunter2\n  x", "quote": "\"hunter2"} {
		write("c.yaml", "log-level: info\nnats-password: "+broken+"\n")
		write("tokens.yaml", "- comment: x\n  sha256: "+broken+"\n")
		write("trust.yaml", "- comment: x\n  public_key: "+broken+"\n")
		reload <- struct{}{}
		reload <- struct{}{} // taken when the first one is done
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, info.HTTPURL+"/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token) // who may read all is told all
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		ready, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != http.StatusServiceUnavailable {
			t.Fatalf("%s: %s %v", name, res.Status, err)
		}
		for _, said := range []string{string(ready), log.String()} {
			if strings.Contains(said, "hunter2") {
				t.Errorf("%s: a secret in %s", name, said)
			}
			for _, want := range []string{file + ": line 2", tokens + ": line 2: ", trust + ": line 2: "} {
				if !strings.Contains(said, want) {
					t.Errorf("%s: no %q in %s", name, want, said)
				}
			}
		}
	}
	write("c.yaml", "# levels\nlog-level: loud\n")
	if err := a.relevel(); err == nil || !strings.Contains(err.Error(), file+": line 2: log-level is none of") {
		t.Errorf("a wrong level: %v", err)
	}
}

// TestFilesOpenToOthers: what signs is refused when everybody can read it, or
// more than its owner can write it; lists, when everybody can write them.
func TestFilesOpenToOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const key = "ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c"
	files := map[string]string{"signing-key": strings.Repeat("07", 32) + "\n", "trust-file": "- public_key: " + key + "\n", "http-tokens": "- {sha256: " + key + ", all_tenants: true}\n"}
	for setting, text := range files {
		path := filepath.Join(dir, setting)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for mode, secretOK := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: true, 0o440: true, 0o644: false, 0o604: false, 0o660: false, 0o666: false, 0o602: false} {
			ok := secretOK || setting != "signing-key" && mode&0o002 == 0
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			code := run(t.Context(), []string{"config", "--" + setting, path}, strings.NewReader(""), io.Discard, &said)
			if ok && code != exitOK || !ok && (code != exitCannot || !strings.Contains(said.String(), fmt.Sprintf("%s has mode %04o: chmod ", path, mode))) {
				t.Errorf("%s with mode %o: exit %d, %s", setting, mode, code, said.String())
			}
		}
	}
	pem := filepath.Join(dir, "client.creds")
	if err := os.WriteFile(pem, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	var warned bytes.Buffer
	if code := run(t.Context(), []string{"config", "--nats-url", "nats://x:1", "--nats-creds", pem}, strings.NewReader(""), io.Discard, &warned); code != exitOK ||
		!strings.Contains(warned.String(), "everybody on this machine can read") || !strings.Contains(warned.String(), "nats-creds") {
		t.Errorf("credentials: exit %d, %s", code, warned.String())
	}
	open := filepath.Join(dir, "open.yaml")
	if err := os.WriteFile(open, []byte("nats: {url: 'nats://x:1', user: a, password: hunter2}\nlog-format: text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, warned := range map[os.FileMode]bool{0o640: false, 0o644: true} {
		if err := os.Chmod(open, mode); err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		code := run(t.Context(), []string{"config", "--config", open}, strings.NewReader(""), io.Discard, &said)
		if code != exitOK || strings.Contains(said.String(), "everybody on this machine can read") != warned || strings.Contains(said.String(), "hunter2") {
			t.Errorf("mode %o: exit %d, %s", mode, code, said.String())
		}
	}
}
