package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/keys/openssh"
)

// Config is everything a daemon needs to know. The zero value of a field means
// the default that its comment names; New validates the whole.
type Config struct {
	DataDir      string // holds chaind.db and the embedded broker's store; required
	ArtifactsDir string // root of the sidecars, when they are files; "" is DataDir/artifacts

	Artifacts ArtifactsConfig
	NATS      NATSConfig
	Intake    IntakeConfig
	HTTP      HTTPConfig
	Keys      KeyConfig

	Reload     <-chan struct{}  // a receive reloads signing key, trust list, tokens, certificate and log level; nil: never
	Relevel    func() error     // takes the log level anew at a reload; nil: it stays
	CheckEvery time.Duration    // between two checks of everything stored; 0: DefaultCheckEvery
	Version    string           // of the program, for metrics
	Logger     *slog.Logger     // required
	Now        func() time.Time // nil: time.Now

	statDisk func(string) (disk, error)           // of tests; nil: the system's
	after    func(time.Duration) <-chan time.Time // of tests: when the next sweep is due; nil: time.After
}

// NATSConfig says which broker to use: an external one (URL), or one inside
// this process (URL empty).
type NATSConfig struct {
	URL      string // "" starts an embedded server
	Creds    string // credentials file of an external server
	User     string
	Password string
	CA       string // PEM file that the server's certificate must chain to
	Cert     string // client certificate and key, PEM files
	Key      string

	InboxPrefix string // of reply subjects, where permissions ask for one; "": _INBOX

	Listen     string // embedded: host:port; port -1 picks a free one; "" is 127.0.0.1:4222
	SyncAlways bool   // embedded: fsync every message before its ack (slower publishes)
	Insecure   bool   // embedded: allow an address that other machines reach, though nobody is asked for a password

	Replicas int // of streams that are created; 0 is 1
}

// IntakeConfig bounds one batch, which is one durable transaction.
type IntakeConfig struct {
	Off           bool          // do not take events in: serve what is there
	MaxEventBytes int           // larger events are rejected; 0 is 1 MiB
	BatchEvents   int           // 0 is the emitter's default
	BatchWait     time.Duration // how long a batch may wait to fill; 0 is the emitter's default
}

// HTTPConfig is the read side.
type HTTPConfig struct {
	Listen   string // host:port; "" is 127.0.0.1:8477, "off" is none
	Cert     string // TLS certificate and key, PEM files
	Key      string
	ClientCA string   // PEM file: every client shows a certificate that one of these signed; "": none is asked for
	Insecure bool     // allow plain HTTP beyond loopback
	Tokens   string   // token file; "": everybody who can connect reads all
	Hosts    []string // names by which the API is asked; nil: on loopback its own, elsewhere any
}

// KeyConfig names the signing key and whom to trust.
type KeyConfig struct {
	SigningKey     string // file: 32-byte seed in hex, or an OpenSSH Ed25519 private key
	PassphraseFile string // of an encrypted OpenSSH key
	// AskPassphrase is asked for it where there is no such file; nil: nobody can be.
	AskPassphrase openssh.Passphrase
	SeedHex       string // from PLASM_EVIDENCE_SIGNING_KEY; never logged
	AgentKey      string // ssh-agent key fingerprint, SHA256:…
	Trusted       []string
	TrustedEnv    *string // PLASM_EVIDENCE_TRUSTED_PUBLIC_KEYS; nil: unset
	TrustFile     string
	AllowUnsigned bool // serve unsigned evidence although keys are trusted
}

const (
	defaultNATSListen = "127.0.0.1:4222"
	defaultHTTPListen = "127.0.0.1:8477"
	httpOff           = "off"
)

// SettingError is a value, or a combination of values, that a daemon does not
// start with. Settings names what to change, as flags are named.
type SettingError struct {
	Settings []string
	Err      error // one sentence with the remedy, without secrets
}

// Error gives the problem.
func (e *SettingError) Error() string { return e.Err.Error() }
func (e *SettingError) Unwrap() error { return e.Err }

func unsettled(settings string, format string, args ...any) error {
	return &SettingError{strings.Fields(settings), fmt.Errorf(format, args...)}
}

