package main

import (
	"errors"
	"os"

	"github.com/chaind/chaind/internal/daemon"
	"github.com/chaind/chaind/keys"
)

// trustFlags say whose signature a file must carry.
type trustFlags struct {
	TrustedPubkey []string `help:"Trust this Ed25519 public key (hex; may be repeated)." placeholder:"HEX"`
	TrustFile     string   `help:"YAML list of keys with public_key, comment and status (active, retired, revoked)." type:"path" placeholder:"FILE"`
	RequireSigned bool     `help:"A file without a signature fails, trust list or not."`
	AllowUnsigned bool     `help:"Forgive a missing signature, and nothing else, although keys are trusted."`
}

// trust reads the trust list: a bad flag is usage (64), a bad environment
// or file means that verification could not run (1).
func (f *trustFlags) trust(a *app) (*keys.TrustList, error) {
	if _, err := keys.ParseFlags(f.TrustedPubkey); err != nil {
		return nil, usageError("--trusted-pubkey: %w", err)
	}
	trust, err := await(a.ctx, func() (*keys.TrustList, error) {
		list, _, err := daemon.LoadTrust(f.TrustedPubkey, lookUp(envTrustedKeys), f.TrustFile)
		return list, err
	})
	if err != nil {
		return nil, cannot(err, "a trusted key is 64 hex digits; chaind keygen prints and stores it as FILE.pub")
	}
	return trust, nil
}

// signFlags name the key that signs a result.
type signFlags struct {
	SigningKey           string `help:"Sign with this key file: a 32-byte seed in hex, or an OpenSSH Ed25519 private key." type:"path" placeholder:"FILE"`
	SigningKeyPassphrase string `help:"File that holds the passphrase of --signing-key." type:"path" placeholder:"FILE"`
	SigningAgent         string `help:"Sign with the ssh-agent's key of this fingerprint." placeholder:"SHA256:…"`
}

// signer loads the key: a flag's, else that of PLASM_EVIDENCE_SIGNING_KEY, else
// none.
func (f *signFlags) signer(a *app) (*keys.Signer, error) {
	if f.SigningKey != "" && f.SigningAgent != "" {
		return nil, usageError("--signing-key and --signing-agent name two keys; one signs")
	}
	signer, err := daemon.LoadSigner(a.ctx, daemon.KeyConfig{
		SigningKey: f.SigningKey, PassphraseFile: f.SigningKeyPassphrase, AskPassphrase: a.askPassphrase(), AgentKey: f.SigningAgent, SeedHex: os.Getenv(envSigningKey),
	})
	if err != nil {
		return nil, cannot(err, "chaind keygen creates a signing key")
	}
	return signer, nil
}

var errNoKey = errors.New("no key to sign with: give --signing-key or --signing-agent, or set " + envSigningKey)
