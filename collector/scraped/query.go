package scraped

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Prometheus is a server of Prometheus's query API, which keeps every scrape.
type Prometheus struct {
	base url.URL
	http http.Client
	bad  func(error) // of one Read
}

// NewPrometheus makes the client of an address such as prometheus://host:9090/prefix or https://host.
func NewPrometheus(address string) (*Prometheus, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("that is not an address: want prometheus://HOST:PORT[/PREFIX], http:// or https://")
	}
	if u.Scheme == "prometheus" {
		u.Scheme = "http"
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%s: want prometheus://HOST:PORT[/PREFIX], http:// or https://", u.Redacted())
	}
	return &Prometheus{base: *u.JoinPath("api/v1/query"), http: http.Client{Timeout: 2 * time.Minute}}, nil
}

const (
	// mostBytes bounds one answer, and wantValues is how many values one is to have.
	mostBytes, wantValues = 256 << 20, 1_000_000
	// Stretches of time that are asked for at once.
	firstStretch, leastStretch, mostStretch = 5 * time.Minute, 20 * time.Second, 2 * time.Hour
)

// errTooMuch says that an answer would be too large.
var errTooMuch = errors.New("the answer would be too large")

// Read reads the time from begin to end into r. bad gets, each once, why an answer may lack what the server has.
func (p *Prometheus) Read(ctx context.Context, r *Reader, begin, end time.Time, bad func(error)) error {
	seen := map[string]bool{}
	p.bad = func(err error) {
		if !seen[err.Error()] {
			seen[err.Error()] = true
			bad(err)
		}
	}
	count, err := p.ask(ctx, `count({__name__=~"lustre_job_.+|lustre2_jobstats_.+"})`, end)
	if err != nil {
		return err
	}
	r.sum.Jobs = len(count) > 0
	stretch := firstStretch
	for at := begin; at.Before(end); {
		step := min(stretch, end.Sub(at))
		batch, values, err := p.askStretch(ctx, r, at.Add(step), step)
		if errors.Is(err, errTooMuch) && step > leastStretch {
			stretch = max(step/2, leastStretch)
			continue
		}
		if err != nil {
			return err
		}
		if err := r.Take(batch); err != nil {
			return err
		}
		at = at.Add(step)
		grow := 4.0
		if values > 0 {
			grow = min(grow, wantValues/float64(values))
		}
		stretch = max(leastStretch, min(mostStretch, time.Duration(float64(step)*grow)))
	}
	return nil
}

// askStretch asks for all values of the time before end.
func (p *Prometheus) askStretch(ctx context.Context, r *Reader, end time.Time, step time.Duration) (batch []Series,
	values int, err error) {
	take := func(selector string) error {
		got, err := p.ask(ctx, fmt.Sprintf("%s[%dms]", selector, step.Milliseconds()), end)
		for i := range got {
			values += len(got[i].Points)
			r.notice(&got[i])
		}
		batch = append(batch, got...)
		return err
	}
	for _, selector := range r.table.selectors(func(m *matcher) bool { return m.kind != Node && m.kind != Disk }) {
		if err := take(selector); err != nil {
			return nil, 0, err
		}
	}
	// Every node of a site has network and disks: those of servers and of named nodes are asked for.
	for kind, nodes := range map[Kind]map[string]bool{Node: r.named, Disk: join(r.named, r.serves)} {
		if len(nodes) == 0 {
			continue
		}
		var names []string
		for _, n := range slices.Sorted(maps.Keys(nodes)) {
			names = append(names, regexp.QuoteMeta(n))
		}
		instance := strconv.Quote("(" + strings.Join(names, "|") + ")([.:].*)?")
		for _, selector := range r.table.selectors(func(m *matcher) bool { return m.kind == kind }) {
			if err := take(strings.TrimSuffix(selector, "}") + ",instance=~" + instance + "}"); err != nil {
				return nil, 0, err
			}
		}
	}
	return batch, values, nil
}

