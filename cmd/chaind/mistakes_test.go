package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mistakes are wrong configurations: a file, and what the message must hold
// besides the file's name: the line, and a word of the remedy.
var mistakes = []struct{ name, file, line, remedy string }{
	{"unknown key", "log:\n  level: info\nhttp-lisen: x\n", "line 3", "unknown setting http-lisen"},
	{"unknown nested key", "nats:\n  ulr: nats://x\n", "line 2", "unknown setting nats-ulr"},
	{"key of another command", "require-signed: true\n", "line 1", "unknown setting"},
	{"key twice", "log-level: info\nlog-level: warn\n", "line 2", "already set in line 1"},
	{"key twice, nested and flat", "http: {listen: off}\nhttp-listen: off\n", "line 2", "already set in line 1"},
	{"two documents", "log-level: info\n---\nlog-level: warn\n", "line 2", "more than one document"},
	{"not YAML", "log: [\n", "line 1", "not YAML"},
	{"a tab", "log:\n\tlevel: info\n", "line 2", "not YAML"},
	{"a mapping where a text is wanted", "data-dir: {a: b}\n", "line 1", "data-dir: expected a text, number, true or false, and found a mapping"},
	{"a list where a text is wanted", "data-dir: [a, b]\n", "line 1", "data-dir: expected a text, number, true or false, and found a list"},
	{"a list in a list", "http:\n  hosts: [a, [b]]\n", "line 2", "in the list, and found a list"},
	{"a comma in a list", "http:\n  hosts: ['a,b']\n", "line 2", "own entry"},
	{"a list of settings", "- log-level: info\n", "line 1", "the file is a list: expected a mapping"},
	{"a text alone", "# chaind\nhunter2\n", "line 2", "expected a mapping"},
	{"a text for a group", "nats: hunter2\n", "line 1", "nats is something else: expected a mapping"},
	{"a tag", "log-level: !!str info\n", "line 1", "tags (!)"},
	{"port out of range", "http:\n  listen: 127.0.0.1:99999\n", "line 2", "0 to 65535"},
	{"port of the broker out of range", "nats:\n  listen: 127.0.0.1:99999\n", "line 2", "0 to 65535"},
	{"port of another broker out of range", "nats:\n  url: nats://x:99999\n", "line 2", "such as nats://host:4222"},
	{"port is a word", "http:\n  listen: 127.0.0.1:http-alt\n", "line 2", "0 to 65535"},
	{"trusted key is none", "log-level: info\ntrusted-pubkey: zz\n", "line 2", "trusted-pubkey: entry 1: public key is not exactly 64 hex digits"},
	{"second trusted key is none", "trusted-pubkey:\n  - ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c\n  - hunter2\n", "line 1", "entry 2"},
	{"user twice", "nats:\n  url: nats://a:hunter2@x:4222\n  user: a\n  password: hunter2\n", "line 2", "log in one way"},
	{"user and credentials in the address", "nats:\n  url: nats://a:hunter2@x:4222\n  creds: a\n", "line 2", "log in one way"},
	{"checks all the time", "check-every: 1s\n", "line 1", "1m or more"},
	{"no check", "check-every: 0s\n", "line 1", "1m or more"},
	{"no event", "max-event-bytes: 0\n", "line 1", "1024 to"},
	{"a seed for a file", "signing-key: 9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60\n", "line 1", "name the file"},
	{"a token for a file", "http:\n  tokens: chaind_hunter2hunter2hunter2hunter2hunter2hunter2abc\n", "line 2", "name the file"},
	{"nothing", "data-dir:\n", "line 1", "expected a text"},
	{"an alias", "log-level: &x info\nlog-format: *x\n", "line", "expected a text"},
	{"duration without unit", "batch:\n  wait: 3\n", "line 2", "missing unit"},
	{"duration of another language", "batch:\n  wait: 3 seconds\n", "line 2", "duration"},
	{"duration too long", "batch:\n  wait: 2h\n", "line 2", "up to 1m"},
	{"negative duration", "batch:\n  wait: -1s\n", "line 2", "up to 1m"},
	{"number with unit", "max-event-bytes: 1MiB\n", "line 1", "expected"},
	{"number too small", "max-event-bytes: 10\n", "line 1", "1024 to"},
	{"number too large", "max-event-bytes: 99999999\n", "line 1", "to 8388608"},
	{"too many events in a batch", "batch:\n  events: 100000\n", "line 2", "1 to 65536"},
	{"no boolean", "nats:\n  sync-always: maybe\n", "line 2", "bool"},
	{"unknown level", "log:\n  level: verbose\n", "line 2", `"debug"`},
	{"unknown format", "log:\n  format: xml\n", "line 2", `"json"`},
	{"no address", "http:\n  listen: localhost\n", "line 2", "such as 127.0.0.1:8477"},
	{"address of all", "http:\n  listen: 0.0.0.0:80\n", "line 2", "http-cert"},
	{"address of all, short", "http: {listen: ':80'}\n", "line 1", "insecure-http"},
	{"certificate without key", "http:\n  cert: a.pem\n", "line 2", "both or neither"},
	{"key without certificate", "http:\n  key: a.key\n", "line 2", "both or neither"},
	{"host with scheme", "http:\n  hosts: ['https://x.example']\n", "line 2", "names alone"},
	{"host with port", "http:\n  hosts: [a.example, 'b.example:443']\n", "line 2", "names alone"},
	{"two brokers", "nats:\n  url: nats://x:4222\n  listen: 127.0.0.1:4222\n", "line 3", "exclude each other"},
	{"credentials without server", "nats:\n  creds: a.creds\n", "line 2", "need nats-url"},
	{"password without user", "nats:\n  url: nats://x:4222\n  password: hunter2\n", "line 3", "both or neither"},
	{"user and credentials", "nats:\n  url: nats://x:4222\n  user: a\n  password: hunter2\n  creds: c\n", "line 3", "log in one way"},
	{"client certificate without key", "nats:\n  url: tls://x:4222\n  cert: c.pem\n", "line 3", "both or neither"},
	{"scheme of the web", "nats:\n  url: https://x:4222\n", "line 2", "such as nats://host:4222"},
	{"no host", "nats:\n  url: 'nats://:4222'\n", "line 2", "such as nats://host:4222"},
	{"sync of another server", "nats:\n  url: nats://x:4222\n  sync-always: true\n", "line 3", "server inside"},
	{"replicas of one", "nats:\n  replicas: 3\n", "line 2", "cluster"},
	{"too many replicas", "nats:\n  url: nats://x:4222\n  replicas: 7\n", "line 3", "1 to 5"},
	{"broker of all", "nats:\n  listen: 0.0.0.0:4222\n", "line 2", "nats-insecure"},
	{"broker without port", "nats:\n  listen: 127.0.0.1\n", "line 2", "such as 127.0.0.1:4222"},
	{"two keys", "signing-key: a\nsigning-agent: SHA256:x\n", "line 2", "one key signs"},
	{"passphrase of nothing", "signing-key-passphrase: a\n", "line 1", "needs signing-key"},
	{"forgiving nobody", "allow-unsigned: true\n", "line 1", "trusted keys"},
	{"no data directory", "data-dir: ''\n", "line 1", "name a directory"},
}

