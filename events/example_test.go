package events_test

import (
	"fmt"
	"strings"

	"github.com/chaind/chaind/events"
)

var key = events.Key{
	Tenant:     "acme",
	PromptHash: strings.Repeat("ab", 32),
	Session:    strings.Repeat("cd", 16),
	Chain:      "01JGD89KENDJW6TXZ75WW6EXEC",
}

func ExampleLint() {
	payload := `{"v":1,"event_id":"e1","outcome":"fine"}`
	fault := events.Lint(key.Subject(events.VerbSeal), []byte(payload), events.DefaultLimits)
	fmt.Println(fault.Class, "-", fault.Detail)
	// Output: malformed - outcome is none of its values
}

func ExampleState_Apply() {
	step := events.Message{
		Subject:   key.Subject(events.VerbStep),
		Payload:   []byte(`{"v":1,"event_id":"e1","phase":"begin","kind":{"kind":"step_executed","step_id":"fetch","step_index":0}}`),
		StreamSeq: 1,
		BrokerMS:  1_780_000_000_000,
	}
	seal := step
	seal.Subject, seal.StreamSeq = key.Subject(events.VerbSeal), 2
	seal.Payload = []byte(`{"v":1,"event_id":"e2","outcome":"cancelled","reason":"user"}`)

	state := events.NewState(key)
	for _, m := range []events.Message{step, seal} {
		event := events.Decode(m, events.DefaultLimits)
		effect := state.Apply(event, events.Known{}) // the ids are new
		fmt.Println(event.ID, effect.Verdict)
	}
	conformity, codes := state.Conformity()
	fmt.Println(state.Outcome, conformity, codes, state.Steps[0])
	// Output:
	// e1 attempt
	// e2 finished
	// cancelled nonconforming [scope_missing] {fetch 1 0 0}
}
