package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// peer is a program of the module bench/peers. It reads rounds from its standard
// input (number of appenders, number of entries, then each entry with its length
// in front, all lengths 4 bytes, big-endian) and answers each with one line: the
// nanoseconds it took, and those of CPU.
type peer struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startPeer builds the module, which needs its dependencies in the module cache
// or a proxy, and starts the peer with an empty directory.
func startPeer(ctx context.Context, dir, name string) (*peer, error) {
	_, self, _, _ := runtime.Caller(0)
	program := filepath.Join(dir, "peers")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	build.Dir = filepath.Join(filepath.Dir(self), "peers")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build bench/peers: %w: %s", err, strings.TrimSpace(string(out)))
	}
	data := filepath.Join(dir, name)
	if err := os.Mkdir(data, 0o755); err != nil {
		return nil, err
	}
	p := &peer{cmd: exec.CommandContext(ctx, program, name, data)}
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	return p, p.cmd.Start()
}

func (p *peer) round(entries [][]byte, callers int) (sample, error) {
	w := bufio.NewWriter(p.in)
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(callers)), uint32(len(entries)))
	if _, err := w.Write(head); err != nil {
		return sample{}, err
	}
	for _, e := range entries {
		if _, err := w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(e))), e...)); err != nil {
			return sample{}, err
		}
	}
	if err := w.Flush(); err != nil {
		return sample{}, err
	}
	line, err := p.out.ReadString('\n')
	if err != nil {
		return sample{}, fmt.Errorf("peer ended: %w", err)
	}
	wall, cpu, _ := strings.Cut(strings.TrimSpace(line), " ")
	took, err := strconv.ParseInt(wall, 10, 64)
	used, err2 := strconv.ParseInt(cpu, 10, 64)
	if err := errors.Join(err, err2); err != nil {
		return sample{}, fmt.Errorf("peer answered %q: %w", line, err)
	}
	rate := float64(len(entries)) / time.Duration(took).Seconds()
	return sample{values: []float64{rate}, ops: len(entries), cpu: time.Duration(used)}, nil
}

func (p *peer) close() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }
