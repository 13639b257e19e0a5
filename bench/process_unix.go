//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A new process counts the size of the one that it was forked from, so whose
// peak is to be known is started by a small process that does nothing else: this
// program once more, with -peak.

// runPeak runs a command and says its exit code and its largest resident size,
// pages of mapped files that were touched included, in bytes.
func runPeak(args []string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		return err
	}
	u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return errors.New("the system does not tell the size of processes")
	}
	unit := int64(1 << 10)
	if runtime.GOOS == "darwin" {
		unit = 1
	}
	fmt.Println(cmd.ProcessState.ExitCode(), u.Maxrss*unit)
	return nil
}

// peakOf is runPeak in that small process: the exit code, and MiB.
func peakOf(ctx context.Context, command ...string) (code int, mib float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, 0, err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{"-peak"}, command...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, 0, fmt.Errorf("run %s: %w", command[0], err)
	}
	var bytes float64
	if _, err := fmt.Sscan(string(out), &code, &bytes); err != nil {
		return 0, 0, fmt.Errorf("run %s: %w", command[0], err)
	}
	return code, bytes / (1 << 20), nil
}

// openElsewhere runs openHere in another process, twice: seconds, and peak MiB.
func openElsewhere(ctx context.Context, dir string) (sample, error) {
	self, err := os.Executable()
	if err != nil {
		return sample{}, err
	}
	out, err := exec.CommandContext(ctx, self, "-open", dir).Output()
	if err != nil {
		return sample{}, fmt.Errorf("open store in a process of its own: %w", err)
	}
	took, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		return sample{}, errors.New("the process that opens the store said something else")
	}
	code, mib, err := peakOf(ctx, self, "-open", dir)
	if err == nil && code != 0 {
		err = errors.New("the store does not open a second time")
	}
	return sample{values: []float64{time.Duration(took).Seconds(), mib}}, err
}

// cpuTime is what this process has used so far.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
