package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// The demo's run: an agent finds out why a deployment failed and opens a pull
// request that reverts the culprit. Its second step fails once and is retried.

const (
	storyPrompt  = "You are the on-call agent of the checkout service."
	storyCatalog = "github@7: actions.runs, actions.log, pulls.create"
	storySession = "5b1d9f0c7a3e4e0f8a6b2c4d1e9f7a30"
	storyEntry   = "github"
	storyIntent  = "Find out why the last deployment of acme/checkout failed, and open a pull request that reverts the culprit."
)

const storyPlan = `{"version":2,"name":"revert the culprit","steps":{` +
	`"find_run":{"kind":"query","call":"actions.runs","limit":1},` +
	`"read_log":{"kind":"query","call":"actions.log","lines":200},` +
	`"open_pr":{"kind":"effect","call":"pulls.create"}},` +
	`"bind":{"topo":["find_run","read_log","open_pr"],"deps":{"read_log":["find_run"],"open_pr":["read_log"]}},` +
	`"return":{"kind":"step","step":"open_pr"}}`

const storySnapshot = `{"entry_id":"github",` +
	`"parsed_preimage":{"expr":{"op":"invoke","call":"pulls.create","args":{"repo":"acme/checkout","base":"main","title":"Revert #4127"}},"projection":null},` +
	`"display_lines":["pulls.create(repo: \"acme/checkout\", base: \"main\", title: \"Revert #4127\")"],` +
	`"request_fingerprints":["9d2c1b7a5f3e4d6c8b0a9f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a"],` +
	`"entities":[{"kind":"pull_request","number":4131,"state":"open"}]}`

type storyStep struct {
	id, line, parsed, fingerprint string
}

var storySteps = []storyStep{
	{"find_run", `actions.runs(repo: "acme/checkout", status: "failure").first()`,
		`{"expr":{"op":"query","call":"actions.runs","args":{"repo":"acme/checkout","status":"failure"}},"projection":null}`,
		"1f6b0c9e8d7a5b4c3d2e1f0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a1b0c"},
	{"read_log", `actions.log(run: 88213).tail(200)`,
		`{"expr":{"op":"query","call":"actions.log","args":{"run":88213,"tail":200}},"projection":null}`,
		"77a0b1c2d3e4f5061728394a5b6c7d8e9f00112233445566778899aabbccddee"},
	{"open_pr", `pulls.create(repo: "acme/checkout", base: "main", title: "Revert #4127")`,
		`{"expr":{"op":"invoke","call":"pulls.create","args":{"repo":"acme/checkout","base":"main","title":"Revert #4127"}},"projection":null}`,
		"9d2c1b7a5f3e4d6c8b0a9f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a"},
}

func storyScope() segments.Scope {
	return segments.Scope{
		SchemaVersion: segments.ScopeSchemaVersion, TenantID: "acme", PromptHash: hexSum(storyPrompt), ExecuteSessionID: storySession,
		CatalogCGSHash: hexSum(storyCatalog), DomainRevision: 7, EntryID: storyEntry,
	}
}

func hexSum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// tell publishes the run and waits until the daemon has it in a durable commit.
func tell(ctx context.Context, p *emitter.Publisher) (*emitter.Confirmation, error) {
	if _, err := p.Intent(ctx, emitter.Intent{Text: storyIntent}); err != nil {
		return nil, err
	}
	if _, err := p.Commit(ctx, emitter.Commit{Comp: []byte(storyPlan), StepTopo: []string{"find_run", "read_log", "open_pr"}}); err != nil {
		return nil, err
	}
	for i, step := range storySteps {
		if err := tellStep(ctx, p, uint32(i), step); err != nil {
			return nil, err
		}
	}
	_, err := p.Seal(ctx, emitter.Seal{Outcome: events.Succeeded, Artifact: []byte(storySnapshot), StepID: new("open_pr"), ResourceIndex: new(uint64(0))})
	if err != nil {
		return nil, err
	}
	return p.Wait(ctx)
}

func tellStep(ctx context.Context, p *emitter.Publisher, index uint32, s storyStep) error {
	attempts := []emitter.Attempt{{StepID: s.id, StepIndex: index}}
	if s.id == "read_log" {
		attempts = append(attempts,
			emitter.Attempt{StepID: s.id, StepIndex: index, Failed: true, Reason: "502 from the log store"},
			emitter.Attempt{StepID: s.id, StepIndex: index})
	}
	for _, attempt := range attempts {
		if _, err := p.Attempt(ctx, attempt); err != nil {
			return err
		}
	}
	_, err := p.Step(ctx, emitter.Step{
		StepID: s.id, StepIndex: index, EntryID: new(storyEntry), RequestFingerprints: []string{s.fingerprint},
		SourceLine: s.line, Parsed: []byte(s.parsed),
	})
	return err
}
