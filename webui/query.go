package webui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"fairway/remap"
	"fairway/webui/api"
)

// past reads the query's at; zero is live.
func past(r *http.Request) (time.Time, error) {
	text := r.URL.Query().Get("at")
	if text == "live" {
		text = ""
	}
	return parseTime("at", text, time.Now(), time.Time{})
}

// parseTime reads RFC 3339, Unix milliseconds, "now" or "-15m"; empty is fallback.
func parseTime(name, text string, now, fallback time.Time) (time.Time, error) {
	switch {
	case text == "":
		return fallback, nil
	case text == "now", text == "live":
		return now, nil
	case strings.HasPrefix(text, "-"):
		if d, err := time.ParseDuration(text); err == nil {
			return now.Add(d), nil
		}
	default:
		if ms, err := strconv.ParseInt(text, 10, 64); err == nil && ms < 1<<43 {
			return time.UnixMilli(ms), nil
		}
		if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%w: %s=%q; want RFC 3339, Unix milliseconds, now or -15m", api.ErrInvalid, name,
		text)
}

// parseRange reads from and to; without them it is the last span before now.
func parseRange(r *http.Request, span time.Duration) (from, to time.Time, err error) {
	q, now := r.URL.Query(), time.Now()
	if to, err = parseTime("to", q.Get("to"), now, now); err != nil {
		return
	}
	if from, err = parseTime("from", q.Get("from"), now, to.Add(-span)); err != nil {
		return
	}
	if !from.Before(to) {
		err = fmt.Errorf("%w: from %s is not before to %s", api.ErrInvalid, from.UTC().Format(time.RFC3339),
			to.UTC().Format(time.RFC3339))
	}
	return
}

func parseSpan(name, text string, fallback time.Duration) (time.Duration, error) {
	if text == "" {
		return fallback, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d > 366*24*time.Hour {
		return 0, fmt.Errorf("%w: %s=%q; want a span from 1s, such as 10s or 1h", api.ErrInvalid, name, text)
	}
	return d.Truncate(time.Second), nil
}

// defaultLimit and maxLimit bound lists.
const (
	defaultLimit = 200
	maxLimit     = 10000
)

func parseLimit(r *http.Request) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxLimit {
		return 0, fmt.Errorf("%w: limit=%q; want 1 to %d", api.ErrInvalid, text, maxLimit)
	}
	return n, nil
}

// answerOf is what a person answers the desk with.
func answerOf(r *http.Request, reason string) remap.Answer {
	return remap.Answer{Key: r.Header.Get("Idempotency-Key"), Reason: reason}
}

// deskErrors are what the desk's refusals are to the API.
var deskErrors = []struct{ desk, api error }{
	{remap.ErrNotFound, api.ErrNotFound},
	{remap.ErrChanged, api.ErrChanged},
	{remap.ErrNotAllowed, api.ErrNotAllowed},
	{remap.ErrState, api.ErrConflict},
	{remap.ErrConflict, api.ErrConflict},
	{remap.ErrInvalid, api.ErrInvalid},
	{remap.ErrClosed, api.ErrUnreachable},
	{remap.ErrNotLeading, api.ErrUnreachable},
	{context.DeadlineExceeded, api.ErrUnreachable},
}

// refusal keeps the words of a desk's error and adds its kind.
type refusal struct {
	err  error
	kind error
}

func (r refusal) Error() string   { return r.err.Error() }
func (r refusal) Unwrap() []error { return []error{r.err, r.kind} }

func fromDesk(err error) error {
	for _, e := range deskErrors {
		if errors.Is(err, e.desk) {
			return refusal{err, e.api}
		}
	}
	return err
}
