package emitter

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	pullExpiry    = 30 * time.Second
	pullHeartbeat = 5 * time.Second
)

var errSilent = errors.New("the broker sends no heartbeat")

// puller keeps pull requests open at the consumer and tells messages from the
// broker's own words. The client library tells them apart by a status header,
// which a publisher can set on an empty message of its own: such a message
// would never be handed over, or end the reading. Here only what carries an
// acknowledgement subject is a message, and only what carries none is not.
type puller struct {
	conn    *nats.Conn
	subject string // of pull requests
	request []byte // all but the number of messages
	batch   int

	sub    *nats.Subscription
	closed chan struct{} // when the subscription's goroutine has ended

	quiet   sync.Mutex // guards the two below
	silent  *time.Timer
	stopped bool

	heard atomic.Uint64 // deliveries and words so far
	busy  atomic.Bool   // one is being handled, which lasts while the store is stalled

	left int // messages that open requests may still bring; owned by the subscription's goroutine
}

// startPull begins to read. handle and fail are called from one goroutine.
func startPull(js jetstream.JetStream, stream, durable string, batch, maxBytes int, handle func(*nats.Msg, *nats.MsgMetadata), fail func(error)) (*puller, error) {
	p := &puller{
		conn: js.Conn(), batch: batch, closed: make(chan struct{}),
		subject: apiPrefix(js.Options()) + "CONSUMER.MSG.NEXT." + stream + "." + durable,
		request: fmt.Appendf(nil, `{"max_bytes":%d,"expires":%d,"idle_heartbeat":%d,"batch":`, maxBytes, pullExpiry, pullHeartbeat),
	}
	inbox := p.conn.NewInbox()
	started := make(chan struct{})
	sub, err := p.conn.Subscribe(inbox, func(m *nats.Msg) {
		<-started
		p.busy.Store(true)
		if err := p.take(m, inbox, handle); err != nil {
			fail(err)
		}
		p.heard.Add(1)
		p.busy.Store(false)
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe to deliveries: %w", err)
	}
	p.sub = sub
	sub.SetClosedHandler(func(string) { close(p.closed) })
	if err = sub.SetPendingLimits(-1, -1); err == nil { // the requests bound what comes
		err = p.more(inbox)
	}
	p.listen(0, fail)
	close(started)
	if err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// listen fails the reading when nothing is heard for two heartbeats.
func (p *puller) listen(before uint64, fail func(error)) {
	p.quiet.Lock()
	defer p.quiet.Unlock()
	if p.stopped {
		return
	}
	p.silent = time.AfterFunc(2*pullHeartbeat, func() {
		heard := p.heard.Load()
		if heard == before && !p.busy.Load() {
			fail(errSilent)
			return
		}
		p.listen(heard, fail)
	})
}

// stop ends the reading. The handler must be free to return.
func (p *puller) stop() {
	if p.sub.Unsubscribe() == nil {
		<-p.closed
	}
	p.quiet.Lock()
	defer p.quiet.Unlock()
	p.stopped = true
	p.silent.Stop()
}

func (p *puller) take(m *nats.Msg, inbox string, handle func(*nats.Msg, *nats.MsgMetadata)) error {
	if m.Reply == "" {
		if err := p.word(m); err != nil {
			return err
		}
		return p.more(inbox)
	}
	meta, err := m.Metadata()
	if err != nil {
		return nil // not from the consumer
	}
	p.left--
	handle(m, meta)
	return p.more(inbox)
}

// word takes what the broker says: a heartbeat, or that a request has ended
// with so many messages short.
func (p *puller) word(m *nats.Msg) error {
	status := m.Header.Get("Status")
	if status == "100" {
		return nil
	}
	short, err := strconv.Atoi(m.Header.Get("Nats-Pending-Messages"))
	if err != nil || status != "408" && status != "409" {
		err := fmt.Errorf("pull messages: %s %s", status, m.Header.Get("Description"))
		if status == "409" || status == "404" { // the consumer was deleted, or never was
			return &troubled{err, TroubleConsumer}
		}
		return err
	}
	p.left -= short
	return nil
}

// more asks for messages when less than half of what may be open is.
func (p *puller) more(inbox string) error {
	p.left = max(p.left, 0)
	if p.left > p.batch/2 {
		return nil
	}
	ask := p.batch - p.left
	request := append(strconv.AppendInt(p.request[:len(p.request):len(p.request)], int64(ask), 10), '}')
	if err := p.conn.PublishRequest(p.subject, inbox, request); err != nil {
		return fmt.Errorf("pull messages: %w", err)
	}
	p.left += ask
	return nil
}

// apiPrefix is where the JetStream context sends its requests.
func apiPrefix(o jetstream.JetStreamOptions) string {
	switch {
	case o.APIPrefix != "":
		return strings.TrimSuffix(o.APIPrefix, ".") + "."
	case o.Domain != "":
		return "$JS." + o.Domain + ".API."
	}
	return jetstream.DefaultAPIPrefix
}

// ack acknowledges a message and all before it.
func ack(m *nats.Msg) error { return m.Respond([]byte("+ACK")) }
