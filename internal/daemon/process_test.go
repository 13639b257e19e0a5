package daemon

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"
)

// Tests that kill a process run this binary again as that process. It tells on
// standard output where it listens, one line, and ends with standard input.
const (
	roleEnv    = "CHAIND_TEST_ROLE"
	roleDaemon = "daemon" // arguments: data directory, broker URL, batch size
	roleBroker = "broker" // arguments: store directory, port
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case roleDaemon:
		os.Exit(daemonProcess(os.Args[1:]))
	case roleBroker:
		os.Exit(brokerProcess(os.Args[1:]))
	}
	goleak.VerifyTestMain(m,
		// One per process, started by the server's account and process statistics.
		goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server/pse.periodic"),
		goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server.init.0.func1"),
		// The tests' own HTTP client keeps its connections for a while.
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
	)
}

func daemonProcess(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var batch int
	fmt.Sscan(args[2], &batch)
	err := Run(ctx, Config{
		DataDir: args[0],
		NATS:    NATSConfig{URL: args[1]},
		Intake:  IntakeConfig{MaxEventBytes: 65536, BatchEvents: batch},
		HTTP:    HTTPConfig{Listen: "127.0.0.1:0"},
		Logger:  slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}, func(i Info) { fmt.Println(i.HTTPURL) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func brokerProcess(args []string) int {
	var port int
	fmt.Sscan(args[1], &port)
	srv, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: args[0], NoLog: true, NoSigs: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	srv.Start()
	if !srv.ReadyForConnections(10 * time.Second) {
		fmt.Fprintln(os.Stderr, "broker is not ready")
		return 1
	}
	fmt.Println(srv.ClientURL())
	io.Copy(io.Discard, os.Stdin)
	return 0
}

// process is a subprocess of a test.
type process struct {
	cmd   *exec.Cmd
	line  string // what it told when it was ready
	stdin io.WriteCloser
}

// spawn starts this binary in a role and waits until it is ready.
func spawn(t *testing.T, role string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0], args...)}
	p.cmd.Env = append(os.Environ(), roleEnv+"="+role)
	p.cmd.Stderr = t.Output()
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%s process did not start: %v", role, err)
	}
	p.line = strings.TrimSpace(line)
	return p
}

// kill ends the process as a power cut would, as far as a process can tell.
func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// term stops it in order and wants a clean exit.
func (p *process) term(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Fatalf("stop: %v", err)
	}
}

// walkFiles visits the files below root, but for the daemon's bookkeeping.
func walkFiles(root fs.FS, visit func(name string, content []byte)) error {
	return fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && name != ".":
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		content, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		visit(name, content)
		return nil
	})
}
