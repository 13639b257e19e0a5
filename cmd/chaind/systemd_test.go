package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unitLines reads a systemd unit: every assignment, by section and name.
func unitLines(t *testing.T, file string) map[string][]string {
	t.Helper()
	lines, section := map[string][]string{}, ""
	for line := range strings.Lines(readHouse(t, file)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[' && strings.HasSuffix(line, "]"):
			section = line[1 : len(line)-1]
		default:
			name, value, ok := strings.Cut(line, "=")
			if !ok || section == "" || !regexp.MustCompile(`^[A-Z][A-Za-z]+$`).MatchString(name) {
				t.Fatalf("%s: %q is no assignment", file, line)
			}
			lines[section+"."+name] = append(lines[section+"."+name], value)
		}
	}
	return lines
}

func TestUnitStartsWhatExistsAndIsLockedUp(t *testing.T) {
	unit := unitLines(t, "configs/chaind.service")
	known := variables(t)
	for _, assignment := range unit["Service.Environment"] {
		name, value, _ := strings.Cut(assignment, "=")
		if !slices.Contains(known, name) {
			t.Errorf("the unit sets %s, which serve does not know", name)
		}
		t.Setenv(name, value)
	}
	words := strings.Fields(strings.Join(unit["Service.ExecStart"], " "))
	if len(words) < 2 || words[0] != "/usr/local/bin/chaind" {
		t.Fatalf("ExecStart %v", words)
	}
	args := strings.ReplaceAll(strings.Join(words[1:], " "), "/etc/chaind/chaind.yaml", filepath.Join(root, "configs", "chaind.yaml"))
	c, a, _ := commandLine(t, strings.Fields(args)...)
	config, err := c.Serve.daemonConfig(a)
	if err != nil {
		t.Fatal(err)
	}
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	if want := "/var/lib/" + strings.Join(unit["Service.StateDirectory"], ""); config.DataDir != want {
		t.Errorf("data directory %s, which the unit may not write; want %s", config.DataDir, want)
	}
	for name, want := range map[string]string{
		"ExecReload": "/bin/kill -HUP $MAINPID", "User": "chaind", "NoNewPrivileges": "yes", "CapabilityBoundingSet": "", "ProtectSystem": "strict",
		"ProtectHome": "yes", "PrivateTmp": "yes", "PrivateDevices": "yes", "MemoryDenyWriteExecute": "yes", "RestrictNamespaces": "yes", "UMask": "0077",
	} {
		if got := unit["Service."+name]; len(got) != 1 || got[0] != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// TestUnitPassesSystemd asks systemd's own tool, where there is one.
func TestUnitPassesSystemd(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze on PATH")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "chaind.service")
	text := strings.ReplaceAll(readHouse(t, "configs/chaind.service"), "/usr/local/bin/chaind", self)
	if err := os.WriteFile(unit, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"verify", unit}, {"security", "--offline=true", "--threshold=20", unit}} {
		if out, err := exec.Command(analyze, args...).CombinedOutput(); err != nil {
			t.Errorf("systemd-analyze %s: %v\n%s", args[0], err, out)
		}
	}
}
