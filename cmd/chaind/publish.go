package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/verifier"
)

type publishCmd struct {
	File string `arg:"" help:"JSON Lines file of events; - reads standard input."`
	brokerFlags
	Lint    bool          `help:"Only check the events; nothing is sent."`
	Wait    time.Duration `help:"Wait this long for the daemon's receipts, which follow the durable commit, and tell what became of the events. 0: do not wait." default:"10s"`
	Sealed  bool          `help:"Wait, within the same time, until the evidence of the chains that end is written, too."`
	MaxSize int           `name:"max-event-bytes" help:"Size limit that --lint applies." default:"1048576"`
	JSON    bool          `help:"Print JSON."`
}

func (c *publishCmd) Help() string {
	return `Each line is one message, published in order and unchanged:

  {"subject":"evidence.acme.….intent","headers":{},"payload":"{\"v\":1,…}"}

payload is the exact body as a string; headers may be left out. docs/events.md describes subjects and bodies.

Exit code: 0 all events are durable in their chains (or sent, with --wait 0; or faultless, with --lint), 2 some were rejected or late,
1 something could not be read or sent.

Examples:
  chaind publish --lint run.jsonl
  chaind publish run.jsonl
  chaind publish --sealed run.jsonl && chaind verify …
  generate-events | chaind publish -`
}

// maxLine bounds one line of the input, in bytes: the largest event, escaped.
const maxLine = 64 << 20

// line is one message of the input.
type line struct {
	Subject string            `json:"subject"`
	Headers map[string]string `json:"headers"`
	Payload string            `json:"payload"`
}

func (c *publishCmd) Run(a *app) error {
	in := a.stdin
	if c.File != "-" {
		f, err := a.open(c.File)
		if err != nil {
			return cannot(err, "")
		}
		defer f.Close()
		in = a.reading(f)
	}
	if c.Lint {
		return c.lint(a, in)
	}
	return c.publish(a, in)
}

// eachLine decodes the input line by line, strictly; blank lines are skipped.
func eachLine(in io.Reader, visit func(n int, l line) error) error {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, maxLine)
	n := 0
	for ; scanner.Scan(); n++ {
		text := bytes.TrimSpace(scanner.Bytes())
		if len(text) == 0 {
			continue
		}
		var l line
		if err := json.Unmarshal(text, &l, json.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(false)); err != nil {
			var shape *json.SemanticError // whose text is about Go types
			if errors.As(err, &shape) {
				err = errors.New("not a line of this format")
			}
			return cannot(fmt.Errorf("read line %d: %w", n+1, err), `each line is {"subject":…,"headers":{…},"payload":"…"}, the payload as a string`)
		}
		if l.Subject == "" {
			return cannot(fmt.Errorf("read line %d: no subject", n+1), "")
		}
		if err := visit(n+1, l); err != nil {
			return err
		}
	}
	err := scanner.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("longer than %d bytes", maxLine)
	}
	if err != nil {
		return cannot(fmt.Errorf("read line %d: %w", n+1, err), "")
	}
	return nil
}

// published is the result of the command.
type published struct {
	Events   int            `json:"events"`
	Verdicts map[string]int `json:"verdicts"`
	Faults   []fault        `json:"faults"`
	Waiting  int            `json:"without_receipt"`
	Unsealed int            `json:"without_seal"` // chains that have ended, with --sealed
}

// fault is an event that did not enter its chain.
type fault struct {
	Line    int    `json:"line"`
	EventID string `json:"event_id"`
	Class   string `json:"class"`
	Detail  string `json:"detail"`
}

func (c *publishCmd) lint(a *app, in io.Reader) error {
	limits := events.DefaultLimits
	limits.MaxBytes = c.MaxSize
	result := published{Verdicts: map[string]int{}, Faults: []fault{}}
	err := eachLine(in, func(n int, l line) error {
		result.Events++
		e := events.Decode(events.Message{Subject: l.Subject, Payload: []byte(l.Payload)}, limits)
		if e.Fault == nil {
			result.Verdicts["ok"]++
			return nil
		}
		result.Verdicts["faulty"]++
		result.Faults = append(result.Faults, fault{n, e.ID, string(e.Fault.Class), e.Fault.Detail})
		return nil
	})
	if err != nil {
		return err
	}
	return c.finish(a, result)
}

// finish prints the result; faults are the command's exit code 2.
func (c *publishCmd) finish(a *app, r published) error {
	var err error
	if c.JSON {
		err = a.printJSON(r)
	} else {
		err = r.print(a)
	}
	switch {
	case err != nil:
		return err
	case r.Waiting > 0:
		return cannot(fmt.Errorf("%d events are without a receipt", r.Waiting),
			"they are in the stream; is the daemon taking events in? Publishing again is harmless and brings receipts")
	case r.Unsealed > 0:
		return cannot(fmt.Errorf("%d chains have ended and are without evidence yet", r.Unsealed),
			"the daemon goes on trying; /readyz and chaind chain say what keeps it")
	case len(r.Faults) > 0:
		return silent(exitSemantic)
	}
	return nil
}

func (r *published) print(a *app) error {
	for _, f := range r.Faults {
		id := "" // of an event whose id could not be read
		if f.EventID != "" {
			id = verifier.Escape(f.EventID) + ": "
		}
		if err := a.printf("line %d: %s%s: %s\n", f.Line, id, f.Class, verifier.Escape(f.Detail)); err != nil {
			return err
		}
	}
	summary := fmt.Sprintf("%d events", r.Events)
	for _, word := range []string{"ok", "faulty", "sent", "appended", "attempt", "finished", "duplicate", "late", "rejected"} {
		if n := r.Verdicts[word]; n > 0 {
			summary += fmt.Sprintf(", %d %s", n, word)
		}
	}
	return a.printf("%s\n", summary)
}

