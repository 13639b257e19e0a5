package daemon

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/server"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/sidecar/natsobj"
	"github.com/chaind/chaind/verifier"
)

const inBucket = storeNATS + ":evidence"

var artifactScope = segments.Scope{SchemaVersion: 1, PromptHash: strings.Repeat("a1", 32), ExecuteSessionID: strings.Repeat("b2", 16),
	CatalogCGSHash: "c3", DomainRevision: 1, EntryID: "e"}

// sealRun publishes a run that is sealed with its snapshot and returns its run
// id. It does not wait for the evidence.
func sealRun(t *testing.T, url, name string) string {
	t.Helper()
	conn, err := emitter.Connect(emitter.ConnConfig{URL: url, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	p, err := emitter.Begin(t.Context(), emitter.PublisherConfig{Conn: conn, Scope: artifactScope, Chain: name})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	body := []byte(`{"entry_id":"e","parsed_preimage":{"expr":{"op":"` + name + `"}},"display_lines":["x"],"request_fingerprints":[]}`)
	plan := segments.Sum([]byte(name))
	_, commitErr := p.Commit(t.Context(), emitter.Commit{EventID: "c", PlanDigest: &plan, StepTopo: []string{"s"}})
	_, sealErr := p.Seal(t.Context(), emitter.Seal{EventID: "s", Artifact: body})
	document, err := segments.DecodeSealDocument(body)
	if err := errors.Join(commitErr, sealErr, err); err != nil {
		t.Fatal(err)
	}
	digest, err := segments.RunDigest(&artifactScope, document)
	if err != nil {
		t.Fatal(err)
	}
	return segments.RunID(digest)
}

// evidenceOf asks for the evidence of a run: status, the outcome of the seal
// check, body.
func evidenceOf(t *testing.T, base, runID string) (status int, seal, body string) {
	t.Helper()
	res, err := http.Get(base + "/execute/" + artifactScope.PromptHash + "/" + artifactScope.ExecuteSessionID + "/artifacts/" + runID + "/evidence")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("Chaind-Seal-Check"), string(text)
}

// served tells whether the run's evidence is served and no job is left, so that
// everything is written.
func served(t *testing.T, base, runID string) func() bool {
	return func() bool {
		status, _, _ := evidenceOf(t, base, runID)
		return status == http.StatusOK && strings.Contains(metricsPage(base), `chaind_seal_jobs{state="pending"} 0`+"\n")
	}
}

// TestArtifactsInBucket: a bucket holds, after a golden stream, what a directory
// does, byte for byte, and evidence is served from it.
func TestArtifactsInBucket(t *testing.T) {
	t.Parallel()
	b, list := newRollable(t), readEvents(t, "small")
	limits := IntakeConfig{MaxEventBytes: readExpectation(t, "small").MaxEventBytes}
	d := runDaemon(t, Config{DataDir: t.TempDir(), NATS: NATSConfig{URL: b.url()}, Intake: limits, Artifacts: ArtifactsConfig{Store: inBucket}})
	publishAll(t, b.url(), list, nil)
	settled(t, d.HTTPURL, len(list))
	runID := sealRun(t, b.url(), "served")
	waitUntil(t, "evidence from the bucket", served(t, d.HTTPURL, runID))
	if _, seal, _ := evidenceOf(t, d.HTTPURL, runID); seal != "passed" {
		t.Errorf("seal check: %q", seal)
	}
	if d.ArtifactsDir != "" {
		t.Errorf("a directory %q is told of", d.ArtifactsDir)
	}
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	d = runDaemon(t, Config{DataDir: dir, NATS: NATSConfig{URL: b.url()}, Intake: limits})
	settled(t, d.HTTPURL, len(list)+2)
	waitUntil(t, "evidence from the directory", served(t, d.HTTPURL, runID))
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tree(t, filepath.Join(dir, "artifacts")), bucketTree(t, b.js())); diff != "" {
		t.Errorf("bucket differs (-directory +bucket):\n%s", diff)
	}
}

// bucketTree reads all objects, but for the daemon's own bookkeeping.
func bucketTree(t *testing.T, js jetstream.JetStream) map[string]string {
	t.Helper()
	bucket, err := natsobj.Open(t.Context(), natsobj.Config{JS: js, Bucket: "evidence"})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	err = bucket.List(t.Context(), "", func(name string) error {
		r, err := bucket.Open(t.Context(), name)
		if err != nil || strings.HasPrefix(name, ".") {
			return err
		}
		defer r.Close()
		text, err := io.ReadAll(r)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestSealingWaitsForTheBucket: while the bucket is away events are taken in,
// the jobs stay, readiness says so; across a restart of the broker and until the
// bucket is back nothing is lost.
func TestSealingWaitsForTheBucket(t *testing.T) {
	t.Parallel()
	b, clock := newRollable(t), &movingClock{at: time.Now()}
	d := runDaemon(t, Config{DataDir: t.TempDir(), NATS: NATSConfig{URL: b.url()}, Artifacts: ArtifactsConfig{Store: inBucket}, Now: clock.now,
		Logger: slog.New(slog.DiscardHandler)})
	js := b.js()
	stream, err := js.Stream(t.Context(), "OBJ_evidence")
	if err != nil {
		t.Fatal(err)
	}
	settings := stream.CachedInfo().Config
	if err := js.DeleteStream(t.Context(), "OBJ_evidence"); err != nil {
		t.Fatal(err)
	}
	runs := []string{sealRun(t, b.url(), "one"), sealRun(t, b.url(), "two")}
	stuck := func() bool {
		clock.move(failPatience)
		_, stuck := readyCauses(t, d.HTTPURL)[server.CauseSeals]
		return stuck
	}
	waitUntil(t, "seals are stuck", stuck)
	turns(t, d.HTTPURL, server.CauseSeals, true)
	if status, _, _ := evidenceOf(t, d.HTTPURL, runs[0]); status == http.StatusOK {
		t.Error("evidence is served though the bucket is away")
	}
	b.stop()
	b.start()
	waitUntil(t, "seals are stuck after a restart of the broker", func() bool {
		return stuck() && readyCauses(t, d.HTTPURL)[server.CauseDisconnected] == ""
	})
	if _, err := b.js().CreateStream(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "seals go on", func() bool {
		clock.move(time.Minute)
		_, stuck := readyCauses(t, d.HTTPURL)[server.CauseSeals]
		return !stuck
	})
	for _, runID := range runs {
		waitUntil(t, "evidence", served(t, d.HTTPURL, runID))
	}
	if page := metricsPage(d.HTTPURL); !strings.Contains(page, `chaind_seal_jobs{state="pending"} 0`) {
		t.Error("jobs are left")
	}
}

// TestRetentionOfSnapshots: at its age a snapshot goes, the evidence stays, and
// the answer says that the seal could not be checked against it.
func TestRetentionOfSnapshots(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]string{"directory": "", "bucket": inBucket} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, clock, dir := newRollable(t), &movingClock{at: time.Now()}, t.TempDir()
			sweeps, age := make(chan time.Time), time.Hour
			d := runDaemon(t, Config{DataDir: dir, NATS: NATSConfig{URL: b.url()}, Now: clock.now,
				Artifacts: ArtifactsConfig{Store: store, Retention: &age},
				after:     func(time.Duration) <-chan time.Time { return sweeps }})
			runID := sealRun(t, b.url(), "run")
			waitUntil(t, "evidence", served(t, d.HTTPURL, runID))
			for range 2 { // the second is taken up when the first is done
				sweeps <- clock.now()
			}
			_, seal, before := evidenceOf(t, d.HTTPURL, runID)
			if seal != "passed" {
				t.Errorf("before its time: %q", seal)
			}
			clock.move(age)
			for range 2 {
				sweeps <- clock.now()
			}
			status, seal, after := evidenceOf(t, d.HTTPURL, runID)
			if status != http.StatusOK || seal != "artifact_absent" || after != before {
				t.Errorf("after its time: %d, %q, the same bytes: %v", status, seal, after == before)
			}
			if store != "" {
				return
			}
			for name := range tree(t, filepath.Join(dir, "artifacts")) {
				if strings.HasSuffix(name, ".artifact") {
					t.Errorf("%s is left", name)
				}
			}
			if n := len(evidenceFiles(t, dir)); n != 1 {
				t.Errorf("%d evidence files", n)
			}
		})
	}
}

