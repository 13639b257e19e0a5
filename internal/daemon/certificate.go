package daemon

import (
	"crypto/tls"
	"fmt"
	"sync/atomic"
)

// certificate is what HTTP over TLS shows. It may be exchanged while the daemon
// runs; connections that stand keep the one before.
type certificate struct {
	cert, key string // PEM files; "": plain HTTP
	current   atomic.Pointer[tls.Certificate]
}

func (c *certificate) load() error {
	if c.cert == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("read certificate %s with key %s: %w", c.cert, c.key, err)
	}
	c.current.Store(&pair)
	return nil
}

func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current.Load(), nil },
	}
}
