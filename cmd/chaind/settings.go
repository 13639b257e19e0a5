package main

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/chaind/chaind/internal/daemon"
	"github.com/chaind/chaind/keys/openssh"
)

// settingsGroup marks the flags that are also keys of the configuration file.
const settingsGroup = "settings"

// logLevels are the values of log-level.
var logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// Environment variables of the reference that the daemon honours.
const (
	envSigningKey  = "PLASM_EVIDENCE_SIGNING_KEY"
	envTrustedKeys = "PLASM_EVIDENCE_TRUSTED_PUBLIC_KEYS"
	envIntake      = "PLASM_EVIDENCE_CHAIN"
)

// settings are the daemon's flags. Each is also an environment variable and a
// key of the configuration file (nested at the dashes).
type settings struct {
	Config string `help:"YAML file with settings; flags and environment go before it." type:"path" env:"CHAIND_CONFIG" placeholder:"FILE"`

	DataDir      string `help:"Database and embedded broker." default:"chaind-data" env:"CHAIND_DATA_DIR" group:"settings" placeholder:"DIR"`
	ArtifactsDir string `help:"Root of the evidence files (default: artifacts in the data directory)." env:"PLASM_RUN_ARTIFACTS_DIR" group:"settings" placeholder:"DIR"`
	Artifacts    string `help:"Where evidence files are kept: directory, nats-object-store:BUCKET (a bucket of the NATS server), or memory." default:"directory" env:"CHAIND_ARTIFACTS" group:"settings" placeholder:"STORE"`

	ArtifactsRetention  *int `name:"artifacts-retention-secs" help:"Delete run snapshots of this age, in seconds (60 or more); evidence and what others wrote stays. Unset: never." env:"PLASM_RUN_ARTIFACTS_RETENTION_SECS" group:"settings" placeholder:"SECS"`
	ArtifactsGCInterval int  `name:"artifacts-gc-interval-secs" help:"Seconds between two looks for such snapshots (60 or more)." default:"300" env:"PLASM_RUN_ARTIFACTS_GC_INTERVAL_SECS" group:"settings" placeholder:"SECS"`
	TakeOverArtifacts   bool `help:"Take over evidence files that belong to another database, after a restore or a replay. Say it once, when that other daemon has ended for good."`

	NATSURL         string `name:"nats-url" aliases:"nats" help:"Use this NATS server instead of the one inside." env:"CHAIND_NATS_URL" group:"settings" placeholder:"URL"`
	NATSCreds       string `name:"nats-creds" help:"Credentials file for --nats-url." env:"CHAIND_NATS_CREDS" group:"settings" placeholder:"FILE"`
	NATSUser        string `name:"nats-user" help:"User for --nats-url." env:"CHAIND_NATS_USER" group:"settings" placeholder:"NAME"`
	NATSPassword    string `name:"nats-password" help:"Password for --nats-url; prefer the environment variable." env:"CHAIND_NATS_PASSWORD" group:"settings" placeholder:"TEXT"`
	NATSCA          string `name:"nats-ca" help:"PEM file that the NATS server's certificate must chain to." env:"CHAIND_NATS_CA" group:"settings" placeholder:"FILE"`
	NATSCert        string `name:"nats-cert" help:"Client certificate for NATS (PEM)." env:"CHAIND_NATS_CERT" group:"settings" placeholder:"FILE"`
	NATSKey         string `name:"nats-key" help:"Key of the client certificate (PEM)." env:"CHAIND_NATS_KEY" group:"settings" placeholder:"FILE"`
	NATSInboxPrefix string `name:"nats-inbox-prefix" help:"Prefix of reply subjects, where the NATS server's permissions ask for one." env:"CHAIND_NATS_INBOX_PREFIX" group:"settings" placeholder:"SUBJECT"`
	NATSListen      string `name:"nats-listen" help:"Address of the NATS server inside (default 127.0.0.1:4222)." env:"CHAIND_NATS_LISTEN" group:"settings" placeholder:"HOST:PORT"`
	NATSSyncAlways  bool   `name:"nats-sync-always" help:"The NATS server inside fsyncs each message before it acks: slower, but a publisher's ack then means durable." env:"CHAIND_NATS_SYNC_ALWAYS" group:"settings"`
	NATSInsecure    bool   `name:"nats-insecure" help:"Allow the NATS server inside, which asks nobody for a password, on an address that other machines reach." env:"CHAIND_NATS_INSECURE" group:"settings"`
	NATSReplicas    int    `name:"nats-replicas" help:"Replicas of the streams that are created." default:"1" env:"CHAIND_NATS_REPLICAS" group:"settings"`

	MaxEventBytes int           `help:"Larger events are rejected." default:"1048576" env:"CHAIND_MAX_EVENT_BYTES" group:"settings"`
	BatchEvents   int           `help:"Most events in one durable transaction (0: chosen by measurement)." default:"0" env:"CHAIND_BATCH_EVENTS" group:"settings"`
	BatchWait     time.Duration `help:"How long a batch may wait to fill (0: chosen by measurement)." default:"0s" env:"CHAIND_BATCH_WAIT" group:"settings"`

	HTTPListen   string `name:"http-listen" help:"Address of the read API, or off." default:"127.0.0.1:8477" env:"CHAIND_HTTP_LISTEN" group:"settings" placeholder:"HOST:PORT"`
	HTTPCert     string `name:"http-cert" help:"TLS certificate of the read API (PEM)." env:"CHAIND_HTTP_CERT" group:"settings" placeholder:"FILE"`
	HTTPKey      string `name:"http-key" help:"Key of the TLS certificate (PEM)." env:"CHAIND_HTTP_KEY" group:"settings" placeholder:"FILE"`
	HTTPClientCA string `name:"http-client-ca" help:"Ask readers for a certificate that one of these authorities (PEM) signed, besides a token where there is a token file." env:"CHAIND_HTTP_CLIENT_CA" group:"settings" placeholder:"FILE"`
	InsecureHTTP bool   `name:"insecure-http" help:"Allow plain HTTP on an address that other machines reach." env:"CHAIND_INSECURE_HTTP" group:"settings"`

	HTTPTokens string   `name:"http-tokens" help:"Ask readers for a bearer token: YAML list of digests with tenants, as chaind token makes it." env:"CHAIND_HTTP_TOKENS" group:"settings" placeholder:"FILE"`
	HTTPHosts  []string `name:"http-hosts" help:"Names by which the read API is asked, besides addresses and localhost (default: on a loopback address none, elsewhere any)." env:"CHAIND_HTTP_HOSTS" group:"settings" placeholder:"NAME"`

	SigningKey           string   `help:"Sign evidence with this key file: a 32-byte seed in hex, or an OpenSSH Ed25519 private key." env:"CHAIND_SIGNING_KEY" group:"settings" placeholder:"FILE"`
	SigningKeyPassphrase string   `help:"File that holds the passphrase of --signing-key." env:"CHAIND_SIGNING_KEY_PASSPHRASE_FILE" group:"settings" placeholder:"FILE"`
	SigningAgent         string   `help:"Sign with the ssh-agent's key of this fingerprint." env:"CHAIND_SIGNING_AGENT" group:"settings" placeholder:"SHA256:…"`
	TrustedPubkey        []string `help:"Trust this Ed25519 public key (hex; may be repeated)." group:"settings" placeholder:"HEX"`
	TrustFile            string   `help:"YAML list of keys with public_key, comment and status (active, retired, revoked)." env:"CHAIND_TRUST_FILE" group:"settings" placeholder:"FILE"`
	AllowUnsigned        bool     `help:"Serve unsigned evidence although keys are trusted." env:"CHAIND_ALLOW_UNSIGNED" group:"settings"`

	CheckEvery time.Duration `help:"Time between two checks of everything stored; the first is a minute after the start." default:"24h" env:"CHAIND_CHECK_EVERY" group:"settings"`

	LogLevel  string `help:"debug, info, warn or error." default:"info" enum:"debug,info,warn,error" env:"CHAIND_LOG_LEVEL" group:"settings"`
	LogFormat string `help:"text, json, or auto: text on a terminal." default:"auto" enum:"auto,text,json" env:"CHAIND_LOG_FORMAT" group:"settings"`
}

