package daemon

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/keys/openssh"
)

// maxKeyFile bounds a key or passphrase file, in bytes.
const maxKeyFile = openssh.MaxKeyFile

// ErrPublicKeyFile refuses to sign with what is published.
var ErrPublicKeyFile = errors.New("this is the public key; the signing key is the file without .pub")

// LoadSigningKey reads a signing key file: the 32-byte seed in hex, or an
// OpenSSH Ed25519 private key, whose passphrase comes from passphrase when it
// has one (nil: encrypted keys are refused).
//
// A public key has the form of a seed. Signing with one would make a secret of
// what everybody has, so a file that is named as a public key is refused
// ([ErrPublicKeyFile]). So is a file that everybody can read ([ErrExposed]).
func LoadSigningKey(path string, passphrase openssh.Passphrase) (*keys.Signer, error) {
	if strings.HasSuffix(path, ".pub") {
		return nil, fmt.Errorf("read signing key %s: %w", path, ErrPublicKeyFile)
	}
	text, err := readBounded(path, maxKeyFile)
	if err != nil {
		return nil, fmt.Errorf("read signing key: %w", err)
	}
	seed, err := parseKey(text, passphrase)
	if err != nil {
		return nil, fmt.Errorf("read signing key %s: %w", path, err)
	}
	if err := guardSecret(path); err != nil {
		return nil, fmt.Errorf("read signing key: %w", err)
	}
	return seed.Signer()
}

func parseKey(text []byte, passphrase openssh.Passphrase) (keys.Seed, error) {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("-----BEGIN")) {
		return openssh.ParseFile(text, passphrase)
	}
	return keys.ParseSeed(string(text))
}

// PassphraseFile reads a passphrase from the first line of a file.
func PassphraseFile(path string) openssh.Passphrase {
	if path == "" {
		return nil
	}
	return func() ([]byte, error) {
		if err := guardSecret(path); err != nil {
			return nil, fmt.Errorf("read passphrase: %w", err)
		}
		text, err := readBounded(path, maxKeyFile)
		if err != nil {
			return nil, fmt.Errorf("read passphrase: %w", err)
		}
		first, _, _ := bytes.Cut(text, []byte("\n"))
		return bytes.TrimSuffix(first, []byte("\r")), nil
	}
}

// passphrase comes from the file, where there is one, else from whoever can be
// asked.
func (k *KeyConfig) passphrase() openssh.Passphrase {
	if k.PassphraseFile != "" {
		return PassphraseFile(k.PassphraseFile)
	}
	return k.AskPassphrase
}

// LoadSigner gives the configured signer, or nil: what is sealed then stays
// unsigned, and is said to be.
func LoadSigner(ctx context.Context, k KeyConfig) (*keys.Signer, error) {
	switch {
	case k.SigningKey != "":
		return LoadSigningKey(k.SigningKey, k.passphrase())
	case k.AgentKey != "":
		socket := os.Getenv("SSH_AUTH_SOCK")
		if socket == "" {
			return nil, errors.New("signing-agent is set, but SSH_AUTH_SOCK names no agent")
		}
		return openssh.AgentSigner(ctx, socket, k.AgentKey)
	case k.SeedHex != "":
		signer, err := keys.ParseSigner(k.SeedHex)
		if err != nil {
			return nil, fmt.Errorf("read PLASM_EVIDENCE_SIGNING_KEY: %w", err)
		}
		return signer, nil
	}
	return nil, nil
}

// LoadTrust merges the three sources of trusted keys: flags, the environment
// variable (nil: not set) and a file ("": none). All absent give the nil list:
// nobody said whom to trust.
func LoadTrust(flags []string, env *string, file string) (*keys.TrustList, []keys.Notice, error) {
	var sources [3][]keys.Entry
	var err error
	if sources[0], err = keys.ParseFlags(flags); err != nil {
		return nil, nil, err
	}
	if env != nil {
		if sources[1], err = keys.ParseEnvironment(*env); err != nil {
			return nil, nil, err
		}
	}
	if file != "" {
		if sources[2], err = readTrustFile(file); err != nil {
			return nil, nil, err
		}
	}
	return keys.Merge(sources[:]...)
}

// readTrustFile reads a YAML list of entries, strictly.
func readTrustFile(path string) ([]keys.Entry, error) {
	if err := guardList(path); err != nil {
		return nil, fmt.Errorf("read trust file: %w", err)
	}
	text, err := readBounded(path, maxListBytes)
	if err != nil {
		return nil, fmt.Errorf("read trust file: %w", err)
	}
	list, err := parseList(text, entryForm{texts: []string{"public_key", "comment", "status"}})
	if err != nil {
		return nil, fmt.Errorf("read trust file %s: %w", path, err)
	}
	raw := make([]keys.FileEntry, len(list))
	for i, e := range list {
		raw[i] = keys.FileEntry{PublicKey: e.texts["public_key"], Comment: e.texts["comment"], Status: e.texts["status"], Line: e.line}
	}
	entries, err := keys.ParseFile(raw)
	var bad *keys.EntryError
	switch {
	case errors.As(err, &bad):
		bad.Source += " " + path
		return nil, bad
	case err != nil:
		return nil, fmt.Errorf("read trust file %s: %w", path, err)
	}
	return entries, nil
}

// CreateKey makes a new signing key: the seed in hex in path (mode 0600), the
// public key in hex in path.pub. Neither file may exist.
func CreateKey(path string) (keys.PublicKey, error) {
	seed, err := keys.GenerateSeed(rand.Reader)
	if err != nil {
		return keys.PublicKey{}, err
	}
	signer, err := seed.Signer()
	if err != nil {
		return keys.PublicKey{}, err
	}
	if err := createFile(path, 0o600, seed.Reveal()+"\n"); err != nil {
		return keys.PublicKey{}, err
	}
	if err := createFile(path+".pub", 0o644, signer.Public().String()+"\n"); err != nil {
		return keys.PublicKey{}, err
	}
	return signer.Public(), nil
}

// createFile writes a new file and makes it and its name durable. It never
// opens a file that exists: the mode is there from the first byte on.
func createFile(path string, mode os.FileMode, text string) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.WriteString(text); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(path string) (err error) {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return d.Sync()
}
