package verifier

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chaind/chaind/segments"
)

func TestOptionsThatContradict(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		o    Options
		want error
	}{
		{Options{Artifact: &segments.SealDocument{}}, ErrArtifactWithoutRun},
		{Options{Artifact: &segments.SealDocument{}, RunID: " \t"}, ErrArtifactWithoutRun},
		{Options{RequireSigned: true, AllowUnsigned: true}, ErrSignaturePolicy},
		{Options{Mode: "lenient"}, ErrUnknownMode},
	} {
		if err := test.o.Validate(); !errors.Is(err, test.want) {
			t.Errorf("%v, want %v", err, test.want)
		}
		r := verifyBytes(loadVector(t, "p01-full-run-unsigned").bundle, test.o)
		if r.ExitCode != ExitUsage || r.Verdict != NotRun {
			t.Errorf("exit code %d, %s", r.ExitCode, r.Verdict)
		}
	}
}

// cliCase is a row of cli-cases.json: what the reference's command does, and
// what we do. They agree but where the contract says otherwise.
func TestCLICases(t *testing.T) {
	t.Parallel()
	const p01 = "p01-full-run-unsigned"
	run := loadVector(t, p01).Inputs.RunID
	for name, test := range map[string]struct {
		vector        string
		runID         string
		artifact      bool
		trusted       []string
		refExit       int // of the reference's command: 0 or not
		strict, quirk int // our exit codes, strict and reference mode
	}{
		"plain":                   {p01, "", false, nil, 0, 0, 0},
		"run and artifact":        {p01, run, true, nil, 0, 0, 0},
		"blank run":               {p01, "  ", false, nil, 0, 0, 0},
		"artifact tampered":       {"n18-artifact-tampered", run, true, nil, 1, 2, 2},
		"broken link":             {"n01-broken-prev", "", false, nil, 1, 4, 4},
		"any embedded key":        {"n13-key-not-trusted", "", false, nil, 0, 0, 0},
		"key not listed":          {"n13-key-not-trusted", "", false, []string{hex7}, 1, 4, 4},
		"listed, blank and upper": {"n13-key-not-trusted", "", false, []string{hex7, " " + strings.ToUpper(hex9)}, 0, 0, 0},
		"duplicate member":        {"n19-duplicate-known-member", "", false, nil, 1, 4, 4},
		// The contract differs: without the artifact the seal must exist, and
		// it is said that nothing more was checked.
		"run without artifact": {p01, run, false, nil, 1, 0, 0},
		// The contract differs: a list of trusted keys demands a signature
		// (quirk 14); reference mode does as the reference does.
		"unsigned passes the list": {"q02-signature-stripped", "", false, []string{hex7}, 0, 4, 0},
	} {
		v := loadVector(t, test.vector)
		o := Options{RunID: test.runID, Trust: trustOf(t, test.trusted...)}
		if test.artifact {
			o.Artifact = v.options(t, Strict).Artifact
		}
		if r := verifyBytes(v.bundle, o); r.ExitCode != test.strict {
			t.Errorf("%s: exit code %d, want %d", name, r.ExitCode, test.strict)
		}
		o.Mode = Reference
		r := verifyBytes(v.bundle, o)
		if r.ExitCode != test.quirk {
			t.Errorf("%s, reference mode: exit code %d, want %d", name, r.ExitCode, test.quirk)
		}
		if differs := (test.refExit == 0) != (r.ExitCode == 0); differs != (name == "run without artifact") {
			t.Errorf("%s: reference exits %d, reference mode %d", name, test.refExit, r.ExitCode)
		}
	}
	// The last difference: --artifact alone is an error of usage (quirk 36).
	if err := (&Options{Artifact: &segments.SealDocument{}}).Validate(); err == nil {
		t.Error("an artifact without a run is accepted")
	}
}

