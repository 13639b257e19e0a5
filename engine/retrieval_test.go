package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaind/chaind/engine"
)

func kbOf(texts ...string) []engine.Record {
	kb := make([]engine.Record, len(texts))
	for i, text := range texts {
		kb[i] = engine.Record{ID: fmt.Sprintf("r%02d", i), Text: text}
	}
	return kb
}

func TestRetrieve(t *testing.T) {
	for _, tt := range []struct {
		question string
		kb       []engine.Record
		want     []int
	}{
		{"", kbOf("pump"), nil},
		{"what is the", kbOf("pump"), nil},
		{"pump", nil, nil},
		{"pump", kbOf("", "a", "…"), nil},
		{"pump", kbOf("valve", "pump"), []int{1}},
		{"pumps", kbOf("pump", "valve", "pumps"), []int{0, 2}},
		{"pump", kbOf("pump site", "pump", "pump pump"), []int{2, 1, 0}},
		{"pump pump valve", kbOf("valve", "pump"), []int{1, 0}},
		{"PÜMP", kbOf("puemp"), []int{0}},
		{"pump", kbOf("pump", "pump", "pump", "pump"), []int{0, 1, 2}},
	} {
		r, err := engine.Retrieve(tt.question, tt.kb, 3)
		if err != nil || !slices.Equal(r.Hits, tt.want) {
			t.Errorf("%q: hits %v, %v, want %v", tt.question, r.Hits, err, tt.want)
		}
	}
	kb := kbOf("pump", "pump")
	kb[0].ID, kb[1].ID = "ä", "z"
	if r, _ := engine.Retrieve("pump", kb, 2); !slices.Equal(r.Hits, []int{1, 0}) {
		t.Errorf("equal scores are not in the order of ids: %v", r.Hits)
	}
}

// TestRetrieveOrder: the rank of records does not depend on where in
// the kb they stand.
func TestRetrieveOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SampledFrom([]string{"pump", "valve", "site", "failed", "red", "the"})
		text := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(words, 0, 8).Draw(t, "words"), " ") })
		kb := kbOf(rapid.SliceOfN(text, 0, 12).Draw(t, "texts")...)
		question := text.Draw(t, "question")
		hits := func(kb []engine.Record) []string {
			r, err := engine.Retrieve(question, kb, 5)
			if err != nil {
				t.Fatal(err)
			}
			var out []string
			for _, i := range r.Hits {
				out = append(out, kb[i].ID)
			}
			return out
		}
		if a, b := hits(kb), hits(rapid.Permutation(kb).Draw(t, "kb")); !slices.Equal(a, b) {
			t.Fatalf("hits %v and %v", a, b)
		}
	})
}

// TestLongQuestion: a question that would cost minutes is refused.
func TestLongQuestion(t *testing.T) {
	kb := kbOf(make([]string, 1<<12)...)
	question := strings.Repeat("word ", 1<<18+1)
	if _, err := engine.Retrieve(question, kb, 5); !errors.Is(err, engine.ErrQuestionTooLong) {
		t.Errorf("got %v", err)
	}
	if _, err := engine.Lookup(question, kb, 5, engine.Route{}); !errors.Is(err, engine.ErrQuestionTooLong) {
		t.Errorf("got %v", err)
	}
}

// TestRetrievalVectors: testdata/retrieval.json, bit for bit.
func TestRetrievalVectors(t *testing.T) {
	var cases []struct {
		Question string
		Texts    []string
		Scores   []float64
		Hits     []int
	}
	if err := json.Unmarshal([]byte(readFile(t, "testdata/retrieval.json")), &cases); err != nil || len(cases) != 150 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	scored := 0
	for i, c := range cases {
		r, err := engine.Retrieve(c.Question, kbOf(c.Texts...), 5)
		if err != nil {
			t.Fatal(err)
		}
		if r.Scores == nil {
			r.Scores = make([]float64, len(c.Texts))
		} else {
			scored++
		}
		if !slices.Equal(r.Scores, c.Scores) || len(r.Hits)+len(c.Hits) > 0 && !slices.Equal(r.Hits, c.Hits) {
			t.Errorf("case %d, %q: scores %v, hits %v, want %v, %v", i, c.Question, r.Scores, r.Hits, c.Scores, c.Hits)
		}
	}
	if scored < 100 {
		t.Errorf("only %d cases have scores", scored)
	}
}
