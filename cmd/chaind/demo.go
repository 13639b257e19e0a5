package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/internal/daemon"
	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/verifier"
)

type demoCmd struct {
	Out string `help:"Keep everything in this directory (default: a temporary one, removed at the end)." type:"path" placeholder:"DIR"`
}

func (c *demoCmd) Help() string {
	return `Starts the daemon with a NATS server inside, publishes the run of an agent that reverts a bad deployment, waits until its evidence is
sealed and signed, fetches it over HTTP, verifies it offline, then changes one hashed digit and verifies again; and the same with its trust bundle, whose claims are derived again. Needs no network and no
configuration; ports are picked by the system, on the loopback interface.

Example:
  chaind demo --out demo && chaind verify --trusted-pubkey "$(cat demo/signing.key.pub)" $(find demo -path '*/heads/*.evidence.json')`
}

// demoTime bounds the whole demonstration.
const demoTime = time.Minute

func (c *demoCmd) Run(a *app) error {
	ctx, cancel := context.WithTimeout(a.ctx, demoTime)
	defer cancel()
	dir := c.Out
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "chaind-demo-"); err != nil {
			return cannot(err, "")
		}
		defer os.RemoveAll(dir)
	}
	if err := demonstrate(ctx, a, dir); err != nil {
		return cannot(fmt.Errorf("demo: %w", err), "")
	}
	if c.Out != "" {
		return a.printf("\nEverything is in %s. Try:\n  chaind verify --trusted-pubkey \"$(cat %s)\" $(find %s -path '*/heads/*.evidence.json')\n",
			c.Out, filepath.Join(c.Out, "signing.key.pub"), c.Out)
	}
	return nil
}

