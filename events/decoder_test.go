package events

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chaind/chaind/segments"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A decoder that has seen a subject before says the same of it, good or bad, and
// keeps no more subjects than it may.
func TestDecoderKnowsSubjects(t *testing.T) {
	t.Parallel()
	d := NewDecoder(DefaultLimits)
	hash, session := strings.Repeat("a", 64), strings.Repeat("b", 32)
	for i := range 2 * maxKnownSubjects {
		m := Message{Payload: []byte("{}"), StreamSeq: 1}
		m.Subject = fmt.Sprintf("evidence.t%d.%s.%s.c.step", i%(maxKnownSubjects+9), hash, session)
		if i%3 == 0 {
			m.Subject += "s"
		}
		for range 2 {
			got, want := d.Decode(m), Decode(m, DefaultLimits)
			if got.Key != want.Key || got.Verb != want.Verb || got.Attributed != want.Attributed || !cmp.Equal(got.Fault, want.Fault) {
				t.Fatalf("%s: %+v, %+v", m.Subject, got, want)
			}
		}
		if len(d.known) > maxKnownSubjects {
			t.Fatalf("%d subjects are kept", len(d.known))
		}
	}
}

// Events that a decoder made beside one another are what each is by itself, all of
// them, also when the last one has been made.
func TestDecodedTogether(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"small", "large"} {
		d := NewDecoder(DefaultLimits)
		var messages []Message
		var together []*Event
		for n, l := range readLines(t, file) {
			messages = append(messages, l.message(n))
			together = append(together, d.Decode(messages[n]))
		}
		for n, m := range messages {
			alone := Decode(m, DefaultLimits)
			if diff := cmp.Diff(alone, together[n], cmp.AllowUnexported(Event{}, room{})); diff != "" {
				t.Fatalf("line %d of %s: alone and among others: %s", n+1, file, diff)
			}
		}
	}
}

// Digests are read as segments reads them.
func TestParseDigest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.StringMatching("[0-9a-f]{64}"), rapid.StringMatching("[0-9a-fA-F:`g/@]{63,65}"), rapid.StringN(0, -1, 66)).Draw(t, "text")
		want, err := segments.ParseDigest(s)
		got, ok := parseDigest([]byte(s))
		if ok != (err == nil) || got != want {
			t.Fatalf("%q: %v, %v, want %v, %v", s, got, ok, want, err)
		}
	})
	for c := range 256 {
		s := string(rune('0')) + string([]byte{byte(c)}) + strings.Repeat("0", 62)
		if _, err := segments.ParseDigest(s); (nibbles[c] != 0) != (err == nil) {
			t.Errorf("byte %d: %v", c, err)
		}
	}
}