// TestEvidenceOfAnotherDatabase is case F15: the second database stops with the
// owner's name; told to take over, it goes on.
func TestEvidenceOfAnotherDatabase(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]string{"directory": "", "bucket": inBucket} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newRollable(t)
			cfg := Config{DataDir: t.TempDir(), NATS: NATSConfig{URL: b.url()}, Artifacts: ArtifactsConfig{Store: store}}
			if store == "" {
				cfg.ArtifactsDir = t.TempDir()
			}
			first := runDaemon(t, cfg)
			if err := first.stop(); err != nil {
				t.Fatal(err)
			}
			cfg.DataDir, cfg.Logger, cfg.HTTP.Listen = t.TempDir(), slog.New(slog.DiscardHandler), httpOff
			err := Run(t.Context(), cfg, func(Info) { t.Error("it started") })
			if owner, ok := errors.AsType[*sidecar.OwnerError](err); !ok || owner.Have != first.StoreID {
				t.Fatalf("another database: %v", err)
			}
			cfg.Artifacts.TakeOver = true
			second := runDaemon(t, cfg)
			if err := second.stop(); err != nil || second.StoreID == first.StoreID {
				t.Errorf("took over as %s: %v", second.StoreID, err)
			}
		})
	}
}

func TestArtifactSettings(t *testing.T) {
	t.Parallel()
	secs := func(n int) *time.Duration { d := time.Duration(n) * time.Second; return &d }
	for name, c := range map[string]struct {
		cfg  Config
		want string // settings named; "": fine
	}{
		"default":         {Config{}, ""},
		"bucket":          {Config{Artifacts: ArtifactsConfig{Store: inBucket}}, ""},
		"memory":          {Config{Artifacts: ArtifactsConfig{Store: "memory"}}, ""},
		"no bucket":       {Config{Artifacts: ArtifactsConfig{Store: storeNATS}}, "artifacts"},
		"empty bucket":    {Config{Artifacts: ArtifactsConfig{Store: storeNATS + ":"}}, "artifacts"},
		"bad bucket":      {Config{Artifacts: ArtifactsConfig{Store: storeNATS + ":a.b"}}, "artifacts"},
		"other store":     {Config{Artifacts: ArtifactsConfig{Store: "s3://x"}}, "artifacts"},
		"two places":      {Config{ArtifactsDir: "x", Artifacts: ArtifactsConfig{Store: inBucket}}, "artifacts artifacts-dir"},
		"retention":       {Config{Artifacts: ArtifactsConfig{Retention: secs(60)}}, ""},
		"short retention": {Config{Artifacts: ArtifactsConfig{Retention: secs(59)}}, "artifacts-retention-secs"},
		"no retention":    {Config{Artifacts: ArtifactsConfig{Retention: secs(0)}}, "artifacts-retention-secs"},
		"sweep":           {Config{Artifacts: ArtifactsConfig{SweepEvery: time.Second}}, "artifacts-gc-interval-secs"},
	} {
		c.cfg.DataDir, c.cfg.Logger = "data", slog.New(slog.DiscardHandler)
		err := c.cfg.Validate()
		setting, ok := errors.AsType[*SettingError](err)
		switch {
		case c.want == "" && err != nil, c.want != "" && !ok:
			t.Errorf("%s: %v", name, err)
		case ok && strings.Join(setting.Settings, " ") != c.want:
			t.Errorf("%s names %v", name, setting.Settings)
		}
		if wantDir := c.cfg.Artifacts.Store == storeDirectory; err == nil && wantDir != (c.cfg.ArtifactsDir == filepath.Join("data", "artifacts")) {
			t.Errorf("%s: directory %q", name, c.cfg.ArtifactsDir)
		}
	}
}

