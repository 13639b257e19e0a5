package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/server"
)

// keyring holds the signing key and the trust list that are in use. Both may be
// exchanged while the daemon runs; a reload that fails changes nothing.
type keyring struct {
	cfg  KeyConfig
	kept string // directory of the public keys that ever signed here
	log  *slog.Logger

	signer atomic.Pointer[keys.Signer]    // nil: nothing is signed
	trust  atomic.Pointer[keys.TrustList] // nil: unpinned
}

// openKeyring loads and tests both; what is wrong stops the start, not a run.
func openKeyring(ctx context.Context, cfg KeyConfig, kept string, log *slog.Logger) (*keyring, error) {
	k := &keyring{cfg: cfg, kept: kept, log: log}
	if err := k.loadTrust(); err != nil {
		return nil, err
	}
	if err := k.loadSigner(ctx); err != nil {
		return nil, err
	}
	return k, nil
}

func (k *keyring) loadTrust() error {
	list, notices, err := LoadTrust(k.cfg.Trusted, k.cfg.TrustedEnv, k.cfg.TrustFile)
	if err != nil {
		return err
	}
	for _, n := range notices {
		k.log.Warn("trust list names a key twice", "notice", n.String())
	}
	k.trust.Store(list)
	k.log.Info("trust list", "keys", list)
	return nil
}

// loadSigner refuses a key that the trust list calls retired or revoked.
func (k *keyring) loadSigner(ctx context.Context) error {
	signer, err := LoadSigner(ctx, k.cfg)
	if err != nil {
		return err
	}
	if signer == nil {
		k.log.Warn("no signing key: what is sealed stays unsigned")
		return nil
	}
	if err := k.trust.Load().MaySign(signer.Public()); err != nil {
		return err
	}
	if err := keepPublic(k.kept, signer.Public()); err != nil {
		return err
	}
	k.signer.Store(signer)
	k.log.Info("signing key", "key", signer, "public_key", signer.Public().String())
	return nil
}

// keepPublic keeps the public half of a key before it signs anything: when the
// key has long been rotated and its owner has left, somebody will want to know
// which keys this daemon's evidence may be signed by.
func keepPublic(dir string, key keys.PublicKey) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("keep public key: %w", err)
	}
	err := createFile(filepath.Join(dir, key.ID()+".pub"), 0o644, key.String()+"\n")
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("keep public key: %w", err)
	}
	return nil
}

// state says what is signed with; stale tells that the last reload of the key
// failed.
func (k *keyring) state(stale bool) server.KeyState {
	switch {
	case stale:
		return server.KeyStale
	case k.signer.Load() != nil:
		return server.KeyReady
	}
	return server.KeyNone
}

// public is the key that is signed with; nil: nothing is signed.
func (k *keyring) public() *keys.PublicKey {
	signer := k.signer.Load()
	if signer == nil {
		return nil
	}
	key := signer.Public()
	return &key
}