func join(a, b map[string]bool) map[string]bool {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// selectors ask for some rows, those with the same labels together.
func (t table) selectors(want func(*matcher) bool) (out []string) {
	names := map[string][]string{} // by labels
	for i := range t {
		if !want(&t[i]) {
			continue
		}
		labels := ""
		for _, l := range t[i].where {
			labels += "," + l.name + "=~" + strconv.Quote(l.pattern)
		}
		if !slices.Contains(names[labels], t[i].name) {
			names[labels] = append(names[labels], t[i].name)
		}
	}
	for _, labels := range slices.Sorted(maps.Keys(names)) {
		out = append(out, "{__name__=~"+strconv.Quote(strings.Join(names[labels], "|"))+labels+"}")
	}
	return out
}

// ask asks one instant query.
func (p *Prometheus) ask(ctx context.Context, query string, at time.Time) ([]Series, error) {
	form := url.Values{"query": {query}, "time": {strconv.FormatFloat(float64(at.UnixMilli())/1e3, 'f', 3, 64)}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.base.String(), strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := p.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, mostBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: its answer broke off: %w", p.base.Redacted(), err)
	case len(body) > mostBytes:
		return nil, fmt.Errorf("%s: %w: more than %d MB", p.base.Redacted(), errTooMuch, mostBytes>>20)
	}
	series, partial, err := parseAnswer(body)
	if err == nil && res.StatusCode/100 == 2 {
		if partial != nil {
			p.bad(fmt.Errorf("%s: %w", p.base.Redacted(), partial))
		}
		return series, nil
	}
	if res.StatusCode == http.StatusUnprocessableEntity { // too many samples, or too long
		return nil, fmt.Errorf("%s: %w: %w", p.base.Redacted(), errTooMuch, err)
	}
	if err == nil || errors.As(err, new(*json.SyntaxError)) {
		err = fmt.Errorf("%.200q", bytes.TrimSpace(body))
	}
	return nil, fmt.Errorf("%s answers %s: %w; want the query API of Prometheus there (a prefix may be missing)",
		p.base.Redacted(), res.Status, err)
}

// answer is what the query API answers.
type answer struct {
	Status    string   `json:"status"`
	Error     string   `json:"error"`
	Warnings  []string `json:"warnings"`
	IsPartial bool     `json:"isPartial"` // of VictoriaMetrics: some of its nodes did not answer
	Data      struct {
		ResultType string `json:"resultType"`
		Result     []struct {
			Metric map[string]string `json:"metric"`
			Value  *Point            `json:"value"`
			Values []Point           `json:"values"`
		} `json:"result"`
	} `json:"data"`
}

// parseAnswer reads an answer of the query API: a matrix, or a vector. partial is why it may lack what the server has.
func parseAnswer(body []byte) (out []Series, partial, err error) {
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, nil, err
	}
	if a.Status != "success" {
		return nil, nil, fmt.Errorf("status %q: %s", a.Status, a.Error)
	}
	if a.IsPartial {
		a.Warnings = append(a.Warnings, "some of its storage did not answer")
	}
	if len(a.Warnings) > 0 {
		partial = fmt.Errorf("the answer may lack values: %.500s", strings.Join(a.Warnings, "; "))
	}
	for _, s := range a.Data.Result {
		if s.Value != nil {
			s.Values = append(s.Values, *s.Value)
		}
		out = append(out, Series{s.Metric, s.Values})
	}
	return out, partial, nil
}

// UnmarshalJSON reads [seconds,"value"].
func (p *Point) UnmarshalJSON(b []byte) error {
	at, value, ok := strings.Cut(strings.Trim(string(b), "[] \n\t"), ",")
	seconds, badTime := strconv.ParseFloat(strings.TrimSpace(at), 64)
	v, badValue := strconv.ParseFloat(strings.Trim(value, "\" \n\t"), 64)
	if !ok || badTime != nil || badValue != nil || math.Abs(seconds) > 1e11 {
		return fmt.Errorf("%.60q is not a time and a value", b)
	}
	*p = Point{int64(math.Round(seconds * 1e3)), v}
	return nil
}
