package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
)

// root is the top of the repository, seen from this directory.
const root = "../.."

func readHouse(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// commandLine parses arguments as the program does.
func commandLine(t *testing.T, args ...string) (*cli, *app, *kong.Context) {
	t.Helper()
	var c cli
	a := &app{ctx: t.Context(), stdout: io.Discard, stderr: io.Discard, now: time.Now}
	ctx, code, err := parse(&c, a, args)
	if err != nil || ctx == nil {
		t.Fatalf("chaind %s: exit %d: %v", strings.Join(args, " "), code, err)
	}
	return &c, a, ctx
}

// variables are the environment variables that serve knows.
func variables(t *testing.T) []string {
	_, _, ctx := commandLine(t, "serve")
	names := []string{envSigningKey, envTrustedKeys, envIntake}
	for _, flag := range ctx.Flags() {
		names = append(names, flag.Envs...)
	}
	return names
}

type compose struct {
	Services map[string]struct {
		Image       string            `yaml:"image"`
		Build       string            `yaml:"build"`
		Command     []string          `yaml:"command"`
		Environment map[string]string `yaml:"environment"`
		Volumes     []string          `yaml:"volumes"`
		Ports       []string          `yaml:"ports"`
		Healthcheck struct {
			Test []string `yaml:"test"`
		} `yaml:"healthcheck"`
		DependsOn map[string]struct {
			Condition string `yaml:"condition"`
		} `yaml:"depends_on"`
	} `yaml:"services"`
	Volumes map[string]any `yaml:"volumes"`
}

// composeFiles are the ways to run it in containers.
var composeFiles = []string{"docker-compose.yml", "configs/cluster/compose.yaml"}

func readCompose(t *testing.T, file string) compose {
	t.Helper()
	var c compose
	if err := yaml.Unmarshal([]byte(readHouse(t, file)), &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Services) < 2 {
		t.Fatalf("%s has %d services", file, len(c.Services))
	}
	return c
}

func TestComposeNamesFilesAndVolumesThatExist(t *testing.T) {
	for _, file := range composeFiles {
		checkCompose(t, readCompose(t, file), filepath.Join(root, filepath.Dir(file)))
	}
}

// checkCompose looks at a compose file that lies in dir.
func checkCompose(t *testing.T, c compose, dir string) {
	t.Helper()
	for name, service := range c.Services {
		for _, volume := range service.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			if strings.HasPrefix(source, ".") {
				if _, err := os.Stat(filepath.Join(dir, source)); err != nil {
					t.Errorf("service %s mounts %s: %v", name, source, err)
				}
			} else if _, ok := c.Volumes[source]; !ok {
				t.Errorf("service %s mounts volume %s, which is not declared", name, source)
			}
		}
		for _, port := range service.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("service %s publishes %s beyond this machine", name, port)
			}
		}
		for other := range service.DependsOn {
			if len(c.Services[other].Healthcheck.Test) == 0 {
				t.Errorf("service %s waits for %s, which has no health check", name, other)
			}
		}
		if strings.HasSuffix(service.Image, ":latest") || service.Image != "" && !strings.Contains(service.Image, ":") {
			t.Errorf("service %s: image %s is not pinned", name, service.Image)
		}
	}
}

func TestComposeStartsChaindWithSettingsThatExist(t *testing.T) {
	for _, file := range composeFiles {
		t.Run(file, func(t *testing.T) {
			service := readCompose(t, file).Services["chaind"]
			if filepath.Join(filepath.Dir(file), service.Build) != "." {
				t.Fatalf("chaind is built from %q", service.Build)
			}
			known := variables(t)
			for name, value := range service.Environment {
				if !slices.Contains(known, name) {
					t.Errorf("%s sets %s, which serve does not know", file, name)
				}
				if strings.Contains(value, "${") {
					value = "a-password"
				}
				t.Setenv(name, value)
			}
			c, a, _ := commandLine(t, service.Command...)
			config, err := c.Serve.daemonConfig(a)
			if err != nil {
				t.Fatal(err)
			}
			if err := config.Validate(); err != nil {
				t.Fatalf("serve would refuse the configuration of %s: %v", file, err)
			}
		})
	}
}

