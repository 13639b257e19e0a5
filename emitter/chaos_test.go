package emitter

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/chaind/chaind/events"
)

// Random trouble, of every kind that loses nothing at the broker: whatever
// happens, every chain holds all of its events in the order of publication.
func TestChaosKeepsEveryChainInOrder(t *testing.T) {
	t.Parallel()
	rounds := 10
	if testing.Short() {
		rounds = 2
	}
	for seed := range rounds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			chaos(t, rand.New(rand.NewPCG(uint64(seed), 1)))
		})
	}
}

func chaos(t *testing.T, random *rand.Rand) {
	r := newRig(t, func(c *IntakeConfig) {
		c.BatchEvents = 1 + random.IntN(20)
		c.BatchBytes = 500 + random.IntN(5000)
		c.BatchTime = time.Duration(random.IntN(3)) * time.Millisecond
		c.AckWait = 20 * time.Millisecond
	})
	r.store.before, r.store.after = unreliable(random.Uint64()), unreliable(random.Uint64())
	publisher := r.broker.js()
	r.start()
	published := map[string][]int{}
	total := 60 + random.IntN(60)
	for n := 1; n <= total; n++ {
		chain := fmt.Sprintf("c%d", random.IntN(4))
		if _, err := publisher.PublishMsg(deadline(t), stepEvent(chain, n)); err != nil {
			t.Fatal(err)
		}
		published[chain] = append(published[chain], n)
		switch random.IntN(25) {
		case 0:
			_ = publisher.DeleteConsumer(deadline(t), DefaultStream, DefaultDurable)
		case 1:
			if err := r.js.Conn().ForceReconnect(); err != nil {
				t.Fatal(err)
			}
		case 2:
			r.stop()
			r.start()
		}
	}
	r.applied(uint64(total))
	r.stop()
	for chain, want := range published {
		r.inOrder(chain, want...)
		r.store.look(testKey(chain), func(c *memoryChain) {
			if c.state.Duplicates != 0 {
				t.Errorf("chain %s: %d duplicates", chain, c.state.Duplicates)
			}
		})
	}
	r.lostExactly()
	if len(r.store.epochs) > 0 {
		t.Errorf("epochs %v", r.store.epochs)
	}
}

// unreliable fails every eighth call on average.
func unreliable(seed uint64) func(*events.Batch) error {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 2))
	return func(*events.Batch) error {
		mu.Lock()
		defer mu.Unlock()
		if random.IntN(8) == 0 {
			return errInjected
		}
		return nil
	}
}
