package main

import (
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/chaind/chaind/segments"
)

type digestCmd struct {
	Intent  digestIntent  `cmd:"" help:"Of an intent's text."`
	Plan    digestPlan    `cmd:"" help:"Of a compiled plan (its plan commit id)."`
	Parsed  digestParsed  `cmd:"" help:"Of a parsed expression, over its exact text."`
	Run     digestRun     `cmd:"" help:"Of a run snapshot, with the run id that it gives."`
	Segment digestSegment `cmd:"" help:"Of a segment."`
}

func (c *digestCmd) Help() string {
	return `Each reads a file or standard input (-) and prints the digest, or with --preimage exactly the bytes that are hashed.

Examples:
  printf 'list pets' | chaind digest intent --catalog cccc… --entry demo -
  chaind digest plan comp.json
  chaind digest run --catalog b56b… --revision 7 snapshot.json
  echo '{"kind":"intent_bound","intent_digest":"…","intent_len":9}' | chaind digest segment --seq 0 -`
}

// digestOutput are the flags that all digests share.
type digestOutput struct {
	Preimage bool `help:"Print the bytes that are hashed instead of the digest."`
	JSON     bool `help:"Print JSON."`
}

type digestResult struct {
	Digest   string  `json:"digest"`
	Length   *uint32 `json:"intent_len,omitempty"`
	RunID    string  `json:"run_id,omitempty"`
	Preimage string  `json:"preimage"`
}

func (o *digestOutput) print(a *app, r digestResult) error {
	switch {
	case o.JSON:
		return a.printJSON(r)
	case o.Preimage:
		return a.printf("%s", r.Preimage)
	case r.RunID != "":
		return a.printf("%s %s\n", r.Digest, r.RunID)
	case r.Length != nil:
		return a.printf("%s %d\n", r.Digest, *r.Length)
	}
	return a.printf("%s\n", r.Digest)
}

// maxArtifact bounds what is read whole: a run snapshot, a plan, an intent. In
// bytes.
const maxArtifact = 64 << 20

// readInput reads the whole of a file or of standard input.
func readInput(a *app, name string) ([]byte, error) { return readBounded(a, name, maxArtifact) }

// readBounded reads the whole of an input that has no more than limit bytes.
func readBounded(a *app, name string, limit int64) ([]byte, error) {
	in := a.stdin
	if name != "-" {
		f, err := a.open(name)
		if err != nil {
			return nil, cannot(err, "")
		}
		defer f.Close()
		in = a.reading(f)
	}
	text, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s is larger than %d bytes", name, limit)
	}
	if err != nil {
		return nil, cannot(err, "")
	}
	return text, nil
}

// readText is readInput for what is hashed as it stands: what is not UTF-8 has
// no digest in this format.
func readText(a *app, name string) ([]byte, error) {
	text, err := readInput(a, name)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(text) {
		return nil, cannot(fmt.Errorf("%s is not UTF-8", name), "")
	}
	return text, nil
}

type digestIntent struct {
	File      string `arg:"" help:"Text of the intent; white space around it is trimmed."`
	Catalog   string `help:"catalog_cgs_hash of the scope." required:"" placeholder:"HEX"`
	Entry     string `help:"entry_id of the scope." required:"" placeholder:"ID"`
	Federated string `help:"Federated seed hash, where there is one." placeholder:"HEX"`
	digestOutput
}

func (c *digestIntent) Run(a *app) error {
	text, err := readText(a, c.File)
	if err != nil {
		return err
	}
	var federated *string
	if c.Federated != "" {
		federated = &c.Federated
	}
	digest, length := segments.IntentDigest(string(text), c.Catalog, c.Entry, federated)
	preimage := segments.AppendIntentPreimage(nil, string(text), c.Catalog, c.Entry, federated)
	return c.print(a, digestResult{Digest: digest.String(), Length: &length, Preimage: string(preimage)})
}

type digestPlan struct {
	File string `arg:"" help:"Compiled plan, JSON."`
	digestOutput
}

func (c *digestPlan) Run(a *app) error {
	text, err := readInput(a, c.File)
	if err != nil {
		return err
	}
	preimage, err := segments.AppendPlanPreimage(nil, text)
	if err != nil {
		return cannot(err, "")
	}
	return c.print(a, digestResult{Digest: segments.Sum(preimage).String(), Preimage: string(preimage)})
}

type digestParsed struct {
	File string `arg:"" help:"Parsed expression, one JSON value; hashed as it stands, without the white space around it."`
	digestOutput
}

func (c *digestParsed) Run(a *app) error {
	text, err := readText(a, c.File)
	if err != nil {
		return err
	}
	text = bytes.Trim(text, " \t\r\n") // as around the value in an event
	if !jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(false)) {
		return cannot(fmt.Errorf("%s is not one JSON value", c.File), "the digest of anything else is in no event: give what the runtime parsed, as JSON, with each name once")
	}
	return c.print(a, digestResult{Digest: segments.ParsedDigest(text).String(), Preimage: string(text)})
}

type digestRun struct {
	File     string `arg:"" help:"Run snapshot: its JSON body, or the stored blob."`
	Catalog  string `help:"catalog_cgs_hash of the scope." required:"" placeholder:"HEX"`
	Revision uint32 `help:"domain_revision of the scope." required:""`
	digestOutput
}

func (c *digestRun) Run(a *app) error {
	text, err := readInput(a, c.File)
	if err != nil {
		return err
	}
	document, err := segments.DecodeSealDocument(text)
	if err != nil {
		return cannot(err, "")
	}
	scope := &segments.Scope{CatalogCGSHash: c.Catalog, DomainRevision: c.Revision}
	preimage, err := segments.AppendRunPreimage(nil, scope, document)
	if err != nil {
		return cannot(err, "")
	}
	digest := segments.Sum(preimage)
	return c.print(a, digestResult{Digest: digest.String(), RunID: segments.RunID(digest), Preimage: string(preimage)})
}

type digestSegment struct {
	File string `arg:"" help:"Kind of the segment, JSON as in an event."`
	Seq  uint64 `help:"Number of the segment in its chain, from 0." required:""`
	Prev string `help:"Digest of the segment before; left out for the first." placeholder:"HEX"`
	digestOutput
}

func (c *digestSegment) Run(a *app) error {
	text, err := readInput(a, c.File)
	if err != nil {
		return err
	}
	kind, deviations, err := segments.DecodeKind(text)
	if err != nil {
		return cannot(err, "")
	}
	if len(deviations) > 0 {
		return cannot(fmt.Errorf("%s at %q", deviations[0].Code, deviations[0].Path), "an event with this kind would be rejected")
	}
	s := segments.Segment{Seq: c.Seq, Kind: kind}
	if c.Prev != "" {
		prev, err := segments.ParseDigest(c.Prev)
		if err != nil {
			return usageError("--prev: %w", err)
		}
		s.Prev = &prev
	}
	if err := s.Check(); err != nil {
		return cannot(err, "")
	}
	preimage := segments.AppendPreimage(nil, s.Seq, s.Prev, s.Kind)
	return c.print(a, digestResult{Digest: segments.Sum(preimage).String(), Preimage: string(preimage)})
}
