package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	roleEnv      = "CHAIND_TORTURE_ROLE"
	roleBroker   = "broker"
	roleDaemon   = "daemon"
	roleProducer = "producer"

	startTimeout = 30 * time.Second
	stopTimeout  = 60 * time.Second
)

// process is this program again, in a role. It ends when its standard input
// does, and so with this process.
type process struct {
	role  string
	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{} // closed when it has ended
	err   error         // how; set before done is closed
}

// spawn starts a role and waits until it says that it is ready.
func spawn(ctx context.Context, log io.Writer, role string, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{role: role, cmd: exec.Command(self, args...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), roleEnv+"="+role)
	p.cmd.Stderr = log
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", role, err)
	}
	ready := make(chan error, 1)
	go func() {
		lines := bufio.NewReader(out)
		_, err := lines.ReadString('\n')
		ready <- err
		_, _ = io.Copy(io.Discard, lines)
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	timeout := time.NewTimer(startTimeout)
	defer timeout.Stop()
	select {
	case err = <-ready:
	case <-timeout.C:
		err = errors.New("not ready in time")
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		p.kill()
		return nil, fmt.Errorf("start %s: %w (%v)", role, err, p.err)
	}
	return p, nil
}

// kill ends it as a power cut would, as far as a process can tell.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// stop asks it to end in order.
func (p *process) stop() error {
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
		if p.err != nil {
			return fmt.Errorf("stop %s: %w", p.role, p.err)
		}
		return nil
	case <-time.After(stopTimeout):
		p.kill()
		return fmt.Errorf("stop %s: it did not end in time", p.role)
	}
}

// ended tells whether it has ended by itself.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// tail keeps the last lines that processes wrote, for reports.
type tail struct {
	mu    sync.Mutex
	lines []string
	all   io.Writer // nil: nowhere else
}

const tailLines = 60

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range strings.Lines(string(b)) {
		t.lines = append(t.lines, line)
	}
	if n := len(t.lines) - tailLines; n > 0 {
		t.lines = t.lines[n:]
	}
	if t.all != nil {
		return t.all.Write(b)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "")
}
