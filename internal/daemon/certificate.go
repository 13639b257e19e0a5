package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync/atomic"
)

// maxCertificates bounds the file of the clients' authorities, in bytes.
const maxCertificates = 1 << 20

// certificate is what HTTP over TLS shows, and which clients it lets in. Both may
// be exchanged while the daemon runs; connections that stand keep the ones before.
type certificate struct {
	cert, key string // PEM files; "": plain HTTP
	clients   string // PEM file of authorities; "": clients show no certificate
	current   atomic.Pointer[tls.Config]
}

func (c *certificate) load() error {
	if c.cert == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("read certificate %s with key %s: %w", c.cert, c.key, err)
	}
	config := c.base()
	config.Certificates = []tls.Certificate{pair}
	if c.clients != "" {
		if config.ClientCAs, err = readAuthorities(c.clients); err != nil {
			return err
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
		config.SessionTicketsDisabled = true // a resumed session would carry a certificate past a reload
	}
	c.current.Store(config)
	return nil
}

func readAuthorities(path string) (*x509.CertPool, error) {
	text, err := readBounded(path, maxCertificates)
	if err != nil {
		return nil, fmt.Errorf("read authorities of clients: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read authorities of clients: no certificate in %s", path)
	}
	return pool, nil
}

// base speaks TLS 1.2, for old readers, and 1.3.
func (c *certificate) base() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
}

// config asks for what holds at each handshake.
func (c *certificate) config() *tls.Config {
	config := c.base()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current.Load(), nil }
	// http.Server wants a certificate, or a function, before it listens.
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &c.current.Load().Certificates[0], nil }
	return config
}
