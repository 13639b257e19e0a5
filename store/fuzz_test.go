package store

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

// values are all records, by the byte that a fuzz input begins with.
func values() []record {
	return []record{new(entry), new(holder), new(chainRecord), new(identity), new(counters), new(Epoch), new(LostRange),
		new(rejection), new(preimages), new(fixedRecord), new(jobRecord), new(SealResult), new(runSeal), new(settings)}
}

// FuzzValues reads any bytes as any record: no panic, and what can be read is
// written and read again without a difference.
func FuzzValues(f *testing.F) {
	for i, r := range values() {
		f.Add(encoded(i, r))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 || int(b[0]) >= len(values()) {
			return
		}
		r := values()[b[0]]
		if decode(tableMeta, nil, b[1:], r) != nil {
			return
		}
		once := encoded(int(b[0]), r)
		again := values()[b[0]]
		if err := decode(tableMeta, nil, once[1:], again); err != nil {
			t.Fatalf("written and not read: %v", err)
		}
		if !bytes.Equal(once, encoded(int(b[0]), again)) {
			t.Fatal("written twice, differently")
		}
	})
}

func encoded(i int, r record) []byte {
	c := codec{buf: []byte{byte(i)}}
	r.fields(&c)
	return c.buf
}

func TestFuzzCorpusExists(t *testing.T) {
	seeds, err := filepath.Glob(filepath.Join("testdata", "fuzz", "FuzzValues", "*"))
	if err != nil || len(seeds) == 0 {
		t.Fatalf("no seeds: %v", err)
	}
	for _, s := range seeds {
		if b, err := os.ReadFile(s); err != nil || !bytes.HasPrefix(b, []byte("go test fuzz v1\n")) {
			t.Errorf("%s is no seed: %v", s, err)
		}
	}
}

// Every prefix of a record is refused, and none is taken for something shorter.
func TestEveryPrefixIsRefused(t *testing.T) {
	t.Parallel()
	n, d := uint64(3), segments.Sum([]byte("x"))
	e := &entry{Origin: Origin{EventID: "id", Verb: events.VerbSeal, Sum: d, ProducerSeq: &n, Epoch: 1, StreamSeq: 2, BrokerMS: 3},
		verdict: events.Finished, chain: 1, scope: &segments.Scope{TenantID: "t", LogicalSessionID: new(string)},
		kind: &segments.CompCommitted{PlanCommitIDHex: "p", StepTopo: []string{"a", "b"}}, segment: true, seq: 1, prev: &d,
		emittedAtMS: &n, anchors: &segments.Anchors{PlanCallIndex: &n}, producerHead: &d, producerSignature: &segments.Signature{}}
	whole := encoded(0, e)[1:]
	for i := range whole {
		if err := decode(tableJournal, nil, whole[:i], new(entry)); err == nil {
			t.Errorf("the first %d of %d bytes are taken", i, len(whole))
		}
	}
	if err := decode(tableJournal, nil, append(whole, 0), new(entry)); err == nil {
		t.Error("a byte more is taken")
	}
	if err := decode(tableJournal, nil, whole, new(entry)); err != nil {
		t.Error(err)
	}
}
