package openssh

import (
	"crypto/ed25519"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"

	"github.com/chaind/chaind/keys"
)

// MaxKeyFile is the longest key file that is looked at, in bytes; a real one
// has about 500.
const MaxKeyFile = 64 << 10

// These errors can be returned when a key file is read.
var (
	ErrNotOpenSSH    = errors.New("not an OpenSSH private key file")
	ErrNotEd25519    = errors.New("not an Ed25519 key")
	ErrNoPassphrase  = errors.New("key file needs a passphrase")
	ErrBadPassphrase = errors.New("passphrase does not open the key file")
)

// Passphrase supplies the passphrase of a key file when it needs one: from a
// terminal, or from a file.
type Passphrase func() ([]byte, error)

// ParseFile reads the PEM text of an OpenSSH private key, or of an unencrypted
// PKCS #8 one as OpenSSL writes it. The passphrase is
// asked for only when the file is encrypted; nil then gives [ErrNoPassphrase].
// Other errors: [ErrNotOpenSSH], [ErrNotEd25519], [ErrBadPassphrase], what
// passphrase returned, and those of [keys.SeedOf]. No error carries any of the
// text.
func ParseFile(text []byte, passphrase Passphrase) (keys.Seed, error) {
	if len(text) > MaxKeyFile {
		return keys.Seed{}, ErrNotOpenSSH
	}
	private, err := ssh.ParseRawPrivateKey(text)
	if _, encrypted := errors.AsType[*ssh.PassphraseMissingError](err); encrypted {
		private, err = decrypt(text, passphrase)
		if err != nil {
			return keys.Seed{}, err
		}
	}
	if err != nil {
		return keys.Seed{}, ErrNotOpenSSH
	}
	switch key := private.(type) {
	case *ed25519.PrivateKey: // OpenSSH's own format
		return keys.SeedOf(*key)
	case ed25519.PrivateKey: // PKCS #8
		return keys.SeedOf(key)
	}
	return keys.Seed{}, ErrNotEd25519
}

func decrypt(text []byte, passphrase Passphrase) (any, error) {
	if passphrase == nil {
		return nil, ErrNoPassphrase
	}
	secret, err := passphrase()
	if err != nil {
		return nil, fmt.Errorf("ask passphrase: %w", err)
	}
	defer clear(secret)
	private, err := ssh.ParseRawPrivateKeyWithPassphrase(text, secret)
	if err != nil {
		return nil, ErrBadPassphrase
	}
	return private, nil
}