// The files of a stopped daemon whose evidence lies in a bucket can be listed.
func TestReaderWithoutDirectory(t *testing.T) {
	t.Parallel()
	b, dir := newRollable(t), t.TempDir()
	d := runDaemon(t, Config{DataDir: dir, NATS: NATSConfig{URL: b.url()}, Artifacts: ArtifactsConfig{Store: inBucket}})
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	r, err := OpenReader(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if status, _, err := r.Get(t.Context(), "/v1/chains"); status != http.StatusOK || err != nil {
		t.Errorf("%d, %v", status, err)
	}
	if other, err := OpenReader(dir, filepath.Join(dir, "nothing")); !errors.Is(err, os.ErrNotExist) || other != nil {
		t.Errorf("a directory that does not exist: %v", err)
	}
}

// TestArtifactsOfPlasm starts on a directory that Plasm left: evidence and the
// framed snapshots beside it are served, the seal is checked against them over
// HTTP, and our retention leaves them alone.
func TestArtifactsOfPlasm(t *testing.T) {
	t.Parallel()
	const session = "/execute/74cca950dc3d33908181dcef52a1afe4255aed08b3c2b285d6bf182ebe416d50/5e55107a5e55107a5e55107a5e55107a"
	runs := []string{"f666c6def78497125b71b1c0870a88b3cbd26b6f3718c713a18c5020be862630", "99b83e024d5ccf1769cbe0e265324eb11876b28c7558c33cbadd3c1897f59a0b"}
	b, clock, dir, age := newRollable(t), &movingClock{at: time.Now()}, t.TempDir(), time.Hour
	if err := os.CopyFS(dir, os.DirFS("../../testdata/plasm/store/two-run")); err != nil {
		t.Fatal(err)
	}
	before, sweeps := tree(t, dir), make(chan time.Time)
	d := runDaemon(t, Config{DataDir: t.TempDir(), ArtifactsDir: dir, NATS: NATSConfig{URL: b.url()}, Now: clock.now, Logger: slog.New(slog.DiscardHandler),
		Artifacts: ArtifactsConfig{Retention: &age}, after: func(time.Duration) <-chan time.Time { return sweeps }})
	ask := func(run string) (int, string) {
		t.Helper()
		res, err := http.Get(d.HTTPURL + session + "/artifacts/pr" + run + "/evidence")
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, res.Header.Get("Chaind-Seal-Check")
	}
	clock.move(1000 * time.Hour)
	for range 2 {
		sweeps <- clock.now()
	}
	for _, run := range runs {
		if status, seal := ask(run); status != http.StatusOK || seal != "passed" {
			t.Errorf("run %.8s: %d, seal check %q", run, status, seal)
		}
	}
	if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
		t.Errorf("files changed:\n%s", diff)
	}
	path := filepath.Join(dir, session, runs[0]+".artifact")
	blob, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	forged := bytes.Replace(blob, []byte(`"request_fingerprints":["`), []byte(`"request_fingerprints":["0`), 1)
	if err := os.WriteFile(path, forged, 0o644); err != nil || bytes.Equal(blob, forged) {
		t.Fatal("nothing was forged", err)
	}
	if status, _ := ask(runs[0]); status != http.StatusUnprocessableEntity {
		t.Errorf("with a forged snapshot: %d", status)
	}
	if status, _ := ask(runs[1]); status != http.StatusOK {
		t.Errorf("the other run: %d", status)
	}
}

// TestK13NoThrowawayKey: without a configured key nothing is signed, nothing
// that looks like a key is made, and evidence sealed before a restart says after
// it what it said before.
func TestK13NoThrowawayKey(t *testing.T) {
	t.Parallel()
	b, dir := newRollable(t), t.TempDir()
	var runID, before string
	for n := range 2 {
		d := runDaemon(t, Config{DataDir: dir, NATS: NATSConfig{URL: b.url()}})
		if n == 0 {
			runID = sealRun(t, b.url(), "run")
		}
		waitUntil(t, "evidence", served(t, d.HTTPURL, runID))
		_, _, body := evidenceOf(t, d.HTTPURL, runID)
		r := verifier.Evidence(t.Context(), strings.NewReader(body), verifier.Options{})
		if r.Signature.State != keys.StateUnsigned || d.KeyID != "" || n == 1 && body != before {
			t.Errorf("start %d: %s, key %q", n, r.Signature.State, d.KeyID)
		}
		if before = body; d.stop() != nil {
			t.Fatal("stop failed")
		}
	}
	for name := range tree(t, dir) {
		if strings.Contains(name, "key") || strings.Contains(name, "seed") {
			t.Errorf("%s was made", name)
		}
	}
}