// Validate fills defaults in and refuses clashes, each error naming the
// setting to change.
func (c *Config) Validate() error {
	if c.DataDir == "" {
		return unsettled("data-dir", "data-dir is empty: name a directory for the database")
	}
	if c.Logger == nil {
		return errors.New("logger is missing")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.after == nil {
		c.after = time.After
	}
	if c.statDisk == nil {
		c.statDisk = statDisk
	}
	if c.CheckEvery == 0 {
		c.CheckEvery = DefaultCheckEvery
	}
	return errors.Join(c.validateArtifacts(), c.NATS.validate(), c.Intake.validate(), c.HTTP.validate(), c.Keys.validate())
}

func (n *NATSConfig) validate() error {
	switch {
	case n.URL != "" && n.Listen != "":
		return unsettled("nats-url nats-listen", "nats-url and nats-listen exclude each other: an external broker or one inside")
	case n.URL == "" && (n.Creds != "" || n.CA != "" || n.Cert != "" || n.Key != "" || n.User != "" || n.Password != ""):
		return unsettled("nats-creds nats-user nats-password nats-ca nats-cert nats-key",
			"nats-creds, nats-user, nats-password, nats-ca, nats-cert and nats-key need nats-url: the server inside has no use for them")
	case n.URL != "" && (n.SyncAlways || n.Insecure):
		return unsettled("nats-sync-always nats-insecure", "nats-sync-always and nats-insecure are for the server inside: leave them out, or nats-url")
	case (n.Cert == "") != (n.Key == ""):
		return unsettled("nats-cert nats-key", "nats-cert and nats-key go together: give both or neither")
	case (n.User == "") != (n.Password == ""):
		return unsettled("nats-user nats-password", "nats-user and nats-password go together: give both or neither")
	case n.namesUser() && (n.User != "" || n.Creds != ""):
		return unsettled("nats-url nats-user nats-creds", "nats-url names a user, and so do nats-user or nats-creds: log in one way")
	case n.User != "" && n.Creds != "":
		return unsettled("nats-user nats-creds", "nats-user and nats-creds exclude each other: log in one way")
	case n.Replicas < 0 || n.Replicas > 5:
		return unsettled("nats-replicas", "nats-replicas is %d: 1 to 5", n.Replicas)
	case n.URL == "" && n.Replicas > 1:
		return unsettled("nats-replicas", "nats-replicas is %d, and the server inside is one alone: use a cluster (nats-url), or 1", n.Replicas)
	}
	n.Replicas = max(n.Replicas, 1)
	if n.URL != "" {
		return n.validateURL()
	}
	n.Listen = cmp.Or(n.Listen, defaultNATSListen)
	if err := checkListen("nats-listen", n.Listen, -1, "host:port, such as "+defaultNATSListen); err != nil {
		return err
	}
	if !n.Insecure && !loopback(n.Listen) {
		return unsettled("nats-listen", "nats-listen %s is reachable from other machines, and the NATS server inside asks nobody for a password: "+
			"use an external one (nats-url), or say nats-insecure", n.Listen)
	}
	return nil
}

// validateURL looks at each of the addresses; none is repeated in the error,
// since it may hold a password.
func (n *NATSConfig) validateURL() error {
	for text := range strings.SplitSeq(n.URL, ",") {
		text = strings.TrimSpace(text)
		if !strings.Contains(text, "://") {
			text = "nats://" + text
		}
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) || u.Port() != "" && !isPort(u.Port(), 1) {
			return unsettled("nats-url", "nats-url is not an address such as nats://host:4222 or tls://host:4222, or several with commas")
		}
	}
	return nil
}

// namesUser tells whether an address holds who logs in.
func (n *NATSConfig) namesUser() bool {
	for text := range strings.SplitSeq(n.URL, ",") {
		authority, _, _ := strings.Cut(text[strings.Index(text, "://")+1:], "?")
		if strings.Contains(authority, "@") {
			return true
		}
	}
	return false
}

// checkListen refuses what cannot be listened on; ports begin at least.
func checkListen(setting, address string, least int, expected string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return unsettled(setting, "%s is not %s", setting, expected)
	}
	if !isPort(port, least) {
		return unsettled(setting, "%s has no port from 0 to 65535 behind the colon", setting)
	}
	return nil
}