func TestDockerfileBuildsAndStartsWhatExists(t *testing.T) {
	text := readHouse(t, "Dockerfile")
	for _, want := range []string{"CGO_ENABLED=0", "FROM scratch", "USER 65532:65532", `ENTRYPOINT ["/chaind"]`} {
		if !strings.Contains(text, want) {
			t.Errorf("Dockerfile has no %q", want)
		}
	}
	health := regexp.MustCompile(`HEALTHCHECK .* CMD \["/chaind", "(\w+)"\]`).FindStringSubmatch(text)
	if health == nil {
		t.Fatal("Dockerfile has no health check that runs /chaind")
	}
	commandLine(t, health[1])
	start := regexp.MustCompile(`(?m)^CMD \["(\w+)"\]$`).FindStringSubmatch(text)
	if start == nil {
		t.Fatal("Dockerfile has no CMD")
	}
	commandLine(t, start[1])
	for _, m := range regexp.MustCompile(`(?m)^ENV (\w+)=`).FindAllStringSubmatch(text, -1) {
		if !slices.Contains(variables(t), m[1]) {
			t.Errorf("Dockerfile sets %s, which serve does not know", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^COPY (?:--\S+ )?([^-/]\S*)`).FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
			t.Errorf("Dockerfile copies %s: %v", m[1], err)
		}
	}
	if want := "golang:" + regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(readHouse(t, "go.mod"))[1]; !strings.Contains(text, want) {
		t.Errorf("Dockerfile does not build with %s, which go.mod asks for", want)
	}
}

// TestContainersFindWhatIsMountedAndPublished follows each path and port to its
// other end: a file that a command names is mounted, the database lies on a
// volume, and a published port is one that is listened on.
func TestContainersFindWhatIsMountedAndPublished(t *testing.T) {
	data := regexp.MustCompile(`(?m)^ENV CHAIND_DATA_DIR=(\S+)$`).FindStringSubmatch(readHouse(t, "Dockerfile"))
	if data == nil {
		t.Fatal("Dockerfile sets no data directory")
	}
	for _, file := range composeFiles {
		c := readCompose(t, file)
		for name, service := range c.Services {
			var targets []string
			for _, volume := range service.Volumes {
				targets = append(targets, strings.Split(volume, ":")[1])
			}
			for _, arg := range service.Command {
				if strings.HasPrefix(arg, "/") && !slices.Contains(targets, arg) {
					t.Errorf("%s: service %s is started with %s, which is not mounted", file, name, arg)
				}
			}
			listen, ok := service.Environment["CHAIND_HTTP_LISTEN"]
			if !ok {
				continue
			}
			if !slices.Contains(targets, data[1]) {
				t.Errorf("%s: no volume keeps %s of service %s", file, data[1], name)
			}
			for _, port := range service.Ports {
				if !strings.HasSuffix(port, listen[strings.LastIndex(listen, ":"):]) {
					t.Errorf("%s: service %s publishes %s and listens on %s", file, name, port, listen)
				}
			}
		}
	}
}

// TestDockerfileShipsWhatItBuilds follows the binary from its package to the
// entry point.
func TestDockerfileShipsWhatItBuilds(t *testing.T) {
	text := readHouse(t, "Dockerfile")
	build := regexp.MustCompile(`go build .*-o (\S+) (\./\S+)`).FindStringSubmatch(text)
	if build == nil {
		t.Fatal("Dockerfile builds nothing")
	}
	if _, err := os.Stat(filepath.Join(root, build[2], "main.go")); err != nil {
		t.Errorf("Dockerfile builds %s: %v", build[2], err)
	}
	if !strings.Contains(text, "COPY --from=build "+build[1]+" /chaind\n") {
		t.Errorf("Dockerfile does not copy %s to its entry point", build[1])
	}
}

func TestSampleConfigurationIsTheDefault(t *testing.T) {
	plain, a, _ := commandLine(t, "serve")
	want, err := plain.Serve.daemonConfig(a)
	if err != nil {
		t.Fatal(err)
	}
	sample, a, _ := commandLine(t, "serve", "--config", filepath.Join(root, "configs", "chaind.yaml"))
	got, err := sample.Serve.daemonConfig(a)
	if err != nil {
		t.Fatal(err)
	}
	if err := want.Validate(); err != nil {
		t.Fatal(err)
	}
	if err := got.Validate(); err != nil {
		t.Fatal(err)
	}
	got.Logger, got.Now, want.Logger, want.Now = nil, nil, nil, nil
	if diff := diffConfig(want, got); diff != "" {
		t.Errorf("configs/chaind.yaml differs from the defaults it claims to show (-default +sample):\n%s", diff)
	}
}

// TestSampleCommentsAreSettings uncomments every line of the sample that looks
// like a setting and asks whether the program knows it.
func TestSampleCommentsAreSettings(t *testing.T) {
	_, _, ctx := commandLine(t, "serve")
	known := map[string]bool{}
	for _, flag := range ctx.Flags() {
		known[flag.Name] = isSetting(flag)
	}
	section, seen := "", 0
	for line := range strings.Lines(readHouse(t, "configs/chaind.yaml")) {
		m := regexp.MustCompile(`^(\s*)(# )?([a-z-]+):(\s.*)?$`).FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}
		name := m[3]
		if m[1] == "" && m[2] == "" && m[4] == "" {
			section = name
			continue
		}
		if m[1] == "" {
			section = ""
		} else {
			name = section + "-" + name
		}
		seen++
		if !known[name] {
			t.Errorf("configs/chaind.yaml mentions %s, which is no setting", name)
		}
	}
	if seen < 15 {
		t.Errorf("only %d settings found in the sample", seen)
	}
}
