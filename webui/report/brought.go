package report

import (
	"cmp"
	"math"
	"slices"

	"fairway/remap"
	"fairway/tsdb/history"
)

// Brought is what one system expected of an application's runs, and what was measured. I/O times are per byte, so that
// runs of different volume compare.
type Brought struct {
	App string `json:"app"`
	// By is a policy with its action, or what the runs' environment got: "window", "hints".
	By string `json:"by"`
	// Runs are those that were measured with it.
	Runs int `json:"runs"`
	// Expected is the I/O time with it over that without, by the plans' prediction (median); absent: none was made.
	Expected *float64 `json:"expected,omitempty"`
	// Measured is the same as it came to (median): of a plan against the last run like it before, of the others
	// against the median of the application's runs that got nothing; absent: there was none to compare with.
	Measured *float64 `json:"measured,omitempty"`
}

// brought collects them.
type brought struct {
	rows  map[[2]string]*tries
	plain map[history.Key][]float64 // seconds a byte of the runs that got nothing
	given []givenRun
}

type tries struct {
	runs               int
	expected, measured []float64
}

type givenRun struct {
	key  history.Key
	by   string
	cost float64
}

func (b *brought) row(app, by string) *tries {
	if b.rows == nil {
		b.rows = map[[2]string]*tries{}
	}
	t := b.rows[[2]string{app, by}]
	if t == nil {
		t = &tries{}
		b.rows[[2]string{app, by}] = t
	}
	return t
}

// run takes an ended run.
func (b *brought) run(r *history.Run) {
	p := r.Profile
	if p == nil || p.IOSeconds <= 0 || p.VolumeBytes() <= 0 {
		return
	}
	cost := p.IOSeconds / p.VolumeBytes()
	for _, by := range r.Given {
		b.given = append(b.given, givenRun{r.Key(), by, cost})
	}
	if len(r.Given) == 0 {
		if b.plain == nil {
			b.plain = map[history.Key][]float64{}
		}
		b.plain[r.Key()] = append(b.plain[r.Key()], cost)
	}
}

// plan takes a policy's plan whose job was measured.
func (b *brought) plan(p *remap.Plan) {
	l := p.Ledger
	if l == nil || l.Measured == nil {
		return
	}
	t := b.row(p.App, l.Policy+": "+l.Action)
	t.runs++
	if d, n := l.DefaultIOSeconds, l.PlannedIOSeconds; d != nil && n != nil && *d > 0 {
		t.expected = append(t.expected, *n / *d)
	}
	m, q := l.Measured, l.Predicted
	if q != nil && q.IOSeconds > 0 && q.VolumeBytes > 0 && m.VolumeBytes > 0 {
		t.measured = append(t.measured, m.IOSeconds/m.VolumeBytes*q.VolumeBytes/q.IOSeconds)
	}
}

// list is the table, by application.
func (b *brought) list() []Brought {
	for _, g := range b.given {
		t := b.row(g.key.App, g.by)
		t.runs++
		if plain := median(b.plain[g.key]); plain != nil {
			t.measured = append(t.measured, g.cost / *plain)
		}
	}
	out := make([]Brought, 0, len(b.rows))
	for k, t := range b.rows {
		out = append(out, Brought{App: k[0], By: k[1], Runs: t.runs, Expected: median(t.expected),
			Measured: median(t.measured)})
	}
	slices.SortFunc(out, func(x, y Brought) int { return cmp.Or(cmp.Compare(x.App, y.App), cmp.Compare(x.By, y.By)) })
	return out
}

// median is the median; nil of nothing.
func median(v []float64) *float64 {
	if len(v) == 0 {
		return nil
	}
	v = slices.Sorted(slices.Values(v))
	m := (v[(len(v)-1)/2] + v[len(v)/2]) / 2
	if math.IsInf(m, 0) {
		return nil
	}
	return &m
}
