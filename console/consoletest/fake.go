// Package consoletest is a Backend in memory for tests of both faces' plumbing: a made-up layer of
// any size and a desk that keeps the promises of the real one (approvals bound to a preview, never
// by the proposer, idempotent results), with a switch for each way it can go wrong.
package consoletest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/console/screen"
	"fairway/remap"
	"fairway/webui/api"
)

// Fake is the Backend. Its fields may be changed through Do alone once it is in use.
type Fake struct {
	mu       sync.Mutex
	overview api.Overview
	plans    []*api.PlanView
	random   *rand.Rand
	watchers map[chan struct{}]bool
	lost     error

	// Calls are the writes that arrived, in order, as "verb id".
	Calls []string
	// Foreign, when set, is the name of everything that comes from users' logs and jobs.
	Foreign  string
	Gathered bool // queues share by global shares
	MetaJob  bool // the running job and those like it only work on metadata
	// NoCanary, when set, is why no canary is sent.
	NoCanary error
	// ForwarderOptions is what may be done with every forwarder; nil sends none.
	ForwarderOptions *remap.Options
	canary           *anomaly.Canary
	// Verify is how far an approved plan goes by itself: remap.Applying, Applied, Verified or Partial.
	Verify remap.PlanState
}

var _ screen.Backend = (*Fake)(nil)

// New makes a layer of n forwarders, the same for the same seed, at a fixed time.
func New(n int, seed uint64, at time.Time) *Fake {
	f := &Fake{random: rand.New(rand.NewPCG(seed, 1)), watchers: map[chan struct{}]bool{}, Verify: remap.Verified}
	jobs := n / 2
	f.overview = api.Overview{Machine: "hpc1", At: at.Add(-time.Second), SentAt: at.Add(400 * time.Millisecond),
		User: "olga", Role: "operator",
		ComputeNodes: n * 16, Jobs: &jobs}
	for i := range n {
		f.overview.Forwarders = append(f.overview.Forwarders, f.forwarder(i, at))
	}
	if n > 3 {
		f.overview.Findings = []anomaly.Finding{{ID: "F-0091", Node: f.overview.Forwarders[3].ID.Node(),
			Kind:  anomaly.FailSlow,
			State: anomaly.Suspect, Since: at.Add(-4 * time.Minute), Changed: at.Add(-4 * time.Minute),
			Confidence: 0.97, Class: "write",
			Impact:   []anomaly.Impact{{Job: "88231", Share: 0.12}},
			Sentence: "write service time 9.8x its peers at equal load, 240 of 252 s; reads normal"}}
		f.overview.Forwarders[3].State = api.StateSuspect
	}
	return f
}

func (f *Fake) forwarder(i int, at time.Time) api.ForwarderRow {
	r := api.ForwarderRow{ID: topology.ForwarderID(fmt.Sprintf("fwd%03d", i)), State: api.StateIdle,
		Rack:     fmt.Sprint(i / 32),
		LastSeen: at, PeakBytesPerSec: 2.5e9, Clients: 16}
	zero := 0.0
	r.Occupancy = &zero
	for _, m := range api.ListedMetrics {
		if m != collector.ServerTime && m.Info().Forwarder&collector.Rare == 0 {
			r.Values.Set(m, &zero)
		}
	}
	switch {
	case i%50 == 49:
		r.State = api.StateStale
		r.LastSeen = at.Add(-3 * time.Minute)
		r.Occupancy, r.Values = nil, api.Values{}
	case i%60 == 59:
		r.State = api.StateExcluded
	case i%2 == 1:
		r.State = api.StateOK
		r.TopJob, r.TopJobShare = topology.JobID(fmt.Sprint(88000+i)), f.upTo(1)
		f.busy(&r)
		r.Values.Set(collector.MetaOps, f.upTo(4000))
		r.Values.Set(collector.ServerTime, f.upTo(0.03))
	}
	return r
}

// busy draws the numbers that change every second.
func (f *Fake) busy(r *api.ForwarderRow) {
	r.Occupancy = f.upTo(1)
	r.Values.Set(collector.ReadBytes, f.upTo(1.2e9))
	r.Values.Set(collector.WriteBytes, f.upTo(1.2e9))
	r.Values.Set(collector.QueueLen, f.upTo(64))
	r.Values.Set(collector.MetaWait, f.upTo(0.09))
	load := remap.LoadOf(r.Value, r.LastSeen, r.PeakBytesPerSec)
	r.Busy = load.Busy()
}

func (f *Fake) upTo(top float64) *float64 {
	v := math.Round(f.random.Float64()*top*1000) / 1000
	return &v
}

