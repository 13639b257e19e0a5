package devex_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/devex"
)

// table is what CPython 3.11's re finds: in a question the run and the pull
// request; in a log the error lines of both kinds; whether a line is a trailer;
// the first quoted text.
type table struct{ Runs, Logs, Trailers, Quoted [][]json.RawMessage }

func readTable(tb testing.TB) table {
	tb.Helper()
	raw, err := os.ReadFile("testdata/cpython.json")
	if err != nil {
		tb.Fatal(err)
	}
	var out table
	if err := json.Unmarshal(raw, &out); err != nil || min(len(out.Runs), len(out.Logs), len(out.Trailers), len(out.Quoted)) < 50 {
		tb.Fatalf("table: %v", err)
	}
	return out
}

func decode(tb testing.TB, row []json.RawMessage, into ...any) {
	tb.Helper()
	for i := range into {
		if err := json.Unmarshal(row[i], into[i]); err != nil {
			tb.Fatal(err)
		}
	}
}

func TestExpressionsAsPython(t *testing.T) {
	tables := readTable(t)
	for _, row := range tables.Runs {
		var s, run, pr string
		decode(t, row, &s, &run, &pr)
		if devex.FindRun(s) != run || devex.FindPR(s) != pr {
			t.Errorf("%q: run %q, pull request %q; want %q, %q", s, devex.FindRun(s), devex.FindPR(s), run, pr)
		}
	}
	for _, row := range tables.Logs {
		var s string
		var named, actions []string
		decode(t, row, &s, &named, &actions)
		if !slices.Equal(devex.NamedErrors(s), named) || !slices.Equal(devex.ActionsErrors(s), actions) {
			t.Errorf("%q: %q, %q; want %q, %q", s, devex.NamedErrors(s), devex.ActionsErrors(s), named, actions)
		}
	}
	for _, row := range tables.Trailers {
		var s string
		var want bool
		decode(t, row, &s, &want)
		if devex.IsTrailer(s) != want {
			t.Errorf("%q: %v", s, !want)
		}
	}
	for _, row := range tables.Quoted {
		var s, want string
		decode(t, row, &s, &want)
		got, _, ok := devex.FirstQuoted([]engine.RecordedClaim{{Text: s}})
		if got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v; want %q", s, got, ok, want)
		}
	}
}

func FuzzExpressions(f *testing.F) {
	f.Add("Why did run R-1042 fail, and 12345678?")
	f.Add("ERROR x: boom\n##[error] Process completed with exit code -1.\nPR-300")
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "")
		if run := devex.FindRun(s); !strings.Contains(s, run) || run != "" && devex.FindRun(run) != run {
			t.Errorf("%q: run %q", s, run)
		}
		if pr := devex.FindPR(s); !strings.Contains(s, pr) || pr != "" && devex.FindPR("("+pr+")") != pr {
			t.Errorf("%q: pull request %q", s, pr)
		}
		for _, line := range append(devex.NamedErrors(s), devex.ActionsErrors(s)...) {
			if strings.Contains(line, "\n") || !strings.Contains(s, line) {
				t.Errorf("%q: line %q", s, line)
			}
		}
	})
}