func (c *publishCmd) publish(a *app, in io.Reader) error {
	conn, err := emitter.Connect(c.config())
	if err != nil {
		return cannot(err, brokerHint(err))
	}
	defer conn.Close()
	relay, err := emitter.NewRelay(conn, "")
	if err != nil {
		return cannot(err, brokerHint(err))
	}
	answers := newAnswers()
	follow := followReceipts(func(subject string) error {
		_, err := emitter.Receipts(a.ctx, conn, subject, answers.take)
		return err
	})
	result := published{Verdicts: map[string]int{}, Faults: []fault{}}
	lines := map[uint64]int{}
	err = eachLine(in, func(n int, l line) error {
		if c.Wait > 0 {
			if err := follow(l.Subject); err != nil {
				return cannot(err, "may this user publish for this tenant? Who may, and may not read its receipts, passes --wait 0")
			}
		}
		seq, _, err := relay.Publish(a.ctx, l.Subject, l.Headers, []byte(l.Payload))
		if err != nil {
			return cannot(fmt.Errorf("line %d: %w", n, err), publishHint(l.Subject, err))
		}
		result.Events++
		// Without a chain there is no subject for a receipt: such an event is
		// rejected for its subject, whatever else is in it.
		if _, _, attributed, bad := events.ParseSubject(l.Subject); !attributed {
			result.Verdicts[string(events.Rejected)]++
			result.Faults = append(result.Faults, fault{n, "", string(bad.Class), bad.Detail})
			return nil
		}
		lines[seq] = n
		return nil
	})
	if err != nil {
		return err
	}
	if c.Wait == 0 {
		result.Verdicts["sent"] = len(lines)
	} else {
		answers.await(a.ctx, c.Wait, lines, c.Sealed, &result)
	}
	slices.SortFunc(result.Faults, func(x, y fault) int { return x.Line - y.Line })
	return c.finish(a, result)
}

// followReceipts listens to the receipts of each tenant that a subject names,
// once, and not to those of others, which a user may not be permitted to read.
// The subscriptions end with the connection.
func followReceipts(listen func(subject string) error) func(subject string) error {
	followed := map[string]bool{}
	return func(subject string) error {
		key, _, attributed, _ := events.ParseSubject(subject)
		tenant := key.TenantToken()
		if !attributed || followed[tenant] {
			return nil
		}
		followed[tenant] = true
		return listen(events.ReceiptRoot + "." + tenant + ".>")
	}
}

func publishHint(subject string, err error) string {
	switch {
	case errors.Is(err, emitter.ErrDenied):
		return "may this user publish for this tenant? Its permissions are the NATS server's, see configs/tenants.conf"
	case errors.Is(err, emitter.ErrNoReplies):
		return "give --inbox-prefix (or CHAIND_NATS_INBOX_PREFIX), such as _INBOX_acme; the event may be in the stream, and publishing it again is harmless"
	case !errors.Is(err, emitter.ErrNoStream):
		return ""
	case !strings.HasPrefix(subject, events.SubjectRoot+"."):
		return "subjects of events begin with " + events.SubjectRoot + "., see docs/events.md; --lint finds such lines without sending"
	}
	return "the daemon creates the stream when it starts: run `chaind serve` first"
}

// answers collects receipts by stream sequence.
type answers struct {
	receipts chan *emitter.Receipt
}

// receiptQueue is how many receipts may wait while lines are published; the
// client library queues many more behind them.
const receiptQueue = 1024

func newAnswers() *answers { return &answers{receipts: make(chan *emitter.Receipt, receiptQueue)} }

func (w *answers) take(r *emitter.Receipt) { w.receipts <- r }

// await gathers the verdicts of the published lines, and with sealed the seals of
// the chains that they end, until all are there, the time is over or the context
// ends.
func (w *answers) await(ctx context.Context, patience time.Duration, lines map[uint64]int, sealed bool, result *published) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	result.Waiting = len(lines)
	chains := sealing{}
	for result.Waiting > 0 || sealed && result.Unsealed > 0 {
		select {
		case <-ctx.Done():
			return
		case r := <-w.receipts:
			mine := false
			for _, e := range r.Events {
				if n, ok := lines[e.StreamSeq]; ok {
					delete(lines, e.StreamSeq)
					result.add(n, e)
					mine = true
				}
			}
			if sealed {
				chains.note(r, mine)
				result.Unsealed = chains.open()
			}
		}
	}
}

// sealing holds what receipts say of chains that end, in whatever order they come.
type sealing map[events.Key]struct{ ended, sealed bool }

func (s sealing) note(r *emitter.Receipt, mine bool) {
	key := events.Key{Tenant: r.Tenant, PromptHash: r.PromptHash, Session: r.Session, Chain: r.Chain}
	c := s[key]
	c.sealed = c.sealed || r.Type == emitter.ReceiptSealed
	c.ended = c.ended || mine && r.Type == emitter.ReceiptApplied && r.Outcome != "" && r.Outcome != events.Open
	s[key] = c
}

// open counts the chains that have ended and are not sealed.
func (s sealing) open() (n int) {
	for _, c := range s {
		if c.ended && !c.sealed {
			n++
		}
	}
	return n
}

func (r *published) add(line int, e emitter.EventReceipt) {
	r.Waiting--
	r.Verdicts[string(e.Verdict)]++
	switch e.Verdict {
	case events.Rejected:
		r.Faults = append(r.Faults, fault{line, e.EventID, string(e.Class), e.Detail})
	case events.Late:
		r.Faults = append(r.Faults, fault{line, e.EventID, string(events.Late), "the chain had ended; kept as an addendum"})
	}
}
