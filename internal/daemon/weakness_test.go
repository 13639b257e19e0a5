package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/verifier"
)

// publishTo publishes the one step of a chain, or its end.
func publishTo(t *testing.T, js jetstream.JetStream, chain string, ends bool) {
	t.Helper()
	key, verb, payload := gapKey, events.VerbStep, gapStep("only")
	if key.Chain = chain; ends {
		verb, payload = events.VerbSeal, `{"v":1,"event_id":"end","outcome":"succeeded","event_count":2}`
	}
	if _, err := js.Publish(t.Context(), key.Subject(verb), []byte(payload)); err != nil {
		t.Fatal(err)
	}
}

// bundlesBelow reads the trust bundles below dir by the chain that they are of.
func bundlesBelow(t *testing.T, dir string, want int) map[string]string {
	t.Helper()
	texts := map[string]string{}
	var names []string
	waitUntil(t, "the bundles are there", func() bool {
		var err error
		names, err = filepath.Glob(filepath.Join(dir, "artifacts", "bundles", "*.tsb"))
		return err == nil && len(names) == want
	})
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		r := verifier.TrustBundle(t.Context(), strings.NewReader(string(text)), verifier.Options{})
		if r.ExitCode != verifier.ExitPass || r.Content.Run == nil {
			t.Fatalf("%s: exit %d: %s", name, r.ExitCode, r.Summary)
		}
		texts[r.Content.Run.Chain] = string(text)
	}
	return texts
}

// The bundle of a run names the stream settings that it came in under: before,
// across and after a change. Naming them costs no verdict, and bundles that an
// audit makes again, when other settings are on record, have the same bytes.
func TestBundleNamesWeakSettings(t *testing.T) {
	t.Parallel()
	b, dir := newRollable(t), t.TempDir()
	js := b.js()
	weak := jetstream.StreamConfig{Name: emitter.DefaultStream, Subjects: []string{"evidence.>"}, Discard: jetstream.DiscardOld, MaxAge: time.Hour, Duplicates: 100 * time.Millisecond}
	if _, err := js.CreateStream(t.Context(), weak); err != nil {
		t.Fatal(err)
	}
	cfg := Config{DataDir: dir, NATS: NATSConfig{URL: b.url()}}
	d := runDaemon(t, cfg)
	publishTo(t, js, "before", false)
	publishTo(t, js, "across", false)
	publishTo(t, js, "before", true)
	settled(t, d.HTTPURL, 3)
	bundlesBelow(t, dir, 1)
	if page := metricsPage(d.HTTPURL); !strings.Contains(page, `chaind_stream_weakness{setting="max_age"} 1`) || !strings.Contains(page, `chaind_stream_weakness{setting="one_replica"} 1`) {
		t.Error("the metrics do not name the settings")
	}
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	weak.Discard, weak.MaxAge = jetstream.DiscardNew, 0
	if _, err := js.UpdateStream(t.Context(), weak); err != nil {
		t.Fatal(err)
	}
	d = runDaemon(t, cfg)
	publishTo(t, js, "after", false)
	publishTo(t, js, "across", true)
	publishTo(t, js, "after", true)
	settled(t, d.HTTPURL, 6)
	texts := bundlesBelow(t, dir, 3)
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	const all = `\"discard_old\", \"max_age\", \"one_replica\".`
	for chain, names := range map[string]string{"before": all, "across": all, "after": `\"one_replica\".`} {
		if want := `It recorded stream settings that weaken evidence: ` + names; !strings.Contains(texts[chain], want) {
			t.Errorf("chain %s: the bundle does not say %s", chain, want)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, "artifacts", "bundles")); err != nil {
		t.Fatal(err)
	}
	runDaemon(t, cfg)
	for chain, text := range bundlesBelow(t, dir, 3) {
		if text != texts[chain] {
			t.Errorf("chain %s: the audit made another bundle", chain)
		}
	}
}