func TestRunWithoutSnapshot(t *testing.T) {
	t.Parallel()
	v := loadVector(t, "p01-full-run-unsigned")
	for _, mode := range []Mode{Strict, Reference} {
		r := verifyBytes(v.bundle, Options{Mode: mode, RunID: v.Inputs.RunID})
		if r.ExitCode != ExitPass || !slices.Contains(Codes(r.Warnings), CodeArtifactAbsent) || !strings.Contains(r.Summary, "not checked") {
			t.Errorf("%s: exit code %d, %v, %s", mode, r.ExitCode, Codes(r.Warnings), r.Summary)
		}
		if c := r.check("run_seal"); c.Status == StatusPass {
			t.Errorf("%s: passed without being run: %+v", mode, c)
		}
		r = verifyBytes(v.bundle, Options{Mode: mode, RunID: "pr" + strings.Repeat("0", 64)})
		if r.ExitCode != ExitSemantic || Codes(r.Errors)[0] != CodeRunNotSealed {
			t.Errorf("%s: exit code %d, %v", mode, r.ExitCode, Codes(r.Errors))
		}
	}
}

func TestRequireSteps(t *testing.T) {
	t.Parallel()
	v := loadVector(t, "p09-steps-skipped")
	o := v.options(t, Strict)
	if r := verifyBytes(v.bundle, o); r.ExitCode != ExitPass || r.check("steps").Status != StatusWarn {
		t.Errorf("exit code %d, %+v", r.ExitCode, r.check("steps"))
	}
	o.RequireSteps = true
	r := verifyBytes(v.bundle, o)
	if r.ExitCode != ExitSemantic || !slices.Equal(Codes(r.Errors), []Code{CodeStepsMissing}) || r.Errors[0].StepID != "stale" {
		t.Errorf("exit code %d, %+v", r.ExitCode, r.Errors)
	}
}

// The offending segment and step are named, unlike in the reference (Q18).
func TestTopologyNamesTheStep(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"n06-steps-reordered": "stale", "n07-step-not-in-topo": "close", "n08-step-twice": "open"} {
		v := loadVector(t, name)
		for _, mode := range []Mode{Strict, Reference} {
			r := verifyBytes(v.bundle, v.options(t, mode))
			f := r.Errors[0]
			if f.Code != CodeTopoMismatch || f.StepID != want || f.Seq == nil || r.ExitCode != ExitSemantic {
				t.Errorf("%s, %s: %+v", name, mode, f)
			}
		}
	}
}

func TestExpectations(t *testing.T) {
	t.Parallel()
	v := loadVector(t, "p01-full-run-unsigned")
	honest := verifyBytes(v.bundle, Options{})
	for _, mode := range []Mode{Strict, Reference} {
		r := verifyBytes(v.bundle, Options{Mode: mode, ExpectHead: honest.ComputedHead, ExpectPlan: honest.Plan})
		if r.ExitCode != ExitPass || r.check("expected_head").Status != StatusPass || r.check("expected_plan").Status != StatusPass {
			t.Errorf("%s: exit code %d", mode, r.ExitCode)
		}
		other := segments.Sum(nil)
		r = verifyBytes(v.bundle, Options{Mode: mode, ExpectHead: &other, ExpectPlan: other.String()})
		if r.ExitCode != ExitEnvelope || !slices.Equal(Codes(r.Errors), []Code{CodeExpectedHead, CodeExpectedPlan}) {
			t.Errorf("%s: exit code %d, %v", mode, r.ExitCode, Codes(r.Errors))
		}
		if r = verifyBytes(v.bundle, Options{Mode: mode, ExpectPlan: other.String()}); r.ExitCode != ExitSemantic {
			t.Errorf("%s: exit code %d", mode, r.ExitCode)
		}
	}
}

// committed is an unsigned bundle that commits to the plans in this order.
func committed(t *testing.T, plans ...string) []byte {
	t.Helper()
	var b segments.Builder
	bundle := &segments.Bundle{Envelope: segments.Envelope{Scope: segments.Scope{SchemaVersion: 1, PromptHash: "p", ExecuteSessionID: "s", CatalogCGSHash: "c", EntryID: "e"}}}
	for _, plan := range plans {
		digest := segments.Sum([]byte(plan))
		bundle.Segments = append(bundle.Segments, b.Append(&segments.CompCommitted{
			PlanCommitIDHex: digest.String(), CompSemanticSHA256: digest, StepTopo: []string{}}, nil))
	}
	bundle.Head = b.Head
	return segments.AppendBundle(nil, bundle)
}

