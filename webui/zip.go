package webui

import (
	"compress/gzip"
	"net/http"
	"strings"
	"sync"

	"fairway/webui/access"
)

// zipFrom is the size of an answer from which it is worth compressing, bytes.
const zipFrom = 1400

var zippers = sync.Pool{New: func() any {
	z, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return z
}}

// zipped lets a route's JSON be compressed for who asks for that. Answers with secrets must not be: their length
// says something about them.
func zipped(r row) row {
	secret := r.Kind&(socket|long) != 0 || r.Method != http.MethodGet || strings.HasPrefix(r.Path, "/api/v1/session") ||
		!strings.Contains(r.Path, "/api/v1/")
	if secret {
		return r
	}
	next := r.Handle
	r.Handle = func(w http.ResponseWriter, r *http.Request, by access.Caller) error {
		w.Header().Add("Vary", "Accept-Encoding")
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			return next(w, r, by)
		}
		z := &zipWriter{ResponseWriter: w}
		defer z.close()
		return next(z, r, by)
	}
	return r
}

// zipWriter compresses an answer of JSON that is long enough, by its first piece.
type zipWriter struct {
	http.ResponseWriter
	code int
	z    *gzip.Writer // nil: plain, or nothing was written yet
	sent bool         // the head
}

// WriteHeader waits for the first piece: what it is decides the head.
func (w *zipWriter) WriteHeader(code int) { w.code = code }

func (w *zipWriter) Write(b []byte) (int, error) {
	if !w.sent {
		h := w.Header()
		if strings.HasPrefix(h.Get("Content-Type"), "application/json") && h.Get("Content-Encoding") == "" &&
			len(b) >= zipFrom {
			h.Set("Content-Encoding", "gzip")
			h.Del("Content-Length")
			w.z = zippers.Get().(*gzip.Writer)
			w.z.Reset(w.ResponseWriter)
		}
		w.head()
	}
	if w.z != nil {
		return w.z.Write(b)
	}
	return w.ResponseWriter.Write(b)
}

func (w *zipWriter) head() {
	w.sent = true
	if w.code != 0 {
		w.ResponseWriter.WriteHeader(w.code)
	}
}

func (w *zipWriter) close() {
	if w.z != nil {
		_ = w.z.Close() // the reader is gone when this fails
		w.z.Reset(nil)
		zippers.Put(w.z)
	} else if !w.sent && w.code != 0 {
		w.head()
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (w *zipWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
