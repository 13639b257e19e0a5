package server

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestH04_SlowHeaders opens many connections that send one header byte in ten
// seconds; all are closed in time and the server answers others meanwhile.
func TestH04_SlowHeaders(t *testing.T) {
	b := loadTree(t, "two-run")
	h := newHandler(t, Config{Sidecars: b.sidecars()})
	synctest.Test(t, func(t *testing.T) {
		p := servePipes(t, h)
		const n = 500
		closed := make(chan time.Duration, n)
		start := time.Now()
		for range n {
			go drip(p.dial(), "GET /healthz HTTP/1.1\r\nHost: slow.test\r\n\r\n", start, closed)
		}
		synctest.Wait()
		if resp, _ := send(t, p, "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"); resp.StatusCode != http.StatusOK {
			t.Errorf("health: %d", resp.StatusCode)
		}
		for range n {
			if took := <-closed; took > readHeaderTimeout+time.Second {
				t.Fatalf("a slow connection lived %v", took)
			}
		}
	})
}

// drip sends one byte in ten seconds until the server closes.
func drip(c net.Conn, text string, start time.Time, closed chan<- time.Duration) {
	gone, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := range len(text) {
			if _, err := c.Write([]byte{text[i]}); err != nil {
				return
			}
			select {
			case <-gone:
				return
			case <-time.After(10 * time.Second):
			}
		}
	}()
	io.Copy(io.Discard, c)
	c.Close()
	close(gone)
	<-ended
	closed <- time.Since(start)
}

// TestH04_SlowBody offers a body that never comes.
func TestH04_SlowBody(t *testing.T) {
	b := loadTree(t, "two-run")
	h := newHandler(t, Config{Sidecars: b.sidecars()})
	synctest.Test(t, func(t *testing.T) {
		p := servePipes(t, h)
		start := time.Now()
		resp, _ := send(t, p, "GET /healthz HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nx")
		if resp.StatusCode != http.StatusRequestEntityTooLarge || time.Since(start) > readTimeout {
			t.Errorf("status %d after %v", resp.StatusCode, time.Since(start))
		}
	})
}

// big answers with many chunks and says how the writing ended.
func big(body []byte, ended chan<- error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err := w.Write(body)
		ended <- err
	})
}

// TestStalledReaderIsCutOff reads nothing after the request.
func TestStalledReaderIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		g := &guard{next: big(make([]byte, 64*writeChunk), ended), logger: testLogger(t), metrics: NewMetrics("test", nil), now: time.Now, stall: writeStall}
		p := servePipes(t, g)
		start := time.Now()
		c := p.dial()
		defer c.Close()
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("writing ended with %v", err)
		}
		if took := time.Since(start); took > 2*writeStall {
			t.Errorf("cut off after %v", took)
		}
	})
}

// TestSlowReaderWhoProgressesGetsAll takes far longer than any deadline.
func TestSlowReaderWhoProgressesGetsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := bytes.Repeat([]byte("evidence"), 32*writeChunk/8)
		ended := make(chan error, 1)
		g := &guard{next: big(body, ended), logger: testLogger(t), metrics: NewMetrics("test", nil), now: time.Now, stall: writeStall}
		p := servePipes(t, g)
		start := time.Now()
		c := p.dial()
		defer c.Close()
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReaderSize(&sleepyReader{c}, writeChunk/4), nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if err != nil || !bytes.Equal(got, body) {
			t.Fatalf("%d of %d bytes, %v", len(got), len(body), err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took < 4*writeStall {
			t.Errorf("only %v passed: the test does not test", took)
		}
	})
}

// sleepyReader waits before each read, shorter than a chunk may take.
type sleepyReader struct{ c net.Conn }

func (r *sleepyReader) Read(b []byte) (int, error) {
	time.Sleep(writeStall / 6)
	return r.c.Read(b)
}

// TestLongVerificationOutlivesTheReadTimeout reads for longer than a request
// may take to arrive.
func TestLongVerificationOutlivesTheReadTimeout(t *testing.T) {
	tree := loadTree(t, "two-run")
	synctest.Test(t, func(t *testing.T) {
		blocked := &blockedSidecars{Sidecars: tree.sidecars(), entered: make(chan struct{}, 1), release: make(chan struct{})}
		p := servePipes(t, newHandler(t, Config{Sidecars: blocked}))
		go func() {
			<-blocked.entered
			time.Sleep(2 * readTimeout)
			close(blocked.release)
		}()
		c := p.dial()
		defer c.Close()
		go io.WriteString(c, "GET "+runURL+" HTTP/1.1\r\nHost: h\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%+v, %v", resp, err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Error(err)
		}
	})
}

// TestGoneReaderEndsTheWork closes the connection during a verification.
func TestGoneReaderEndsTheWork(t *testing.T) {
	tree := loadTree(t, "two-run")
	synctest.Test(t, func(t *testing.T) {
		blocked := &blockedSidecars{Sidecars: tree.sidecars(), entered: make(chan struct{}, 2), release: make(chan struct{})}
		p := servePipes(t, newHandler(t, Config{Sidecars: blocked, Verifications: 1}))
		c := p.dial()
		go io.WriteString(c, "GET "+runURL+" HTTP/1.1\r\nHost: h\r\n\r\n")
		<-blocked.entered
		start := time.Now()
		c.Close()
		synctest.Wait()
		close(blocked.release)
		if resp, _ := send(t, p, "GET "+runURL+" HTTP/1.1\r\nHost: h\r\n\r\n"); resp.StatusCode != http.StatusOK || time.Since(start) != 0 {
			t.Errorf("status %d after %v: the slot was not given back at once", resp.StatusCode, time.Since(start))
		}
	})
}
