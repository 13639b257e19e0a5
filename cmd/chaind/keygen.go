package main

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/chaind/chaind/internal/daemon"
)

type keygenCmd struct {
	File string `arg:"" help:"Where the key goes; the public key goes to FILE.pub." type:"path"`
	JSON bool   `help:"Print JSON."`
}

func (c *keygenCmd) Help() string {
	return `Creates FILE (32-byte seed in hex, readable by you alone) and FILE.pub. An existing file is never overwritten.

Examples:
  chaind keygen signing.key
  chaind serve --signing-key signing.key
  chaind verify --trusted-pubkey "$(cat signing.key.pub)" run.evidence.json`
}

func (c *keygenCmd) Run(a *app) error {
	if strings.TrimSpace(c.File) == "" {
		return usageError("name a file for the key: the name is empty")
	}
	if info, err := os.Stat(c.File); err == nil && info.IsDir() {
		return usageError("name a file for the key: %s is a directory", c.File)
	}
	key, err := daemon.CreateKey(c.File)
	if errors.Is(err, fs.ErrExist) {
		return cannot(err, "a key is never overwritten: choose another name, or move the old files away yourself")
	}
	if err != nil {
		return cannot(err, "")
	}
	if c.JSON {
		return a.printJSON(keyResult{PublicKey: key.String(), ID: key.ID(), File: c.File, PublicFile: c.File + ".pub"})
	}
	return a.printf("public key %s\nkey id     %s\nwritten to %s and %s.pub\n", key, key.ID(), c.File, c.File)
}

type keyResult struct {
	PublicKey  string `json:"public_key"`
	ID         string `json:"key_id"`
	File       string `json:"file"`
	PublicFile string `json:"public_file"`
}