// demonstrate runs a daemon in dir and walks through it.
func demonstrate(ctx context.Context, a *app, dir string) error {
	key, err := demoKey(dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	started := make(chan daemon.Info, 1)
	stopped := make(chan error, 1)
	run, stop := context.WithCancel(ctx)
	go func() {
		err := daemon.Run(run, daemon.Config{
			DataDir: dir,
			NATS:    daemon.NATSConfig{Listen: "127.0.0.1:-1"},
			HTTP:    daemon.HTTPConfig{Listen: "127.0.0.1:0"},
			Keys:    daemon.KeyConfig{SigningKey: key},
			Logger:  slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
			Now:     a.now,
		}, func(i daemon.Info) { started <- i })
		if err != nil {
			cancel(err) // whoever waits for the daemon need not wait longer
		}
		stopped <- err
	}()
	select {
	case info := <-started:
		err = walk(ctx, a, dir, info)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	stop()
	return errors.Join(err, <-stopped)
}

// demoKey creates the demo's signing key, or finds the one of an earlier run.
func demoKey(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "signing.key")
	if _, err := daemon.CreateKey(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return path, nil
}

// walk publishes, waits for the seal, fetches, verifies, tampers.
func walk(ctx context.Context, a *app, dir string, info daemon.Info) error {
	if err := a.printf("1 started   NATS on %s, HTTP on %s\n", info.NATSURL, info.HTTPURL); err != nil {
		return err
	}
	sealed, err := publishStory(ctx, a, info)
	if err != nil {
		return err
	}
	path := filepath.Join(info.ArtifactsDir, filepath.FromSlash(sealed.Sealed.Path))
	if err := a.printf("4 sealed    %s\n", path); err != nil {
		return err
	}
	served, err := fetchEvidence(a, info.HTTPURL)
	if err != nil {
		return err
	}
	trust, err := demoTrust(dir)
	if err != nil {
		return err
	}
	if err := showVerdicts(ctx, a, dir, path, served, trust); err != nil {
		return err
	}
	return showBundle(ctx, a, info.ArtifactsDir, sealed.Sealed.BundleRoot, trust)
}

// demoTrust is the list that holds the demo's own key.
func demoTrust(dir string) (*keys.TrustList, error) {
	public, err := os.ReadFile(filepath.Join(dir, "signing.key.pub"))
	if err != nil {
		return nil, err
	}
	trusted, err := keys.ParseFlags([]string{string(public)})
	if err != nil {
		return nil, err
	}
	trust, _, err := keys.Merge(trusted)
	return trust, err
}

// publishStory publishes the run and returns the receipt of its seal.
func publishStory(ctx context.Context, a *app, info daemon.Info) (*emitter.Receipt, error) {
	conn, err := emitter.Connect(emitter.ConnConfig{URL: info.NATSURL, Name: "chaind demo"})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	// A chain of its own each time: the same run, told again in the same
	// directory, has the same head and adds no second file.
	chain := "demo-" + strconv.FormatInt(a.now().UnixNano(), 36)
	p, err := emitter.Begin(ctx, emitter.PublisherConfig{Conn: conn, Scope: storyScope(), Chain: chain, Now: a.now})
	if err != nil {
		return nil, err
	}
	defer p.Close()
	confirmed, err := tell(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := a.printf("2 published chain %s: intent, plan, 3 steps (one failed and was retried), seal\n3 durable   receipt for stream sequence %d, head %s\n",
		chain, confirmed.Event.StreamSeq, confirmed.Receipt.Head); err != nil {
		return nil, err
	}
	return p.WaitSealed(ctx)
}

// fetchEvidence asks the read API as an auditor would.
func fetchEvidence(a *app, base string) ([]byte, error) {
	scope := storyScope()
	document, err := segments.DecodeSealDocument([]byte(storySnapshot))
	if err != nil {
		return nil, err
	}
	digest, err := segments.RunDigest(&scope, document)
	if err != nil {
		return nil, err
	}
	url := fmt.Sprintf("%s/tenants/%s/execute/%s/%s/artifacts/%s/evidence", base, scope.TenantID, scope.PromptHash, scope.ExecuteSessionID, segments.RunID(digest))
	status, body, err := (&clientFlags{}).get(a, url, apiTimeout)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %d: %s", url, status, verifier.Escape(string(body)))
	}
	return body, a.printf("5 served    GET %s: %d, %d bytes\n", url, status, len(body))
}

// showVerdicts verifies the evidence on disk, compares it with what was served,
// and verifies it again after a change of one digit.
func showVerdicts(ctx context.Context, a *app, dir, path string, served []byte, trust *keys.TrustList) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(text, served) {
		return errors.New("what was served differs from what was sealed")
	}
	if err := a.printf("6 verified  offline, against the key in %s:\n", filepath.Join(dir, "signing.key.pub")); err != nil {
		return err
	}
	if exit := showVerdict(ctx, a, text, trust); exit != exitOK {
		return fmt.Errorf("the evidence does not verify: exit %d", exit)
	}
	return tamper(ctx, a, text, trust)
}

// tamper changes one digit of what the last step did and shows where it breaks.
func tamper(ctx context.Context, a *app, text []byte, trust *keys.TrustList) error {
	at := bytes.Index(text, []byte("Revert #4127"))
	if at < 0 {
		return errors.New("the evidence does not show the last step")
	}
	forged := bytes.Clone(text)
	forged[at+len("Revert #412")] = '8'
	if err := a.printf("7 tampered  byte %d changed: %q is now %q:\n", at+len("Revert #412"), "Revert #4127", "Revert #4128"); err != nil {
		return err
	}
	if exit := showVerdict(ctx, a, forged, trust); exit != exitEnvelope {
		return fmt.Errorf("the forged evidence gave exit %d, not %d", exit, exitEnvelope)
	}
	return nil
}

func showVerdict(ctx context.Context, a *app, text []byte, trust *keys.TrustList) int {
	report := verifier.Evidence(ctx, bytes.NewReader(text), verifier.Options{Trust: trust})
	var out strings.Builder
	writeVerdict(&out, verified{"run.evidence.json", report}, colours(a.stdout))
	for line := range strings.Lines(out.String()) {
		fmt.Fprint(a.stdout, "  ", line)
	}
	return report.ExitCode
}
