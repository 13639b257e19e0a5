package keys

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// These errors can be returned when a signing key is loaded or used.
var (
	ErrMalformedSeed = errors.New("signing key is not 64 hex digits of a seed, nor 128 of seed and public key")
	ErrHalvesDiffer  = errors.New("signing key has a public half that does not belong to its seed")
	ErrSelfTest      = errors.New("signing key does not verify its own signature")
)

const redacted = "[redacted signing key]"

// Seed is an Ed25519 private key in its 32-byte form (RFC 8032 section 5.1.5).
// It cannot be printed; [Seed.Reveal] is the one way out, for a key file. The
// zero Seed holds no key.
type Seed struct {
	// raw is a function because fmt prints unexported fields of other
	// people's structs without asking Format, through pointers too.
	raw func() [ed25519.SeedSize]byte
}

func newSeed(raw [ed25519.SeedSize]byte) Seed {
	return Seed{func() [ed25519.SeedSize]byte { return raw }}
}

// GenerateSeed reads 32 bytes from random, which is crypto/rand.Reader outside
// of tests.
func GenerateSeed(random io.Reader) (Seed, error) {
	var raw [ed25519.SeedSize]byte
	if _, err := io.ReadFull(random, raw[:]); err != nil {
		return Seed{}, fmt.Errorf("generate seed: %w", err)
	}
	return newSeed(raw), nil
}

// ParseSeed reads the text of a signing key, trimmed: 64 hexadecimal digits of
// a seed, or 128 of seed and public key. Errors are [ErrMalformedSeed] and
// [ErrHalvesDiffer]; they never carry the text.
func ParseSeed(text string) (Seed, error) {
	raw, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil {
		return Seed{}, ErrMalformedSeed
	}
	switch len(raw) {
	case ed25519.SeedSize:
		return newSeed([ed25519.SeedSize]byte(raw)), nil
	case ed25519.PrivateKeySize:
		return SeedOf(ed25519.PrivateKey(raw))
	}
	return Seed{}, ErrMalformedSeed
}

// SeedOf takes an expanded private key. Its public half must be the one that
// its seed gives ([ErrHalvesDiffer]); signatures made with two halves that do
// not belong together verify under neither key and may give the seed away.
func SeedOf(private ed25519.PrivateKey) (Seed, error) {
	if len(private) != ed25519.PrivateKeySize {
		return Seed{}, ErrMalformedSeed
	}
	if !private.Equal(ed25519.NewKeyFromSeed(private.Seed())) {
		return Seed{}, ErrHalvesDiffer
	}
	return newSeed([ed25519.SeedSize]byte(private.Seed())), nil
}

// Reveal gives the 64 lower-case hexadecimal digits of the secret; "" for the
// zero Seed.
func (s Seed) Reveal() string {
	if s.raw == nil {
		return ""
	}
	raw := s.raw()
	return hex.EncodeToString(raw[:])
}

// Signer derives the key pair and self-tests it, see [NewSigner]. The zero Seed
// is [ErrMalformedSeed].
func (s Seed) Signer() (*Signer, error) {
	if s.raw == nil {
		return nil, ErrMalformedSeed
	}
	raw := s.raw()
	private := ed25519.NewKeyFromSeed(raw[:])
	return NewSigner(private.Public().(ed25519.PublicKey), func(message []byte) ([]byte, error) {
		return ed25519.Sign(private, message), nil
	})
}

func (s Seed) String() string               { return redacted }
func (s Seed) Format(f fmt.State, _ rune)   { io.WriteString(f, redacted) }
func (s Seed) LogValue() slog.Value         { return slog.StringValue(redacted) }
func (s Seed) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// ParseSigner is [ParseSeed] and [Seed.Signer] in one.
func ParseSigner(text string) (*Signer, error) {
	seed, err := ParseSeed(text)
	if err != nil {
		return nil, err
	}
	return seed.Signer()
}

// Signer signs with one Ed25519 key, wherever its private half lives: in this
// process or in an agent. It is safe for concurrent use when its sign function
// is. The nil *Signer is how callers say "unsigned".
type Signer struct {
	public PublicKey
	sign   func(message []byte) ([]byte, error)
}

// NewSigner makes a signer of a 32-byte public key and a function that gives
// 64-byte signatures, and tests it: a fixed message, which no format uses, is
// signed and verified. Errors: those of [NewPublicKey], what sign returned, or
// [ErrSelfTest].
func NewSigner(public []byte, sign func(message []byte) ([]byte, error)) (*Signer, error) {
	key, err := NewPublicKey(public)
	if err != nil {
		return nil, err
	}
	s := &Signer{public: key, sign: sign}
	if _, err := s.Sign([]byte("chaind: self-test of a signing key\n")); err != nil {
		return nil, fmt.Errorf("test signing key %s: %w", key.ID(), err)
	}
	return s, nil
}

// Public is the key that verifies what Sign returns.
func (s *Signer) Public() PublicKey { return s.public }

// Sign gives the 64-byte signature of message (pure Ed25519: no prehash, no
// context). Each signature is verified before it is returned, so that a fault
// in memory or in an agent gives [ErrSelfTest] and not bad evidence.
//
// Messages must say what they are for: one key may sign several kinds of
// message only while no message of one kind is a message of another.
func (s *Signer) Sign(message []byte) ([]byte, error) {
	sig, err := s.sign(message)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	if !s.public.Verify(message, sig) {
		return nil, ErrSelfTest
	}
	return sig, nil
}

func (s *Signer) String() string {
	if s == nil {
		return "no signer"
	}
	return "signer " + s.public.ID()
}

func (s *Signer) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) }
func (s *Signer) LogValue() slog.Value       { return slog.StringValue(s.String()) }