// TestFortyMistakes makes each mistake: the program refuses, names file and
// line, says what to do, and repeats no secret.
func TestFortyMistakes(t *testing.T) {
	t.Parallel()
	if len(mistakes) < 40 {
		t.Fatalf("only %d mistakes", len(mistakes))
	}
	for _, m := range mistakes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "wrong.yaml")
			if err := os.WriteFile(file, []byte(m.file), 0o600); err != nil {
				t.Fatal(err)
			}
			var out, problems bytes.Buffer
			code := run(t.Context(), []string{"config", "--config", file}, strings.NewReader(""), &out, &problems)
			text := problems.String()
			if code != exitUsage && code != exitCannot {
				t.Errorf("exit %d\n%s", code, out.String())
			}
			for _, want := range []string{file, m.line, m.remedy} {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in: %s", want, text)
				}
			}
			if strings.Contains(text, "hunter2") {
				t.Errorf("a secret is repeated: %s", text)
			}
		})
	}
}

// TestMistakesInFilesThatSettingsName are found when the daemon starts; the
// message names the file and the entry.
func TestMistakesInFilesThatSettingsName(t *testing.T) {
	t.Parallel()
	const key = "ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c"
	for _, m := range []struct{ name, setting, file, want string }{
		{"no such key", "signing-key", "", "no such file"},
		{"key is no key", "signing-key", "hunter2\n", "64 hex digits"},
		{"trust list is no list", "trust-file", "public_key: x\n", "not a YAML list"},
		{"trust list with an unknown member", "trust-file", "- public_key: " + key + "\n  colour: red\n", "line 2: unknown member colour"},
		{"trusted key is short", "trust-file", "- public_key: " + key + "\n- public_key: hunter2\n", "wrong, line 2, entry 2: public key is not"},
		{"unknown status", "trust-file", "- public_key: " + key + "\n  status: dubious\n", "wrong, line 1, entry 1: status is none"},
		{"no token", "http-tokens", "", "no such file"},
		{"empty token file", "http-tokens", "# nobody yet\n", "names no token"},
		{"the token itself", "http-tokens", "- sha256: hunter2\n  all_tenants: true\n", "wrong: line 1: entry 1: sha256 is not 64 hex digits"},
		{"token for nobody", "http-tokens", "- sha256: " + key + "\n", "line 1: entry 1: give either tenants or all_tenants"},
		{"tenant for tenants", "http-tokens", "# all\n- sha256: " + key + "\n  tenant: a\n", "wrong: line 3: unknown member tenant; an entry is"},
		{"the token as a name", "http-tokens", "- chaind_hunter2: a\n", "wrong: line 1: unknown member; an entry is"},
		{"tenants as a text", "http-tokens", "- sha256: " + key + "\n  tenants: hunter2\n", "wrong: line 2: tenants: expected a list"},
		{"all tenants as a text", "http-tokens", "- sha256: " + key + "\n  all_tenants: 'true'\n", "wrong: line 2: all_tenants: expected true or false"},
		{"two documents", "trust-file", "- public_key: " + key + "\n---\n- public_key: " + key + "\n", "wrong: line 2: more than one document"},
		{"not YAML", "trust-file", "- public_key: " + key + "\n  status: [hunter2\n", "wrong: line 2: not YAML"},
		{"a member twice", "trust-file", "- public_key: " + key + "\n  status: active\n  status: revoked\n", "wrong: line 3: status is given twice"},
		{"a list of texts", "trust-file", "- hunter2\n", "wrong: line 1: an entry is something else"},
		{"token for some and all", "http-tokens", "- sha256: " + key + "\n  tenants: [a]\n  all_tenants: true\n", "give either"},
		{"tenant that is none", "http-tokens", "- sha256: " + key + "\n  tenants: ['a/b']\n", "1 to 64 letters"},
		{"token twice", "http-tokens", "- {sha256: " + key + ", tenants: [a]}\n- {sha256: " + key + ", tenants: [b]}\n", "twice"},
		{"no certificate", "http-cert", "hunter2", "http-key"},
	} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "wrong")
			if m.file != "" {
				if err := os.WriteFile(file, []byte(m.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var out, problems bytes.Buffer
			args := []string{"serve", "--data-dir", filepath.Join(dir, "data"), "--nats-listen", "127.0.0.1:-1", "--http-listen", "127.0.0.1:0", "--" + m.setting, file}
			if code := run(t.Context(), args, strings.NewReader(""), &out, &problems); code != exitCannot && code != exitUsage {
				t.Errorf("exit %d", code)
			}
			text := problems.String()
			if !strings.Contains(text, m.want) || strings.Contains(text, "hunter2") {
				t.Errorf("want %q in: %s", m.want, text)
			}
		})
	}
}
