package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/chaind/chaind/internal/daemon"
)

func diffConfig(want, got daemon.Config) string {
	return cmp.Diff(want, got, cmpopts.IgnoreUnexported(daemon.Config{}))
}

// TestShownAddressesHaveNoLogins: each of several addresses is masked, with and
// without a scheme.
func TestShownAddressesHaveNoLogins(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"":                         "",
		"nats://h:1":               "nats://h:1",
		"a:hunter2@h:1":            "********@h:1",
		"nats://a:hun@ter2@h:1":    "nats://********@h:1",
		"nats://h,tls://a:b@i,c@j": "nats://h,tls://********@i,********@j",
	} {
		if got := withoutLogins(given); got != want {
			t.Errorf("%q is shown as %q", given, got)
		}
	}
}

// TestShownKeysAreIDs: a seed in the list of public keys is not shown.
func TestShownKeysAreIDs(t *testing.T) {
	const seed = "ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c"
	t.Setenv(envTrustedKeys, seed)
	var out bytes.Buffer
	code := run(t.Context(), []string{"config", "--trusted-pubkey", seed}, strings.NewReader(""), &out, &out)
	if code != exitOK || strings.Contains(out.String(), seed) || !strings.Contains(out.String(), "trusted-pubkey                       fe812c12f3ab4ce6") {
		t.Errorf("exit %d\n%s", code, out.String())
	}
}

func replaceOnce(text, old, replacement string) (string, int) {
	return strings.Replace(text, old, replacement, 1), strings.Count(text, old)
}
