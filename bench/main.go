// Command bench measures chaind against limits that it measures in the same
// run, so that a figure means the same on any machine: what JetStream does
// without us, a plain log file with group fsync, SHA-256 of the same bytes, the
// bare system calls.
//
//	go run ./bench -list             names of the rows
//	go run ./bench ingest-64 drain   some rows
//	go run ./bench -all              all of them
//	go run ./bench -compare old.json new.json
//
// A row takes turns with its limit, round by round, ours and the limit in
// changing order, and shows the median of the rounds' ratios with the lowest
// and the highest. The table is Markdown on standard output; -json writes the
// same with all rounds to a file. Ratios of two runs can be compared, absolute
// figures only on one quiet machine.
//
// SQLite and the tile log live in the module bench/peers, so that they are no
// dependencies of the product; the rows that need them build it with "go build"
// and talk to it over a pipe. Without network or module cache those rows say so
// and the others go on.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// options are the flags.
type options struct {
	all, list, compare bool
	rounds             int
	json, cpuprofile   string
	dir, open          string
	peak               bool
	lab                lab
}

func parse(args []string, stderr io.Writer) (*options, []string, error) {
	o := &options{}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.BoolVar(&o.all, "all", false, "measure every row")
	f.BoolVar(&o.list, "list", false, "name the rows")
	f.BoolVar(&o.compare, "compare", false, "compare two JSON files of earlier runs")
	f.IntVar(&o.rounds, "rounds", 5, "alternating rounds of each row")
	f.StringVar(&o.json, "json", "", "write all rounds to this file")
	f.StringVar(&o.cpuprofile, "cpuprofile", "", "write a CPU profile of the whole run to this file")
	f.StringVar(&o.dir, "dir", "", "work below this directory, on the disk to be measured; default: the one for temporary files")
	f.StringVar(&o.open, "open", "", "open the store in this directory, say how long it took, and end (the row start)")
	f.BoolVar(&o.peak, "peak", false, "run the command that follows, and say its exit code and the bytes of its peak (the memory rows)")
	f.IntVar(&o.lab.events, "events", 60_000, "events of one round of ingest and drain")
	f.IntVar(&o.lab.batch, "batch", 0, "most events of one durable transaction; 0: the daemon's choice")
	f.IntVar(&o.lab.size, "size", 0, "least bytes of an event; 0: a small step, about 460")
	f.IntVar(&o.lab.segments, "segments", 1_000_000, "segments in the store of the rows start and ingest-large")
	f.IntVar(&o.lab.walk, "walk", 200_000, "segments of the chain of the walk rows")
	if err := f.Parse(args); err != nil {
		return nil, nil, err
	}
	if o.rounds < 1 {
		return nil, nil, errors.New("-rounds is less than 1")
	}
	return o, f.Args(), nil
}

// run returns 0 when everything was measured (goals met or not), 1 when
// something could not be, 64 for a wrong command line.
func run(args []string, stdout, stderr io.Writer) int {
	o, names, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err == nil {
		err = o.do(names, stdout, stderr)
	}
	var usage *usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage), o == nil:
		fmt.Fprintln(stderr, "bench: error:", err)
		return 64
	}
	fmt.Fprintln(stderr, "bench: error:", err)
	return 1
}

type usageError struct{ error }

func (o *options) do(names []string, stdout, stderr io.Writer) error {
	switch {
	case o.list:
		for _, r := range rows() {
			fmt.Fprintf(stdout, "%-14s %s\n", r.name, r.what)
		}
		return nil
	case o.peak && len(names) > 0:
		return runPeak(names)
	case o.open != "":
		return openHere(o.open)
	case o.compare:
		if len(names) != 2 {
			return &usageError{errors.New("-compare takes two files")}
		}
		return compareFiles(stdout, names[0], names[1])
	}
	chosen, err := choose(names, o.all)
	if err != nil {
		return &usageError{err}
	}
	stop, err := profile(o.cpuprofile)
	if err != nil {
		return err
	}
	defer stop()
	return o.measure(chosen, stdout, stderr)
}

// measure runs the rows one after the other. What one could not do is in the
// report, and in the error; the others go on.
func (o *options) measure(chosen []row, stdout, stderr io.Writer) error {
	rep := newReport(o.rounds)
	var failed []error
	for i := range chosen {
		r := &chosen[i]
		fmt.Fprintf(stderr, "%s ...\n", r.name)
		results, err := o.row(r)
		if err != nil {
			failed = append(failed, fmt.Errorf("row %s: %w", r.name, err))
			results = []result{{Row: r.name, What: r.what, Limit: r.limit, Error: err.Error()}}
		}
		rep.Results = append(rep.Results, results...)
	}
	rep.markdown(stdout)
	if o.json != "" {
		failed = append(failed, rep.save(o.json))
	}
	return errors.Join(failed...)
}

func profile(name string) (stop func(), err error) {
	if name == "" {
		return func() {}, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() { pprof.StopCPUProfile(); _ = f.Close() }, nil
}
