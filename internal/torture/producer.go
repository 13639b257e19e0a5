package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

const (
	patience   = 90 * time.Second // for one event, through whatever trouble
	maxSteps   = 14
	durablyOne = 8 // one event in so many is waited for until it is durable
)

// Flavours of chains.
const (
	flavourPublished = "published" // through emitter.Publisher, as a runtime does
	flavourRaw       = "raw"       // written by hand, with mischief
)

// producer writes chains, one after the other.
type producer struct {
	name  string // of its tenant, too
	conn  *nats.Conn
	relay *emitter.Relay
	diary *diary
	rnd   *rand.Rand
	pace  *time.Ticker
	stop  context.Context // ends when no further chain is to be begun
}

// playProducer takes name, broker URL, diary, seed and rate.
func playProducer(ctx context.Context, args []string) error {
	seed, err := strconv.ParseUint(args[3], 10, 64)
	if err != nil {
		return err
	}
	rate, err := strconv.Atoi(args[4])
	if err != nil {
		return err
	}
	before, err := readDiary(args[2])
	if err != nil {
		return err
	}
	p := &producer{name: args[0], rnd: rand.New(rand.NewPCG(seed, uint64(len(before)))), stop: ctx,
		pace: time.NewTicker(time.Second / time.Duration(rate))}
	if p.diary, err = openDiary(args[2]); err != nil {
		return err
	}
	if p.conn, err = emitter.Connect(emitter.ConnConfig{URL: args[1], Name: p.name, RetryFirst: true}); err != nil {
		return err
	}
	defer p.conn.Close()
	if p.relay, err = emitter.NewRelay(p.conn, ""); err != nil {
		return err
	}
	ready()
	if err := p.takeUp(before); err != nil {
		return err
	}
	for n := len(before); ctx.Err() == nil; n++ {
		chain := fmt.Sprintf("c%d", n)
		flavour := flavourPublished
		if p.rnd.IntN(2) == 0 {
			flavour = flavourRaw
		}
		if err := p.diary.write(entry{Do: doBegin, Chain: chain, Flavour: flavour}); err != nil {
			return err
		}
		if err := p.write(chain, flavour, nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// takeUp goes on with the chain that a killed predecessor was at.
func (p *producer) takeUp(before []entry) error {
	var chain, flavour string
	var tried []entry
	var last *entry // acknowledged
	for _, e := range before {
		switch e.Do {
		case doBegin:
			chain, flavour, tried, last = e.Chain, e.Flavour, nil, nil
		case doTry:
			tried = append(tried, e)
		case doAck:
			last = &e
		case doEnd, doLeave:
			chain = ""
		}
	}
	if chain == "" {
		return nil
	}
	kept := flavour == flavourPublished && shape(chain)/3%2 == 0
	if err := p.diary.write(entry{Do: doResume, Chain: chain, Kept: kept}); err != nil {
		return err
	}
	if !kept {
		last = nil
	}
	return p.write(chain, flavour, tried, last)
}

// write publishes a chain to its end. An error of the broker that says that the
// chain cannot go on leaves the chain, not the program. last is what a predecessor
// had acknowledged last, as far as this life may know; nil: nothing.
func (p *producer) write(chain, flavour string, tried []entry, last *entry) error {
	var err error
	if flavour == flavourRaw {
		err = p.raw(chain, tried)
	} else {
		err = p.published(chain, tried != nil, last)
	}
	do := doEnd
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s leaves chain %s: %v\n", p.name, chain, err)
		do = doLeave
	}
	return p.diary.write(entry{Do: do, Chain: chain})
}

// scopeOf is the scope of all chains of a producer.
func scopeOf(name string) segments.Scope {
	prompt := segments.Sum([]byte("prompt of " + name))
	session := segments.Sum([]byte("session of " + name)).String()[:32]
	return segments.Scope{SchemaVersion: segments.ScopeSchemaVersion, TenantID: name, PromptHash: prompt.String(),
		ExecuteSessionID: session, CatalogCGSHash: "c3", DomainRevision: 1, EntryID: "torture"}
}

func keyOf(name, chain string) events.Key {
	s := scopeOf(name)
	return events.Key{Tenant: s.TenantID, PromptHash: s.PromptHash, Session: s.ExecuteSessionID, Chain: chain}
}

// shape is a number that is the same for a chain in every life of its producer.
func shape(chain string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(chain))
	return h.Sum64()
}

// published writes a whole run through the library. One that a killed producer
// left is resumed and closed as abandoned, as a supervisor would.
func (p *producer) published(chain string, resumed bool, last *entry) error {
	cfg := emitter.PublisherConfig{Conn: p.conn, Scope: scopeOf(p.name), Chain: chain, SharedChain: shape(chain)%3 == 0,
		PublishTimeout: time.Second, ReceiptTimeout: 2 * time.Second}
	if last != nil {
		sum, err := segments.ParseDigest(last.Sum)
		if err != nil {
			return err
		}
		cfg.LastSent = &emitter.Sent{EventID: last.ID, ProducerSeq: last.Number, StreamSeq: last.Seq, Sum: sum}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	open := emitter.Begin
	if resumed {
		open = emitter.Resume
	}
	pub, err := retry(ctx, func() (*emitter.Publisher, error) { return open(ctx, cfg) })
	if err != nil {
		return err
	}
	defer pub.Close()
	r := &run{producer: p, chain: chain, pub: pub}
	if resumed {
		return r.seal(events.Abandoned, true)
	}
	return r.all(int(shape(chain)/7%maxSteps) + 1)
}

// retry repeats what the broker does not answer.
func retry[T any](ctx context.Context, f func() (T, error)) (T, error) {
	for {
		v, err := f()
		if err == nil || ctx.Err() != nil || errors.Is(err, emitter.ErrExists) {
			return v, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// run is a chain that is published through the library.
type run struct {
	*producer
	chain string
	pub   *emitter.Publisher
	n     int
}

func (r *run) all(steps int) error {
	topo := make([]string, steps)
	for i := range topo {
		topo[i] = fmt.Sprint("s", i)
	}
	plan := segments.Sum([]byte("plan of " + r.chain))
	err := r.send(entry{What: whatEvent}, func(ctx context.Context, id string) (emitter.Sent, error) {
		return r.pub.Intent(ctx, emitter.Intent{EventID: id, Text: "do " + r.chain})
	})
	if err == nil {
		err = r.send(entry{What: whatEvent}, func(ctx context.Context, id string) (emitter.Sent, error) {
			return r.pub.Commit(ctx, emitter.Commit{EventID: id, PlanDigest: &plan, StepTopo: topo})
		})
	}
	for i := 0; i < steps && err == nil && r.stop.Err() == nil; i++ {
		err = r.step(topo[i], uint32(i))
	}
	if err != nil {
		return err
	}
	if r.stop.Err() != nil {
		return r.seal(events.Cancelled, false)
	}
	return r.seal(events.Succeeded, false)
}

func (r *run) step(id string, index uint32) error {
	err := r.send(entry{What: whatEvent}, func(ctx context.Context, event string) (emitter.Sent, error) {
		return r.pub.Attempt(ctx, emitter.Attempt{EventID: event, StepID: id, StepIndex: index})
	})
	if err != nil {
		return err
	}
	parsed := segments.Sum([]byte(r.chain + id))
	return r.send(entry{What: whatEvent}, func(ctx context.Context, event string) (emitter.Sent, error) {
		return r.pub.Step(ctx, emitter.Step{EventID: event, StepID: id, StepIndex: index, SourceLine: "x = f()", ParsedDigest: &parsed})
	})
}

func (r *run) seal(outcome events.Outcome, resumed bool) error {
	seal := emitter.Seal{Outcome: outcome}
	if outcome == events.Succeeded {
		digest := segments.Sum([]byte("run of " + r.chain))
		seal.RunDigest = &digest
	} else {
		seal.Reason = "torture"
	}
	err := r.send(entry{What: whatSeal, Outcome: string(outcome)}, func(ctx context.Context, id string) (emitter.Sent, error) {
		seal.EventID = id
		return r.pub.Seal(ctx, seal)
	})
	if resumed && errors.Is(err, emitter.ErrEnded) {
		return nil // the predecessor's seal had been stored
	}
	return err
}

// send publishes one event with an id that no life of a producer uses again.
func (r *run) send(e entry, publish func(context.Context, string) (emitter.Sent, error)) error {
	<-r.pace.C
	id := fmt.Sprintf("%s.%x.%d", r.chain, r.rnd.Uint64(), r.n)
	r.n++
	e.Do, e.Chain, e.N, e.ID = doTry, r.chain, r.n, id
	if err := r.diary.write(e); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	sent, err := publish(ctx, id)
	if err != nil {
		return err
	}
	e.Do, e.Sum, e.Seq, e.Number = doAck, sent.Sum.String(), sent.StreamSeq, sent.ProducerSeq
	if head, known := r.pub.Head(); e.What == whatSeal && known && head != nil {
		e.Head = head.String()
	}
	if err := r.diary.write(e); err != nil || r.rnd.IntN(durablyOne) != 0 {
		return err
	}
	if _, err := r.pub.Wait(ctx); err != nil {
		return err
	}
	e.Do = doDurable
	return r.diary.write(e)
}
