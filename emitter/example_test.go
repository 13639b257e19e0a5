package emitter_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/segments"
)

// A runtime publishes one run and waits until it is durable.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	nc, err := emitter.Connect(emitter.ConnConfig{URL: "nats://127.0.0.1:4222", Name: "my-runtime"})
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	run, err := emitter.Begin(ctx, emitter.PublisherConfig{
		Conn: nc,
		Scope: segments.Scope{
			PromptHash:       "5b68581063e843bc4c9f03ff142b450fbe88067fc021c346db047259f3ea7698",
			ExecuteSessionID: "0579662f0fcf017293738c6d86e1ff99",
			CatalogCGSHash:   "ef12309cf3abf975b0cf7607499015b59851ed47580df6f2b908ff7bb2edf50a",
			EntryID:          "tracker",
		},
		Chain: "01JGD89KENDJW6TXZ75WW6EXEC",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer run.Close()
	_, err = run.Intent(ctx, emitter.Intent{Text: "list the open issues"})
	if err == nil {
		_, err = run.Commit(ctx, emitter.Commit{
			Comp:     []byte(`{"version":2,"steps":{"list":{"kind":"query"}},"bind":{"topo":["list"]},"return":{"kind":"step","step":"list"}}`),
			StepTopo: []string{"list"},
		})
	}
	if err == nil {
		_, err = run.Step(ctx, emitter.Step{StepID: "list", SourceLine: "Issue.list()", Parsed: []byte(`{"expr":{"op":"list"},"projection":null}`)})
	}
	if err == nil {
		_, err = run.Seal(ctx, emitter.Seal{})
	}
	if err != nil {
		log.Fatal(err)
	}
	confirmed, err := run.Wait(ctx) // the daemon has it on disk
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(confirmed.Event.Verdict, confirmed.Receipt.Head)
}
