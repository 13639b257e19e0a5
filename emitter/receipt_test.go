package emitter

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/segments"
)

func receiptSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join("..", "schemas", "receipt.json"))
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// conforms checks the text against the schema, and that reading it gives r.
func conforms(t testing.TB, schema *jsonschema.Schema, text []byte, r *Receipt) {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		t.Errorf("receipt %s: %v", text, err)
	}
	got, err := ParseReceipt(text)
	if err != nil {
		t.Errorf("receipt %s: %v", text, err)
	}
	if diff := cmp.Diff(r, got); diff != "" {
		t.Errorf("receipt changes when written and read (-want +got):\n%s", diff)
	}
}

func TestReceiptGolden(t *testing.T) {
	t.Parallel()
	head := segments.Sum([]byte("head"))
	key := testKey("c")
	key.Tenant = ""
	b := &events.Batch{Stream: events.Stream{Name: "EVIDENCE"}, Events: []*events.Event{
		{Message: events.Message{StreamSeq: 7}, Sum: segments.Sum([]byte("a")), Key: key, Attributed: true, ID: "a", ProducerSeq: new(uint64(3))},
		{Message: events.Message{StreamSeq: 8}, Attributed: false},
		{Message: events.Message{StreamSeq: 9}, Sum: segments.Sum([]byte("b")), Key: key, Attributed: true, ID: "b", Outcome: events.Failed},
		{Message: events.Message{StreamSeq: 10}, Sum: segments.Sum([]byte("c")), Key: key, Attributed: true, ID: "a"},
	}}
	effects := []events.Effect{
		{Verdict: events.Appended, Head: &head}, {Verdict: events.Rejected, Fault: &events.Fault{Class: events.BadSubject}},
		{Verdict: events.Finished, Head: &head},
		{Verdict: events.Rejected, Head: &head, Fault: &events.Fault{Class: events.Conflict, Detail: "held \"elsewhere\""}, Existing: new(segments.Sum([]byte("a")))},
	}
	receipts := receiptsOf(b, effects)
	if len(receipts) != 1 {
		t.Fatalf("%d receipts", len(receipts))
	}
	text := appendReceipt(nil, receipts[0])
	wrote(t, &receiptWriter{}, b, effects)
	conforms(t, receiptSchema(t), text, receipts[0])
	golden := filepath.Join("testdata", "receipt.golden.json")
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v; the receipt is\n%s", err, text)
	}
	if diff := cmp.Diff(strings.TrimSpace(string(want)), string(text)); diff != "" {
		t.Errorf("receipt (-want +got):\n%s", diff)
	}
}

// wrote holds what the writer writes against what appendReceipt makes of the
// receipts.
func wrote(t interface{ Fatalf(string, ...any) }, w *receiptWriter, b *events.Batch, effects []events.Effect) {
	want := receiptsOf(b, effects)
	err := w.write(b, effects, func(subject string, text []byte) error {
		if len(want) == 0 {
			t.Fatalf("more receipts than there should be: %s", text)
		}
		if whole := appendReceipt(nil, want[0]); string(text) != string(whole) || subject != want[0].Key().ReceiptSubject() {
			t.Fatalf("wrote to %s\n%s\nwant\n%s", subject, text, whole)
		}
		want = want[1:]
		return nil
	})
	if err != nil || len(want) > 0 {
		t.Fatalf("%d receipts are missing, %v", len(want), err)
	}
}

// receiptsOf makes the receipts of a durable batch as values: per chain, in the order in
// which the chains first occur, one receipt for every 64 events. Events of no
// chain have none.
func receiptsOf(b *events.Batch, effects []events.Effect) []*Receipt {
	var all []*Receipt
	open := make(map[events.Key]*Receipt)
	for i, e := range b.Events {
		if !e.Attributed || i >= len(effects) {
			continue
		}
		r := open[e.Key]
		if r == nil || len(r.Events) == maxReceiptEvents {
			r = newReceipt(ReceiptApplied, e.Key, b.Stream.Name)
			open[e.Key] = r
			all = append(all, r)
		}
		r.add(e, &effects[i])
	}
	return all
}

func (r *Receipt) add(e *events.Event, f *events.Effect) {
	a := EventReceipt{EventID: e.ID, SHA256: e.Sum.String(), StreamSeq: e.StreamSeq,
		Verdict: f.Verdict, Existing: hexOf(f.Existing), Head: hexOf(f.Head)}
	if f.Verdict == events.Rejected && f.Fault != nil {
		a.Class, a.Detail = f.Fault.Class, f.Fault.Detail
	}
	r.Events = append(r.Events, a)
	r.StreamSeq, r.LastEventID, r.ProducerSeq = e.StreamSeq, e.ID, e.ProducerSeq
	if f.Head != nil {
		r.Head = a.Head
	}
	if f.Verdict == events.Finished {
		r.Outcome = e.Outcome
	}
}

