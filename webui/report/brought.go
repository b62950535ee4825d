package report

import (
	"cmp"
	"slices"
	"strings"

	"fairway/anomaly"
	"fairway/remap"
	"fairway/tsdb/history"
)

// Brought is what one system expected of an application's runs, and what was measured. I/O times are per byte, so that
// runs of different volume compare.
type Brought struct {
	App string `json:"app"`
	// By is a policy with its action, or what the runs got besides: "window", "hints", "shares: size-fair".
	By string `json:"by"`
	// Runs are those that were measured with it.
	Runs int `json:"runs"`
	// Expected is the I/O time with it over that without, by the plans' prediction (median); absent: none was made.
	Expected *float64 `json:"expected,omitempty"`
	// Measured is the same as it came to (median): of a plan against the last run like it before, of the others
	// against the median of the application's runs that got all but that; absent: there was none to compare with.
	// Every run has shares once there are any, so that theirs compares two times.
	Measured *float64 `json:"measured,omitempty"`
}

// brought collects them.
type brought struct {
	rows  map[[2]string]*tries
	cost  map[likeRuns][]float64 // seconds a byte
	given []givenRun
}

// likeRuns are an application's runs that got the same.
type likeRuns struct {
	key history.Key
	got string
}

func runsThatGot(k history.Key, got []string) likeRuns {
	return likeRuns{k, strings.Join(slices.Sorted(slices.Values(got)), "+")}
}

type tries struct {
	runs               int
	expected, measured []float64
}

type givenRun struct {
	by      string
	without likeRuns
	cost    float64
}

func (b *brought) row(app, by string) *tries {
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
	for i, by := range r.Given {
		others := slices.Delete(slices.Clone(r.Given), i, i+1)
		b.given = append(b.given, givenRun{by, runsThatGot(r.Key(), others), cost})
	}
	k := runsThatGot(r.Key(), r.Given)
	b.cost[k] = append(b.cost[k], cost)
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
		t := b.row(g.without.key.App, g.by)
		t.runs++
		if without := anomaly.KnownMedian(b.cost[g.without]); without != nil {
			t.measured = append(t.measured, g.cost / *without)
		}
	}
	out := make([]Brought, 0, len(b.rows))
	for k, t := range b.rows {
		out = append(out, Brought{App: k[0], By: k[1], Runs: t.runs, Expected: anomaly.KnownMedian(t.expected),
			Measured: anomaly.KnownMedian(t.measured)})
	}
	slices.SortFunc(out, func(x, y Brought) int { return cmp.Or(cmp.Compare(x.App, y.App), cmp.Compare(x.By, y.By)) })
	return out
}
