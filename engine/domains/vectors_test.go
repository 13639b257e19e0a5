package domains_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/decimal"
	"github.com/chaind/chaind/engine/devex"
	"github.com/chaind/chaind/engine/enginetest"
	"github.com/chaind/chaind/engine/naive"
	"github.com/chaind/chaind/engine/text"
)

// rows returns a table of the computed vectors.
func rows(tb testing.TB, name string, atLeast int) [][]any {
	tb.Helper()
	var out [][]any
	list, _ := enginetest.Vectors(tb)[name].([]any)
	for _, row := range list {
		out = append(out, row.([]any))
	}
	if len(out) < atLeast {
		tb.Fatalf("%d rows of %s", len(out), name)
	}
	return out
}

func TestPrimitiveTables(t *testing.T) {
	for _, row := range rows(t, "normalize", 11) {
		if got := engine.Normalize(row[0].(string)); got != row[1] {
			t.Errorf("normalize %q: %q, want %q", row[0], got, row[1])
		}
	}
	for _, row := range rows(t, "tokenize", 5) {
		if got := engine.Tokens(row[0].(string)); !slices.Equal(got, enginetest.Texts(row[1])) {
			t.Errorf("tokens of %q: %q, want %q", row[0], got, row[1])
		}
	}
	for _, row := range rows(t, "money", 10) {
		if d, err := decimal.Parse(row[0].(string)); err != nil || d.Money() != row[1] {
			t.Errorf("money %q: %q, %v, want %q", row[0], d.Money(), err, row[1])
		}
	}
	for _, row := range rows(t, "lcs", 5) {
		got, err := text.LongestRun(row[0].(string), row[1].(string))
		if err != nil || row[2] != naive.Number(strconv.Itoa(got)) {
			t.Errorf("longest run of %q and %q: %d, %v, want %v", row[0], row[1], got, err, row[2])
		}
	}
}

// TestReceipts: the receipts of the computed vectors and their idempotency keys.
func TestReceipts(t *testing.T) {
	g, kb, _ := enginetest.Cases(t, devex.Name)
	list, _ := enginetest.Vectors(t)["actions"].([]any)
	if len(list) != 3 {
		t.Fatalf("%d receipts", len(list))
	}
	for _, item := range list {
		c := item.(map[string]any)
		domain := devex.New(c["domain"].(string), engine.ReferenceVersion)
		d, err := domain.Decide(c["question"].(string), g, kb)
		if err != nil {
			t.Fatal(err)
		}
		receipt, err := domain.DraftAction(c["kind"].(string), d)
		if err != nil {
			t.Errorf("%s: %v", c["question"], err)
			continue
		}
		doc := naive.MustParse(string(receipt))
		slots := doc["slots"].([]any)
		for _, s := range slots {
			ids := []any{}
			for _, r := range naive.At(s, "support").([]any) {
				ids = append(ids, naive.At(r, "id"))
			}
			naive.Put(s, ids, "support")
		}
		if got, want := naive.Canon(doc), naive.Canon(c["receipt_without_slot_support"]); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", c["question"], got, want)
		}
		if key := naive.Digest(doc["request"]); key != c["idempotency_key_of_request"] {
			t.Errorf("%s: key %s, want %v", c["question"], key, c["idempotency_key_of_request"])
		}
		if strings.Count(string(receipt), `"support":[{`) != len(slots) {
			t.Errorf("%s: a slot without evidence", c["question"])
		}
	}
}
