package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/chaind/chaind/internal/daemon"
)

type alertRule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func readRules(t *testing.T) []alertRule {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string      `yaml:"name"`
			Rules []alertRule `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.UnmarshalWithOptions([]byte(readHouse(t, "configs/alerts.yaml")), &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	if len(file.Groups) != 1 || len(file.Groups[0].Rules) < 15 {
		t.Fatalf("%d groups", len(file.Groups))
	}
	return file.Groups[0].Rules
}

// scrapeDaemon runs a daemon that signs, and returns what a scrape of it shows.
func scrapeDaemon(t *testing.T) string {
	t.Helper()
	key := filepath.Join(t.TempDir(), "signing.key")
	if _, err := daemon.CreateKey(key); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	started, ended := make(chan daemon.Info, 1), make(chan error, 1)
	go func() {
		ended <- daemon.Run(ctx, daemon.Config{
			DataDir: t.TempDir(), NATS: daemon.NATSConfig{Listen: "127.0.0.1:-1"}, HTTP: daemon.HTTPConfig{Listen: "127.0.0.1:0"},
			Keys: daemon.KeyConfig{SigningKey: key}, Logger: slog.New(slog.DiscardHandler),
		}, func(i daemon.Info) { started <- i })
	}()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	var info daemon.Info
	select {
	case info = <-started:
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	}
	awaitReady(t, info.HTTPURL)
	res, err := http.Get(info.HTTPURL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// awaitReady waits until the daemon says that it does its work.
func awaitReady(t *testing.T, base string) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		res, err := http.Get(base + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if res.StatusCode == http.StatusOK {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal("the daemon never became ready")
		}
	}
}

var (
	selector = regexp.MustCompile(`\b(chaind_[a-z_]+)(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`(\w+)(=~|!=|=)"([^"]*)"`)
)

// TestAlertRulesAskForWhatThereIs holds every metric, label and value that a
// rule names to a scrape of a running daemon: a rule on a misspelt one would be
// silent for ever.
func TestAlertRulesAskForWhatThereIs(t *testing.T) {
	t.Parallel()
	scrape := scrapeDaemon(t)
	series := 0
	for _, rule := range readRules(t) {
		for _, m := range selector.FindAllStringSubmatch(rule.Expr, -1) {
			series++
			if !regexp.MustCompile(`(?m)^` + m[1] + `[{ ]`).MatchString(scrape) {
				t.Errorf("%s: no metric %s", rule.Alert, m[1])
			}
			for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
				for _, value := range strings.Split(l[3], "|") {
					if !regexp.MustCompile(`(?m)^` + m[1] + `\{[^}]*\b` + l[1] + `="` + value + `"`).MatchString(scrape) {
						t.Errorf("%s: %s has no %s=%q", rule.Alert, m[1], l[1], value)
					}
				}
			}
		}
		if !slices.Contains([]string{"page", "ticket"}, rule.Labels["severity"]) || rule.Annotations["summary"] == "" {
			t.Errorf("%s: severity %q, summary %q", rule.Alert, rule.Labels["severity"], rule.Annotations["summary"])
		}
	}
	if series < 20 {
		t.Errorf("only %d selectors found", series)
	}
}

// TestEveryAlertIsExplained compares rules, their tests and the page about them.
func TestEveryAlertIsExplained(t *testing.T) {
	t.Parallel()
	page, tests := readHouse(t, "docs/alerts.md"), readHouse(t, "configs/alerts.test.yaml")
	var named []string
	for _, rule := range readRules(t) {
		named = append(named, rule.Alert)
		if want := "docs/alerts.md#" + strings.ToLower(rule.Alert); rule.Annotations["runbook"] != want {
			t.Errorf("%s: runbook %q, want %q", rule.Alert, rule.Annotations["runbook"], want)
		}
		if !strings.Contains(tests, rule.Alert) {
			t.Errorf("configs/alerts.test.yaml does not make %s fire", rule.Alert)
		}
	}
	var explained []string
	for _, m := range regexp.MustCompile(`(?m)^### (\w+)$`).FindAllStringSubmatch(page, -1) {
		explained = append(explained, m[1])
	}
	slices.Sort(named)
	slices.Sort(explained)
	if !slices.Equal(named, explained) {
		t.Errorf("rules     %v\nexplained %v", named, explained)
	}
}

// TestAlertsAreSilentOnAHealthyDaemon lets Prometheus' own tool evaluate the
// rules over a scrape of a running daemon, repeated for two hours, and the
// committed cases in which each fires.
func TestAlertsAreSilentOnAHealthyDaemon(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("no promtool on PATH (Debian: package prometheus); .ci/run brings one")
	}
	rules, err := filepath.Abs(filepath.Join(root, "configs", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	fmt.Fprintf(&file, "rule_files: [%s]\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n    input_series:\n", rules)
	fmt.Fprintf(&file, "      - {series: 'up{job=\"chaind\"}', values: '1x120'}\n")
	for line := range strings.Lines(scrapeDaemon(t)) {
		at := strings.LastIndexByte(line, ' ')
		if !strings.HasPrefix(line, "chaind_") || strings.HasPrefix(line, "chaind_disk_free") { // whatever this machine has
			continue
		}
		fmt.Fprintf(&file, "      - {series: '%s', values: '%sx120'}\n", line[:at], strings.TrimSpace(line[at:]))
	}
	fmt.Fprintf(&file, "    alert_rule_test:\n")
	for _, rule := range readRules(t) {
		fmt.Fprintf(&file, "      - {eval_time: 119m, alertname: %s, exp_alerts: []}\n", rule.Alert)
	}
	healthy := filepath.Join(t.TempDir(), "healthy.yaml")
	if err := os.WriteFile(healthy, file.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tests := range []string{healthy, filepath.Join(root, "configs", "alerts.test.yaml")} {
		if out, err := exec.Command(promtool, "test", "rules", tests).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", tests, err, out)
		}
	}
}
