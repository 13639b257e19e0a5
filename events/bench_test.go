package events

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
)

// BenchmarkDecode decodes the large vectors' messages; "sha256" in the same
// run is the limit that it is measured against.
func BenchmarkDecode(b *testing.B) {
	messages, size := benchMessages(b)
	b.Run("decode", func(b *testing.B) {
		d := NewDecoder(DefaultLimits)
		b.SetBytes(size / int64(len(messages)))
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			d.Decode(messages[i%len(messages)])
		}
	})
	b.Run("decode+apply", func(b *testing.B) {
		d, store := NewDecoder(DefaultLimits), newMemory(DefaultLimits)
		b.SetBytes(size / int64(len(messages)))
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if i%len(messages) == 0 { // or all would be duplicates
				store = newMemory(DefaultLimits)
			}
			store.apply(d.Decode(messages[i%len(messages)]))
		}
	})
	b.Run("sha256", func(b *testing.B) {
		b.SetBytes(size / int64(len(messages)))
		for i := 0; b.Loop(); i++ {
			sha256.Sum256(messages[i%len(messages)].Payload)
		}
	})
}

// BenchmarkDecodeLine decodes steps whose source line is all but the whole of
// them, with escapes in it, against the SHA-256 of the same bytes.
func BenchmarkDecodeLine(b *testing.B) {
	for _, size := range []int{1 << 10, 16 << 10} {
		m := guardedStep(1, strings.Repeat("issues = repo.list(state=\"open\")\n", size/36))
		b.Run(fmt.Sprint("decode-", size), func(b *testing.B) {
			d := NewDecoder(DefaultLimits)
			b.SetBytes(int64(len(m.Payload)))
			b.ReportAllocs()
			for b.Loop() {
				d.Decode(m)
			}
		})
		b.Run(fmt.Sprint("sha256-", size), func(b *testing.B) {
			b.SetBytes(int64(len(m.Payload)))
			for b.Loop() {
				sha256.Sum256(m.Payload)
			}
		})
	}
}

// guardedStep is an ordinary step event, not the first of its chain.
func guardedStep(n int, source string) Message {
	key := Key{Tenant: "t", PromptHash: fmt.Sprintf("%064d", 1), Session: fmt.Sprintf("%032d", 2), Chain: "c"}
	return Message{
		Subject:   key.Subject(VerbStep),
		StreamSeq: uint64(n + 1), BrokerMS: 1_780_000_000_000,
		Payload: fmt.Appendf(nil, `{"v":1,"event_id":"01JZ-%d","at_ms":1780000000000,"producer_seq":%d,"kind":{"kind":"step_executed",`+
			`"step_id":"list","step_index":3,"entry_id":"gh","request_fingerprints":["GET /issues"],"source_line":%q,"parsed_expr_digest":"%064d"}}`,
			n, n, source, 7),
	}
}

// benchMessages are the well-formed messages of the large vectors.
func benchMessages(b *testing.B) (messages []Message, size int64) {
	for n, l := range readLines(b, "large") {
		if m := l.message(n); Decode(m, DefaultLimits).Fault == nil {
			messages = append(messages, m)
			size += int64(len(m.Payload))
		}
	}
	return messages, size
}

func BenchmarkState(b *testing.B) {
	store := newMemory(DefaultLimits)
	var key Key
	for n, l := range readLines(b, "large") {
		e, _ := store.deliver(l.message(n))
		key = e.Key
	}
	s := store.states[key]
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		var buf []byte
		for b.Loop() {
			buf, _ = s.AppendBinary(buf[:0])
		}
		b.SetBytes(int64(len(buf)))
	})
}
