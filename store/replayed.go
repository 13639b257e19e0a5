package store

import (
	"sync"

	"github.com/chaind/chaind/events"
)

const (
	// worthKeeping is how many entries a reader must have replayed before what
	// came out is kept for the next one.
	worthKeeping = 16
	// maxReplayed bounds the bytes of states that are kept for readers.
	maxReplayed = 32 << 20
)

// replays keeps, for readers, how far they have replayed chains that grow: a
// list that is asked for again and again then replays only what is new. What is
// kept covers durable entries only, and is never changed, only replaced.
type replays struct {
	mu    sync.Mutex
	kept  map[uint64]replayed // by chain number
	bytes int
}

// replayed is a chain up to and with the entry of standing.lastArrival.
type replayed struct {
	standing
	state []byte // as the codec of events writes it
}

func (r *replays) get(no uint64) replayed {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kept[no]
}

// keep forgets everything when there is too much: what is in use comes back.
func (r *replays) keep(no uint64, p replayed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes+len(p.state) > maxReplayed || r.kept == nil {
		r.kept, r.bytes = map[uint64]replayed{}, 0
	}
	r.bytes += len(p.state) - len(r.kept[no].state)
	r.kept[no] = p
}

// current is a chain's state and standing as the transaction has them.
func (v *view) current(cv *chainView) (*events.State, standing, error) {
	if v.replays == nil || len(cv.pending) < worthKeeping {
		state, _, last, err := v.replay(cv)
		return state, last, err
	}
	rec, err := v.chainRecord(cv.no)
	if err != nil {
		return nil, standing{}, inChain(err, *cv.key)
	}
	if k := v.replays.get(cv.no); k.lastArrival > rec.lastArrival && k.lastArrival <= v.horizon {
		rec.standing, rec.state = k.standing, k.state
	}
	from := rec.lastArrival
	state, _, last, err := v.replayFrom(rec, cv)
	if err != nil {
		return nil, standing{}, err
	}
	if last.lastArrival-from >= worthKeeping { // arrivals of all chains; a cheap guess
		if b, err := state.AppendBinary(nil); err == nil {
			v.replays.keep(cv.no, replayed{last, b})
		}
	}
	return state, last, nil
}
