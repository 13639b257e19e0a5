package main

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
	"text/tabwriter"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/verifier"
)

type runsCmd struct {
	apiFlags
	Tenant     string `help:"Only this tenant; _ is the empty one." placeholder:"NAME"`
	PromptHash string `help:"Only this prompt hash (64 hex digits)." placeholder:"HEX"`
	Session    string `help:"Only this session (32 hex digits)." placeholder:"HEX"`
	Chain      string `help:"Only this chain." placeholder:"NAME"`
	Outcome    string `help:"Only open, succeeded, failed, cancelled or abandoned ones." placeholder:"WORD"`
	Conformity string `help:"Only conforming, unplanned or nonconforming ones." placeholder:"WORD"`
	RunID      string `help:"Only chains that carry this run id, or one that begins so." placeholder:"ID"`
	TraceID    string `help:"Only this trace id (32 hex digits, or a UUID)." placeholder:"ID"`
	Since      string `help:"Only those whose last event came at or after this: RFC 3339, or Unix milliseconds." placeholder:"TIME"`
	Until      string `help:"Only those whose last event came before this." placeholder:"TIME"`
	JSON       bool   `help:"Print one JSON object a line, as the API has them."`
}

func (c *runsCmd) Help() string {
	return `One line for each chain: outcome, conformity, coverage, segments, what was rejected or late, head, and where its
evidence lies: a path below the daemon's artifacts directory (DATA_DIR/artifacts, unless its settings name another); what is
in brackets is no path. Coverage is complete, unspecified or incomplete: whether what the producer declared reaches the end, and
what its numbers, and the broker's, say of holes. Below the list, where there is anything to say: the histories of the stream (a broker that lost messages begins
another one) and the ranges of messages that never came.

Examples:
  chaind runs
  chaind runs --outcome failed --json
  chaind runs --since 2026-05-01T00:00:00Z --until 2026-06-01T00:00:00Z
  chaind runs --run-id pr4b1f
  chaind runs --data-dir chaind-data`
}

type runLine struct {
	chainKey
	Outcome    string  `json:"outcome"`
	Conformity string  `json:"conformity"`
	Coverage   string  `json:"coverage"`
	Damage     string  `json:"damage"`
	Segments   uint64  `json:"segments"`
	Head       *string `json:"head"`
	Duplicates uint64  `json:"duplicates"`
	Late       uint64  `json:"late"`
	Rejected   uint64  `json:"rejected"`
	Sealed     *struct {
		Path string `json:"path"`
	} `json:"sealed"`
}

type runsPage struct {
	Chains []jsontext.Value `json:"chains"`
	Next   *string          `json:"next"`
}

func (c *runsCmd) Run(a *app) error {
	query := filters("tenant", c.Tenant, "prompt_hash", c.PromptHash, "session", c.Session, "chain", c.Chain, "outcome", c.Outcome,
		"conformity", c.Conformity, "run_id", c.RunID, "trace_id", c.TraceID, "since", c.Since, "until", c.Until)
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	if !c.JSON {
		fmt.Fprintln(table, "TENANT\tSESSION\tCHAIN\tOUTCOME\tCONFORMITY\tCOVERAGE\tSEGMENTS\tREJECTED\tLATE\tHEAD\tEVIDENCE (below the artifacts directory)")
	}
	err := c.pages(a, "/v1/chains", query, func(body []byte) (*string, error) {
		page, err := decodePage[runsPage](body)
		if err != nil {
			return nil, err
		}
		for _, raw := range page.Chains {
			if err := c.print(a, table, raw); err != nil {
				return nil, err
			}
		}
		return page.Next, nil
	})
	if err != nil {
		return err
	}
	if err := table.Flush(); err != nil || c.JSON {
		return err
	}
	return c.gaps(a)
}

type epochsPage struct {
	Epochs []struct {
		Number  uint32 `json:"number"`
		Stream  string `json:"stream"`
		Base    uint64 `json:"base"`
		Applied uint64 `json:"applied"`
		Why     string `json:"why"`
	} `json:"epochs"`
	Next *string `json:"next"`
}

type lostPage struct {
	Lost []struct {
		Stream string `json:"stream"`
		Epoch  uint32 `json:"epoch"`
		From   uint64 `json:"from"`
		To     uint64 `json:"to"`
		Why    string `json:"why"`
	} `json:"lost"`
	Next *string `json:"next"`
}

// gaps tells of everything that is known to be missing from the stream, and
// nothing where nothing is.
func (c *runsCmd) gaps(a *app) error {
	var lines []string
	err := c.pages(a, "/v1/epochs", url.Values{}, func(body []byte) (*string, error) {
		page, err := decodePage[epochsPage](body)
		for _, e := range page.Epochs {
			span := fmt.Sprintf("sequences %d to %d", e.Base+1, e.Applied)
			if e.Applied <= e.Base {
				span = fmt.Sprintf("nothing yet behind sequence %d", e.Base)
			}
			lines = append(lines, fmt.Sprintf("epoch %d of %s: %s (%s)\n", e.Number, verifier.Escape(e.Stream), span, verifier.Escape(e.Why)))
		}
		return page.Next, err
	})
	if notServed(err) {
		return nil // a token that is bound to tenants shows nothing of the stream
	}
	if err != nil {
		return err
	}
	if len(lines) == 1 {
		lines = nil // the usual one history is not worth a line
	}
	err = c.pages(a, "/v1/lost", url.Values{}, func(body []byte) (*string, error) {
		page, err := decodePage[lostPage](body)
		for _, l := range page.Lost {
			lines = append(lines, fmt.Sprintf("lost in epoch %d of %s: sequences %d to %d (%s)\n", l.Epoch, verifier.Escape(l.Stream), l.From, l.To, verifier.Escape(l.Why)))
		}
		return page.Next, err
	})
	if err != nil || len(lines) == 0 {
		return err
	}
	return a.printf("\n%s", strings.Join(lines, ""))
}

func (c *runsCmd) print(a *app, table *tabwriter.Writer, raw jsontext.Value) error {
	if c.JSON {
		return a.printLine(raw)
	}
	l, err := decodePage[runLine](raw)
	if err != nil {
		return err
	}
	head := "-"
	if l.Head != nil {
		head = short(*l.Head)
	}
	_, err = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n", tenantToken(l.Tenant), short(l.Session), verifier.Escape(l.Chain),
		l.Outcome, l.Conformity, l.Coverage, l.Segments, l.Rejected, l.Late, head, l.evidence())
	return err
}

// evidence tells where the evidence of a chain lies, or why there is none.
func (l *runLine) evidence() string {
	switch {
	case l.Damage != "":
		return "DAMAGED: " + verifier.Escape(l.Damage)
	case l.Sealed != nil && l.Sealed.Path != "":
		return verifier.Escape(l.Sealed.Path)
	case l.Sealed != nil:
		return "(no segments)"
	case l.Outcome == string(events.Open):
		return "(open)"
	}
	return "(being sealed)"
}

// tenantToken spells a tenant as subjects do.
func tenantToken(tenant string) string {
	return verifier.Escape(events.Key{Tenant: tenant}.TenantToken())
}

// printLine writes one JSON value on a line of its own.
func (a *app) printLine(raw jsontext.Value) error {
	if err := raw.Compact(); err != nil {
		return err
	}
	_, err := a.stdout.Write(append(bytes.Clone(raw), '\n'))
	return err
}
