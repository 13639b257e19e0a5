// Command chaind records what AI agents do as verifiable evidence, and checks
// such evidence offline.
//
// Exit codes: 0 pass; 2 semantic failure; 3 degraded, nothing failed; 4 the
// envelope is unreadable or broken; 5 policy; 64 usage; 1 could not run.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
