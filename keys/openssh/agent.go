package openssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/chaind/chaind/keys"
)

const (
	// MaxMessage is the longest message that is sent to an agent, in bytes.
	// Agents break the connection at about 256 KiB.
	MaxMessage = 64 << 10

	// agentTimeout bounds one exchange with the agent; it leaves time for a
	// person to confirm the use of a key (ssh-add -c).
	agentTimeout = 60 * time.Second
)

// These errors can be returned when an agent is asked.
var (
	ErrNoFingerprint  = errors.New("agent key is not named; give the SHA256 fingerprint that ssh-add -l prints")
	ErrKeyNotInAgent  = errors.New("agent holds no key with this fingerprint")
	ErrMessageTooLong = errors.New("message is too long for an agent")
)

// AgentSigner finds the key named by fingerprint ("SHA256:" and 43 characters
// of unpadded base64, see [keys.PublicKey.Fingerprint]) in the agent that
// listens on the unix socket, and lets it sign once as a test. There is no
// default key: an empty or partial fingerprint is [ErrNoFingerprint], a missing
// key [ErrKeyNotInAgent], one of another type [ErrNotEd25519].
//
// The signer connects anew for each signature, so that the agent may be
// restarted meanwhile, and is safe for concurrent use. It refuses messages
// over [MaxMessage] bytes with [ErrMessageTooLong]. The context bounds the
// look-up alone.
func AgentSigner(ctx context.Context, socket, fingerprint string) (*keys.Signer, error) {
	fingerprint = strings.TrimSpace(fingerprint)
	if len(fingerprint) != len("SHA256:")+43 || !strings.HasPrefix(fingerprint, "SHA256:") {
		return nil, ErrNoFingerprint
	}
	key, err := findKey(ctx, socket, fingerprint)
	if err != nil {
		return nil, err
	}
	public, err := ed25519Bytes(key)
	if err != nil {
		return nil, err
	}
	signer, err := keys.NewSigner(public, func(message []byte) ([]byte, error) {
		return sign(socket, key, message)
	})
	if err != nil {
		return nil, fmt.Errorf("load agent key: %w", err)
	}
	return signer, nil
}

func findKey(ctx context.Context, socket, fingerprint string) (ssh.PublicKey, error) {
	conn, err := connect(ctx, socket)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	listed, err := agent.NewClient(conn).List()
	if err != nil {
		return nil, fmt.Errorf("list agent keys: %w", err)
	}
	for _, candidate := range listed {
		if ssh.FingerprintSHA256(candidate) != fingerprint {
			continue
		}
		key, err := ssh.ParsePublicKey(candidate.Blob)
		if err != nil || key.Type() != ssh.KeyAlgoED25519 {
			return nil, ErrNotEd25519
		}
		return key, nil
	}
	return nil, ErrKeyNotInAgent
}

// ed25519Bytes takes the key out of its wire form (RFC 8709 section 4): the
// name as a string, then the 32 bytes as a string, and nothing behind.
func ed25519Bytes(key ssh.PublicKey) ([]byte, error) {
	var wire struct {
		Name string
		Key  []byte
	}
	if err := ssh.Unmarshal(key.Marshal(), &wire); err != nil {
		return nil, ErrNotEd25519
	}
	return wire.Key, nil
}

func sign(socket string, key ssh.PublicKey, message []byte) ([]byte, error) {
	if len(message) > MaxMessage {
		return nil, ErrMessageTooLong
	}
	conn, err := connect(context.Background(), socket)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	sig, err := agent.NewClient(conn).Sign(key, message)
	if err != nil {
		return nil, fmt.Errorf("ask agent: %w", err)
	}
	if sig.Format != ssh.KeyAlgoED25519 {
		return nil, ErrNotEd25519
	}
	return sig.Blob, nil
}

func connect(ctx context.Context, socket string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("connect to agent: %w", err)
	}
	deadline := time.Now().Add(agentTimeout)
	if limit, set := ctx.Deadline(); set && limit.Before(deadline) {
		deadline = limit
	}
	if err := conn.SetDeadline(deadline); err != nil {
		conn.Close()
		return nil, fmt.Errorf("connect to agent: %w", err)
	}
	return conn, nil
}
