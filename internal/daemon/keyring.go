package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/server"
)

// keyring holds the signing key and the trust list that are in use. Both may be
// exchanged while the daemon runs; a reload that fails changes nothing and is
// visible in the readiness.
type keyring struct {
	cfg KeyConfig
	log *slog.Logger

	signer atomic.Pointer[keys.Signer]    // nil: nothing is signed
	trust  atomic.Pointer[keys.TrustList] // nil: unpinned

	signerFault atomic.Pointer[string] // of the last reload; nil: it went well
	trustFault  atomic.Pointer[string]
}

// openKeyring loads and tests both; what is wrong stops the start, not a run.
func openKeyring(ctx context.Context, cfg KeyConfig, log *slog.Logger) (*keyring, error) {
	k := &keyring{cfg: cfg, log: log}
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
	k.signer.Store(signer)
	k.log.Info("signing key", "key", signer, "public_key", signer.Public().String())
	return nil
}

// watch reloads at each signal until ctx ends.
func (k *keyring) watch(ctx context.Context, reload <-chan struct{}) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-reload:
			k.reload(ctx)
		}
	}
}

// reload takes over what loads and keeps what does not, each for itself.
func (k *keyring) reload(ctx context.Context) {
	k.trustFault.Store(k.reloaded("trust list", k.loadTrust()))
	k.signerFault.Store(k.reloaded("signing key", k.loadSigner(ctx)))
}

func (k *keyring) reloaded(what string, err error) *string {
	if err == nil {
		return nil
	}
	k.log.Error("reload failed, the old one stays in use", "what", what, "err", err)
	text := fmt.Sprintf("reload of the %s failed, the one before is in use: %v", what, err)
	return &text
}

// causes are why the keys make the daemon unready.
func (k *keyring) causes() []server.Cause {
	var causes []server.Cause
	if text := k.signerFault.Load(); text != nil {
		causes = append(causes, server.Cause{Name: server.CauseSigningKey, Detail: *text})
	}
	if text := k.trustFault.Load(); text != nil {
		causes = append(causes, server.Cause{Name: server.CauseTrustList, Detail: *text})
	}
	return causes
}

func (k *keyring) state() server.KeyState {
	switch {
	case k.signerFault.Load() != nil:
		return server.KeyStale
	case k.signer.Load() != nil:
		return server.KeyReady
	}
	return server.KeyNone
}
