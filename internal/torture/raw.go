package main

import (
	"context"
	"fmt"
	"time"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

const rawTimeout = 2 * time.Second // for one acknowledgement

// raw writes a chain by hand: steps without a plan, and among them repeats,
// conflicts and nonsense; in the end a seal, and often something late. What a
// killed predecessor tried last is sent again, with the very same bytes.
func (p *producer) raw(chain string, tried []entry) error {
	steps := int(shape(chain)/7%maxSteps) + 1
	from := 1
	for _, e := range tried {
		if e.What == whatEvent || e.What == whatSeal {
			from = e.N
		}
	}
	for n := from; n <= steps; n++ {
		if err := p.give(chain, whatEvent, n); err != nil {
			return err
		}
		if err := p.mischief(chain, n); err != nil {
			return err
		}
		if p.stop.Err() != nil {
			break
		}
	}
	if err := p.give(chain, whatSeal, steps+1); err != nil {
		return err
	}
	if shape(chain)%2 == 0 {
		return p.give(chain, whatLate, steps+2)
	}
	return nil
}

func (p *producer) mischief(chain string, n int) error {
	switch p.rnd.IntN(6) {
	case 0:
		return p.give(chain, whatDuplicate, 1+p.rnd.IntN(n))
	case 1:
		return p.give(chain, whatConflict, 1+p.rnd.IntN(n))
	case 2:
		return p.give(chain, whatMalformed, n)
	}
	return nil
}

// give publishes one message until it is acknowledged. An attempt whose answer
// was lost may have been stored, so the same message may lie there twice.
func (p *producer) give(chain, what string, n int) error {
	<-p.pace.C
	subject, id, payload := message(p.name, chain, what, n)
	e := entry{Do: doTry, Chain: chain, What: what, N: n, ID: id, Sum: segments.Sum(payload).String()}
	if what == whatSeal {
		e.Outcome = string(events.Failed)
	}
	if err := p.diary.write(e); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	seq, err := retry(ctx, func() (uint64, error) {
		once, cancel := context.WithTimeout(ctx, rawTimeout)
		defer cancel()
		seq, _, err := p.relay.Publish(once, subject, nil, payload)
		return seq, err
	})
	if err != nil {
		return err
	}
	e.Do, e.Seq = doAck, seq
	return p.diary.write(e)
}

// message is a function of its arguments: whoever writes it, it is the same.
func message(name, chain, what string, n int) (subject, id string, payload []byte) {
	key, id := keyOf(name, chain), fmt.Sprintf("%s.%d", chain, n)
	line := "x = f()"
	switch what {
	case whatMalformed:
		return key.Subject(events.VerbStep), "", fmt.Appendf(nil, `{"v":1,"event_id":"broken.%d",`, n)
	case whatSeal:
		return key.Subject(events.VerbSeal), id, fmt.Appendf(nil, `{"v":1,"event_id":%q,"outcome":"failed","reason":"torture"}`, id)
	case whatConflict:
		line = "x = g()"
	}
	s := scopeOf(name)
	payload = fmt.Appendf(nil, `{"v":1,"event_id":%q,"scope":{"schema_version":%d,"tenant_id":%q,"prompt_hash":%q,"execute_session_id":%q,`+
		`"catalog_cgs_hash":%q,"domain_revision":%d,"entry_id":%q},"at_ms":1780000000000,"kind":{"kind":"step_executed","step_id":"s%d",`+
		`"step_index":%d,"request_fingerprints":[],"source_line":%q,"parsed_expr_digest":%q}}`,
		id, s.SchemaVersion, s.TenantID, s.PromptHash, s.ExecuteSessionID, s.CatalogCGSHash, s.DomainRevision, s.EntryID,
		n, n, line, segments.Sum(fmt.Append(nil, chain, n)).String())
	return key.Subject(events.VerbStep), id, payload
}
