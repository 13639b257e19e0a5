package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/internal/daemon"
)

// authority is a certificate authority for one test.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // its certificate
	n    int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.key = a.newKey()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.file = a.write("ca.pem", "CERTIFICATE", der)
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

func (a *authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// issue makes a certificate for 127.0.0.1 and returns the two files.
func (a *authority) issue(name string) (cert, key string) {
	a.t.Helper()
	a.n++
	own := a.newKey()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1 + a.n), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, a.cert, own.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.write(name+".pem", "CERTIFICATE", der), a.write(name+".key", "PRIVATE KEY", raw)
}

func (a *authority) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// mutualNATS is configs/nats.conf with the TLS block that it shows commented.
func mutualNATS(t *testing.T, a *authority) *natsserver.Server {
	t.Helper()
	cert, key := a.issue("nats")
	text := strings.NewReplacer("# tls {", "tls {", "#   cert_file", "  cert_file", "#   key_file", "  key_file", "#   ca_file", "  ca_file",
		"#   verify", "  verify", "# }", "}", "/etc/nats/tls/server.pem", cert, "/etc/nats/tls/server.key", key, "/etc/nats/tls/ca.pem", a.file,
	).Replace(readHouse(t, "configs/nats.conf"))
	dir := t.TempDir()
	for name, content := range map[string]string{"nats.conf": text, "tenants.conf": readHouse(t, "configs/tenants.conf")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	options := natsOptionsFile(t, filepath.Join(dir, "nats.conf"))
	if options.TLSConfig == nil || options.TLSConfig.ClientAuth != tls.RequireAndVerifyClientCert {
		t.Fatal("the TLS block of configs/nats.conf does not ask clients for certificates")
	}
	return startNATS(t, options)
}

// TestMutualTLSToNATS connects daemon and runtime with certificates, and shows
// that none, or one of another authority, is not enough.
func TestMutualTLSToNATS(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	srv := mutualNATS(t, a)
	address := strings.Replace(srv.ClientURL(), "nats://", "tls://", 1)
	daemonCert, daemonKey := a.issue("chaind")
	strangeCert, strangeKey := stranger.issue("chaind")
	good := daemon.NATSConfig{URL: address, User: "chaind", Password: natsDaemonPassword, CA: a.file, Cert: daemonCert, Key: daemonKey}
	for name, change := range map[string]func(*daemon.NATSConfig){
		"no client certificate":         func(n *daemon.NATSConfig) { n.Cert, n.Key = "", "" },
		"of another authority":          func(n *daemon.NATSConfig) { n.Cert, n.Key = strangeCert, strangeKey },
		"server of another authority":   func(n *daemon.NATSConfig) { n.CA = stranger.file },
		"server of no known authority":  func(n *daemon.NATSConfig) { n.CA = "" },
		"wrong password all the same":   func(n *daemon.NATSConfig) { n.Password = "wrong" },
		"certificate that is not there": func(n *daemon.NATSConfig) { n.Cert = "/no/such.pem" },
	} {
		bad := good
		change(&bad)
		err := daemon.Run(t.Context(), daemon.Config{DataDir: t.TempDir(), NATS: bad, HTTP: daemon.HTTPConfig{Listen: "off"},
			Logger: slog.New(slog.DiscardHandler)}, func(daemon.Info) { t.Errorf("%s: started", name) })
		if err == nil || strings.Contains(err.Error(), natsDaemonPassword) {
			t.Errorf("%s: %v", name, err)
		}
	}
	startDaemon(t, daemon.Config{NATS: good, HTTP: daemon.HTTPConfig{Listen: "off"}})
	cert, key := a.issue("acme-runtime")
	conn, err := emitter.Connect(emitter.ConnConfig{URL: address, User: "acme", Password: natsAcmePassword, InboxPrefix: "_INBOX_acme",
		CAFile: a.file, CertFile: cert, KeyFile: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	publishRun(t, conn, "over-tls")
}

// tokenFile makes a file with one token, for some tenants or for all.
func tokenFile(t *testing.T, tenants ...string) (file, secret string) {
	t.Helper()
	secret, entry, err := daemon.NewToken(tenants, "")
	file = filepath.Join(t.TempDir(), "tokens.yaml")
	if err == nil {
		err = daemon.AddToken(file, entry)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file, secret
}

// TestTLSOverHTTP serves over TLS beyond loopback's rules, exchanges the
// certificate at a reload, keeps it when the new one is broken, and lets the
// command line ask with a CA and a token.
func TestTLSOverHTTP(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	cert, key := a.issue("first")
	tokens, secret := tokenFile(t)
	reload := make(chan struct{})
	info := startDaemon(t, daemon.Config{Reload: reload, NATS: daemon.NATSConfig{Listen: "127.0.0.1:-1"},
		HTTP: daemon.HTTPConfig{Listen: "127.0.0.1:0", Cert: cert, Key: key, Tokens: tokens}})
	if !strings.HasPrefix(info.HTTPURL, "https://") {
		t.Fatalf("address %s", info.HTTPURL)
	}
	shown := func() string {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(info.HTTPURL, "https://"), &tls.Config{RootCAs: a.roots(), MinVersion: tls.VersionTLS12})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	if got := shown(); got != "first" {
		t.Errorf("certificate %s", got)
	}
	second, secondKey := a.issue("second")
	copyFile(t, second, cert)
	copyFile(t, secondKey, key)
	reload <- struct{}{}
	reload <- struct{}{} // taken when the first one is done
	if got := shown(); got != "second" {
		t.Errorf("after the reload: certificate %s", got)
	}
	if err := os.WriteFile(key, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	reload <- struct{}{}
	reload <- struct{}{}
	if got := shown(); got != "second" {
		t.Errorf("after a broken reload: certificate %s", got)
	}

	if err := os.WriteFile(tokens+".secret", []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"health", "--ready", "--url", info.HTTPURL, "--ca", a.file}, exitCannot, `"cause":"certificate"`},
		{[]string{"runs", "--url", info.HTTPURL, "--ca", a.file, "--token-file", tokens + ".secret"}, exitOK, "TENANT"},
		{[]string{"runs", "--url", info.HTTPURL, "--ca", a.file}, exitCannot, "bearer token"},
		{[]string{"runs", "--url", info.HTTPURL, "--token-file", tokens + ".secret"}, exitCannot, "certificate"},
	} {
		var out bytes.Buffer
		if code := run(t.Context(), c.args, strings.NewReader(""), &out, &out); code != c.code || !strings.Contains(out.String(), c.want) {
			t.Errorf("%v: exit %d\n%s", c.args, code, out.String())
		}
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.roots(), MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, info.HTTPURL+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := client.Do(req); err == nil {
		res.Body.Close()
		t.Error("TLS 1.1 is spoken")
	}
}

// TestClientCertificatesOverHTTP asks readers for certificates of an authority:
// none, and a stranger's, read nothing; a good one still needs its
// token. A reload exchanges the authority, and a broken one changes nothing.
func TestClientCertificatesOverHTTP(t *testing.T) {
	t.Parallel()
	servers, readers, strangers := newAuthority(t), newAuthority(t), newAuthority(t)
	cert, key := servers.issue("server")
	authorities := filepath.Join(t.TempDir(), "clients.pem")
	copyFile(t, readers.file, authorities)
	tokens, secret := tokenFile(t, "acme")
	reload := make(chan struct{})
	info := startDaemon(t, daemon.Config{Reload: reload, NATS: daemon.NATSConfig{Listen: "127.0.0.1:-1"},
		HTTP: daemon.HTTPConfig{Listen: "127.0.0.1:0", Cert: cert, Key: key, ClientCA: authorities, Tokens: tokens}})
	status := func(path, token string, shown *authority) int {
		conf := &tls.Config{RootCAs: servers.roots(), MinVersion: tls.VersionTLS12}
		if shown != nil {
			certFile, keyFile := shown.issue("reader")
			pair, err := tls.LoadX509KeyPair(certFile, keyFile)
			if err != nil {
				t.Fatal(err)
			}
			conf.Certificates = []tls.Certificate{pair}
		}
		client := http.Client{Transport: &http.Transport{TLSClientConfig: conf, ForceAttemptHTTP2: true}}
		defer client.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, info.HTTPURL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := client.Do(req)
		if err != nil {
			return 0
		}
		defer res.Body.Close()
		return res.StatusCode
	}
	expect := func(when string, accepted, refused *authority) {
		t.Helper()
		for _, c := range []struct {
			name, path, token string
			shown             *authority
			want              int
		}{
			{"none", "/healthz", "", nil, 0},
			{"none, with a token", "/v1/chains", secret, nil, 0},
			{"another authority's", "/v1/chains", secret, refused, 0},
			{"the servers' authority's", "/v1/chains", secret, servers, 0},
			{"a good one", "/healthz", "", accepted, http.StatusOK},
			{"a good one without a token", "/v1/chains", "", accepted, http.StatusUnauthorized},
			{"a good one with a token", "/v1/chains", secret, accepted, http.StatusOK},
			{"a good one, for another tenant", "/v1/chains?tenant=other", secret, accepted, http.StatusNotFound},
		} {
			if got := status(c.path, c.token, c.shown); got != c.want {
				t.Errorf("%s, %s: status %d, want %d", when, c.name, got, c.want)
			}
		}
	}
	expect("at the start", readers, strangers)
	ownCert, ownKey := readers.issue("command")
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"health", "--url", info.HTTPURL, "--ca", servers.file}, exitCannot},
		{[]string{"health", "--url", info.HTTPURL, "--ca", servers.file, "--cert", ownCert, "--key", ownKey}, exitOK},
		{[]string{"health", "--url", info.HTTPURL, "--ca", servers.file, "--cert", ownCert}, exitCannot},
	} {
		var out bytes.Buffer
		if code := run(t.Context(), c.args, strings.NewReader(""), &out, &out); code != c.code {
			t.Errorf("%v: exit %d\n%s", c.args, code, out.String())
		}
	}
	copyFile(t, strangers.file, authorities)
	reload <- struct{}{}
	reload <- struct{}{} // taken when the first one is done
	expect("after the reload", strangers, readers)
	if err := os.WriteFile(authorities, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	reload <- struct{}{}
	reload <- struct{}{}
	expect("after a broken reload", strangers, readers)
	if got := status("/readyz", "", strangers); got != http.StatusServiceUnavailable {
		t.Errorf("/readyz after a broken reload: %d", got)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
