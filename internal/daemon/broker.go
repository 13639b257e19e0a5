package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/chaind/chaind/emitter"
)

const (
	brokerStart = 10 * time.Second // how long the embedded broker may take to listen
	// brokerHeadroom is what a message may carry beyond the largest event:
	// headers of the rejected stream.
	brokerHeadroom = 64 << 10
)

// broker is the NATS server inside the process. It listens on a real address,
// so that runtimes on this machine reach it as they would any other.
type broker struct {
	srv *server.Server
}

// client says how to reach an external broker.
func (c *NATSConfig) client(name string, log *slog.Logger) emitter.ConnConfig {
	return emitter.ConnConfig{
		URL: c.URL, Name: name, CredsFile: c.Creds, CAFile: c.CA, CertFile: c.Cert, KeyFile: c.Key,
		User: c.User, Password: c.Password, InboxPrefix: c.InboxPrefix, Logger: log,
	}
}

// startBroker starts a JetStream server whose store lies under the data
// directory. An address in use is an error that says so.
func startBroker(cfg Config) (*broker, error) {
	host, port, err := splitListen(cfg.NATS.Listen)
	if err != nil {
		return nil, err
	}
	srv, err := server.NewServer(&server.Options{
		ServerName: "chaind",
		Host:       host,
		Port:       port,
		JetStream:  true,
		StoreDir:   filepath.Join(cfg.DataDir, "nats"),
		SyncAlways: cfg.NATS.SyncAlways,
		MaxPayload: int32(cfg.Intake.MaxEventBytes + brokerHeadroom),
		NoSigs:     true, // signals are the daemon's
	})
	if err != nil {
		return nil, fmt.Errorf("start embedded nats: %w", err)
	}
	srv.SetLoggerV2(brokerLog{cfg.Logger.With("part", "nats")}, false, false, false)
	srv.Start()
	if !srv.ReadyForConnections(brokerStart) {
		srv.Shutdown()
		return nil, fmt.Errorf("start embedded nats on %s: not ready; is the address in use?", cfg.NATS.Listen)
	}
	return &broker{srv: srv}, nil
}

func (b *broker) url() string { return b.srv.ClientURL() }

// stop ends the broker and waits until its store is closed.
func (b *broker) stop() {
	b.srv.Shutdown()
	b.srv.WaitForShutdown()
}

// splitListen reads host:port; a busy port is found here, where the error can
// name it, rather than in the server's log.
func splitListen(listen string) (string, int, error) {
	host, text, err := net.SplitHostPort(listen)
	if err != nil {
		return "", 0, fmt.Errorf("nats-listen is not host:port: %w", err)
	}
	port, err := strconv.Atoi(text)
	if err != nil || port < -1 || port > 65535 {
		return "", 0, fmt.Errorf("nats-listen has no port between 1 and 65535: %q", text)
	}
	if port > 0 {
		probe, err := net.Listen("tcp", listen)
		if err != nil {
			return "", 0, errors.Join(fmt.Errorf("start embedded nats: %s cannot be used", listen), err)
		}
		if err := probe.Close(); err != nil {
			return "", 0, fmt.Errorf("start embedded nats: %w", err)
		}
	}
	return host, port, nil
}

// brokerLog passes the server's warnings on; its notices are the daemon's
// debug lines.
type brokerLog struct{ log *slog.Logger }

func (b brokerLog) Noticef(format string, v ...any) { b.log.Debug(fmt.Sprintf(format, v...)) }
func (b brokerLog) Warnf(format string, v ...any)   { b.log.Warn(fmt.Sprintf(format, v...)) }
func (b brokerLog) Fatalf(format string, v ...any)  { b.log.Error(fmt.Sprintf(format, v...)) }
func (b brokerLog) Errorf(format string, v ...any)  { b.log.Error(fmt.Sprintf(format, v...)) }
func (b brokerLog) Debugf(format string, v ...any)  { b.log.Debug(fmt.Sprintf(format, v...)) }
func (b brokerLog) Tracef(format string, v ...any)  { b.log.Debug(fmt.Sprintf(format, v...)) }
