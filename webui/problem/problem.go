// Package problem is how the API refuses: RFC 9457 documents whose HTTP status stands for one of
// the console's errors. The server writes them, webui/client reads them, and both use this table.
package problem

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"fairway/console"
)

// ContentType of a problem document.
const ContentType = "application/problem+json"

// Document is the body of every refusal.
type Document struct {
	Type     string `json:"type"` // "about:blank": title and status say it all
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Detail   string `json:"detail"` // what happened, on what, what to do
	Instance string `json:"instance,omitempty"`
}

// The first status of an error is the one the API answers; the others are understood as well.
var table = []struct {
	err    error
	status int
}{
	{console.ErrInvalid, http.StatusBadRequest},
	{console.ErrInvalid, http.StatusUnprocessableEntity},
	{console.ErrNotAllowed, http.StatusForbidden},
	{console.ErrNotAllowed, http.StatusUnauthorized},
	{console.ErrNotFound, http.StatusNotFound},
	{console.ErrConflict, http.StatusConflict},
	{console.ErrChanged, http.StatusPreconditionFailed},
	{console.ErrUnreachable, http.StatusServiceUnavailable},
	{console.ErrUnreachable, http.StatusBadGateway},
	{console.ErrUnreachable, http.StatusGatewayTimeout},
}

// Status is what the API answers err with: 500 for a failure that is no refusal.
func Status(err error) int {
	for _, e := range table {
		if errors.Is(err, e.err) {
			return e.status
		}
	}
	return http.StatusInternalServerError
}

// Write answers a request with err as a problem document.
func Write(w http.ResponseWriter, r *http.Request, err error) {
	status := Status(err)
	w.Header().Set("Content-Type", ContentType)
	w.WriteHeader(status)
	// The client is gone when this fails; there is nobody left to tell.
	_ = json.NewEncoder(w).Encode(Document{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: err.Error(), Instance: r.URL.Path,
	})
}

// Error turns an answered problem back into the error it stands for. A status outside the table
// becomes a plain error.
func (d Document) Error() error {
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
