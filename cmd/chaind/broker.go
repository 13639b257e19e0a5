package main

import (
	"errors"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/internal/daemon"
)

// brokerFlags say how a client command reaches the NATS server.
type brokerFlags struct {
	NATSURL string `name:"nats-url" aliases:"nats" help:"NATS server." default:"nats://127.0.0.1:4222" env:"CHAIND_NATS_URL" placeholder:"URL"`
	brokerAccount
}

// brokerAccount is how a command shows itself to the NATS server at --nats-url,
// and how it knows it.
type brokerAccount struct {
	NATSCreds       string `name:"nats-creds" help:"Credentials file." env:"CHAIND_NATS_CREDS" placeholder:"FILE"`
	NATSUser        string `name:"nats-user" help:"User, where the server asks for a password." env:"CHAIND_NATS_USER" placeholder:"NAME"`
	NATSPassword    string `name:"nats-password" help:"Password; prefer the environment variable." env:"CHAIND_NATS_PASSWORD" placeholder:"TEXT"`
	NATSCA          string `name:"nats-ca" help:"PEM file that the server's certificate must chain to." env:"CHAIND_NATS_CA" placeholder:"FILE"`
	NATSCert        string `name:"nats-cert" help:"Client certificate (PEM)." env:"CHAIND_NATS_CERT" placeholder:"FILE"`
	NATSKey         string `name:"nats-key" help:"Key of the client certificate (PEM)." env:"CHAIND_NATS_KEY" placeholder:"FILE"`
	NATSInboxPrefix string `name:"nats-inbox-prefix" aliases:"inbox-prefix" help:"Prefix of reply subjects, where the server's permissions ask for one." env:"CHAIND_NATS_INBOX_PREFIX" placeholder:"SUBJECT"`
}

func (f *brokerFlags) config() emitter.ConnConfig {
	return emitter.ConnConfig{
		URL: f.NATSURL, Name: "chaind client", CredsFile: f.NATSCreds, CAFile: f.NATSCA, CertFile: f.NATSCert, KeyFile: f.NATSKey,
		User: f.NATSUser, Password: f.NATSPassword, InboxPrefix: f.NATSInboxPrefix,
	}
}

// at is the account at a server that there need not be.
func (f *brokerAccount) at(url string) daemon.NATSConfig {
	return daemon.NATSConfig{URL: url, Creds: f.NATSCreds, User: f.NATSUser, Password: f.NATSPassword,
		CA: f.NATSCA, Cert: f.NATSCert, Key: f.NATSKey, InboxPrefix: f.NATSInboxPrefix}
}

// brokerHint is what to look at when the broker does not answer, or does not let
// us in.
func brokerHint(err error) string {
	if errors.Is(err, emitter.ErrLogin) {
		return "the NATS server does not know this user or password: --nats-user with CHAIND_NATS_PASSWORD, or --nats-creds"
	}
	return "is `chaind serve` running, and is --nats-url the address of its NATS server?"
}
