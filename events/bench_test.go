package events

import (
	"crypto/sha256"
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
