package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	natsserver "github.com/nats-io/nats-server/v2/server"

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
	info := startDaemon(t, daemon.Config{NATS: daemon.NATSConfig{Listen: "127.0.0.1:-1"}, HTTP: daemon.HTTPConfig{Listen: "127.0.0.1:0"},
		Keys: daemon.KeyConfig{SigningKey: key}})
	awaitReady(t, info.HTTPURL, http.StatusOK)
	return scrape(t, info.HTTPURL)
}

// scrapeTroubledDaemon runs a daemon that has no key, takes its broker away,
// and returns what a scrape of it shows.
func scrapeTroubledDaemon(t *testing.T) string {
	t.Helper()
	srv := startNATS(t, &natsserver.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true})
	info := startDaemon(t, daemon.Config{NATS: daemon.NATSConfig{URL: srv.ClientURL()}, HTTP: daemon.HTTPConfig{Listen: "127.0.0.1:0"}})
	awaitReady(t, info.HTTPURL, http.StatusOK)
	srv.Shutdown()
	srv.WaitForShutdown()
	awaitReady(t, info.HTTPURL, http.StatusServiceUnavailable)
	return scrape(t, info.HTTPURL)
}

func scrape(t *testing.T, base string) string {
	t.Helper()
	res, err := http.Get(base + "/metrics")
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

// awaitReady waits until the daemon says whether it does its work.
func awaitReady(t *testing.T, base string, status int) {
	t.Helper()
	ready := until(func() bool {
		res, err := http.Get(base + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode == status
	})
	if !ready {
		t.Fatalf("the daemon never answered %d", status)
	}
}

var (
	selector = regexp.MustCompile(`\b((?:chaind|process)_[a-z_]+)(?:\{([^}]*)\})?`)
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
	causesAreExplained(t, page)
	slices.Sort(named)
	slices.Sort(explained)
	if !slices.Equal(named, explained) {
		t.Errorf("rules     %v\nexplained %v", named, explained)
	}
}

// causesAreExplained compares the causes of not being ready that a daemon has
// with those that the page says something about.
func causesAreExplained(t *testing.T, page string) {
	t.Helper()
	var known, explained []string
	for _, m := range regexp.MustCompile(`(?m)^chaind_not_ready\{cause="(\w+)"\}`).FindAllStringSubmatch(scrapeDaemon(t), -1) {
		known = append(known, m[1])
	}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[a-z_`, ]+) \\|").FindAllStringSubmatch(page, -1) {
		for name := range strings.SplitSeq(row[1], ", ") {
			explained = append(explained, strings.Trim(name, "`"))
		}
	}
	slices.Sort(known)
	slices.Sort(explained)
	if len(known) < 10 || !slices.Equal(known, explained) {
		t.Errorf("causes    %v\nexplained %v", known, explained)
	}
}

// TestAlertsOverScrapes lets Prometheus' own tool evaluate the rules over scrapes
// of running daemons, repeated for two hours: of a healthy one, where none fires,
// and of one whose broker is away and that has no key. Then the committed cases.
func TestAlertsOverScrapes(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("no promtool on PATH (Debian: package prometheus); .ci/run brings one")
	}
	for _, tests := range []string{
		scrapeCase(t, scrapeDaemon(t)),
		scrapeCase(t, scrapeTroubledDaemon(t), "ChaindNotReady", "ChaindUnsigned"),
		filepath.Join(root, "configs", "alerts.test.yaml"),
	} {
		if out, err := exec.Command(promtool, "test", "rules", tests).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", tests, err, out)
		}
	}
}

// scrapeCase writes a case for promtool in which a scrape stays as it is, and
// exactly the named alerts fire.
func scrapeCase(t *testing.T, scraped string, firing ...string) string {
	t.Helper()
	rules, err := filepath.Abs(filepath.Join(root, "configs", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	fmt.Fprintf(&file, "rule_files: [%s]\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n    input_series:\n", rules)
	fmt.Fprintf(&file, "      - {series: 'up{job=\"chaind\"}', values: '1x120'}\n")
	for line := range strings.Lines(scraped) {
		at := strings.LastIndexByte(line, ' ')
		if !strings.HasPrefix(line, "chaind_") || strings.HasPrefix(line, "chaind_disk_free") { // whatever this machine has
			continue
		}
		fmt.Fprintf(&file, "      - {series: '%s', values: '%sx120'}\n", line[:at], strings.TrimSpace(line[at:]))
	}
	fmt.Fprintf(&file, "    promql_expr_test:\n")
	for _, rule := range readRules(t) {
		samples := "[]"
		if slices.Contains(firing, rule.Alert) {
			samples = "[{value: 1, labels: '{}'}]"
		}
		fmt.Fprintf(&file, "      - {eval_time: 119m, expr: 'count(ALERTS{alertname=\"%s\",alertstate=\"firing\"})', exp_samples: %s}\n", rule.Alert, samples)
	}
	path := filepath.Join(t.TempDir(), "scrape.yaml")
	if err := os.WriteFile(path, file.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
