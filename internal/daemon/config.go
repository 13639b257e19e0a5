package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"time"
)

// Config is everything a daemon needs to know. The zero value of a field means
// the default that its comment names; New validates the whole.
type Config struct {
	DataDir      string // holds chaind.db and the embedded broker's store; required
	ArtifactsDir string // root of the sidecars; "" is DataDir/artifacts

	NATS   NATSConfig
	Intake IntakeConfig
	HTTP   HTTPConfig
	Keys   KeyConfig

	Reload  <-chan struct{}  // a receive reloads signing key, trust list, tokens and log level; nil: never
	Relevel func() error     // takes the log level anew at a reload; nil: it stays
	Version string           // of the program, for metrics
	Logger  *slog.Logger     // required
	Now     func() time.Time // nil: time.Now
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
	Insecure bool     // allow plain HTTP beyond loopback
	Tokens   string   // token file; "": everybody who can connect reads all
	Hosts    []string // names by which the API is asked; nil: on loopback its own, elsewhere any
}

// KeyConfig names the signing key and whom to trust.
type KeyConfig struct {
	SigningKey     string // file: 32-byte seed in hex, or an OpenSSH Ed25519 private key
	PassphraseFile string // of an encrypted OpenSSH key
	SeedHex        string // from PLASM_EVIDENCE_SIGNING_KEY; never logged
	AgentKey       string // ssh-agent key fingerprint, SHA256:…
	Trusted        []string
	TrustedEnv     *string // PLASM_EVIDENCE_TRUSTED_PUBLIC_KEYS; nil: unset
	TrustFile      string
	AllowUnsigned  bool // serve unsigned evidence although keys are trusted
}

const (
	defaultNATSListen = "127.0.0.1:4222"
	defaultHTTPListen = "127.0.0.1:8477"
	httpOff           = "off"
)

// Validate fills defaults in and refuses clashes, each error naming the
// setting to change.
func (c *Config) Validate() error {
	if c.DataDir == "" {
		return errors.New("data-dir is empty")
	}
	if c.Logger == nil {
		return errors.New("logger is missing")
	}
	if c.ArtifactsDir == "" {
		c.ArtifactsDir = filepath.Join(c.DataDir, "artifacts")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return errors.Join(c.NATS.validate(), c.Intake.validate(), c.HTTP.validate(), c.Keys.validate())
}

func (n *NATSConfig) validate() error {
	if n.URL != "" && n.Listen != "" {
		return errors.New("nats-url and nats-listen exclude each other: an external broker or one inside")
	}
	if n.URL == "" && (n.Creds != "" || n.CA != "" || n.Cert != "" || n.User != "") {
		return errors.New("nats-creds, nats-user, nats-ca and nats-cert need nats-url")
	}
	if (n.Cert == "") != (n.Key == "") {
		return errors.New("nats-cert and nats-key go together")
	}
	if n.Replicas == 0 {
		n.Replicas = 1
	}
	if n.Replicas < 1 || n.Replicas > 5 {
		return fmt.Errorf("nats-replicas is %d: 1 to 5", n.Replicas)
	}
	if n.URL == "" && n.Listen == "" {
		n.Listen = defaultNATSListen
	}
	if n.URL == "" && !n.Insecure && !loopback(n.Listen) {
		return fmt.Errorf("nats-listen %s is reachable from other machines, and the NATS server inside asks nobody for a password: use an external one (nats-url), or say nats-insecure", n.Listen)
	}
	return nil
}

func (i *IntakeConfig) validate() error {
	const least, most = 1 << 10, 8 << 20
	if i.MaxEventBytes == 0 {
		i.MaxEventBytes = 1 << 20
	}
	if i.MaxEventBytes < least || i.MaxEventBytes > most {
		return fmt.Errorf("max-event-bytes is %d: %d to %d", i.MaxEventBytes, least, most)
	}
	if i.BatchEvents < 0 || i.BatchEvents > 1<<16 {
		return fmt.Errorf("batch-events is %d: 1 to %d", i.BatchEvents, 1<<16)
	}
	if i.BatchWait < 0 || i.BatchWait > time.Minute {
		return fmt.Errorf("batch-wait is %s: at most 1m", i.BatchWait)
	}
	return nil
}

func (h *HTTPConfig) validate() error {
	if h.Listen == "" {
		h.Listen = defaultHTTPListen
	}
	if (h.Cert == "") != (h.Key == "") {
		return errors.New("http-cert and http-key go together")
	}
	if h.Listen == httpOff || h.Cert != "" || h.Insecure {
		return nil
	}
	if _, _, err := net.SplitHostPort(h.Listen); err != nil {
		return fmt.Errorf("http-listen is not host:port: %w", err)
	}
	if loopback(h.Listen) {
		return nil
	}
	return fmt.Errorf("http-listen %s is reachable from other machines: give http-cert and http-key, or say insecure-http", h.Listen)
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
		return errors.New("signing-key, signing-agent and PLASM_EVIDENCE_SIGNING_KEY exclude each other")
	}
	return nil
}