func isPort(text string, least int) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= least && n <= 65535
}

func (i *IntakeConfig) validate() error {
	const least, most = 1 << 10, 8 << 20
	if i.MaxEventBytes == 0 {
		i.MaxEventBytes = 1 << 20
	}
	switch {
	case i.MaxEventBytes < least || i.MaxEventBytes > most:
		return unsettled("max-event-bytes", "max-event-bytes is %d: %d to %d", i.MaxEventBytes, least, most)
	case i.BatchEvents < 0 || i.BatchEvents > 1<<16:
		return unsettled("batch-events", "batch-events is %d: 1 to %d, or 0 for the program's choice", i.BatchEvents, 1<<16)
	case i.BatchWait < 0 || i.BatchWait > time.Minute:
		return unsettled("batch-wait", "batch-wait is %s: up to 1m, or 0s for the program's choice", i.BatchWait)
	}
	return nil
}

func (h *HTTPConfig) validate() error {
	h.Listen = cmp.Or(h.Listen, defaultHTTPListen)
	if strings.HasPrefix(filepath.Base(h.Tokens), tokenPrefix) && len(h.Tokens) > tokenBytes {
		return unsettled("http-tokens", "http-tokens holds a token: name the file that holds its digest")
	}
	if (h.Cert == "") != (h.Key == "") {
		return unsettled("http-cert http-key", "http-cert and http-key go together: give both or neither")
	}
	if h.ClientCA != "" && h.Cert == "" {
		return unsettled("http-client-ca", "http-client-ca needs http-cert and http-key: certificates are shown over TLS only")
	}
	if h.Listen == httpOff {
		return nil
	}
	if err := checkListen("http-listen", h.Listen, 0, "host:port, such as "+defaultHTTPListen+", and not off"); err != nil {
		return err
	}
	for _, name := range h.Hosts {
		if name == "" || strings.ContainsAny(name, "/: ") {
			return unsettled("http-hosts", "http-hosts holds what is no host name: give names alone, without scheme and port")
		}
	}
	if h.Cert != "" || h.Insecure || loopback(h.Listen) {
		return nil
	}
	return unsettled("http-listen", "http-listen %s is reachable from other machines: give http-cert and http-key, or say insecure-http", h.Listen)
}

// loopback tells whether only this machine reaches the address.
func loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// hosts are the names that a request may ask for. On loopback only the
// loopback's own: a page from elsewhere whose name was made to point here must
// not read evidence through somebody's browser. Elsewhere those of the
// configuration, or any name: a proxy in front decides.
func (h *HTTPConfig) hosts() []string {
	if h.Hosts != nil {
		return h.Hosts
	}
	if loopback(h.Listen) {
		return []string{}
	}
	return nil
}

func (k *KeyConfig) validate() error {
	n := 0
	for _, s := range []string{k.SigningKey, k.SeedHex, k.AgentKey} {
		if s != "" {
			n++
		}
	}
	if n > 1 {
		return unsettled("signing-key signing-agent", "signing-key, signing-agent and PLASM_EVIDENCE_SIGNING_KEY exclude each other: one key signs")
	}
	if _, err := keys.ParseSeed(k.SigningKey); err == nil {
		return unsettled("signing-key", "signing-key holds a key: name the file that holds it")
	}
	if k.PassphraseFile != "" && k.SigningKey == "" {
		return unsettled("signing-key-passphrase", "signing-key-passphrase needs signing-key: it opens that file")
	}
	if k.AllowUnsigned && len(k.Trusted) == 0 && k.TrustedEnv == nil && k.TrustFile == "" {
		return unsettled("allow-unsigned", "allow-unsigned needs a list of trusted keys: without one unsigned evidence is served anyway")
	}
	if _, err := keys.ParseFlags(k.Trusted); err != nil {
		var bad *keys.EntryError
		if errors.As(err, &bad) {
			return unsettled("trusted-pubkey", "trusted-pubkey: entry %d: %w", bad.Position, bad.Err)
		}
		return unsettled("trusted-pubkey", "trusted-pubkey: %w", err)
	}
	return nil
}
