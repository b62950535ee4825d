// Package api is the language of the HTTP API: the values that the server writes and that the faces and commands
// read, the errors, and how a refusal looks on the wire (RFC 9457). It knows no server and no terminal.
package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// maxBody fits a manual remap of every compute node of the largest machine.
const maxBody = 8 << 20

// WriteJSON answers a request with a value.
func WriteJSON(w http.ResponseWriter, v any) error {
	b, err := Encode(v)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(b) // the reader is gone when this fails
	return nil
}

// ListOf is a list that is [] in JSON where it has nothing, and not null.
func ListOf[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}

// ReadJSON reads a body of one JSON object without unknown fields.
func ReadJSON(w http.ResponseWriter, r *http.Request, v any) error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, large.Limit)
		}
		return fmt.Errorf("%w: body: %w", ErrInvalid, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: body: more than one JSON value", ErrInvalid)
	}
	return nil
}

// unknownNumber stands for null while a value is encoded: the least number above 0, which nothing measures.
const unknownNumber = math.SmallestNonzeroFloat64

// Encode writes a value as JSON, and is the only way by which webui's numbers get there. JSON has no word for what is
// not a number or has no end: both are not known, so null.
func Encode(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if not := (*json.UnsupportedValueError)(nil); !errors.As(err, &not) {
		return b, err
	}
	if b, err = json.Marshal(finite(reflect.ValueOf(v)).Interface()); err != nil {
		return nil, err
	}
	return bytes.ReplaceAll(b, []byte("5e-324"), []byte("null")), nil
}

// finite copies a value with unknownNumber for each float that is not finite.
func finite(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Float64, reflect.Float32:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			out := reflect.New(v.Type()).Elem()
			out.SetFloat(unknownNumber)
			return out
		}
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return v
		}
		inner := finite(v.Elem())
		out := reflect.New(v.Type()).Elem()
		if v.Kind() == reflect.Interface {
			out.Set(inner)
			return out
		}
		out.Set(reflect.New(v.Type().Elem()))
		out.Elem().Set(inner)
		return out
	case reflect.Struct:
		out := reflect.New(v.Type()).Elem()
		out.Set(v)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(finite(v.Field(i)))
			}
		}
		return out
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.IsNil() {
			return v
		}
		out := reflect.New(v.Type()).Elem()
		if v.Kind() == reflect.Slice {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		}
		for i := range v.Len() {
			out.Index(i).Set(finite(v.Index(i)))
		}
		return out
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeMapWithSize(v.Type(), v.Len())
		for k, x := range v.Seq2() {
			out.SetMapIndex(k, finite(x))
		}
		return out
	}
	return v
}

// What the server refuses, and why. Errors of webui/client wrap one of these or are failures of the
// server; table gives each its HTTP status, and fairway its exit code.
var (
	ErrInvalid     = errors.New("invalid request")
	ErrNotAllowed  = errors.New("not allowed")
	ErrNotFound    = errors.New("not found")
	ErrConflict    = errors.New("conflict")
	ErrChanged     = errors.New("changed under you")
	ErrUnreachable = errors.New("unreachable")
	ErrPartial     = errors.New("partly applied")
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
	d := Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code,
		Detail: err.Error(), Instance: r.URL.Path}
	w.Header().Set("Content-Type", ProblemType)
	if strings.HasPrefix(r.URL.Path, "/api/v2/") { // InfluxDB's clients read one type alone
		d.Message = d.Detail
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
	}
	if later := (Later{}); errors.As(err, &later) {
		w.Header().Set("Retry-After", strconv.Itoa(max(int(math.Ceil(later.After.Seconds())), 1)))
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(d) // the client is gone when this fails
}

// Error turns an answered problem back into the error it stands for. A status outside the table
// becomes a plain error.
func (d Problem) Error() error {
	text := cmp.Or(d.Detail,
		fmt.Sprintf("the server answered %d %s without saying why", d.Status, http.StatusText(d.Status)))
	for _, e := range table {
		if e.status == d.Status {
			return Refused(errors.New(text), e.err)
		}
	}
	return errors.New(text)
}

// Refused is an error in its own words that is also one of the kinds above.
func Refused(err, kind error) error { return refusal{err, kind} }

type refusal struct{ err, kind error }

func (r refusal) Error() string   { return r.err.Error() }
func (r refusal) Unwrap() []error { return []error{r.err, r.kind} }
