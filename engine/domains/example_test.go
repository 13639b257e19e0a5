package domains_test

import (
	"bytes"
	"fmt"
	"os"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/domains"
)

// A packaged corpus can be asked a new question, and the new bundle drafts an
// action from the answer. Whoever gets it re-derives both.
func Example() {
	file, err := os.Open("../../testdata/tessera/rca.tsb")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Close()
	corpus, err := bundle.Read(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	draft, decision, err := engine.Ask(corpus, domains.All(), engine.Question{Text: "What does PR-201 change?", Action: "pr_summary"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(decision.Route.Reason)
	fmt.Println(decision.Claims[0].Text)

	var out bytes.Buffer
	if _, err := bundle.Write(&out, draft, nil); err != nil {
		fmt.Println(err)
		return
	}
	written, err := bundle.Read(&out)
	if err != nil {
		fmt.Println(err)
		return
	}
	judgement, err := engine.Judge(written, domains.All())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(judgement.Verdict())
	fmt.Println(written.Action.Get("request").Get("path").Text())
	// Output:
	// names pull request PR-201 — change summary
	// PR PR-201: "Add retry with backoff to payments-db client" by dana.petrov, branch feat/db-retry, merged commit 04b0452b on 2026-06-09 — Fixes DEVEX-204: wraps payments-db calls in retry with exponential backoff (three attempts) and extends integration coverage.
	// PASS
	// /repos/{owner}/{repo}/issues/PR-201/comments
}
