package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(play(role, os.Args[1:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(command(ctx, os.Args[1:], os.Stdout))
}

// options say how long and how hard.
type options struct {
	duration time.Duration
	seed     uint64
	rate     int  // events a second and producer
	keep     bool // the files of the run
}

func command(ctx context.Context, args []string, out io.Writer) int {
	var o options
	flags := flag.NewFlagSet("torture", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.DurationVar(&o.duration, "d", 20*time.Second, "how long trouble is made")
	flags.Uint64Var(&o.seed, "seed", 0, "repeats a run's choices (0: a random one)")
	flags.IntVar(&o.rate, "rate", 60, "events a second and producer")
	flags.BoolVar(&o.keep, "keep", false, "leave the files of the run")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 || o.rate < 1 {
		return 2
	}
	if o.seed == 0 {
		o.seed = rand.Uint64()
	}
	verdict, err := torture(ctx, o, out)
	if err != nil {
		fmt.Fprintf(out, "could not be done (-seed %d): %v\n", o.seed, err)
		return 1
	}
	verdict.print(out)
	if len(verdict.violations) > 0 {
		return 1
	}
	return 0
}

// torture makes trouble for as long as asked, lets everything settle, and checks.
func torture(ctx context.Context, o options, out io.Writer) (*verdict, error) {
	fmt.Fprintf(out, "repeat with -seed %d\n", o.seed)
	w, err := newWorld(o, out)
	if err != nil {
		return nil, err
	}
	defer w.close()
	if err := w.start(ctx); err != nil {
		return nil, err
	}
	if err := w.trouble(ctx); err != nil {
		return nil, err
	}
	if err := w.settle(ctx); err != nil {
		return nil, err
	}
	v, err := check(ctx, w)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	v.seed, v.troubles, v.disk = o.seed, w.counts, w.disk != nil
	return v, nil
}
