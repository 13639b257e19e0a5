package domains_test

import (
	"testing"

	"github.com/chaind/chaind/bundle"
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/action"
	"github.com/chaind/chaind/engine/business"
	"github.com/chaind/chaind/engine/devex"
	"github.com/chaind/chaind/engine/enginetest"
)

// corpora are the published evidence of the domains, by name.
type corpora map[string]*corpus

type corpus struct {
	domain *engine.Domain
	graph  *engine.Graph
	kb     []engine.Record
}

func published(tb testing.TB) corpora {
	out := corpora{
		business.Name: {domain: business.New(engine.ReferenceVersion)},
		devex.Name:    {domain: devex.New(devex.Name, engine.ReferenceVersion)},
	}
	out[business.Name].graph, out[business.Name].kb = enginetest.Corpus(tb, enginetest.Read(tb, "honest.tsb"))
	out[devex.Name].graph, out[devex.Name].kb = enginetest.Corpus(tb, enginetest.Read(tb, "rca.tsb"))
	return out
}

func (c *corpus) decide(tb testing.TB, question string) *engine.Decision {
	tb.Helper()
	d, err := c.domain.Decide(question, c.graph, c.kb)
	if err != nil {
		tb.Fatalf("%s: %v", question, err)
	}
	return d
}

// replay gives what a tool of the reference answered; nil: a tool that only
// describes the reference.
func (cs corpora) replay(tb testing.TB, tool string, arguments bundle.Value) []byte {
	tb.Helper()
	c := cs[arguments.Get("domain").Text()]
	if c == nil {
		return nil
	}
	question := arguments.Get("question").Text()
	propose := func() *action.Proposal {
		for _, k := range devex.Actions(c.domain.Name) {
			if k.Name == arguments.Get("action").Text() {
				return k.Draft(c.decide(tb, question))
			}
		}
		tb.Fatalf("no action %q", arguments.Get("action").Text())
		return nil
	}
	switch tool {
	case "ground":
		return c.decide(tb, question).Append(nil)
	case "assertions":
		return c.graph.AppendAssertions(nil, arguments.Get("record_id").Text())
	case "draft_action":
		return propose().Append(nil)
	case "preview_payload":
		return propose().Render().Append(nil)
	case "execute_action":
		return propose().Render().AppendReceipt(nil)
	}
	return nil
}

func parseValue(tb testing.TB, name string) bundle.Value {
	tb.Helper()
	v, err := bundle.ParseValue(enginetest.Read(tb, name))
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

// TestAgentSession: answers, refusal, draft, payload and receipt of the
// published agent session come out of the published evidence byte for byte.
func TestAgentSession(t *testing.T) {
	cs := published(t)
	tools := map[string]int{}
	for _, run := range parseValue(t, "sessions/agent_session.json").Items() {
		for _, step := range run.Get("trace").Items() {
			for _, call := range step.Get("tool_calls").Items() {
				tool := call.Get("tool").Text()
				tools[tool]++
				got := cs.replay(t, tool, call.Get("arguments"))
				if got != nil && !call.Get("result").EqualCanonical(got) {
					t.Errorf("%s(%s):\n%s\nwant\n%s", tool, call.Get("arguments").AppendCanonical(nil), got, call.Get("result").AppendCanonical(nil))
				}
			}
		}
	}
	if tools["ground"] != 2 || tools["draft_action"] != 1 || tools["preview_payload"] != 1 || tools["execute_action"] != 1 {
		t.Errorf("replayed %v", tools)
	}
}

// TestProtocolSession: likewise the exchanges of the published protocol session.
func TestProtocolSession(t *testing.T) {
	cs := published(t)
	replayed := 0
	for _, call := range parseValue(t, "sessions/mcp_session.json").Get("exchange").Items() {
		got := cs.replay(t, call.Get("tool").Text(), call.Get("arguments"))
		if !call.Get("result").EqualCanonical(got) {
			t.Errorf("%s:\n%s\nwant\n%s", call.Get("arguments").AppendCanonical(nil), got, call.Get("result").AppendCanonical(nil))
		}
		replayed++
	}
	if replayed != 4 {
		t.Errorf("replayed %d exchanges", replayed)
	}
}
