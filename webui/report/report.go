// Package report makes the page that a site reads on Monday: who used the forwarders, what was slow and for how long,
// what was moved and what it brought, and how often the detectors were right.
package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/journal"
	"fairway/tsdb"
	"fairway/tsdb/history"
)

// Report is a period in figures.
type Report struct {
	Site    string    `json:"site"`
	Version string    `json:"version"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Made    time.Time `json:"made"`

	Total    Use    `json:"total"`
	Projects []Use  `json:"projects"`
	Users    []Use  `json:"users"`
	Apps     []Use  `json:"apps"`
	Layer    Layer  `json:"layer"`
	Findings []Slow `json:"findings"`
	Planned
	// Brought is what the policies brought, by application.
	Brought []Brought `json:"brought"`
	Record  Record    `json:"detectors"`
	Missing []string  `json:"missing,omitempty"` // what could not be known, in sentences
}

// Planned are the plans of the period.
type Planned struct {
	Plans []Moved `json:"plans"`
	// Moves is what those that were carried out brought, beside what was expected.
	Moves remap.Track `json:"moves"`
}

// Use is what the runs that ended in the period did to the file systems, of one project, user or application.
type Use struct {
	Name       string  `json:"name"`
	Runs       int     `json:"runs"`
	Measured   int     `json:"measured"` // of which the I/O is known
	NodeHours  float64 `json:"node_hours"`
	ReadBytes  float64 `json:"read_bytes"`
	WriteBytes float64 `json:"write_bytes"`
	MetaOps    float64 `json:"meta_ops"`
	IOSeconds  float64 `json:"io_seconds"`
	// ForwarderSeconds are the seconds of I/O of each run times the forwarders that served it.
	ForwarderSeconds float64 `json:"forwarder_seconds"`
}

func (u *Use) add(r *history.Run) {
	u.Runs++
	u.NodeHours += r.Seconds() / 3600 * float64(r.Nodes)
	p := r.Profile
	if p == nil {
		return
	}
	u.Measured++
	u.ReadBytes += p.ReadBytes
	u.WriteBytes += p.WriteBytes
	u.MetaOps += p.MetaOps
	u.IOSeconds += p.IOSeconds
	u.ForwarderSeconds += p.IOSeconds * float64(len(r.Forwarders))
}

// Layer is what the forwarders moved, step by step.
type Layer struct {
	Forwarders  int     `json:"forwarders"`
	StepSeconds int     `json:"step_seconds"`
	Steps       []Step  `json:"steps"`
	ReadBytes   float64 `json:"read_bytes"`
	WriteBytes  float64 `json:"write_bytes"`
	// RoutedBytes are those that routers passed on, which do not know what was read and what written.
	RoutedBytes float64 `json:"routed_bytes,omitempty"`
	MetaOps     float64 `json:"meta_ops"`
	// Reported is the share of forwarder-seconds that were reported, 0..1.
	Reported float64 `json:"reported"`
}

// Step is one stretch of the period.
type Step struct {
	At         time.Time `json:"at"`
	ReadBytes  float64   `json:"read_bytes"`
	WriteBytes float64   `json:"write_bytes"`
	Routed     float64   `json:"routed_bytes,omitempty"`
	MetaOps    float64   `json:"meta_ops"`
}

// Slow is a finding that was open in the period and was at some time more than a suspicion.
type Slow struct {
	ID       string        `json:"id"`
	Node     string        `json:"node"`
	Kind     anomaly.Kind  `json:"kind"`
	State    anomaly.State `json:"state"` // at the end of the period
	Since    time.Time     `json:"since"`
	Ended    time.Time     `json:"ended,omitzero"`
	Sentence string        `json:"sentence"`
	// Seconds of the period in which it was open.
	Seconds  float64          `json:"seconds"`
	Hurt     []anomaly.Impact `json:"hurt,omitempty"`
	Excluded bool             `json:"excluded,omitempty"`
	Why      string           `json:"why,omitempty"` // of its end
	Notes    []string         `json:"notes,omitempty"`
}

// Moved is a plan that was made in the period.
type Moved struct {
	ID       string          `json:"id"`
	Title    string          `json:"title"`
	Job      topology.JobID  `json:"job,omitempty"`
	User     string          `json:"user,omitempty"`
	Proposer string          `json:"proposer"`
	Created  time.Time       `json:"created"`
	State    remap.PlanState `json:"state"`
	Why      string          `json:"why,omitempty"` // of its end, where it was not carried out or taken back
	// Expected and Outcome are the ledger's words; empty without one.
	Expected string `json:"expected,omitempty"`
	Outcome  string `json:"outcome,omitempty"`
	// Brought is what the moves were measured to bring, in words.
	Brought string `json:"brought,omitempty"`
}

// Record is how the detectors did, as the people on duty saw it.
type Record struct {
	Suspected int `json:"suspected"` // findings that were opened in the period
	Confirmed int `json:"confirmed"`
	Dismissed int `json:"dismissed"` // by a person, as wrong
	Returned  int `json:"returned"`
	// ToConfirm is the median time from suspicion to confirmation, seconds; 0: none was confirmed.
	ToConfirm float64 `json:"to_confirm_seconds"`
}

// Sources are what a report is made from.
type Sources struct {
	Site, Version string
	// Runs shows every ended run; nil without a history.
	Runs func(visit func(history.Run) error) error
	// Records shows the journal's records of the period, the newest first.
	Records func(journal.Wanted) iter.Seq2[*journal.Record, error]
	// Open are the findings that are open now: one that did not change in the period is known from here alone.
	Open []anomaly.Finding
	// Plan returns a plan as it now is.
	Plan  func(ctx context.Context, id string) (remap.Plan, error)
	Store tsdb.Store
	// Forwarders are those whose seconds count.
	Forwarders []topology.NodeID

	brought *brought // Make's own
}

// Make makes the report of [from, to). What cannot be read is named in Missing; only ctx ends it early.
func Make(ctx context.Context, s Sources, from, to, now time.Time) (*Report, error) {
	r := &Report{Site: s.Site, Version: s.Version, From: from, To: to, Made: now, Total: Use{Name: "all"},
		Findings: []Slow{}, Planned: Planned{Plans: []Moved{}}}
	s.brought = &brought{rows: map[[2]string]*tries{}, cost: map[likeRuns][]float64{}}
	for _, part := range []struct {
		what string
		make func(context.Context, Sources) error
	}{{"the runs of jobs", r.use}, {"the journal", r.journal}, {"the forwarders' seconds", r.layer}} {
		if err := part.make(ctx, s); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			r.Missing = append(r.Missing, fmt.Sprintf("%s could not be read: %v", part.what, err))
		}
	}
	r.Brought = s.brought.list()
	return r, nil
}

// use adds up the runs. A run counts where it ended, as batch systems account.
func (r *Report) use(ctx context.Context, s Sources) error {
	if s.Runs == nil {
		return errors.New("no history of jobs is kept")
	}
	by := [3]map[string]*Use{{}, {}, {}}
	err := s.Runs(func(run history.Run) error {
		if run.End.Before(r.From) || !run.End.Before(r.To) {
			return nil
		}
		r.Total.add(&run)
		s.brought.run(&run)
		for i, name := range [3]string{run.Project, run.User, run.App} {
			u := by[i][name]
			if u == nil {
				u = &Use{Name: name}
				by[i][name] = u
			}
			u.add(&run)
		}
		return ctx.Err()
	})
	for i, out := range []*[]Use{&r.Projects, &r.Users, &r.Apps} {
		*out = make([]Use, 0, len(by[i]))
		for _, u := range by[i] {
			*out = append(*out, *u)
		}
		slices.SortFunc(*out, func(a, b Use) int {
			return cmp.Or(cmp.Compare(b.ReadBytes+b.WriteBytes, a.ReadBytes+a.WriteBytes),
				cmp.Compare(b.NodeHours, a.NodeHours), cmp.Compare(a.Name, b.Name))
		})
	}
	if unknown := r.Total.Runs - r.Total.Measured; unknown > 0 {
		r.Missing = append(r.Missing, fmt.Sprintf("the I/O of %d of %d runs is unknown; it is not in any sum", unknown,
			r.Total.Runs))
	}
	return err
}

// end is that of the period, or of what is past of it.
func (r *Report) end() time.Time {
	if r.Made.Before(r.To) {
		return r.Made
	}
	return r.To
}

// stepOf divides a period into at most 200 steps, whose bounds are those of minutes, hours or days.
func stepOf(span time.Duration) time.Duration {
	for _, step := range []time.Duration{time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour,
		2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour} {
		if span <= 200*step {
			return step
		}
	}
	return 24 * time.Hour
}

func (r *Report) layer(ctx context.Context, s Sources) error {
	step := stepOf(r.To.Sub(r.From))
	l := &r.Layer
	l.Forwarders, l.StepSeconds = len(s.Forwarders), int(step.Seconds())
	if len(s.Forwarders) == 0 {
		return nil
	}
	at := map[int64]int{}
	for t := r.From.Truncate(step); t.Before(r.To); t = t.Add(step) {
		at[t.UnixMilli()] = len(l.Steps)
		l.Steps = append(l.Steps, Step{At: t})
	}
	query := tsdb.Query{Nodes: s.Forwarders, FromMillis: r.From.UnixMilli(), ToMillis: r.To.UnixMilli(),
		StepMillis: step.Milliseconds(), Agg: tsdb.AggSum}
	for _, q := range []struct {
		metric collector.Metric
		add    func(*Step, float64)
	}{
		{collector.ReadBytes, func(s *Step, v float64) { s.ReadBytes += v; l.ReadBytes += v }},
		{collector.WriteBytes, func(s *Step, v float64) { s.WriteBytes += v; l.WriteBytes += v }},
		{collector.RoutedBytes, func(s *Step, v float64) { s.Routed += v; l.RoutedBytes += v }},
		{collector.MetaOps, func(s *Step, v float64) { s.MetaOps += v; l.MetaOps += v }},
	} {
		query.Metric = q.metric
		all, err := s.Store.Select(ctx, query)
		if err != nil {
			return err
		}
		for _, one := range all {
			for _, p := range one.Points {
				if i, ok := at[p.TimeMillis]; ok {
					q.add(&l.Steps[i], p.Value)
				}
			}
		}
	}
	seconds, err := reported(ctx, s.Store, query)
	if err != nil {
		return err
	}
	if span := r.end().Sub(r.From).Seconds() * float64(len(s.Forwarders)); span > 0 {
		l.Reported = min(1, seconds/span)
	}
	return nil
}

// reported counts the seconds that forwarders reported. Each layer has one of these metrics in every second: routers
// pass bytes on, LWFS servers count operations alone.
func reported(ctx context.Context, store tsdb.Store, query tsdb.Query) (sum float64, err error) {
	most := map[topology.NodeID]float64{}
	query.Agg = tsdb.AggCount
	for _, query.Metric = range []collector.Metric{collector.ReadBytes, collector.RoutedBytes, collector.ReadOps} {
		all, err := store.Select(ctx, query)
		if err != nil {
			return 0, err
		}
		for _, one := range all {
			n := 0.0
			for _, p := range one.Points {
				n += p.Value
			}
			most[one.Node] = max(most[one.Node], n)
		}
	}
	for _, n := range most {
		sum += n
	}
	return sum, nil
}