// leastCheckEvery is as often as anybody may have everything stored read.
const leastCheckEvery = time.Minute

// configuration is what the daemon starts with, or why it does not: as far as
// that can be told without starting it.
func (s *settings) configuration(a *app, ask openssh.Passphrase) (daemon.Config, error) {
	config, err := s.daemonConfig(a)
	if err != nil {
		return daemon.Config{}, err
	}
	config.Keys.AskPassphrase = ask
	if err := errors.Join(s.explicit(), config.Validate()); err != nil {
		return daemon.Config{}, a.misconfigured(err)
	}
	s.warnOfReadable(a, config.Logger)
	return config, nil
}

// warnOfReadable tells of secrets that are in everybody's hands, and that the
// daemon uses all the same: whoever deploys them may not be who wrote them.
func (s *settings) warnOfReadable(a *app, log *slog.Logger) {
	files := map[string]string{"nats-creds": s.NATSCreds, "nats-key": s.NATSKey, "http-key": s.HTTPKey}
	if _, ok := a.file.Has("nats-password"); ok {
		files["nats-password"] = a.file.Path
	}
	for _, setting := range slices.Sorted(maps.Keys(files)) {
		if daemon.Readable(files[setting]) {
			log.Warn("everybody on this machine can read a file with a secret", "setting", setting, "file", files[setting])
		}
	}
}

