package openssh

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/chaind/chaind/keys"
)

func readTestdata(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func fixed(passphrase string) Passphrase {
	return func() ([]byte, error) { return []byte(passphrase), nil }
}

func TestParseFile(t *testing.T) {
	t.Parallel()
	names := strings.Fields(string(readTestdata(t, "fingerprints.txt")))
	for i, name := range []string{"plain", "encrypted"} {
		seed, err := ParseFile(readTestdata(t, name), fixed("correct horse"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		signer, err := seed.Signer()
		if err != nil {
			t.Fatal(err)
		}
		if got := signer.Public().Fingerprint(); got != names[i] {
			t.Errorf("%s: fingerprint %s, ssh-keygen says %s", name, got, names[i])
		}
	}
}

func TestParseFilePKCS8(t *testing.T) {
	t.Parallel()
	seed, err := ParseFile(readTestdata(t, "pkcs8"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := seed.Signer(); err != nil {
		t.Error(err)
	}
}

func TestParseFileRefuses(t *testing.T) {
	t.Parallel()
	cancelled := errors.New("cancelled")
	for name, test := range map[string]struct {
		text       []byte
		passphrase Passphrase
		want       error
	}{
		"no passphrase":    {readTestdata(t, "encrypted"), nil, ErrNoPassphrase},
		"wrong passphrase": {readTestdata(t, "encrypted"), fixed("battery staple"), ErrBadPassphrase},
		"empty passphrase": {readTestdata(t, "encrypted"), fixed(""), ErrBadPassphrase},
		"cancelled":        {readTestdata(t, "encrypted"), func() ([]byte, error) { return nil, cancelled }, cancelled},
		"ecdsa":            {readTestdata(t, "ecdsa"), nil, ErrNotEd25519},
		"rsa":              {readTestdata(t, "rsa"), nil, ErrNotEd25519},
		"public key":       {readTestdata(t, "plain.pub"), nil, ErrNotOpenSSH},
		"empty":            {nil, nil, ErrNotOpenSSH},
		"huge":             {bytes.Repeat([]byte("a"), MaxKeyFile+1), nil, ErrNotOpenSSH},
	} {
		seed, err := ParseFile(test.text, test.passphrase)
		if !errors.Is(err, test.want) || seed.Reveal() != "" {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}

// The passphrase is not asked for when it is not needed.
func TestPassphraseIsAskedOnDemand(t *testing.T) {
	t.Parallel()
	_, err := ParseFile(readTestdata(t, "plain"), func() ([]byte, error) {
		t.Error("asked")
		return nil, nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Every prefix and every altered byte: never a panic, never another key.
func TestDamagedKeyFiles(t *testing.T) {
	t.Parallel()
	text := readTestdata(t, "plain")
	whole, err := ParseFile(text, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range text {
		damaged := bytes.Clone(text)
		damaged[i] ^= 1
		for _, input := range [][]byte{text[:i], damaged} {
			seed, err := ParseFile(input, nil)
			if err == nil && seed.Reveal() != whole.Reveal() {
				t.Errorf("byte %d: another key", i)
			}
		}
	}
}

// serveAgent runs an agent on a unix socket until the test ends.
func serveAgent(t *testing.T, a agent.Agent) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent") // t.TempDir() can be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				_ = agent.ServeAgent(a, conn)
			})
		}
	})
	t.Cleanup(func() { listener.Close(); running.Wait() })
	return socket
}

// keyring holds an Ed25519 key and an ECDSA key, and gives their fingerprints.
func keyring(t *testing.T) (a agent.Agent, ed, other string) {
	t.Helper()
	a = agent.NewKeyring()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := ssh.ParseRawPrivateKey(readTestdata(t, "ecdsa"))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []any{raw, private} {
		if err := a.Add(agent.AddedKey{PrivateKey: key}); err != nil {
			t.Fatal(err)
		}
	}
	listed, err := a.List()
	if err != nil || len(listed) != 2 {
		t.Fatal(len(listed), err)
	}
	return a, ssh.FingerprintSHA256(listed[1]), ssh.FingerprintSHA256(listed[0])
}

func TestAgentSigner(t *testing.T) {
	t.Parallel()
	a, fingerprint, _ := keyring(t)
	signer, err := AgentSigner(context.Background(), serveAgent(t, a), fingerprint+"\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := signer.Public().Fingerprint(); got != fingerprint {
		t.Errorf("fingerprint %s, want %s", got, fingerprint)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			message := []byte(`{"chain_head":"00"}`)
			sig, err := signer.Sign(message)
			key := signer.Public()
			if err != nil || !ed25519.Verify(key[:], message, sig) {
				t.Errorf("%x, %v", sig, err)
			}
		})
	}
	group.Wait()
	if _, err := signer.Sign(make([]byte, MaxMessage)); err != nil {
		t.Errorf("longest message: %v", err)
	}
	if _, err := signer.Sign(make([]byte, MaxMessage+1)); !errors.Is(err, ErrMessageTooLong) {
		t.Errorf("too long: %v", err)
	}
}

func TestAgentSignerRefuses(t *testing.T) {
	t.Parallel()
	a, fingerprint, other := keyring(t)
	socket := serveAgent(t, a)
	for text, want := range map[string]error{
		"":                                  ErrNoFingerprint,
		"SHA256:":                           ErrNoFingerprint,
		fingerprint[:20]:                    ErrNoFingerprint,
		strings.ToLower(fingerprint):        ErrNoFingerprint,
		"SHA256:" + strings.Repeat("A", 43): ErrKeyNotInAgent,
		"MD5:" + strings.Repeat("00:", 15) + "00": ErrNoFingerprint,
		other: ErrNotEd25519,
	} {
		signer, err := AgentSigner(context.Background(), socket, text)
		if signer != nil || !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
	if _, err := AgentSigner(context.Background(), socket+"x", fingerprint); err == nil {
		t.Error("no agent: no error")
	}
}

// stubborn is an agent that can be told to misbehave when asked to sign.
type stubborn struct {
	agent.Agent
	mode atomic.Int32 // 0 honest, 1 refuses, 2 signs something else
}

func (s *stubborn) Sign(key ssh.PublicKey, data []byte) (*ssh.Signature, error) {
	switch s.mode.Load() {
	case 1:
		return nil, errors.New("no")
	case 2:
		return s.Agent.Sign(key, append(data, '.'))
	}
	return s.Agent.Sign(key, data)
}

func TestAgentThatMisbehaves(t *testing.T) {
	t.Parallel()
	a, fingerprint, _ := keyring(t)
	s := &stubborn{Agent: a}
	socket := serveAgent(t, s)
	s.mode.Store(2)
	if _, err := AgentSigner(context.Background(), socket, fingerprint); !errors.Is(err, keys.ErrSelfTest) {
		t.Errorf("self-test at load: %v", err)
	}
	s.mode.Store(0)
	signer, err := AgentSigner(context.Background(), socket, fingerprint)
	if err != nil {
		t.Fatal(err)
	}
	for mode := int32(1); mode <= 2; mode++ {
		s.mode.Store(mode)
		if sig, err := signer.Sign([]byte("m")); err == nil || sig != nil {
			t.Errorf("mode %d: %x, %v", mode, sig, err)
		}
	}
	s.mode.Store(0)
	if _, err := signer.Sign([]byte("m")); err != nil {
		t.Errorf("honest again: %v", err)
	}
}

// An agent that accepts and then says nothing does not hang the look-up.
func TestSilentAgent(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Skip(err) // the directory's name is too long for a socket here
	}
	defer listener.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := AgentSigner(ctx, socket, "SHA256:"+strings.Repeat("A", 43)); err == nil {
		t.Error("no error")
	}
}

func TestFuzzCorpusIsThere(t *testing.T) {
	t.Parallel()
	seeds, err := os.ReadDir("testdata/fuzz/FuzzParseFile")
	if err != nil || len(seeds) == 0 {
		t.Errorf("%d seeds, %v", len(seeds), err)
	}
}

func FuzzParseFile(f *testing.F) {
	for _, name := range []string{"plain", "encrypted", "ecdsa", "rsa", "plain.pub"} {
		f.Add(readTestdata(f, name))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		seed, err := ParseFile(text, nil)
		if (err == nil) != (seed.Reveal() != "") {
			t.Fatalf("a seed beside %v", err)
		}
	})
}