func TestReceiptsListEveryEventOnce(t *testing.T) {
	t.Parallel()
	schema := receiptSchema(t)
	var w receiptWriter // its memory is used again
	verdicts := []events.Verdict{events.Appended, events.Attempted, events.Finished, events.Duplicate, events.Late, events.Rejected}
	rapid.Check(t, func(rt *rapid.T) {
		b, effects := &events.Batch{Stream: events.Stream{Name: "S"}}, []events.Effect{}
		for i := range rapid.IntRange(0, 300).Draw(rt, "events") {
			e := &events.Event{Message: events.Message{StreamSeq: uint64(i + 1)}, Sum: segments.Sum([]byte{byte(i)}),
				Key: testKey(rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "chain")), Attributed: true, ID: "e", Outcome: events.Cancelled}
			f := events.Effect{Verdict: rapid.SampledFrom(verdicts).Draw(rt, "verdict")}
			if f.Verdict == events.Rejected {
				f.Fault = &events.Fault{Class: events.Malformed, Detail: rapid.String().Draw(rt, "detail")}
			}
			b.Events, effects = append(b.Events, e), append(effects, f)
		}
		wrote(rt, &w, b, effects)
		listed := 0
		for _, r := range receiptsOf(b, effects) {
			listed += len(r.Events)
			last := uint64(0)
			for _, e := range r.Events {
				if e.StreamSeq <= last {
					rt.Fatalf("receipt out of order: %d after %d", e.StreamSeq, last)
				}
				last = e.StreamSeq
			}
			if r.StreamSeq != last {
				rt.Fatalf("stream_seq %d, last event %d", r.StreamSeq, last)
			}
			conforms(t, schema, appendReceipt(nil, r), r)
		}
		if listed != len(b.Events) {
			rt.Fatalf("%d events listed of %d", listed, len(b.Events))
		}
	})
}

func TestSealedReceipt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.begin(r.publisherConfig("c"))
	head := segments.Sum([]byte("head"))
	texts := make(chan []byte, 2)
	sub, err := r.js.Conn().Subscribe(p.Key().ReceiptSubject(), func(m *nats.Msg) { texts <- m.Data })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	err = PublishSealed(r.js.Conn(), Sealed{Key: p.Key(), StreamSeq: 4, Outcome: events.Failed, Head: &head, Path: "execute/x.evidence.json"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.WaitSealed(deadline(t))
	if err != nil || got.Sealed.Path != "execute/x.evidence.json" || got.Sealed.BundleRoot != "" || got.Head != head.String() {
		t.Fatalf("sealed receipt %+v, %v", got, err)
	}
	conforms(t, receiptSchema(t), <-texts, got)
}

func TestParseReceiptRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"nothing":        ``,
		"not an object":  `[]`,
		"other version":  `{"v":2,"type":"applied"}`,
		"no version":     `{"type":"applied"}`,
		"twice":          `{"v":1,"v":1}`,
		"other case":     `{"V":1}`,
		"trailing":       `{"v":1} x`,
		"bad UTF-8":      "{\"v\":1,\"head\":\"\xff\"}",
		"negative":       `{"v":1,"stream_seq":-1}`,
		"far too large":  `{"v":1,"head":"` + strings.Repeat("x", maxReceiptBytes) + `"}`,
		"wrong type":     `{"v":1,"events":{}}`,
		"number as text": `{"v":1,"stream_seq":"1"}`,
	} {
		if r, err := ParseReceipt([]byte(text)); err == nil || r != nil {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if _, err := ParseReceipt([]byte(`{"v":1,"type":"applied","later":{"a":[1]}}`)); err != nil {
		t.Errorf("an unknown member: %v", err)
	}
}

func FuzzParseReceipt(f *testing.F) {
	seeds, err := filepath.Glob(filepath.Join("testdata", "fuzz", "FuzzParseReceipt", "*"))
	if err != nil || len(seeds) == 0 {
		f.Fatalf("no committed seeds: %v", err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := ParseReceipt(text)
		if err != nil {
			if r != nil {
				t.Fatal("a receipt beside an error")
			}
			return
		}
		again, err := ParseReceipt(appendReceipt(nil, r))
		if r.Type != ReceiptApplied && r.Type != ReceiptSealed {
			return // not written by us; the type is not escaped
		}
		if err != nil {
			t.Fatalf("written receipt does not read: %v", err)
		}
		if len(again.Events) != len(r.Events) || again.StreamSeq != r.StreamSeq || again.Key() != r.Key() {
			t.Fatalf("receipt changed: %+v, %+v", r, again)
		}
	})
}
