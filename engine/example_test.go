package engine_test

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
)

// A domain answers questions from a graph; its bundle is re-derived by whoever
// has the domain, from the file alone.
func Example() {
	lookup := &engine.Domain{
		Name: "lookup", Version: "lookup-1",
		Route: func(question string, _ *engine.Graph, kb []engine.Record) (*engine.Answer, error) {
			return engine.Lookup(question, kb, 1, engine.Route{Kind: "lookup", Reason: "lexical lookup"})
		},
	}
	record := engine.Record{ID: "pump:7", Source: "pumps.csv", IngestedAt: "2026-03-05", Text: "Pump 7 failed on Monday.",
		Locator: engine.Locator{Kind: "table-row", Parts: []engine.Pair{{"row", "7"}}}}
	g := engine.NewGraph([]engine.Node{{Record: record, Kind: "pump"}}, nil, nil, nil)
	draft, _, err := engine.NewDraft(lookup, "Which pump failed?", g, []engine.Record{record})
	if err != nil {
		fmt.Println(err)
		return
	}
	var file bytes.Buffer
	if _, err := bundle.Write(&file, draft, nil); err != nil {
		fmt.Println(err)
		return
	}

	for _, text := range []string{file.String(), strings.Replace(file.String(), "Monday", "Sunday", 1)} {
		b, err := bundle.Parse(text)
		if err != nil {
			fmt.Println(err)
			return
		}
		j, err := engine.Judge(b, engine.Registry{lookup})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(j.Verdict(), len(j.Claims), "claim", len(j.Integrity.Findings), "findings")
	}
	// Output:
	// PASS 1 claim 0 findings
	// TAMPERED 1 claim 2 findings
}