// explicit refuses what daemon.Config reads as "the default".
func (s *settings) explicit() error {
	switch {
	case s.CheckEvery < leastCheckEvery:
		return &daemon.SettingError{Settings: []string{"check-every"}, Err: fmt.Errorf("check-every is %s: 1m or more", s.CheckEvery)}
	case s.MaxEventBytes == 0:
		return &daemon.SettingError{Settings: []string{"max-event-bytes"}, Err: errors.New("max-event-bytes is 0: 1024 to 8388608")}
	}
	return nil
}

// daemonConfig turns the settings into the daemon's configuration.
func (s *settings) daemonConfig(a *app) (daemon.Config, error) {
	off, err := intakeOff(os.LookupEnv(envIntake))
	if err != nil {
		return daemon.Config{}, err
	}
	return daemon.Config{
		DataDir:      s.DataDir,
		ArtifactsDir: s.ArtifactsDir,
		Artifacts:    s.artifacts(),
		NATS: daemon.NATSConfig{
			URL: s.NATSURL, Creds: s.NATSCreds, User: s.NATSUser, Password: s.NATSPassword,
			CA: s.NATSCA, Cert: s.NATSCert, Key: s.NATSKey, InboxPrefix: s.NATSInboxPrefix,
			Listen: s.NATSListen, SyncAlways: s.NATSSyncAlways, Insecure: s.NATSInsecure, Replicas: s.NATSReplicas,
		},
		Intake: daemon.IntakeConfig{Off: off, MaxEventBytes: s.MaxEventBytes, BatchEvents: s.BatchEvents, BatchWait: s.BatchWait},
		HTTP: daemon.HTTPConfig{
			Listen: s.HTTPListen, Cert: s.HTTPCert, Key: s.HTTPKey, ClientCA: s.HTTPClientCA, Insecure: s.InsecureHTTP, Tokens: s.HTTPTokens, Hosts: s.HTTPHosts,
		},
		Keys: daemon.KeyConfig{
			SigningKey: s.SigningKey, PassphraseFile: s.SigningKeyPassphrase, SeedHex: os.Getenv(envSigningKey), AgentKey: s.SigningAgent,
			Trusted: s.TrustedPubkey, TrustedEnv: lookUp(envTrustedKeys), TrustFile: s.TrustFile, AllowUnsigned: s.AllowUnsigned,
		},
		CheckEvery: s.CheckEvery,
		Version:    versionInfo().Version,
		Logger:     s.logger(a),
		Now:        a.now,
	}, nil
}

func (s *settings) artifacts() daemon.ArtifactsConfig {
	c := daemon.ArtifactsConfig{
		Store: s.Artifacts, TakeOver: s.TakeOverArtifacts, SweepEvery: time.Duration(s.ArtifactsGCInterval) * time.Second,
	}
	if s.ArtifactsRetention != nil {
		age := time.Duration(*s.ArtifactsRetention) * time.Second
		c.Retention = &age
	}
	return c
}

// intakeOff reads PLASM_EVIDENCE_CHAIN. Unlike the reference, where unset means
// off, running the daemon means that events are wanted; a set variable is
// obeyed, and what is neither yes nor no is an error.
func intakeOff(value string, set bool) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "":
		return false, nil
	case "1", "true":
		return false, nil
	case "0", "false":
		return true, nil
	}
	return false, usageError("%s is neither 1 nor 0", envIntake)
}

func lookUp(name string) *string {
	if v, ok := os.LookupEnv(name); ok {
		return &v
	}
	return nil
}

// logger writes to standard error: text for people, JSON for machines. Its
// level may be changed while it is in use.
func (s *settings) logger(a *app) *slog.Logger {
	a.logLevel.Set(logLevels[s.LogLevel])
	options := &slog.HandlerOptions{Level: &a.logLevel}
	if s.LogFormat == "text" || s.LogFormat == "auto" && isTerminal(a.stderr) {
		return slog.New(slog.NewTextHandler(a.stderr, options))
	}
	return slog.New(slog.NewJSONHandler(a.stderr, options))
}