// TestExpectedPlan: the first and the last commit count, and others are named.
func TestExpectedPlan(t *testing.T) {
	t.Parallel()
	a, other := segments.Sum([]byte("a")).String(), segments.Sum([]byte("b")).String()
	for plans, want := range map[string]struct {
		exit   int
		errors int
		named  bool
	}{
		"a": {ExitDegraded, 0, false}, "aa": {ExitDegraded, 0, false}, "aba": {ExitDegraded, 0, true}, "abba": {ExitDegraded, 0, true},
		"ab": {ExitSemantic, 1, false}, "ba": {ExitSemantic, 1, false}, "bb": {ExitSemantic, 1, false}, "bab": {ExitSemantic, 1, false}, "bac": {ExitSemantic, 2, false},
	} {
		r := verifyBytes(committed(t, strings.Split(plans, "")...), Options{ExpectPlan: a})
		codes := Codes(r.Errors)
		if r.ExitCode != want.exit || len(codes) != want.errors && codes[0] != CodeExpectedPlan {
			t.Errorf("%s: exit code %d, %v", plans, r.ExitCode, codes)
		}
		if n := r.check("expected_plan"); (n.Status == StatusFail) != (want.errors > 0) || want.errors == 2 && len(r.Errors) != 2 {
			t.Errorf("%s: %+v, %d errors", plans, n, len(r.Errors))
		}
		i := slices.IndexFunc(r.Warnings, func(f Finding) bool { return f.Code == CodeOtherPlans })
		if (i >= 0) != want.named || i >= 0 && !strings.Contains(r.Warnings[i].Detail, other) {
			t.Errorf("%s: warnings %+v", plans, r.Warnings)
		}
		if r := verifyBytes(committed(t, strings.Split(plans, "")...), Options{}); slices.Contains(Codes(r.Warnings), CodeOtherPlans) {
			t.Errorf("%s: other plans than none", plans)
		}
	}
}

// TestSnapshotOfAnotherRun: what the seal does not cover of a snapshot is compared
// and warned of; a name that is there twice in what it covers is refused.
func TestSnapshotOfAnotherRun(t *testing.T) {
	t.Parallel()
	v := loadVector(t, "p01-full-run-unsigned")
	o := v.options(t, Strict)
	honest := *o.Artifact
	for name, c := range map[string]struct {
		run, prompt string
		want        int
	}{
		"its own":        {o.RunID, v.Inputs.Location.PromptHash, 0},
		"silent":         {"", "", 0},
		"another run":    {segments.RunID(segments.Sum(nil)), "", 1},
		"another prompt": {o.RunID, strings.Repeat("0", 64), 1},
		"both":           {"x", "y", 2},
	} {
		doc := honest
		doc.RunID, doc.PromptHash = c.run, c.prompt
		for _, mode := range []Mode{Strict, Reference} {
			o.Artifact, o.Mode = &doc, mode
			r := verifyBytes(v.bundle, o)
			n := 0
			for _, f := range r.Warnings {
				if f.Code == CodeArtifactOther {
					n++
				}
			}
			if mode == Reference && n != 0 || mode == Strict && n != c.want || r.ExitCode != ExitPass {
				t.Errorf("%s, %s: exit code %d, %+v", name, mode, r.ExitCode, r.Warnings)
			}
		}
	}
	body := string(readFile(t, v.dir+"/"+v.Inputs.Artifact))
	twice := strings.Replace(body, `"parsed_preimage":{`, `"parsed_preimage":{"expr":{"op":"delete_everything"},`, 1)
	if _, err := segments.DecodeSealDocument([]byte(twice)); err == nil || twice == body {
		t.Error("J09: a snapshot with a name twice")
	}
}

