package main

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var runMutants = flag.Bool("mutants", false, "remove each mechanism in turn, and want a test to fail")

// mutants are the mechanisms that the promises rest on, each taken out of its
// source by one replacement, and the tests of which one at least must then fail.
var mutants = []struct {
	name, file, old, new string
	pkg, tests           string
}{
	{"dedupe by event id", "store/apply.go", "bound := c.state.Scope != nil", "known = holder{}\n\tbound := c.state.Scope != nil", "./store", "TestVectors|TestRestarts|TestN"},
	{"redelivery is recognised", "store/apply.go", "found, err := w.redelivered(ep, e, effect)", "found, err := false, error(nil)", "./store", "TestRestarts|TestRedeliver|TestN|TestVectors|TestBackup"},
	{"watermark", "store/apply.go", "ep.Applied = max(ep.Applied, e.StreamSeq)", "", "./store", "TestLostRanges|TestEpochs|TestBackup"},
	{"seal job", "store/seals.go", "return w.write(tableJobs, key64(w.n.jobs), &jobRecord{chain: c.next.no})", "return nil", "./store", "TestSealJobs|TestRestarts"},
	{"marks in the order of entries", "store/transaction.go", "slices.SortFunc(s.dirty[known:],", "slices.SortFunc(s.dirty[known:known],", "./store", "TestTailBehindARedelivery"},
	{"lost ranges", "store/epochs.go", "return w.putLost(ep, from, to, why)", "return nil", "./store", "TestLostRanges"},
	{"outbox of rejections", "store/reject.go", "w.n.rejections++\n", "", "./store", "TestVectors|TestRestarts|TestRejected"},
	{"stop after a failed fsync", "store/transaction.go", `path.Op != "sync" && `, "", "./store", "TestCommitErrors"},
	{"fsync of the database", "store/open.go", "NoStatistics:    true,", "NoStatistics:    true,\n\t\tNoSync: true,", "./store", "TestPowerCuts"},
	{"what a start reads is durable", "store/open.go", "errors.Join(s.db.Sync(), syncRoot(s.mark.root))", "syncRoot(s.mark.root)", "./store", "TestPowerCuts"},
	{"fsync of the database after a compaction", "store/compact.go", "c.db.NoSync = false\n", "", "./store", "TestPowerCuts"},
	{"fsync of the mark", "store/mark.go", "errors.Join(err, f.Sync(), f.Close())", "errors.Join(err, f.Close())", "./store", "TestPowerCuts"},
	{"the database is written anew after a failed fsync", "store/open.go", "if err := s.rewrite(); err != nil {\n\t\treturn err\n\t}\n", "", "./store", "TestFailedSync"},
	{"an older database is told from the later one", "store/life.go", "s.restored = m.life != s.life.now || s.tx < m.tx", "", "./store", "TestOlderDatabase"},
	{"a damaged chain is set aside", "store/aside.go", "if err := w.putAside(a); err != nil {\n\t\treturn err\n\t}\n\tw.s.note", "w.s.note", "./store", "TestDamagedEntry"},
	{"removed directories are not known", "internal/durable/durable.go", "if d.removed != removals {", "if false {", "./internal/durable", "TestKnown"},
	{"fsync of files", "internal/durable/group.go", "\t\tlist = append(list, syncing{s.tempName(), s.f})\n", "", "./internal/durable", "TestF07"},
	{"fsync of directories", "internal/durable/group.go", "return g.sync(nil, dirs)\n", "return nil\n", "./internal/durable", "TestF07"},
	{"fsyncs at once", "internal/durable/group.go", "wg.Go(func() { errs[i] = s.f.Sync() })", "_, _ = i, s", "./internal/durable", "TestSyncsAtOnce"},
	{"shared sync", "internal/durable/group.go", `return g.d.call("syncfs", ".", g.d.shared.wait)`, "return nil", "./internal/durable", "TestPowerCutsInGroups|Crowd"},
	{"a lost write of others before the next name", "internal/durable/group.go", "return g.d.shared.check(g.reports)", "return nil", "./internal/durable", "TestReportBetween"},
	{"pointers after what they point to", "internal/durable/group.go", "err := g.write(steps)", "err := g.write([][]File{slices.Concat(steps...)})", "./internal/durable", "TestPowerCutsInGroups|TestGroup"},
	{"judgement before the name", "internal/durable/group.go", "errors.Join(<-judged, err)", "errors.Join(err)", "./internal/durable", "TestGroupMeanwhile"},
	{"epoch check", "emitter/position.go", "if state.LastSeq < applied {", "if true {\n\t\treturn \"\", nil\n\t}\n\tif state.LastSeq < applied {", "./emitter", "TestN12|TestStreamBehind"},
	{"broker's time in the epoch check", "emitter/position.go", "BrokerMS: m.BrokerMS}, true", "BrokerMS: had.BrokerMS}, true", "./emitter", "TestN12"},
	{"acknowledge after the commit", "emitter/commit.go", "given := &events.Batch{", "_ = ack(b.ack)\n\tgiven := &events.Batch{", "./emitter", "TestNothingIsAckedBeforeItIsDurable"},
}

// TestSuiteBites takes each mechanism out and wants a test to fail. By default it
// only looks that there is still something to take out.
func TestSuiteBites(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			path, err := filepath.Abs(filepath.Join("../..", m.file))
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(text), m.old); n != 1 {
				t.Fatalf("%s has %q %d times: say anew what the mechanism is", m.file, m.old, n)
			}
			if !*runMutants {
				t.Skip("only with -mutants")
			}
			bites(t, path, strings.Replace(string(text), m.old, m.new, 1), m.pkg, m.tests)
		})
	}
}

// bites runs tests of a package with one file replaced.
func bites(t *testing.T, path, text, pkg, tests string) {
	t.Helper()
	dir := t.TempDir()
	mutant := filepath.Join(dir, "mutant.go")
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: mutant}})
	if err == nil {
		err = os.WriteFile(mutant, []byte(text), 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-short", "-count=1", "-timeout=3m", "-overlay", filepath.Join(dir, "overlay.json"), "-run", tests, pkg)
	cmd.Dir = "../.."
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		t.Errorf("no test fails without it:\n%s", out)
	case !strings.Contains(string(out), "--- FAIL") && !strings.Contains(string(out), "panic: test timed out"):
		t.Errorf("the mutant was not tested:\n%s", out)
	default:
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "--- FAIL") {
				t.Log(strings.TrimSpace(line))
			}
		}
	}
}
