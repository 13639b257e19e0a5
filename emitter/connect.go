package emitter

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats.go"
)

// ConnConfig says how to reach the broker.
type ConnConfig struct {
	URL  string // one or more nats:// or tls:// addresses, comma-separated
	Name string // shown in the broker's listings; "": "chaind"

	CredsFile string // NATS credentials; "": none
	User      string // with Password, instead of credentials; "": none, or those of the URL
	Password  string
	CAFile    string // PEM roots; "": the system's
	CertFile  string // PEM client certificate, with KeyFile; "": none
	KeyFile   string

	// InboxPrefix replaces "_INBOX", so that a tenant's permissions can name its own replies.
	InboxPrefix string
	// RetryFirst makes [Connect] return before the first connection stands; it is then tried for ever.
	RetryFirst bool
	// Logger gets disconnects, reconnects and refused permissions; nil: nothing is logged.
	Logger *slog.Logger
}

// Connect opens a connection that reconnects for ever. It fails when a named
// file cannot be used or, unless cfg.RetryFirst is set, when no broker answers;
// the error matches [ErrLogin] when one does and does not let us in.
func Connect(cfg ConnConfig) (*nats.Conn, error) {
	opts, err := cfg.Options()
	if err != nil {
		return nil, err
	}
	nc, err := nats.Connect(cfg.URL, opts...)
	if errors.Is(err, nats.ErrAuthorization) {
		return nil, fmt.Errorf("connect to broker: %w: %w", ErrLogin, err)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to broker: %w", err)
	}
	return nc, nil
}

// Options are the client options that [Connect] uses, for callers that add
// their own (an in-process server, for one).
func (cfg ConnConfig) Options() ([]nats.Option, error) {
	name := cfg.Name
	if name == "" {
		name = "chaind"
	}
	opts := []nats.Option{
		nats.Name(name),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectJitter(250*time.Millisecond, 500*time.Millisecond),
		nats.RetryOnFailedConnect(cfg.RetryFirst),
	}
	if cfg.InboxPrefix != "" {
		opts = append(opts, nats.CustomInboxPrefix(cfg.InboxPrefix))
	}
	if cfg.CredsFile != "" {
		if _, err := os.Stat(cfg.CredsFile); err != nil {
			return nil, fmt.Errorf("read credentials: %w", err)
		}
		opts = append(opts, nats.UserCredentials(cfg.CredsFile))
	}
	if cfg.User != "" {
		opts = append(opts, nats.UserInfo(cfg.User, cfg.Password))
	}
	if cfg.CAFile != "" || cfg.CertFile != "" || cfg.KeyFile != "" {
		conf, err := cfg.tls()
		if err != nil {
			return nil, err
		}
		opts = append(opts, nats.Secure(conf))
	}
	return append(opts, logHandlers(cfg.Logger)...), nil
}

func (cfg ConnConfig) tls() (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.CAFile != "" {
		pem, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read broker CA: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read broker CA: no certificate in %s", cfg.CAFile)
		}
	}
	if cfg.CertFile != "" || cfg.KeyFile != "" {
		cert, err := tls.LoadX509KeyPair(cfg.CertFile, cfg.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read client certificate: %w", err)
		}
		conf.Certificates = []tls.Certificate{cert}
	}
	return conf, nil
}

// logHandlers make trouble visible that no call returns: a denied publish is
// answered by nothing at all, the refusal reaches only the error handler.
func logHandlers(log *slog.Logger) []nats.Option {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return []nats.Option{
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			level := slog.LevelWarn
			if errors.Is(err, nats.ErrPermissionViolation) {
				level = slog.LevelError
			}
			log.Log(context.Background(), level, "broker error", "subject", subject, "err", err)
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("broker connection lost", "err", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			log.Info("broker connection restored", "server", nc.ConnectedUrlRedacted())
		}),
	}
}
