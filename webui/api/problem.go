package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ProblemType is the content type of a problem document (RFC 9457).
const ProblemType = "application/problem+json"

// LateHeader is the header of every answer while the daemon itself is late, s: what looks slow may be only that.
const LateHeader = "Fairway-Late"

// Problem is the body of every refusal.
type Problem struct {
	Type     string `json:"type"` // "about:blank": title and status say it all
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Code     string `json:"code"`   // for machines; never changes its meaning
	Detail   string `json:"detail"` // what happened, on what, what to do
	Instance string `json:"instance,omitempty"`
	// Message is Detail under the name that InfluxDB's clients read, on the paths of InfluxDB's API.
	Message string `json:"message,omitempty"`
}

// The refusals of the gate, each a kind of one of the errors above.
var (
	// ErrSignIn says that signing in would help.
	ErrSignIn   = fmt.Errorf("%w: not signed in", ErrNotAllowed)
	ErrTooOften = fmt.Errorf("%w: too many requests", ErrNotAllowed)
	ErrTooLarge = fmt.Errorf("%w: body too large", ErrInvalid)
	ErrMethod   = fmt.Errorf("%w: method not allowed", ErrInvalid)
)

// The first line that fits an error is what the API answers; the others are understood as well.
var table = []struct {
	err    error
	status int
	code   string
}{
	{ErrSignIn, http.StatusUnauthorized, "not_signed_in"},
	{ErrTooOften, http.StatusTooManyRequests, "too_often"},
	{ErrTooLarge, http.StatusRequestEntityTooLarge, "too_large"},
	{ErrMethod, http.StatusMethodNotAllowed, "method_not_allowed"},
	{ErrInvalid, http.StatusBadRequest, "invalid"},
	{ErrInvalid, http.StatusUnprocessableEntity, "invalid"},
	{ErrNotAllowed, http.StatusForbidden, "not_allowed"},
	{ErrNotFound, http.StatusNotFound, "not_found"},
	{ErrConflict, http.StatusConflict, "conflict"},
	{ErrChanged, http.StatusPreconditionFailed, "changed"},
	{ErrUnreachable, http.StatusServiceUnavailable, "unreachable"},
	{ErrUnreachable, http.StatusBadGateway, "unreachable"},
	{ErrUnreachable, http.StatusGatewayTimeout, "unreachable"},
	{context.DeadlineExceeded, http.StatusGatewayTimeout, "too_long"}, // what was asked, not the server, needs longer
}

// Status is what the API answers err with: 500 for a failure.
func Status(err error) int {
	status, _ := statusOf(err)
	return status
}

func statusOf(err error) (status int, code string) {
	for _, e := range table {
		if errors.Is(err, e.err) {
			return e.status, e.code
		}
	}
	return http.StatusInternalServerError, "internal"
}

// Later is a refusal that ends by itself: Retry-After says when.
type Later struct {
	Err   error
	After time.Duration
}

func (l Later) Error() string { return l.Err.Error() }
func (l Later) Unwrap() error { return l.Err }

// WriteProblem answers a request with err as a problem document.
func WriteProblem(w http.ResponseWriter, r *http.Request, err error) {
	status, code := statusOf(err)
	w.Header().Set("Content-Type", ProblemType)
	if later := (Later{}); errors.As(err, &later) {
		w.Header().Set("Retry-After", strconv.Itoa(max(int(math.Ceil(later.After.Seconds())), 1)))
	}
	w.WriteHeader(status)
	d := Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code,
		Detail: err.Error(), Instance: r.URL.Path}
	if strings.HasPrefix(r.URL.Path, "/api/v2/") {
		d.Message = d.Detail
	}
	_ = json.NewEncoder(w).Encode(d) // the client is gone when this fails
}

// Error turns an answered problem back into the error it stands for. A status outside the table
// becomes a plain error.
func (d Problem) Error() error {
	text := d.Detail
	if text == "" {
		text = fmt.Sprintf("the server answered %d %s without saying why", d.Status, http.StatusText(d.Status))
	}
	for _, e := range table {
		if e.status == d.Status {
			return &refusal{text: text, err: e.err}
		}
	}
	return errors.New(text)
}

// refusal keeps the server's words, which already name the kind, and the kind for errors.Is.
type refusal struct {
	text string
	err  error
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.err }
