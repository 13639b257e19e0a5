package server

import (
	"net/http"
	"time"
)

// progressWriter gives every chunk of an answer a new write deadline and
// remembers what was sent. A deadline for the whole answer would cut large
// answers to honest but slow readers; none at all would let a reader hold its
// connection for ever.
type progressWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
	status  int   // 0 until the header was written
	bytes   int64 // of the body, as far as handed to the connection
	failed  error // first failed write: the reader has gone or stalled
}

func newProgressWriter(w http.ResponseWriter, stall time.Duration) *progressWriter {
	return &progressWriter{ResponseWriter: w, control: http.NewResponseController(w), stall: stall}
}

func (w *progressWriter) WriteHeader(status int) {
	if w.status != 0 {
		return
	}
	w.status = status
	w.extend()
	w.ResponseWriter.WriteHeader(status)
}

func (w *progressWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	done := 0
	for done < len(b) && w.failed == nil {
		w.extend()
		n, err := w.ResponseWriter.Write(b[done:min(len(b), done+writeChunk)])
		done += n
		w.failed = err
	}
	w.bytes += int64(done)
	return done, w.failed
}

// extend moves the write deadline. Writers without deadlines (recorders in
// tests, exotic middleware) answer http.ErrNotSupported, which changes nothing.
func (w *progressWriter) extend() {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.stall))
}

// Unwrap serves http.ResponseController.
func (w *progressWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
