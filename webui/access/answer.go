package access

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// writeWithin is how long one piece of an answer may wait for its reader.
const writeWithin = 5 * time.Minute

// hurryWithin is how long it may wait once others have waited for the place of its request.
const hurryWithin = time.Second

// statusRecorder remembers the status for the metrics, and ends an answer that nobody reads.
type statusRecorder struct {
	http.ResponseWriter
	status  int
	hurried atomic.Bool
}

func (s *statusRecorder) WriteHeader(code int) {
	s.status = code
	s.patience()
	s.ResponseWriter.WriteHeader(code)
}

func (s *statusRecorder) Write(b []byte) (int, error) {
	s.patience()
	return s.ResponseWriter.Write(b)
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
	s.status = http.StatusSwitchingProtocols
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
