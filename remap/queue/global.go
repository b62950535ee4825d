package queue

import (
	"fmt"
	"io"
	"maps"
	"math"
	"time"

	"fairway/collector/source/queue"
	"fairway/remap/policy/share"
	"fairway/remap/policy/strictjson"
)

// Report is what a queue says of itself for an all-gather. Its counters only grow while it runs.
type Report struct {
	UpSeconds float64 `json:"up_seconds"` // of the queue: the clock of all other figures
	// By says how requests are served now.
	By By `json:"by"`
	// WaitedSeconds is for how long any request waited.
	WaitedSeconds float64           `json:"waited_seconds"`
	Jobs          map[string]Served `json:"jobs"`
	// Limits are those in force, by job.
	Limits map[string]float64 `json:"limits,omitempty"`
	// Merged is what was gathered; absent where nothing is.
	Merged *queue.Merged `json:"merged,omitempty"`
}

// By is a way of choosing the next request.
type By string

// The ways: by the shares of an all-gather over all queues, by those that the policy gives among this
// queue's jobs, and in the order of arrival.
const (
	ByGlobal  By = "global"
	ByLocal   By = "local"
	ByArrival By = "arrival"
)

// Report says what was done so far, and how.
func (r *Queue) Report() Report {
	jobs := r.Stats()
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	_, waited := r.queue.waits(now)
	return Report{Merged: r.merge.merged(), UpSeconds: now.Sub(r.begun).Seconds(), By: r.sharing.by(),
		WaitedSeconds: (r.waited + waited).Seconds(), Jobs: jobs, Limits: r.sharing.limitsInForce()}
}

func (s *sharing) limitsInForce() map[string]float64 {
	if s.policy == nil || !s.limited {
		return nil
	}
	out := map[string]float64{}
	for i, x := range s.limits {
		if x > 0 {
			out[s.jobs[i].Name] = x
		}
	}
	return out
}

func (s *sharing) by() By {
	switch {
	case s.policy == nil:
		return ByArrival
	case s.global:
		return ByGlobal
	}
	return ByLocal
}

// Global is a queue's part of an all-gather (section 3.1): its own shares by job, under "" those of clients
// in no job. A job of the table that is not among them has its local share.
type Global struct {
	// HoldSeconds is how long they hold; without others until then shares are local again.
	HoldSeconds float64            `json:"hold_seconds"`
	Shares      map[string]float64 `json:"shares"`
}

// ReadGlobal reads one and checks it. Keys it does not know are errors.
func ReadGlobal(r io.Reader) (g Global, err error) {
	if err := strictjson.Read(r, maxTable, &g); err != nil {
		return Global{}, err
	}
	return g, g.check()
}

func (g *Global) check() error {
	if !(g.HoldSeconds > 0 && g.HoldSeconds <= maxHold) {
		return fmt.Errorf("hold_seconds: %g, want above 0 to %d", g.HoldSeconds, maxHold)
	}
	for name, s := range g.Shares {
		if !(s >= 0 && s <= 1) {
			return fmt.Errorf("shares.%s: %g is not a share, want 0 to 1", name, s)
		}
	}
	return nil
}

// maxHold bounds how long global shares may hold, seconds.
const maxHold = 3600

// Gathered serves by global shares for a while. Without a policy in force they wait for one.
func (r *Queue) Gathered(g Global) error {
	if err := g.check(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hold.begin(&r.mu, g.HoldSeconds, func() {
		r.reweigh(nil)
		r.cfg.Log.Warn("no global shares came in time; jobs share this forwarder by their local shares",
			"hold_seconds", g.HoldSeconds)
	})
	if r.global == nil || !maps.Equal(r.global, g.Shares) {
		r.reweigh(g.Shares)
	}
	return nil
}

// reweigh takes other global shares, for the requests that wait already too. r.mu is held.
func (r *Queue) reweigh(global map[string]float64) {
	r.global = global
	s := *r.sharing
	s.weigh(global)
	r.sharing = &s
	r.queue.choose(&s)
}

// least is the smallest weight: who has next to nothing must still come to his turn.
const least = 1e-6

// weigh makes weights of global shares and limits; of none, none. A job with a limit weighs so little that beside
// any single other job it gets no more than that.
func (s *sharing) weigh(global map[string]float64) {
	s.weights, s.global = nil, len(global) > 0 && s.policy != nil
	if !s.global && (!s.limited || s.policy == nil) {
		return
	}
	lightest := 1.0
	s.weights = make([]share.Job, len(s.jobs))
	for i, local := range share.Shares(s.policy, s.jobs) {
		x, found := global[s.jobs[i].Name]
		if !found {
			x = local
		}
		s.weights[i] = share.Job{Size: math.Max(x, least)}
		if s.limits[i] == 0 {
			lightest = min(lightest, s.weights[i].Size)
		}
	}
	for i, limit := range s.limits {
		if limit > 0 {
			s.weights[i].Size = min(s.weights[i].Size, limit*lightest)
		}
	}
}
