package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// report is the JSON file of a run.
type report struct {
	Report  string    `json:"report"` // "chaind-bench-1"
	At      time.Time `json:"at"`
	Go      string    `json:"go"`
	CPU     string    `json:"cpu"`
	Cores   int       `json:"cores"`
	Rounds  int       `json:"rounds"`
	Results []result  `json:"results"`
}

const reportName = "chaind-bench-1"

// result is one figure of one row.
type result struct {
	Row    string  `json:"row"`
	Figure string  `json:"figure,omitempty"`
	What   string  `json:"what"`
	Limit  string  `json:"limit"`
	Unit   string  `json:"unit"`
	Bound  float64 `json:"goal"`
	Most   bool    `json:"goal_is_upper_bound"`
	Rounds []pair  `json:"rounds,omitempty"`
	Error  string  `json:"error,omitempty"` // why there are no rounds
}

// pair is one round: both figures, and the CPU time of an operation in µs.
type pair struct {
	Ours     float64 `json:"ours"`
	Limit    float64 `json:"limit"`
	OursCPU  float64 `json:"ours_cpu_us,omitempty"`
	LimitCPU float64 `json:"limit_cpu_us,omitempty"`
}

func newReport(rounds int) *report {
	return &report{Report: reportName, At: time.Now().UTC().Truncate(time.Second), Go: runtime.Version(),
		CPU: cpuName(), Cores: runtime.NumCPU(), Rounds: rounds}
}

func cpuName() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if name, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func (r *result) name() string { return strings.TrimSpace(r.Row + " " + r.Figure) }

// over gives the values of get over the rounds, ascending.
func (r *result) over(get func(pair) float64) []float64 {
	all := make([]float64, len(r.Rounds))
	for i, p := range r.Rounds {
		all[i] = get(p)
	}
	slices.Sort(all)
	return all
}

// median of ascending values; 0 of none.
func median(all []float64) float64 {
	n := len(all)
	if n == 0 {
		return 0
	}
	return (all[(n-1)/2] + all[n/2]) / 2
}

func (r *result) ratios() []float64 {
	return r.over(func(p pair) float64 { return p.Ours / p.Limit })
}

func (r *result) met() bool {
	ratio := median(r.ratios())
	if r.Most {
		return ratio <= r.Bound
	}
	return ratio >= r.Bound
}

func (r *report) markdown(w io.Writer) {
	fmt.Fprintf(w, "%s, %s, %d cores, %s; median of %d alternating rounds (lowest to highest)\n\n",
		r.At.Format(time.DateOnly), r.CPU, r.Cores, r.Go, r.Rounds)
	fmt.Fprintln(w, "| row | what | limit | goal | ratio | met | ours | limit's | unit | CPU µs ours / limit |")
	fmt.Fprintln(w, "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for i := range r.Results {
		fmt.Fprintln(w, r.Results[i].line())
	}
}

func (r *result) line() string {
	if r.Error != "" {
		return fmt.Sprintf("| %s | %s | %s | | not measured: %s | | | | | |", r.name(), r.What, r.Limit, strings.ReplaceAll(r.Error, "\n", " "))
	}
	sign, met := "≥", "no"
	if r.Most {
		sign = "≤"
	}
	if r.met() {
		met = "yes"
	}
	ratios := r.ratios()
	cpu := ""
	if ours := median(r.over(func(p pair) float64 { return p.OursCPU })); ours > 0 {
		cpu = fmt.Sprintf("%.1f / %.1f", ours, median(r.over(func(p pair) float64 { return p.LimitCPU })))
	}
	return fmt.Sprintf("| %s | %s | %s | %s %s | %s (%s to %s) | %s | %s | %s | %s | %s |",
		r.name(), r.What, r.Limit, sign, short(r.Bound), short(median(ratios)), short(ratios[0]), short(ratios[len(ratios)-1]), met,
		short(median(r.over(func(p pair) float64 { return p.Ours }))), short(median(r.over(func(p pair) float64 { return p.Limit }))), r.Unit, cpu)
}

// short prints three digits that matter.
func short(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	case x >= 0.01 || x == 0:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.3g", x)
}

func (r *report) save(name string) error {
	b, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(b, '\n'), 0o644)
}

func loadReport(name string) (*report, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r := new(report)
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if r.Report != reportName {
		return nil, fmt.Errorf("read %s: %q is no report of this program", name, r.Report)
	}
	return r, nil
}

// errWorse is returned when a ratio is worse than before beyond the spread.
var errWorse = errors.New("at least one ratio is worse than before")

// compareFiles prints the ratios of two runs side by side. Worse is a ratio
// whose median lies outside the range of the old rounds, on the wrong side, and
// more than a tenth away from the old median.
func compareFiles(w io.Writer, before, after string) error {
	a, err := loadReport(before)
	if err != nil {
		return err
	}
	b, err := loadReport(after)
	if err != nil {
		return err
	}
	worse := false
	fmt.Fprintln(w, "| row | goal | before | after | change | |")
	fmt.Fprintln(w, "| --- | --- | --- | --- | --- | --- |")
	for i := range b.Results {
		now := &b.Results[i]
		at := slices.IndexFunc(a.Results, func(r result) bool { return r.name() == now.name() })
		if at < 0 || len(now.Rounds) == 0 || len(a.Results[at].Rounds) == 0 {
			fmt.Fprintf(w, "| %s | %s | | | | only in one run |\n", now.name(), short(now.Bound))
			continue
		}
		was := a.Results[at].ratios()
		verdict := judge(was, median(now.ratios()), now.Most)
		worse = worse || verdict == "worse"
		fmt.Fprintf(w, "| %s | %s | %s | %s | %+.0f%% | %s |\n", now.name(), short(now.Bound), short(median(was)),
			short(median(now.ratios())), 100*(median(now.ratios())/median(was)-1), verdict)
	}
	if worse {
		return errWorse
	}
	return nil
}

func judge(was []float64, now float64, most bool) string {
	change, low, high := now/median(was)-1, was[0], was[len(was)-1]
	if change > -0.1 && change < 0.1 || low <= now && now <= high {
		return "same"
	}
	if (change > 0) == most {
		return "worse"
	}
	return "better"
}
