package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestEveryCommandReachesTheBrokerAlike holds all commands that go to a NATS
// server to one set of flags and variables: what one can reach, all can.
func TestEveryCommandReachesTheBrokerAlike(t *testing.T) {
	t.Parallel()
	group := map[string]string{
		"nats-url": "CHAIND_NATS_URL", "nats-creds": "CHAIND_NATS_CREDS", "nats-user": "CHAIND_NATS_USER", "nats-password": "CHAIND_NATS_PASSWORD",
		"nats-ca": "CHAIND_NATS_CA", "nats-cert": "CHAIND_NATS_CERT", "nats-key": "CHAIND_NATS_KEY", "nats-inbox-prefix": "CHAIND_NATS_INBOX_PREFIX",
	}
	var dial []string
	for _, c := range model(t).Leaves(true) {
		flags := map[string]*kong.Flag{}
		for _, f := range c.Flags {
			flags[f.Name] = f
		}
		if flags["nats-url"] == nil {
			continue
		}
		dial = append(dial, c.Name)
		for name, variable := range group {
			if f := flags[name]; f == nil || !slices.Contains(f.Envs, variable) {
				t.Errorf("chaind %s has no --%s with %s", c.Path(), name, variable)
			}
		}
	}
	for _, name := range []string{"serve", "publish", "close", "replay"} {
		if !slices.Contains(dial, name) {
			t.Errorf("chaind %s has no --nats-url; those that have: %s", name, strings.Join(dial, ", "))
		}
	}
}

// TestReplayTakesTheWholeAccount: no flag is known and then not used.
func TestReplayTakesTheWholeAccount(t *testing.T) {
	t.Parallel()
	c, _, _ := commandLine(t, "replay", "into", "--nats-url", "nats://n", "--nats-creds", "a", "--nats-user", "b", "--nats-password", "c",
		"--nats-ca", "d", "--nats-cert", "e", "--nats-key", "f", "--inbox-prefix", "g")
	got := c.Replay.at(c.Replay.NATSURL)
	if got.URL != "nats://n" || got.Creds+got.User+got.Password+got.CA+got.Cert+got.Key+got.InboxPrefix != "abcdefg" {
		t.Errorf("%+v", got)
	}
}
