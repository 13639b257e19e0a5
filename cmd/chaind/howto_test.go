package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
)

// natsServerCommand stands for the program nats-server: --config FILE. It says
// in the file nats.up that it listens.
func natsServerCommand() {
	if len(os.Args) != 3 || os.Args[1] != "--config" {
		fmt.Fprintln(os.Stderr, "usage: nats-server --config FILE")
		os.Exit(1)
	}
	if err := serveNATS(os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serveNATS(file string) error {
	options, err := natsserver.ProcessConfigFile(file)
	if err != nil {
		return err
	}
	options.HTTPPort, options.NoSigs, options.NoLog = 0, true, true
	srv, err := natsserver.NewServer(options)
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	srv.Start()
	if !srv.ReadyForConnections(10 * time.Second) {
		return fmt.Errorf("not ready")
	}
	if err := os.WriteFile("nats.up", []byte("up\n"), 0o644); err != nil {
		return err
	}
	<-stop
	srv.Shutdown()
	srv.WaitForShutdown()
	return nil
}

// writeRestore lays the shell lines of docs/howto/restore.md into dir, with
// directories of the script in the place of the system's.
func writeRestore(t *testing.T, dir string) {
	t.Helper()
	const page = "docs/howto/restore.md"
	here := strings.NewReplacer("/var/lib/", "lib/", "/var/backups/chaind", "backups")
	restore := blocks(t, page, "Restore", "sh")
	for name, text := range map[string]string{
		"backup.sh": blocks(t, page, "Back up", "sh")[0], "set-aside.sh": restore[0], "put-back.sh": restore[1], "check.sh": restore[2],
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("set -e\n"+here.Replace(text)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// writeExternalNATS lays the shell lines of docs/howto/external-nats.md into
// dir, with the script's ports and files in the place of the page's.
func writeExternalNATS(t *testing.T, dir string) {
	t.Helper()
	const page = "docs/howto/external-nats.md"
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("set -e\n"+text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("certificates.sh", blocks(t, page, "1. Certificates", "sh")[0])
	conf := strings.NewReplacer("# tls {", "tls {", "#   cert_file", "  cert_file", "#   key_file", "  key_file", "#   ca_file", "  ca_file",
		"#   verify", "  verify", "# }", "}", "/etc/nats/tls/", "", "/data/jetstream", "jetstream", "0.0.0.0:4222", "127.0.0.1:$NATS").
		Replace(strings.ReplaceAll(readHouse(t, "configs/nats.conf"), "$", `\$`))
	write("conf.sh", "cat >nats.conf <<END\n"+conf+"END\n")
	here := strings.NewReplacer("localhost:4222", "localhost:$NATS", "docs/example.jsonl", "$HOUSE/docs/example.jsonl")
	daemon := here.Replace(blocks(t, page, "3. The daemon", "sh")[0])
	write("daemon.sh", strings.Replace(daemon, "chaind serve", "exec chaind serve", 1))
	write("replay.sh", here.Replace(blocks(t, page, "5. Without the database", "sh")[0]))
	write("runtime.sh", here.Replace(blocks(t, page, "4. A runtime", "sh")[0]))
}
