package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func reportOf(ratios ...float64) *report {
	r := newReport(len(ratios))
	res := result{Row: "seal", Bound: 2.5, Most: true}
	for _, x := range ratios {
		res.Rounds = append(res.Rounds, pair{Ours: x, Limit: 1})
	}
	r.Results = []result{res}
	return r
}

func TestCompare(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before, after := filepath.Join(dir, "before.json"), filepath.Join(dir, "after.json")
	for _, c := range []struct {
		was, now []float64
		want     string
	}{
		{[]float64{2, 2.1, 1.9}, []float64{2.05}, "same"},
		{[]float64{2, 3, 1}, []float64{2.9}, "same"}, // within the old rounds
		{[]float64{2, 2.1, 1.9}, []float64{3}, "worse"},
		{[]float64{2, 2.1, 1.9}, []float64{1}, "better"},
	} {
		if err := errors.Join(reportOf(c.was...).save(before), reportOf(c.now...).save(after)); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err := compareFiles(&out, before, after)
		if !strings.Contains(out.String(), "| "+c.want+" |") || errors.Is(err, errWorse) != (c.want == "worse") {
			t.Errorf("%v then %v: want %s, got %v\n%s", c.was, c.now, c.want, err, out.String())
		}
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	reportOf(3, 1, 2).markdown(&out)
	if !strings.Contains(out.String(), "| ≤ 2.50 | 2.00 (1.00 to 3.00) | yes |") {
		t.Error(out.String())
	}
}

func TestRowsHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range rows() {
		if seen[r.name] || len(r.goals) == 0 || r.open == nil {
			t.Errorf("row %q is there twice, or incomplete", r.name)
		}
		seen[r.name] = true
	}
	if _, err := choose([]string{"no-such-row"}, false); err == nil {
		t.Error("a row that is not there was chosen")
	}
}