func TestLocationOf(t *testing.T) {
	t.Parallel()
	tenant := "acme"
	for path, want := range map[string]*Location{
		"execute/p/s/evidence/heads/f.evidence.json":                        {PromptHash: "p", Session: "s", FileName: "f.evidence.json"},
		"/data/tenants/acme/execute/p/s/evidence/unplanned/f.evidence.json": {Tenant: &tenant, PromptHash: "p", Session: "s", FileName: "f.evidence.json"},
		"execute/p/s/evidence/pr1.evidence.json":                            {PromptHash: "p", Session: "s", FileName: "pr1.evidence.json"},
		"execute/execute/p/s/evidence/heads/f":                              {PromptHash: "p", Session: "s", FileName: "f"},
		"bundle.json":                                                       nil,
		"":                                                                  nil,
		"execute/p/s/evidence":                                              nil,
		"execute/p/s/other/heads/f":                                         nil,
		"execute/p/s/evidence/heads/deeper/f":                               nil,
	} {
		if diff := cmp.Diff(want, LocationOf(path)); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

func TestLocationChecks(t *testing.T) {
	t.Parallel()
	v := loadVector(t, "p01-full-run-unsigned")
	base := *v.options(t, Strict).Location
	head := text(verifyBytes(v.bundle, Options{}).ComputedHead)
	other, empty := "other", ""
	for name, test := range map[string]struct {
		change func(*Location)
		want   []Code
	}{
		"right":         {func(l *Location) { l.FileName = head + ".evidence.json"; l.Tenant = &empty }, []Code{}},
		"another head":  {func(l *Location) { l.FileName = strings.Repeat("0", 64) + ".evidence.json" }, []Code{CodeHeadFileName}},
		"no head":       {func(l *Location) { l.FileName = "pr" + head + ".evidence.json" }, []Code{}},
		"other tenant":  {func(l *Location) { l.Tenant = &other }, []Code{CodeScopeMismatch}},
		"other session": {func(l *Location) { l.Session = other }, []Code{CodeScopeMismatch}},
	} {
		loc := base
		test.change(&loc)
		r := verifyBytes(v.bundle, Options{Location: &loc})
		if !slices.Equal(Codes(r.Errors), test.want) {
			t.Errorf("%s: %v, want %v", name, Codes(r.Errors), test.want)
		}
	}
}

// TestQ10 seals the digest that an emitter with the older float printer gives.
func TestQ10BothFloatSpellings(t *testing.T) {
	t.Parallel()
	scope := endlessScope
	doc := &segments.SealDocument{EntryID: "e", ParsedPreimage: []byte(`{"expr":{"n":1e16,"m":[2.5e+20,"1e+5"]}}`)}
	newer, err := segments.RunDigest(&scope, doc)
	if err != nil {
		t.Fatal(err)
	}
	older, err := segments.RunDigestOlder(&scope, doc)
	if err != nil {
		t.Fatal(err)
	}
	if newer == older {
		t.Fatal("both spellings have one digest")
	}
	plan := segments.Sum([]byte("plan"))
	for _, digest := range []segments.Digest{newer, older, plan} {
		bundle := []byte(chainText(
			&segments.CompCommitted{PlanCommitIDHex: plan.String(), CompSemanticSHA256: plan},
			&segments.RunSealed{RunID: segments.RunID(digest), RunBundleDigest: digest}))
		for _, mode := range []Mode{Strict, Reference} {
			want := ExitPass
			if digest == plan {
				want = ExitSemantic
			}
			if r := verifyBytes(bundle, Options{Mode: mode, RunID: segments.RunID(digest), Artifact: doc}); r.ExitCode != want {
				t.Errorf("%s: exit code %d, want %d", mode, r.ExitCode, want)
			}
		}
	}
}

func TestWorstExit(t *testing.T) {
	t.Parallel()
	order := []int{77, 64, 1, 4, 2, 5, 3, 0} // worst first; 77 is no code of ours
	for i, worse := range order {
		for _, better := range order[i:] {
			if got := WorstExit(better, worse, better); got != worse {
				t.Errorf("of %d and %d: %d", better, worse, got)
			}
		}
	}
	if WorstExit() != 0 {
		t.Error("of nothing")
	}
}
