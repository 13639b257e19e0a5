package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/chaind/chaind/events"
)

// story is what the diaries say of one chain.
type story struct {
	key      events.Key
	flavour  string
	resumed  []int // positions in the diary at which another life of the producer took it up
	forgot   []int // those of them at which that life knew of the chain only what the stream held
	left     bool  // given up after an error
	finished bool  // the producer says that the chain is over
	told     []*told
}

// told is one message that was sent, or tried; the same bytes sent again are the
// same message.
type told struct {
	what, id, sum string
	n             int
	order         int    // position of the first attempt in the chain
	acked         []copy // acknowledged copies, in order
	durable       bool

	outcome, head string // of a seal: what the producer ends the chain as, and its head; "": not known
}

// copy is one acknowledged copy of a message.
type copy struct {
	seq   uint64
	order int
}

func (t *told) isAcked() bool { return len(t.acked) > 0 }

// tell makes stories of diaries.
func tell(name string, diary []entry) map[string]*story {
	stories := map[string]*story{}
	for order, e := range diary {
		s := stories[e.Chain]
		if s == nil {
			s = &story{key: keyOf(name, e.Chain)}
			stories[e.Chain] = s
		}
		switch e.Do {
		case doBegin:
			s.flavour = e.Flavour
		case doResume:
			s.resumed = append(s.resumed, order)
			if !e.Kept {
				s.forgot = append(s.forgot, order)
			}
		case doLeave:
			s.left = true
		case doEnd:
			s.finished = true
		case doTry, doAck:
			s.add(e, order)
		case doDurable:
			s.endure(e.ID)
		}
	}
	return stories
}

func (s *story) add(e entry, order int) {
	what := e.What
	if what == whatDuplicate {
		what = whatEvent
	}
	i := slices.IndexFunc(s.told, func(t *told) bool {
		return t.id == e.ID && (t.sum == e.Sum || t.sum == "") && t.what == what
	})
	if i < 0 {
		s.told = append(s.told, &told{what: what, id: e.ID, n: e.N, order: order})
		i = len(s.told) - 1
	}
	t := s.told[i]
	t.sum = e.Sum
	t.outcome, t.head = cmp.Or(t.outcome, e.Outcome), cmp.Or(t.head, e.Head)
	if e.Do == doAck {
		t.acked = append(t.acked, copy{e.Seq, order})
	}
}

// account lists what was sent and what became of it, for the report of a
// violation.
func (s *story) account(f *facts) string {
	var out strings.Builder
	fmt.Fprintf(&out, " %s, resumed at %v, finished %t", s.flavour, s.resumed, s.finished)
	for _, t := range s.told {
		fmt.Fprintf(&out, "\n    %6d %-9s %s acknowledged %v durable %t, there %v", t.order, t.what, t.id, t.acked, t.durable, f.at(t))
	}
	if f.record != nil {
		fmt.Fprintf(&out, "\n    lost %+v", f.record.Lost)
	}
	return out.String()
}

// endure marks the event as durable.
func (s *story) endure(id string) {
	for _, t := range s.told {
		t.durable = t.durable || t.id == id
	}
}
