package main

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/internal/daemon"
	"github.com/chaind/chaind/store"
	"github.com/chaind/chaind/verifier"
)

type replayCmd struct {
	Into    string `arg:"" help:"Data directory of the store to make; missing or empty." placeholder:"DIR"`
	DataDir string `help:"Data directory of the stopped daemon: its store is compared, and without --nats-url its broker's store is read." default:"chaind-data" env:"CHAIND_DATA_DIR" placeholder:"DIR"`
	NATSURL string `name:"nats-url" aliases:"nats" help:"Read the stream from this NATS server." env:"CHAIND_NATS_URL" placeholder:"URL"`
	brokerAccount
	MaxEventBytes int  `help:"The limit that the old store was made with." default:"1048576" env:"CHAIND_MAX_EVENT_BYTES"`
	JSON          bool `help:"Print JSON."`
}

func (c *replayCmd) Help() string {
	return `Builds a store from the stream, from its first message to its last, into an empty directory, and compares it chain by
chain with the old store if there is one that can be read. The old store and the stream are left as they are. What the
stream no longer holds is recorded as lost in the new store, and named.

To go on with the new store, put its store/ in the place of the old one and start the daemon once with
--take-over-artifacts: what is sealed already stands, whatever differs stands beside it.

Exits 0 when every chain is the same (or there was nothing to compare), 4 when one is not, 1 when it could not be done.

Examples:
  chaind replay rebuilt
  CHAIND_NATS_PASSWORD=… chaind replay rebuilt --nats-url tls://nats.example.com:4222 --nats-user chaind`
}

type replayResult struct {
	StoreID      string             `json:"store_id"`
	Messages     uint64             `json:"messages"`
	Chains       uint64             `json:"chains"`
	Lost         []replayLost       `json:"lost"`
	Compared     bool               `json:"compared"`
	Incomparable string             `json:"incomparable"`
	Same         uint64             `json:"same"`
	Differences  []replayDifference `json:"differences"`
	More         uint64             `json:"more_differences"`
	Exit         int                `json:"exit_code"`
}

type replayLost struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	Why  string `json:"why"`
}

type replayDifference struct {
	chainKey
	Old *replaySide `json:"old"` // null: no such chain
	New *replaySide `json:"new"`
}

type replaySide struct {
	Outcome    string `json:"outcome"`
	Conformity string `json:"conformity"`
	Segments   uint64 `json:"segments"`
	Head       string `json:"head"`
	Late       uint64 `json:"late"`
	Rejected   uint64 `json:"rejected"`
	Damage     string `json:"damage"`
}

func (c *replayCmd) Run(a *app) error {
	config := daemon.ReplayConfig{Into: c.Into, DataDir: c.DataDir, NATS: c.at(c.NATSURL),
		Intake: daemon.IntakeConfig{MaxEventBytes: c.MaxEventBytes}, Now: a.now,
		Logger: slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelError}))}
	if isTerminal(a.stderr) {
		config.Progress = func(done, total uint64) { fmt.Fprintf(a.stderr, "\r\x1b[Kmessage %d of %d\r", done, total) }
	}
	r, err := daemon.Replay(a.ctx, config)
	if err != nil {
		return cannot(err, c.hint(err))
	}
	result := describeReplay(r)
	if c.JSON {
		err = a.printJSON(result)
	} else {
		err = result.print(a)
	}
	if err == nil && result.Exit != exitOK {
		return silent(result.Exit)
	}
	return err
}

func (c *replayCmd) hint(err error) string {
	switch {
	case errors.Is(err, store.ErrLocked):
		return "stop the daemon: a replay compares its store, and may read its broker's"
	case errors.Is(err, daemon.ErrNoBroker):
		return "--data-dir names the data directory whose NATS server was inside, --nats-url a NATS server elsewhere"
	case c.NATSURL != "":
		return brokerHint(err)
	}
	return ""
}

func describeReplay(r *daemon.ReplayReport) *replayResult {
	result := &replayResult{StoreID: r.StoreID, Messages: r.Messages, Chains: r.Chains, Lost: []replayLost{}, Compared: r.Compared,
		Incomparable: r.Incomparable, Same: r.Same, Differences: []replayDifference{}, More: r.More}
	for _, l := range r.Lost {
		result.Lost = append(result.Lost, replayLost{l.From, l.To, l.Why})
	}
	for _, d := range r.Differences {
		result.Differences = append(result.Differences, replayDifference{keyOf(d.Key), sideOf(d.Old), sideOf(d.New)})
	}
	if len(r.Differences) > 0 {
		result.Exit = exitEnvelope
	}
	return result
}

func keyOf(k events.Key) chainKey { return chainKey{k.Tenant, k.PromptHash, k.Session, k.Chain} }

func sideOf(c *store.ChainSummary) *replaySide {
	if c == nil {
		return nil
	}
	s := &replaySide{Outcome: string(c.Outcome), Conformity: string(c.Conformity), Segments: c.Segments, Late: c.Late, Rejected: c.Rejected, Damage: c.Damage}
	if c.Head != nil {
		s.Head = c.Head.String()
	}
	return s
}

func (s *replaySide) String() string {
	switch {
	case s == nil:
		return "no such chain"
	case s.Damage != "":
		return "damaged: " + verifier.Escape(s.Damage)
	}
	return fmt.Sprintf("%s, %s, %d segments, head %s, %d late, %d rejected", s.Outcome, s.Conformity, s.Segments, or(short(s.Head), "-"), s.Late, s.Rejected)
}

func or(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

func (r *replayResult) print(a *app) error {
	for _, l := range r.Lost {
		if err := a.printf("lost: messages %d to %d (%s)\n", l.From, l.To, verifier.Escape(l.Why)); err != nil {
			return err
		}
	}
	for _, d := range r.Differences {
		if err := a.printf("%s %s %s\n    old: %s\n    new: %s\n", tenantToken(d.Tenant), short(d.Session), verifier.Escape(d.Chain), d.Old, d.New); err != nil {
			return err
		}
	}
	text := "nothing to compare with"
	switch {
	case r.Incomparable != "":
		text = "the old store cannot be read: " + verifier.Escape(r.Incomparable)
	case r.Compared:
		text = fmt.Sprintf("%d chains are the same, %d differ", r.Same, uint64(len(r.Differences))+r.More)
	}
	return a.printf("%d messages, %d chains; %s\n", r.Messages, r.Chains, text)
}
