package server

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// pipes is a listener whose connections are pipes in memory: every byte is
// handed over synchronously and deadlines work, also on synctest's clock.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.IPAddr{} }

// dial opens a connection to the server.
func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

// servePipes serves h as NewHTTPServer does, until the test ends.
func servePipes(t *testing.T, h http.Handler) *pipes {
	t.Helper()
	p := newPipes()
	s := NewHTTPServer("", h, testLogger(t))
	done := make(chan error, 1)
	go func() { done <- s.Serve(p) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serve: %v", err)
		}
	})
	return p
}

// send writes a request as it stands and reads one answer.
func send(t *testing.T, p *pipes, request string) (*http.Response, string) {
	t.Helper()
	c := p.dial()
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	go io.WriteString(c, request) // ends when all is read or the pipe closes
	method, _, _ := strings.Cut(request, " ")
	r, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("request %.100q: %v", request, err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatalf("request %.100q: read body: %v", request, err)
	}
	return r, string(body)
}
