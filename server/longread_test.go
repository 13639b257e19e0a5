package server

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Case B07: clients that read slowly hold no transaction of the database, which
// could not reuse any page meanwhile. Each has a part of its answer and reads no
// further; a compaction, which waits for every reader, goes through.
func TestB07SlowClientsHoldNoTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seal(t)
	h := newHandler(t, Config{Store: w.store, Sidecars: w.sidecars, Logger: testLogger(t), Pack: w.pack})
	p := servePipes(t, h)
	c := w.finishedChain(t)
	type slow struct {
		url  string
		rest io.Reader
	}
	var clients []slow
	for _, url := range []string{"/v1/chains", "/v1/runs", "/v1/rejected", c.url() + "/bundle"} {
		conn := p.dial()
		t.Cleanup(func() { conn.Close() })
		go fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: slow.test\r\n\r\n", url) // ends when all is read or the pipe closes
		rest := bufio.NewReaderSize(conn, 16)
		if first, err := rest.Peek(1); err != nil || first[0] != 'H' {
			t.Fatalf("%s: %q, %v", url, first, err)
		}
		clients = append(clients, slow{url, rest})
	}
	done := make(chan error, 1)
	go func() { _, err := w.store.Compact(t.Context(), nil); done <- err }()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("a slow client holds a transaction")
	}
	for _, s := range clients {
		r, err := http.ReadResponse(bufio.NewReader(s.rest), nil)
		if err != nil {
			t.Fatalf("%s: %v", s.url, err)
		}
		body, err := io.ReadAll(r.Body)
		if want := get(h, "GET", s.url).Body.String(); err != nil || r.StatusCode != http.StatusOK || len(body) < 4<<10 || strings.TrimSpace(string(body)) != strings.TrimSpace(want) {
			t.Errorf("%s: %d, %d bytes of %d, %v", s.url, r.StatusCode, len(body), len(want), err)
		}
	}
}
