package main

import (
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/chaind/chaind/internal/daemon"
)

func diffConfig(want, got daemon.Config) string {
	return cmp.Diff(want, got, cmpopts.IgnoreUnexported(daemon.Config{}))
}

func replaceOnce(text, old, replacement string) (string, int) {
	return strings.Replace(text, old, replacement, 1), strings.Count(text, old)
}
