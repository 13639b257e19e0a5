package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// sshkey FILE [PASSPHRASE]: writes a new Ed25519 key as OpenSSH does, its public
// half as 64 hex digits in FILE.pub and its fingerprint in FILE.sha256.
func sshKey(ts *testscript.TestScript, neg bool, args []string) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	ts.Check(err)
	var block *pem.Block
	if len(args) > 1 {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "test", []byte(args[1]))
	} else {
		block, err = ssh.MarshalPrivateKey(private, "test")
	}
	ts.Check(err)
	named, err := ssh.NewPublicKey(public)
	ts.Check(err)
	file := ts.MkAbs(args[0])
	ts.Check(os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	ts.Check(os.WriteFile(file+".pub", []byte(hex.EncodeToString(public)+"\n"), 0o644))
	ts.Check(os.WriteFile(file+".sha256", []byte(ssh.FingerprintSHA256(named)+"\n"), 0o644))
}

// sshagent FILE…: starts an agent that holds the keys (which have no passphrase)
// and puts its socket into SSH_AUTH_SOCK. It ends with the script.
func sshAgent(ts *testscript.TestScript, neg bool, args []string) {
	keyring := agent.NewKeyring()
	for _, name := range args {
		private, err := ssh.ParseRawPrivateKey([]byte(ts.ReadFile(name)))
		ts.Check(err)
		ts.Check(keyring.Add(agent.AddedKey{PrivateKey: private}))
	}
	dir, err := os.MkdirTemp("", "agent") // a socket's path must be short
	ts.Check(err)
	socket := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", socket)
	ts.Check(err)
	done := make(chan struct{})
	go serveAgent(listener, keyring, done)
	ts.Defer(func() {
		listener.Close()
		<-done
		os.RemoveAll(dir)
	})
	ts.Setenv("SSH_AUTH_SOCK", socket)
}

func serveAgent(listener net.Listener, keyring agent.Agent, done chan<- struct{}) {
	defer close(done)
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			agent.ServeAgent(keyring, conn) // ends when the client hangs up
			conn.Close()
		}
	}
}
