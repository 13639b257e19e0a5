package emitter

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
)

// delivery is one message on its way from the broker to the client.
type delivery struct {
	words   []string // of the protocol line, without the sizes: MSG or HMSG, subject, sid, perhaps reply
	header  []byte
	payload []byte
}

func (d *delivery) reply() string {
	if len(d.words) < 4 {
		return ""
	}
	return d.words[3]
}

// fate is what a proxy does with a delivery.
type fate int

const (
	pass fate = iota
	lose
	cut // the connection, in place of the delivery
)

// proxy stands between a client and the broker and decides about every message
// that the broker sends. What the client sends waits meanwhile.
type proxy struct {
	t      testing.TB
	l      net.Listener
	target string
	mu     sync.Mutex // held while decide runs, and while the client's bytes pass
	decide func(*delivery) fate
	conns  map[net.Conn]bool
	done   sync.WaitGroup
}

// newProxy connects a client to the rig's broker through a proxy.
func newProxy(r *rig, decide func(*delivery) fate) (*proxy, *nats.Conn) {
	r.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	p := &proxy{t: r.t, l: l, target: r.broker.srv.Addr().String(), decide: decide, conns: map[net.Conn]bool{}}
	p.done.Go(p.accept)
	r.t.Cleanup(p.stop)
	return p, r.broker.connectTo("nats://" + l.Addr().String())
}

func (p *proxy) stop() {
	_ = p.l.Close()
	p.mu.Lock()
	for c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
	p.mu.Unlock()
	p.done.Wait()
}

func (p *proxy) accept() {
	for {
		client, err := p.l.Accept()
		if err != nil {
			return
		}
		broker, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		if p.conns == nil {
			_, _ = client.Close(), broker.Close()
		} else {
			p.conns[client], p.conns[broker] = true, true
		}
		p.mu.Unlock()
		p.done.Go(func() { p.up(client, broker) })
		p.done.Go(func() { p.down(broker, client) })
	}
}

func (p *proxy) up(client, broker net.Conn) {
	defer client.Close()
	defer broker.Close()
	b := make([]byte, 64<<10)
	for {
		n, err := client.Read(b)
		if err != nil {
			return
		}
		p.mu.Lock()
		_, err = broker.Write(b[:n])
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *proxy) down(broker, client net.Conn) {
	defer client.Close()
	defer broker.Close()
	in := bufio.NewReader(broker)
	for {
		out, err := p.next(in)
		if err != nil {
			return
		}
		if _, err := client.Write(out); err != nil {
			return
		}
	}
}

// next reads one protocol line, with the message behind it, and returns what
// the client gets of it.
func (p *proxy) next(in *bufio.Reader) ([]byte, error) {
	text, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	words := strings.Fields(text)
	if len(words) == 0 || words[0] != "MSG" && words[0] != "HMSG" {
		return []byte(text), nil
	}
	d, err := readDelivery(words, in)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.decide(d) {
	case lose:
		return nil, nil
	case cut:
		return nil, io.EOF
	}
	return d.encode(), nil
}

func readDelivery(words []string, in io.Reader) (*delivery, error) {
	sizes := 1
	if words[0] == "HMSG" {
		sizes = 2
	}
	total, err := strconv.Atoi(words[len(words)-1])
	if err != nil {
		return nil, err
	}
	headers := 0
	if sizes == 2 {
		if headers, err = strconv.Atoi(words[len(words)-2]); err != nil {
			return nil, err
		}
	}
	body := make([]byte, total+2)
	if _, err := io.ReadFull(in, body); err != nil {
		return nil, err
	}
	return &delivery{words: words[:len(words)-sizes], header: body[:headers], payload: body[headers:total]}, nil
}

func (d *delivery) encode() []byte {
	text := strings.Join(d.words, " ")
	if d.words[0] == "HMSG" {
		text += " " + strconv.Itoa(len(d.header))
	}
	return fmt.Appendf(nil, "%s %d\r\n%s%s\r\n", text, len(d.header)+len(d.payload), d.header, d.payload)
}
