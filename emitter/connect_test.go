package emitter

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// selfSigned makes a certificate for 127.0.0.1, as PEM files and ready to serve.
func selfSigned(t *testing.T) (certFile, keyFile string, pair tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if pair, err = tls.LoadX509KeyPair(certFile, keyFile); err != nil {
		t.Fatal(err)
	}
	return certFile, keyFile, pair
}

func TestConnectOverTLS(t *testing.T) {
	t.Parallel()
	serverCert, _, serverPair := selfSigned(t)
	clientCert, clientKey, _ := selfSigned(t)
	clients := x509.NewCertPool()
	text, err := os.ReadFile(clientCert)
	if err != nil || !clients.AppendCertsFromPEM(text) {
		t.Fatal(err)
	}
	b := newBroker(t, func(o *server.Options) {
		o.JetStream = false
		o.TLS, o.TLSVerify = true, true
		o.TLSConfig = &tls.Config{Certificates: []tls.Certificate{serverPair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
	})
	good := ConnConfig{URL: b.srv.ClientURL(), CAFile: serverCert, CertFile: clientCert, KeyFile: clientKey, InboxPrefix: "_INBOX_acme"}
	nc, err := Connect(good)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nc.TLSConnectionState(); err != nil {
		t.Errorf("no TLS: %v", err)
	}
	if got := nc.NewRespInbox(); got[:12] != "_INBOX_acme." {
		t.Errorf("inbox %s", got)
	}
	nc.Close()
	for name, change := range map[string]func(*ConnConfig){
		"no client certificate": func(c *ConnConfig) { c.CertFile, c.KeyFile = "", "" },
		"unknown server":        func(c *ConnConfig) { c.CAFile = clientCert },
		"system's roots":        func(c *ConnConfig) { c.CAFile = "" },
		"foreign key":           func(c *ConnConfig) { c.CertFile = serverCert },
	} {
		bad := good
		change(&bad)
		if nc, err := Connect(bad); err == nil {
			nc.Close()
			t.Errorf("%s: connected", name)
		}
	}
}
