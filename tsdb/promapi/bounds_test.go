package promapi_test

import (
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"
)

// grow is an expression that makes the label x of a series' label from, or of nothing, as repl says.
func grow(of, repl, from string) string {
	return `label_replace(` + of + `, "x", "` + repl + `", "` + from + `", "(.*)")`
}

// TestLongExpressions sends what a parser takes minutes for, since its time grows with the square of the depth: each is
// refused before it is parsed, at every address that takes an expression.
func TestLongExpressions(t *testing.T) {
	s := server(t)
	many := url.Values{"match[]": make([]string, maxSelectorsAsked)}
	for i := range many["match[]"] {
		many["match[]"][i] = `{__name__=~".+"}`
	}
	for _, c := range []struct {
		path string
		form url.Values
	}{
		{"query", url.Values{"query": {strings.Repeat("1+", 5_000) + "1"}}},
		{"query", url.Values{"query": {strings.Repeat("(", 5_000) + "1" + strings.Repeat(")", 5_000)}}},
		{"format_query", url.Values{"query": {strings.Repeat("1+", 200_000) + "1"}}},
		{"series", many}, {"labels", many}, {"label/node/values", many},
		{"series", url.Values{"match[]": {`{` + strings.Repeat(`a="b",`, 5_000) + `}`}}},
	} {
		if code, body := ask(t, s, c.path, c.form); code != http.StatusBadRequest ||
			!strings.Contains(body, "at most") && !strings.Contains(body, "more than") {
			t.Errorf("%s: %d %.200s", c.path, code, body)
		}
	}
}

// maxSelectorsAsked is one more than may be asked for.
const maxSelectorsAsked = 65

// TestQueryBombs asks for what would take gigabytes: each is refused with the limit's name, in little memory.
func TestQueryBombs(t *testing.T) {
	s := server(t) // its queries may hold 5,000 samples, and answers have 32 MiB
	long := url.Values{"start": {"1700000400"}, "end": {"1700011000"}, "step": {"1s"}}
	with := func(q string) url.Values {
		v := url.Values{"query": {q}}
		for k, x := range long {
			v[k] = x
		}
		return v
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, c := range []struct {
		path string
		form url.Values
		want string
	}{
		{"query_range", with(`max_over_time(vector(1)[1d:1ms])`), "subquery has"},
		{"query_range", with(`{__name__=~".+"} or {__name__=~".+",node!=""}`), "points"},
		{"query", url.Values{"query": {`sum_over_time(vector(time())[100y:1ms])`}}, "subquery has"},
		{"query", url.Values{"query": {`max_over_time(max_over_time(vector(1)[1h:1s])[30h:1h])`}}, "subquery has"},
		{"query", url.Values{"query": {`label_replace(vector(1), "x", "` + strings.Repeat("x", 60_000) +
			`", "", "")`}}, ""}, // within the limits
		{"query", url.Values{"query": {`label_join(vector(1), "x", "` + strings.Repeat("s", 30_000) + `"` +
			strings.Repeat(`, "a"`, 500) + `)`}}, "labels of"},
		{"query", url.Values{"query": {`count(label_join({role=~".+"}, "x", "` + strings.Repeat("s", 1000) + `"` +
			strings.Repeat(`, "node"`, 60) + `))`}, "time": {"1700000500"}}, "labels of"},
		{"query", url.Values{"query": {grow(grow(grow(`vector(1)`, "abcdefgh", ""), strings.Repeat("$1", 2000), "x"),
			strings.Repeat("$1", 2000), "x")}}, "labels of"},
		{"query", url.Values{"query": {grow(grow(`{role=~".+"}`, strings.Repeat("$1", 2000), "node"),
			strings.Repeat("$1", 100), "x")}, "time": {"1700000500"}}, "labels of"},
		{"query", url.Values{"query": {`label_replace({role=~".+"}, "x", "$1", "node", "` +
			strings.Repeat("(.*.*.*)", 300) + `")`}, "time": {"1700000500"}}, "regular expression"},
	} {
		code, body := ask(t, s, c.path, c.form)
		if c.want != "" && (code != http.StatusUnprocessableEntity || !strings.Contains(body, c.want)) {
			t.Errorf("%s %.60s: %d %.200s", c.path, c.form.Get("query"), code, body)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := (after.TotalAlloc - before.TotalAlloc) >> 20; grown > 100 {
		t.Errorf("%d MB were allocated", grown)
	}
}
