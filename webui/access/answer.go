package access

import (
	"bufio"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"fairway/webui/api"
)

// writeWithin is how long one piece of an answer may wait for its reader.
const writeWithin = 5 * time.Minute

// hurryWithin is how long it may wait once others have waited for the place of its request.
const hurryWithin = time.Second

// statusRecorder remembers the status for the metrics, and ends an answer that nobody reads.
type statusRecorder struct {
	http.ResponseWriter
	status  int
	begun   bool // part of the answer is on its way
	hurried atomic.Bool
}

func (s *statusRecorder) WriteHeader(code int) {
	s.status, s.begun = code, true
	s.patience()
	s.ResponseWriter.WriteHeader(code)
}

func (s *statusRecorder) Write(b []byte) (int, error) {
	s.begun = true
	s.patience()
	return s.ResponseWriter.Write(b)
}

// fail answers with a problem document. An answer that has begun is cut off, so that nobody takes it for whole.
func (s *statusRecorder) fail(r *http.Request, err error, log *slog.Logger) {
	if api.Status(err) == http.StatusInternalServerError {
		log.Error("a request failed", "method", r.Method, "path", r.URL.Path, "err", err)
	}
	if s.begun {
		s.status = http.StatusInternalServerError
		panic(http.ErrAbortHandler)
	}
	api.WriteProblem(s, r, err)
}

// patience begins the wait anew. Only a test's writer has no deadlines.
func (s *statusRecorder) patience() {
	within := writeWithin
	if s.hurried.Load() {
		within = hurryWithin
	}
	_ = http.NewResponseController(s.ResponseWriter).SetWriteDeadline(time.Now().Add(within))
}

// hurry ends an answer that is not read at once, and a request that has not come. It may be called beside a write.
func (s *statusRecorder) hurry() {
	s.hurried.Store(true)
	s.patience()
	_ = http.NewResponseController(s.ResponseWriter).SetReadDeadline(time.Now().Add(hurryWithin))
}

// Hijack hands the connection to a WebSocket.
func (s *statusRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	s.status, s.begun = http.StatusSwitchingProtocols, true
	return http.NewResponseController(s.ResponseWriter).Hijack()
}

// Unwrap lets http.ResponseController reach the connection.
func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// securityHeaders go out with every answer. Nothing is loaded from elsewhere, nothing is framed.
func securityHeaders(h http.Header) {
	h.Set("Content-Security-Policy", strings.Join([]string{
		"default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' blob: data:",
		"connect-src 'self'", "font-src 'self'", "manifest-src 'self'",
		"base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'",
	}, "; "))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}