// Do changes the fake under its lock and shows the result to every watcher.
func (f *Fake) Do(change func(o *api.Overview)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.overview)
	f.wake()
}

// Lose makes every call fail with err until it is called with nil.
func (f *Fake) Lose(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = err
	f.wake()
}

func (f *Fake) wake() {
	for w := range f.watchers {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

// Step is one second later: typical moves the rates of the busy forwarders a little, as a machine
// does; otherwise every forwarder gets new numbers, the worst a console can be shown.
func (f *Fake) Step(at time.Time, typical bool) {
	f.Do(func(o *api.Overview) {
		o.At, o.SentAt = at.Add(-time.Second), at
		for i := range o.Forwarders {
			r := &o.Forwarders[i]
			if r.State == api.StateStale {
				continue
			}
			r.LastSeen = at
			if !typical {
				r.State = api.StateOK
				f.busy(r)
				continue
			}
			if r.State == api.StateIdle {
				continue
			}
			for _, m := range []collector.Metric{collector.ReadBytes, collector.WriteBytes, collector.QueueLen,
				collector.MetaWait} {
				if v := r.Value(m); v != nil && f.random.IntN(2) == 0 {
					next := *v * (0.9 + 0.2*f.random.Float64())
					r.Values.Set(m, &next)
				}
			}
			if r.Occupancy != nil {
				next := max(0, min(1, *r.Occupancy+(f.random.Float64()-0.5)/1800))
				r.Occupancy = &next
			}
		}
	})
}

// snapshot is an independent copy of the overview.
func (f *Fake) snapshot() (api.Overview, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.overview
	for i := range f.overview.Forwarders {
		r := &f.overview.Forwarders[i]
		r.SetLevels(r.Levels) // as the server does
	}
	o.Forwarders = append([]api.ForwarderRow(nil), o.Forwarders...)
	o.Waiting = nil
	for _, p := range f.plans {
		if p.State == remap.Proposed {
			o.Waiting = append(o.Waiting, row(p))
		}
	}
	return o, f.lost
}

// Watch is console.Viewer's.
func (f *Fake) Watch(ctx context.Context, update func(api.Overview, error)) {
	w := make(chan struct{}, 1)
	w <- struct{}{}
	f.mu.Lock()
	f.watchers[w] = true
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.watchers, w)
		f.mu.Unlock()
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w:
			update(f.snapshot())
		}
	}
}

// Overview is the newest second.
func (f *Fake) Overview(context.Context) (api.Overview, error) { return f.snapshot() }

// Forwarder is console.Viewer's; it serves four clients and five minutes of made-up series.
func (f *Fake) Forwarder(_ context.Context, id topology.ForwarderID) (api.ForwarderDetail, error) {
	o, err := f.snapshot()
	if err != nil {
		return api.ForwarderDetail{}, err
	}
	for _, r := range o.Forwarders {
		if r.ID != id {
			continue
		}
		d := api.ForwarderDetail{ForwarderRow: r, Options: f.ForwarderOptions, Series: map[string][]api.Point{},
			PeersMedian: map[string]*float64{}}
		for i := range 4 {
			v := 25e6 * float64(i)
			job := r.TopJob
			if i == 3 && job != "" {
				job = "88260"
			}
			d.ClientNodes = append(d.ClientNodes, api.ClientRow{ID: topology.NodeID(fmt.Sprintf("%s-c%d", id, i)),
				Job: job, ReadBytesPerSec: &v, WriteBytesPerSec: &v})
		}
		for s := range 300 {
			at := o.At.Add(time.Duration(s-300) * time.Second)
			if s >= 100 && s < 130 {
				continue // a gap stays a gap
			}
			d.Series["read_bytes"] = append(d.Series["read_bytes"],
				api.Point{TimeMillis: at.UnixMilli(), Value: 1e9 * (1 + math.Sin(float64(s)/20))})
			d.Series["write_bytes"] = append(d.Series["write_bytes"],
				api.Point{TimeMillis: at.UnixMilli(), Value: 1e9 * float64(s%60) / 60})
		}
		p := 410e6
		d.PeersMedian["read_bytes"] = &p
		d.Storage = api.StorageView{Rows: []api.StorageRow{}, Unknown: "not reported by this layer"}
		d.Life = &api.ForwarderLife{Steps: []anomaly.Step{}}
		if len(o.Findings) > 0 && o.Findings[0].Node == id.Node() {
			f.addTrouble(&d, &o)
		}
		f.mu.Lock()
		if f.canary != nil && f.canary.Forwarder == id {
			d.Canary = f.canary
		}
		f.mu.Unlock()
		return d, nil
	}
	return api.ForwarderDetail{}, fmt.Errorf("forwarder %s: %w", id, api.ErrNotFound)
}
