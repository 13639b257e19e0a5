package main

import "time"

// until asks again and again until the answer is yes; false: it took too long.
func until(done func() bool) bool {
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline.C:
			return false
		}
	}
	return true
}
