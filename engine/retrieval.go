package engine

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"
)

// Ranking is the outcome of lexical retrieval over a knowledge base.
type Ranking struct {
	Hits   []int     // positions in the kb, best first, at most the limit asked for
	Scores []float64 // of every record of the kb; nil: nothing was scored
}

// Parameters of the BM25 score.
const (
	bm25K = 1.5
	bm25B = 0.75
)

// maxWork bounds question tokens × records, so that a hostile question costs
// seconds at most.
const maxWork = 1 << 30

// ErrQuestionTooLong says that a question has too many words for retrieval
// over a knowledge base of this size.
var ErrQuestionTooLong = errors.New("the question has too many words for this knowledge base")

// Retrieve ranks the texts of a knowledge base by BM25 for a question: score
// descending, then record id ascending. Records without a common token are no
// hits. The order of the floating-point operations is part of the format
// (Tessera trust bundle format, section 8.3). It fails with
// ErrQuestionTooLong only.
func Retrieve(question string, kb []Record, limit int) (*Ranking, error) {
	q := newQuery(question)
	if len(q.terms) == 0 {
		return &Ranking{}, nil
	}
	if len(kb) > maxWork/len(q.terms) {
		return nil, ErrQuestionTooLong
	}
	total := q.countDocuments(kb)
	if total == 0 {
		return &Ranking{}, nil
	}
	average := float64(total) / float64(len(kb))
	r := &Ranking{Scores: make([]float64, len(kb))}
	for i := range kb {
		r.Scores[i] = q.score(kb[i].Text, average)
		if r.Scores[i] > 0 {
			r.Hits = append(r.Hits, i)
		}
	}
	slices.SortStableFunc(r.Hits, func(a, b int) int {
		return cmp.Or(cmp.Compare(r.Scores[b], r.Scores[a]), strings.Compare(kb[a].ID, kb[b].ID))
	})
	r.Hits = r.Hits[:min(limit, len(r.Hits))]
	return r, nil
}

// Lookup answers by retrieval: each hit is a claim that quotes its record.
func Lookup(question string, kb []Record, limit int, route Route) (*Answer, error) {
	ranking, err := Retrieve(question, kb, limit)
	if err != nil {
		return nil, err
	}
	return &Answer{Route: route, Ranking: ranking, Claims: quoteRecords(kb, ranking.Hits)}, nil
}

func quoteRecords(kb []Record, positions []int) []Claim {
	claims := make([]Claim, len(positions))
	for i, p := range positions {
		claims[i] = Claim{Text: kb[p].Text, Support: []*Record{&kb[p]}}
	}
	return claims
}

// query is a tokenized question. A token that repeats counts each time.
type query struct {
	terms    []int          // indexes of tokens, in the order of the question
	distinct map[string]int // index of each token
	idf      []float64      // by index
	tf       []int          // by index, of the record at hand
}

func newQuery(question string) *query {
	q := &query{distinct: map[string]int{}}
	eachToken(question, func(token []byte) {
		t, ok := q.distinct[string(token)]
		if !ok {
			t = len(q.distinct)
			q.distinct[string(token)] = t
		}
		q.terms = append(q.terms, t)
	})
	q.idf = make([]float64, len(q.distinct))
	q.tf = make([]int, len(q.distinct))
	return q
}

// count sets tf for a text and returns the number of its tokens.
func (q *query) count(text string) int {
	clear(q.tf)
	n := 0
	eachToken(text, func(token []byte) {
		n++
		if t, ok := q.distinct[string(token)]; ok {
			q.tf[t]++
		}
	})
	return n
}

// countDocuments sets idf and returns the number of tokens of all records.
func (q *query) countDocuments(kb []Record) int {
	total := 0
	df := make([]int, len(q.distinct))
	for i := range kb {
		total += q.count(kb[i].Text)
		for t, f := range q.tf {
			if f > 0 {
				df[t]++
			}
		}
	}
	for t := range df {
		n, d := float64(len(kb)), float64(df[t])
		q.idf[t] = ln(1 + float64(((n-d)+0.5)/(d+0.5)))
	}
	return total
}

// score adds up the query tokens in their order. Every product and quotient is
// converted, which forbids the compiler to fuse it with an addition.
func (q *query) score(text string, average float64) float64 {
	length := float64(q.count(text))
	norm := float64(bm25K * ((1 - bm25B) + float64(float64(bm25B*length)/average)))
	score := 0.0
	for _, t := range q.terms {
		if f := float64(q.tf[t]); f > 0 {
			gain := float64(q.idf[t] * float64(f*(bm25K+1)))
			score += float64(gain / (f + norm))
		}
	}
	return score
}

// tieTolerance is the relative difference up to which two scores may swap
// places between implementations of the logarithm.
const tieTolerance = 1e-12

// tied says that the records at two positions have scores so near that their
// order is not reproducible.
func (r *Ranking) tied(a, b int) bool {
	x, y := r.Scores[a], r.Scores[b]
	return x > 0 && y > 0 && math.Abs(x-y) <= tieTolerance*max(x, y)
}
