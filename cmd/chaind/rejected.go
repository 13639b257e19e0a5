package main

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/chaind/chaind/verifier"
)

type rejectedCmd struct {
	apiFlags
	Tenant string `help:"Only this tenant; _ is the empty one." placeholder:"NAME"`
	Class  string `help:"Only this reason class, such as malformed." placeholder:"WORD"`
	JSON   bool   `help:"Print one JSON object a line, as the API has them."`
}

func (c *rejectedCmd) Help() string {
	return `Lists the events that did not enter their chain, oldest first, each with its reason. Their bytes are in the stream
EVIDENCE_REJECTED, found by stream sequence or SHA-256. docs/events.md explains the classes.

Examples:
  chaind rejected
  chaind rejected --class conflict --json`
}

type rejectedLine struct {
	Subject   string `json:"subject"`
	StreamSeq uint64 `json:"stream_seq"`
	EventID   string `json:"event_id"`
	Class     string `json:"class"`
	Detail    string `json:"detail"`
	SHA256    string `json:"payload_sha256"`
}

type rejectedPage struct {
	Rejected []jsontext.Value `json:"rejected"`
	Next     *string          `json:"next"`
}

func (c *rejectedCmd) Run(a *app) error {
	return c.pages(a, "/v1/rejected", filters("tenant", c.Tenant, "class", c.Class), func(body []byte) (*string, error) {
		page, err := decodePage[rejectedPage](body)
		if err != nil {
			return nil, err
		}
		for _, raw := range page.Rejected {
			if err := c.print(a, raw); err != nil {
				return nil, err
			}
		}
		return page.Next, nil
	})
}

func (c *rejectedCmd) print(a *app, raw jsontext.Value) error {
	if c.JSON {
		return a.printLine(raw)
	}
	l, err := decodePage[rejectedLine](raw)
	if err != nil {
		return err
	}
	return a.printf("%d %s %s %s\n    %s\n", l.StreamSeq, l.Class, verifier.Escape(l.Subject), verifier.Escape(l.EventID), verifier.Escape(l.Detail))
}
