package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/chaind/chaind/internal/daemon"
)

// envToken holds a bearer token itself; there is no flag for it, since other
// users of the machine see flags.
const envToken = "CHAIND_TOKEN"

const (
	// maxAnswer bounds what the client side reads of a daemon's answer, in bytes.
	maxAnswer = 16 << 20
	// maxToken bounds a token file, in bytes.
	maxToken = 4 << 10
)

// clientFlags say how a command shows itself to a running daemon, and how it
// knows the daemon.
type clientFlags struct {
	TokenFile string `help:"File that holds the bearer token; CHAIND_TOKEN may hold the token itself." env:"CHAIND_TOKEN_FILE" placeholder:"FILE"`
	CA        string `name:"ca" help:"PEM file that the daemon's certificate must chain to." env:"CHAIND_CA" placeholder:"FILE"`
	Cert      string `name:"cert" help:"Certificate to show to the daemon (PEM), with --key." env:"CHAIND_CERT" placeholder:"FILE"`
	Key       string `name:"key" help:"Key of the certificate (PEM)." env:"CHAIND_KEY" placeholder:"FILE"`
}

// get fetches a page of the daemon's API.
func (c *clientFlags) get(a *app, url string, timeout time.Duration) (status int, body []byte, err error) {
	return c.getUpTo(a, url, timeout, maxAnswer)
}

// getUpTo fetches what has at most limit bytes.
func (c *clientFlags) getUpTo(a *app, url string, timeout time.Duration, limit int64) (status int, body []byte, err error) {
	transport, err := c.transport(a)
	if err != nil {
		return 0, nil, err
	}
	defer transport.CloseIdleConnections()
	client := http.Client{Timeout: timeout, Transport: transport}
	req, err := http.NewRequestWithContext(a.ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	token, err := c.token(a)
	if err != nil {
		return 0, nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	body, err = io.ReadAll(io.LimitReader(res.Body, limit+1))
	if err != nil {
		return 0, nil, err
	}
	if int64(len(body)) > limit {
		return 0, nil, fmt.Errorf("answer of %s is larger than %d bytes", url, limit)
	}
	return res.StatusCode, body, nil
}

func (c *clientFlags) transport(a *app) (*http.Transport, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if c.CA == "" && c.Cert == "" && c.Key == "" {
		return transport, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		pem, err := readBounded(a, c.CA, maxArtifact)
		if err != nil {
			return nil, fmt.Errorf("read CA: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read CA: no certificate in %s", c.CA)
		}
	}
	if c.Cert != "" || c.Key != "" {
		pair, err := await(a.ctx, func() (tls.Certificate, error) { return tls.LoadX509KeyPair(c.Cert, c.Key) })
		if err != nil {
			return nil, fmt.Errorf("read certificate %q with key %q: %w", c.Cert, c.Key, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	transport.TLSClientConfig = config
	return transport, nil
}

// token gives what the file holds, else the environment, else nothing.
func (c *clientFlags) token(a *app) (string, error) {
	if c.TokenFile == "" {
		return os.Getenv(envToken), nil
	}
	text, err := readBounded(a, c.TokenFile, maxToken)
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	if daemon.Readable(c.TokenFile) {
		a.warn(fmt.Sprintf("everybody on this machine can read the token in %s: chmod 600", c.TokenFile))
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsAny(token, " \n\r\t") {
		return "", fmt.Errorf("read token: %s does not hold one token and nothing else", c.TokenFile)
	}
	return token, nil
}
