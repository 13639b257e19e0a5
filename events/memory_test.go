package events

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// memory is the least store that Apply needs: states, and who holds which id.
type memory struct {
	lim    Limits
	states map[Key]*State
	ids    map[Key]map[string]Known
}

func newMemory(lim Limits) *memory {
	return &memory{lim: lim, states: map[Key]*State{}, ids: map[Key]map[string]Known{}}
}

// deliver decodes and applies one message; the effect is the zero value for a
// message of no chain.
func (m *memory) deliver(msg Message) (*Event, Effect) {
	e := Decode(msg, m.lim)
	return e, m.apply(e)
}

func (m *memory) apply(e *Event) Effect {
	if !e.Attributed {
		return Effect{}
	}
	s := m.states[e.Key]
	if s == nil {
		s = NewState(e.Key)
		m.states[e.Key], m.ids[e.Key] = s, map[string]Known{}
	}
	known := m.ids[e.Key][e.ID]
	effect := s.Apply(e, known)
	if e.ID == "" {
		return effect
	}
	switch effect.Verdict {
	case Rejected:
		known.Rejected = true
	case Duplicate:
	default:
		known.Sum = pointer(e.Sum)
	}
	m.ids[e.Key][e.ID] = known
	return effect
}

// line is one line of a vector file, with the sequence it gets in the stream.
type line struct {
	Subject string            `json:"subject"`
	Headers map[string]string `json:"headers"`
	Payload string            `json:"payload"`
}

func (l line) message(n int) Message {
	return Message{Subject: l.Subject, Payload: []byte(l.Payload), StreamSeq: uint64(n + 1), BrokerMS: 1_780_000_000_000 + uint64(n)}
}

func readLines(t testing.TB, name string) []line {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("../testdata/events", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []line
	for text := range bytes.Lines(raw) {
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	return lines
}
