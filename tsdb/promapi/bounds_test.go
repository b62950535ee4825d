package promapi_test

import (
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"
)

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
