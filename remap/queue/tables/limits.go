package tables

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap"
	"fairway/remap/queue"
)

// keepers are the nodes that take tables, with what they reported last of the limits that they keep.
type keepers struct {
	mu    sync.Mutex // guards what follows
	takes map[topology.NodeID]bool
	kept  map[topology.NodeID]kept
}

// kept are the limits that a node reports.
type kept struct {
	limits map[topology.JobID]float64
	at     time.Time
	wanted time.Time // when it was to keep some last, or somebody asked
}

const (
	// askedAfter is how long a node is still asked after its last limit.
	askedAfter = time.Minute
	// settleWithin is how long a node may take to keep a limit: a look, an order and an answer.
	settleWithin = 20 * time.Second
	settleEvery  = 100 * time.Millisecond
)

func (s *Sender) limits() remap.Limits {
	if s.cfg.Limits == nil {
		return nil
	}
	return s.cfg.Limits()
}

// limited is a table with the limits of its jobs.
func limited(t queue.Table, limits map[topology.JobID]float64) queue.Table {
	if len(limits) > 0 {
		t.Jobs = slices.Clone(t.Jobs)
		for i := range t.Jobs {
			t.Jobs[i].Limit = limits[topology.JobID(t.Jobs[i].Row.Job)]
		}
	}
	return t
}

// readBack asks the nodes that are to keep limits, or were a while ago, which ones they keep. An object server has read
// its rules back before it takes a table.
func (s *Sender) readBack(ctx context.Context, tables map[topology.NodeID]queue.Table, limits remap.Limits) {
	now := time.Now()
	s.mu.Lock()
	s.takes = map[topology.NodeID]bool{}
	for n, r := range s.queues {
		s.takes[n] = r.table != nil
	}
	for n := range limits {
		s.kept[n] = kept{s.kept[n].limits, s.kept[n].at, now}
	}
	maps.DeleteFunc(s.kept, func(_ topology.NodeID, k kept) bool { return now.Sub(k.wanted) > askedAfter })
	nodes := slices.Collect(maps.Keys(s.kept))
	s.mu.Unlock()
	each(len(nodes), func(i int) {
		n := nodes[i]
		reported, err := s.ask(ctx, n, tables[n])
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil {
			s.kept[n] = kept{reported, time.Now(), s.kept[n].wanted}
		}
	})
}

// ask says which limits a node keeps.
func (s *Sender) ask(ctx context.Context, n topology.NodeID, t queue.Table) (map[topology.JobID]float64, error) {
	out := map[topology.JobID]float64{}
	if slices.Contains(s.cfg.Servers, string(n)) {
		if r := s.queues[n]; r == nil || r.failed || r.table == nil {
			return nil, fmt.Errorf("%s has not taken its table", n)
		}
		for _, j := range t.Jobs {
			if j.Limit > 0 {
				out[topology.JobID(j.Row.Job)] = j.Limit
			}
		}
		return out, nil
	}
	body, err := s.order(ctx, n, wire.OrderReport, []byte("{}"), orderWithin)
	if err != nil {
		return nil, err
	}
	var report queue.Report
	if err := json.Unmarshal(body, &report); err != nil {
		return nil, err
	}
	for job, x := range report.Limits {
		out[topology.JobID(job)] = x
	}
	return out, nil
}

// CanLimit says why a node keeps no limits; empty: it does.
func (s *Sender) CanLimit(n topology.NodeID) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.cfg.Policy == "":
		return "no forwarder is shared by policy here, so that nobody keeps a limit; set queue.policy"
	case !s.takes[n]:
		return fmt.Sprintf("%s has taken no table of jobs: no fairway-queue or object server keeps limits there", n)
	}
	return ""
}

// Keeps says whether a node has reported since then that it keeps a limit of a job, or with 0 none.
func (s *Sender) Keeps(n topology.NodeID, job topology.JobID, limit float64, since time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kept[n]
	k.wanted = time.Now()
	s.kept[n] = k
	return k.at.After(since) && k.limits[job] == limit
}

// Settle waits until each node of a plan says that it keeps the limit, 0 for none.
func (s *Sender) Settle(ctx context.Context, p remap.Plan, report func(remap.Result)) error {
	begun := time.Now()
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	left := slices.Clone(p.Moves)
	for {
		late := time.Since(begun) > settleWithin
		left = slices.DeleteFunc(left, func(m remap.Move) bool {
			r := remap.Result{Node: m.Node, OK: s.Keeps(m.Node, p.Job, m.Limit, begun), Tries: 1, At: time.Now(),
				Took: time.Since(begun)}
			if !r.OK && !late {
				return false
			}
			if !r.OK {
				r.Error = fmt.Sprintf("%s did not report it within %s; see its agent and its fairway-queue",
					m.Node, settleWithin)
			}
			report(r)
			return true
		})
		if len(left) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
