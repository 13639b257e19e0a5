package events

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chaind/chaind/segments"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gowebpki/jcs"
)

var update = flag.Bool("update", false, "write the golden files and fuzz seeds anew")

// FuzzDecode: the decoder never panics; what it accepts is canonicalizable
// JSON, decodes the same again, and gained no replacement character.
func FuzzDecode(f *testing.F) {
	f.Fuzz(func(t *testing.T, subject string, payload []byte) {
		m := Message{Subject: subject, Payload: payload, StreamSeq: 1, BrokerMS: 2}
		lim := Limits{MaxBytes: 1 << 16}
		e := Decode(m, lim)
		checkNames(t, e)
		if e.Fault != nil {
			if e.Fault.Class == "" || e.Fault.Detail == "" {
				t.Fatalf("a fault that says nothing: %+v", e.Fault)
			}
			if e.Attributed {
				NewState(e.Key).Apply(e, Known{})
			}
			return
		}
		if _, err := jcs.Transform(payload); err != nil {
			t.Fatalf("accepted, but jcs says: %v", err)
		}
		if e.Key.Subject(e.Verb) != subject {
			t.Fatalf("subject %q reads as %q", subject, e.Key.Subject(e.Verb))
		}
		d := NewDecoder(lim)
		if again := d.Decode(m); dump(again) != dump(e) {
			t.Fatal("decodes to something else the second time")
		}
		if n := d.own.Len() + d.shared.Len(); n > len(payload) {
			t.Fatalf("%d bytes of strings, which have room for those of the payload", n)
		}
		if bytes.Count([]byte(dump(e)), []byte("\ufffd")) > 0 && !mentionsReplacement(payload) {
			t.Fatal("a replacement character that was not there")
		}
		s := NewState(e.Key)
		s.Apply(e, Known{})
		roundTrip(t, s)
	})
}

// checkNames holds the decoder's own look at names against jsontext's.
func checkNames(t *testing.T, e *Event) {
	t.Helper()
	if e.Fault != nil && (e.Fault.Class == BadSubject || e.Fault.Class == TooLarge || e.Fault.Class == TooDeep) {
		return
	}
	dec := jsontext.NewDecoder(bytes.NewReader(e.Payload))
	_, err := dec.ReadValue()
	repeated := errors.Is(err, jsontext.ErrDuplicateName) && e.Fault != nil && e.Fault.Class != Malformed
	if said := e.Fault != nil && e.Fault.Class == DuplicateName; said != repeated || e.Fault == nil && err != nil {
		t.Fatalf("jsontext says %v, the decoder %+v", err, e.Fault)
	}
}

func mentionsReplacement(payload []byte) bool {
	return bytes.Contains(payload, []byte("\ufffd")) || bytes.Contains(bytes.ToLower(payload), []byte(`\ufffd`))
}

// dump renders what an event says, pointers followed.
func dump(e *Event) string {
	s := NewState(e.Key)
	effect := s.Apply(e, Known{})
	b, _ := s.AppendBinary(nil)
	text := fmt.Sprintf("%s %x %s %q %q %q", e.ID, e.Sum, effect.Verdict, e.Preimage.Comp, e.Preimage.Parsed, e.Preimage.Artifact)
	if e.Preimage.Text != nil {
		text += *e.Preimage.Text
	}
	if e.Kind != nil {
		text += string(segments.AppendKind(nil, e.Kind))
	}
	return text + string(b)
}

// FuzzState: no bytes make the reader panic, and what it reads is written as
// it stood; of an earlier version, as the present one has it.
func FuzzState(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeState(b)
		if err != nil {
			return
		}
		if b[0] != StateVersion {
			roundTrip(t, s)
			return
		}
		again, _ := s.AppendBinary(nil)
		if !bytes.Equal(again, b) {
			t.Fatalf("read %x, written %x", b, again)
		}
	})
}

// TestSeeds fails when a fuzz target has lost its committed corpus; with
// -update it writes the corpus from the honest events and the vectors.
func TestSeeds(t *testing.T) {
	if *update {
		writeSeeds(t)
	}
	for _, target := range []string{"FuzzDecode", "FuzzState"} {
		seeds, err := filepath.Glob(filepath.Join("testdata/fuzz", target, "*"))
		if err != nil || len(seeds) < 10 {
			t.Errorf("%s has %d seeds (%v)", target, len(seeds), err)
		}
	}
}

func writeSeeds(t *testing.T) {
	t.Helper()
	store := newMemory(Limits{MaxBytes: 65536})
	var messages []Message
	for n, l := range readLines(t, "small") {
		m := l.message(n)
		store.deliver(m)
		if len(m.Payload) < 3000 && n%4 == 0 {
			messages = append(messages, m)
		}
	}
	for i, m := range append(honest(t), messages...) {
		writeSeed(t, "FuzzDecode", i, fmt.Sprintf("string(%q)\n[]byte(%q)\n", m.Subject, m.Payload))
	}
	i := 0
	for _, s := range store.states {
		b, _ := s.AppendBinary(nil)
		writeSeed(t, "FuzzState", i, fmt.Sprintf("[]byte(%q)\n", b))
		i++
	}
}

func writeSeed(t *testing.T, target string, i int, body string) {
	t.Helper()
	dir := filepath.Join("testdata/fuzz", target)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, fmt.Sprintf("seed-%03d", i))
	if err := os.WriteFile(name, []byte("go test fuzz v1\n"+body), 0o644); err != nil {
		t.Fatal(err)
	}
}
