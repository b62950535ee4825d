package consoletest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
)

// Findings is the list in the overview.
func (f *Fake) Findings(context.Context) ([]anomaly.Finding, error) {
	o, err := f.snapshot()
	return o.Findings, err
}

// finding notes a call and lets rule change one finding.
func (f *Fake) finding(verb, id string, rule func(*anomaly.Finding)) (anomaly.Finding, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost != nil {
		return anomaly.Finding{}, f.lost
	}
	if verb != "" {
		f.Calls = append(f.Calls, verb+" "+id)
	}
	i := slices.IndexFunc(f.overview.Findings, func(g anomaly.Finding) bool { return g.ID == id })
	if i < 0 {
		return anomaly.Finding{}, fmt.Errorf("finding %s: %w", id, api.ErrNotFound)
	}
	f.overview.Findings = slices.Clone(f.overview.Findings)
	rule(&f.overview.Findings[i])
	f.wake()
	return f.overview.Findings[i], nil
}

// Finding is console.Judge's: one change, a minute of evidence.
func (f *Fake) Finding(_ context.Context, id string) (api.FindingView, error) {
	g, err := f.finding("", id, func(*anomaly.Finding) {})
	v := api.FindingView{Finding: g}
	f.mu.Lock()
	v.Options = remap.FindingOptions(remap.Person{Name: f.overview.User, Role: remap.Role(f.overview.Role)}, &g)
	f.mu.Unlock()
	if err != nil {
		return v, err
	}
	frozen := &anomaly.Frozen{Series: map[string][]anomaly.Value{}, Peers: map[string]float64{"write_exec": 0.004}}
	for i := range 60 {
		frozen.Series["write_exec"] = append(frozen.Series["write_exec"],
			anomaly.Value{TimeMillis: g.Since.Add(time.Duration(i-60) * time.Second).UnixMilli(),
				Value: 0.004 * (1 + float64(i)/8)})
	}
	v.Changes = []anomaly.Change{{Finding: g, At: g.Since, Why: "the detector's test leans towards it", Frozen: frozen}}
	return v, nil
}

// Acknowledge is console.Judge's.
func (f *Fake) Acknowledge(_ context.Context, id, _ string) (anomaly.Finding, error) {
	return f.finding("ack", id, func(g *anomaly.Finding) { g.Owner = f.overview.User })
}

// Dismiss is console.Judge's.
func (f *Fake) Dismiss(_ context.Context, id, reason string) (anomaly.Finding, error) {
	return f.finding("dismiss", id, func(g *anomaly.Finding) { g.State, g.Why = anomaly.Dismissed, reason })
}

// Silence is console.Judge's.
func (f *Fake) Silence(_ context.Context, id string, long time.Duration, _ string) (anomaly.Finding, error) {
	return f.finding("silence "+long.String(), id,
		func(g *anomaly.Finding) { g.Silenced = f.overview.SentAt.Add(long) })
}

// exclusion notes a call and sets a forwarder's state.
func (f *Fake) exclusion(verb string, id topology.ForwarderID, to remap.ForwarderState) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost != nil {
		return f.lost
	}
	f.Calls = append(f.Calls, verb+" "+string(id))
	rows := slices.Clone(f.overview.Forwarders)
	i := slices.IndexFunc(rows, func(r api.ForwarderRow) bool { return r.ID == id })
	if i < 0 {
		return fmt.Errorf("forwarder %s: %w", id, api.ErrNotFound)
	}
	rows[i].State, f.overview.Forwarders = to, rows
	f.wake()
	return nil
}

// Exclude is console.Excluder's.
func (f *Fake) Exclude(_ context.Context, id topology.ForwarderID, ttl time.Duration, reason string) (remap.Exclusion,
	error) {
	err := f.exclusion("exclude", id, api.StateExcluded)
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.overview.SentAt
	return remap.Exclusion{Forwarder: id, Reason: reason, By: f.overview.User, Since: at, Until: at.Add(ttl)}, err
}

// Return is console.Excluder's.
func (f *Fake) Return(ctx context.Context, id topology.ForwarderID, _ string) (remap.Feed, error) {
	if err := f.exclusion("return", id, api.StateIdle); err != nil {
		return remap.Feed{}, err
	}
	return f.Exclusions(ctx)
}

// Exclusions are the excluded forwarders of the overview.
func (f *Fake) Exclusions(context.Context) (remap.Feed, error) {
	o, err := f.snapshot()
	feed := remap.Feed{Generation: 1, ValidUntil: o.SentAt.Add(time.Minute), Exclusions: []remap.Exclusion{}}
	for _, r := range o.Forwarders {
		if r.State == api.StateExcluded {
			feed.Exclusions = append(feed.Exclusions, remap.Exclusion{Forwarder: r.ID, Reason: "made up", By: "olga"})
		}
	}
	return feed, err
}

// Canary is console.Prober's: a quick one, with the other forwarders quicker still.
func (f *Fake) Canary(_ context.Context, id topology.ForwarderID) (anomaly.Canary, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.lost != nil:
		return anomaly.Canary{}, f.lost
	case f.NoCanary != nil:
		return anomaly.Canary{}, f.NoCanary
	}
	f.Calls = append(f.Calls, "canary "+string(id))
	ms := func(v float64) *float64 { v /= 1000; return &v }
	f.canary = &anomaly.Canary{Forwarder: id, At: f.overview.SentAt, By: f.overview.User, Bytes: 512 << 10,
		Took:  anomaly.CanaryTook{Read: ms(1.3), Write: ms(41), Stat: ms(0.4)},
		Peers: anomaly.CanaryTook{Read: ms(1.1), Write: ms(3.9), Stat: ms(0.4)}, PeersOf: 117}
	return *f.canary, nil
}
