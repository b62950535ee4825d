package promapi

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// maxSelectors bounds the series selectors of one request: each is a walk over all nodes and metrics.
const maxSelectors = 64

// selectors parses the match[] parameters; none at all is one selector that matches everything.
func (a *API) selectors(r *http.Request) ([][]*labels.Matcher, error) {
	if texts := r.Form["match[]"]; len(texts) > maxSelectors {
		return nil, badRequest{fmt.Errorf("invalid parameter \"match[]\": %d of them, at most %d", len(texts),
			maxSelectors)}
	}
	for _, text := range r.Form["match[]"] {
		if err := tokens(text); err != nil {
			return nil, badRequest{fmt.Errorf("invalid parameter \"match[]\": %w", err)}
		}
	}
	sets, err := a.parser.ParseMetricSelectors(r.Form["match[]"])
	if err != nil {
		return nil, badRequest{fmt.Errorf("invalid parameter \"match[]\": %w", err)}
	}
	for _, set := range sets {
		if !slices.ContainsFunc(set, func(m *labels.Matcher) bool { return !m.Matches("") }) {
			return nil, badRequest{errors.New("match[] must contain at least one non-empty matcher")}
		}
	}
	return sets, nil
}

// between returns a querier of the parameters start and end; without either it is of all time.
func (a *API) between(r *http.Request) (*querier, error) {
	q := &querier{queryable: queryable{store: a.cfg.Store, cfg: &a.cfg}, to: math.MaxInt64}
	for name, bound := range map[string]*int64{"start": &q.from, "end": &q.to} {
		if r.FormValue(name) == "" {
			continue
		}
		at, err := instant(r, name, time.Time{})
		if err != nil {
			return nil, err
		}
		*bound = at.UnixMilli()
	}
	if q.to != math.MaxInt64 {
		q.to++ // inclusive
	}
	return q, nil
}

// expression parses the parameter query.
func (a *API) expression(r *http.Request) (parser.Expr, error) {
	err := tokens(r.FormValue("query"))
	var expr parser.Expr
	if err == nil {
		expr, err = a.parser.ParseExpr(r.FormValue("query"))
	}
	if err != nil {
		return nil, badRequest{fmt.Errorf("invalid parameter \"query\": %w", err)}
	}
	return expr, nil
}

// limitOf reads how many entries an answer may have; 0 is all.
func limitOf(r *http.Request) (int, error) {
	text := r.FormValue("limit")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, badRequest{fmt.Errorf("invalid parameter \"limit\": %q is not a number from 0", text)}
	}
	return n, nil
}

// furthest is how many seconds from 1970 time ends here: clients send the ends of time where none was given.
const furthest = 1e11

// instant reads a time: seconds since the epoch, with a fraction, or RFC 3339.
func instant(r *http.Request, name string, missing time.Time) (time.Time, error) {
	text := r.FormValue(name)
	if text == "" && !missing.IsZero() {
		return missing, nil
	}
	if s, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(s) {
		whole, frac := math.Modf(min(max(s, -furthest), furthest))
		return time.Unix(int64(whole), int64(math.Round(frac*1000))*int64(time.Millisecond)).UTC(), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	switch text { // Prometheus's ends of time, which have years of nine digits
	case "-292273086-05-16T16:47:06Z":
		return time.Unix(-furthest, 0).UTC(), nil
	case "292277025-08-18T07:12:54.999999999Z":
		return time.Unix(furthest, 0).UTC(), nil
	}
	return time.Time{}, badRequest{fmt.Errorf("invalid parameter %q: cannot parse %q to a valid timestamp", name, text)}
}

// duration reads seconds or a Prometheus duration such as 5m.
func duration(r *http.Request, name string, missing time.Duration) (time.Duration, error) {
	text := r.FormValue(name)
	if text == "" {
		return missing, nil
	}
	if s, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(s) < 1e9 {
		return time.Duration(s * float64(time.Second)), nil
	}
	if d, err := model.ParseDuration(text); err == nil {
		return time.Duration(d), nil
	}
	return 0, badRequest{fmt.Errorf("invalid parameter %q: cannot parse %q to a valid duration", name, text)}
}
