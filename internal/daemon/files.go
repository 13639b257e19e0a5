package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/chaind/chaind/keys/openssh"
)

// The bits of a file's mode that let others at it.
const (
	modeOthers = 0o007 // everybody may do something
	modeWrite  = 0o022 // group or everybody may write
)

// ErrExposed refuses a file that says who signs or who reads, and that others
// than its owner and group can get at.
var ErrExposed = errors.New("file is open to others")

// errWouldAsk stands for a passphrase that the start would ask for.
var errWouldAsk = errors.New("the passphrase is asked for at the start")

// WouldAsk is the passphrase of a look at the configuration that asks nobody.
func WouldAsk() openssh.Passphrase {
	return func() ([]byte, error) { return nil, errWouldAsk }
}

// CheckFiles reads the files that the configuration names as the start will, and
// keeps nothing: keys and their agent, trust list, tokens, certificates,
// credentials. What a passphrase locks, see [WouldAsk], is not judged.
func (c *Config) CheckFiles(ctx context.Context) error {
	list, _, err := LoadTrust(c.Keys.Trusted, c.Keys.TrustedEnv, c.Keys.TrustFile)
	if err != nil {
		return err
	}
	signer, err := LoadSigner(ctx, c.Keys)
	if err != nil && !errors.Is(err, errWouldAsk) {
		return err
	}
	if signer != nil {
		if err := list.MaySign(signer.Public()); err != nil {
			return err
		}
	}
	shown := certificate{cert: c.HTTP.Cert, key: c.HTTP.Key, clients: c.HTTP.ClientCA}
	_, err = c.NATS.client("chaind", c.Logger).Options()
	return errors.Join((&tokenBook{path: c.HTTP.Tokens}).load(), shown.load(), err)
}

// guardSecret refuses a file with a secret that everybody can read, or that more
// than its owner can write. A group may read it: that is how a file that root
// owns reaches a daemon that is not root.
func guardSecret(path string) error {
	return guarded(path, modeOthers|modeWrite, "chmod 600 (or 640, for a group that may read it)")
}

// guardList refuses a file without secrets that decides who is believed or who
// reads, when everybody can write it.
func guardList(path string) error { return guarded(path, 0o002, "chmod o-w") }

func guarded(path string, forbidden os.FileMode, remedy string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	mode := info.Mode()
	if runtime.GOOS == "windows" || !mode.IsRegular() || mode.Perm()&forbidden == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s has mode %04o: %s", ErrExposed, path, mode.Perm(), remedy)
}

// Readable tells whether everybody on the machine can read the file.
func Readable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode().Perm()&0o004 != 0
}
