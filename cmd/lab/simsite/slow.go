package simsite

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/watch"
	"fairway/cmd/lab/simmachine"
	"fairway/collector/topology"
	"fairway/remap/desk"
	"fairway/remap/dispatch"
	"fairway/tsdb/history"
)

// SlowPast is how much of the past NewSlow's site has behind it; in the last SlowFor of it a forwarder is slow.
const (
	SlowPast = 12 * time.Minute
	SlowFor  = 3 * time.Minute
)

// NewSlow is a site around a seeded simulated machine of 24 forwarders with twelve minutes behind it, in the last
// three of which its busiest forwarder is slow. Real detectors watch it, real policies decide.
func NewSlow(t testing.TB, o Options) (s *Site, slow topology.ForwarderID) {
	t.Helper()
	c := simmachine.TaihuLight(1)
	c.Name, c.Compute, c.Forwarders, c.InService, c.Storage, c.JobSeconds = "hpc1", 1024, 24, 16, 16, 3600
	c.StorageBytesPerSec = 2e9
	c.ForwarderBytesPerSec, c.ComputeBytesPerSec, c.Busy = 9e7, 1e6, 0.95 // I/O takes its time and fills no forwarder
	m, err := simmachine.New(c)
	if err != nil {
		t.Fatal(err)
	}
	o.Sim, o.Simulated = m, true
	more := o.Desk
	o.Desk = func(set *desk.Settings) {
		set.HealthyFloor = 4
		if more != nil {
			more(set)
		}
	}
	s = New(t, o)
	s.Says.Detector = s.Says.real
	now := time.Now().Truncate(time.Second)
	work := map[topology.ForwarderID]float64{}
	for t0 := now.Add(-SlowPast); t0.Before(time.Now().Add(-2 * time.Second)); t0 = t0.Add(time.Second) {
		s.second(t0, work)
		if slow == "" && t0.After(now.Add(-SlowFor)) {
			for f, w := range work {
				if slow == "" || w > work[slow] || w == work[slow] && f < slow {
					slow = f
				}
			}
			if err := m.Slow(slow, t0); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.Past.Store(nil)
	return s, slow
}

// second lives through the second from t0 on: it is stored, and judged at its end. It counts who is busy in work.
func (s *Site) second(t0 time.Time, work map[topology.ForwarderID]float64) {
	at := t0.Add(time.Second)
	s.Past.Store(&at)
	frames := s.Machine.Frames(t0)
	s.Board.Take(frames, at)
	if err := s.Store.Append(context.Background(), frames); err != nil {
		s.T.Fatal(err)
	}
	for i := range frames {
		if read, ok := frames[i].Value(1); ok && frames[i].Role == topology.Forwarder {
			work[topology.ForwarderID(frames[i].Node)] += min(read, 1e8) + 1
		}
	}
	s.Judge(at)
}

// Accuse is a detector that accuses one forwarder of slow writes, for which a job waits.
type Accuse topology.NodeID

// Verdicts are watch.Detector's.
func (a Accuse) Verdicts(time.Time, *watch.Machine) []anomaly.Verdict {
	return []anomaly.Verdict{{Node: topology.NodeID(a), Kind: anomaly.FailSlow, Level: anomaly.Alarm, Confidence: 0.9,
		Class: "write", Model: "m1", Sentence: string(a) + " is 9.8x slow at writing: 36 ms, peers 3.7",
		Impact: []anomaly.Impact{{Job: "88200", Share: 0.77}}}}
}

// Forget is watch.Detector's.
func (Accuse) Forget(topology.NodeID) {}

// Judge lets the loop look at the newest second.
func (s *Site) Judge(at time.Time) {
	s.T.Helper()
	if err := s.Loop.Step(context.Background(), at); err != nil {
		s.T.Fatal(err)
	}
	s.FindMu.Lock()
	s.Find = s.Loop.Findings()
	s.FindMu.Unlock()
}

// Later lives through a second at once: the one after the newest.
func (s *Site) Later() {
	f, _ := s.Board.Frame(s.Machine.Topo.ByRole(topology.Forwarder)[0].ID)
	at := time.UnixMilli(f.TimeMillis).Add(time.Second)
	s.second(at, map[topology.ForwarderID]float64{})
	s.Past.Store(nil)
	s.Picture.Arrived()
}

// Second waits for the next whole second, in which the machine's newest one arrives, is stored and judged.
func (s *Site) Second() {
	now := time.Now().Truncate(time.Second).Add(time.Second)
	time.Sleep(time.Until(now))
	frames := s.Machine.Frames(now.Add(-time.Second))
	s.Take(frames, now)
	if err := s.Store.Append(context.Background(), frames); err != nil {
		s.T.Fatal(err)
	}
	s.Judge(now)
}

// TellJobs reports the newest of the simulated jobs, at most so many, as a batch system does, and then the largest,
// which has run before.
func (s *Site) TellJobs(most int) (largest topology.JobID) {
	s.T.Helper()
	s.Machine.Mu.Lock()
	jobs := s.Machine.Sim.Jobs()
	s.Machine.Mu.Unlock()
	last := 0
	for i, j := range jobs {
		if len(j.Nodes) > len(jobs[last].Nodes) {
			last = i
		}
	}
	queue, busy, used, end := 0.4, 0.71, 0.38, time.Now().Add(-5*time.Hour)
	j := jobs[last]
	err := s.History.End(history.Run{Job: "87012", User: j.User, App: j.App, Nodes: len(j.Nodes),
		Start: end.Add(-time.Hour), End: end,
		Profile: &history.Profile{WriteBytes: 5.8e11, IONodes: len(j.Nodes), MetaQueue: &queue, Coverage: 1,
			NodeUse:   history.NodeUse{CPUBusy: &busy, MemoryUsed: &used},
			IOSeconds: 700, Peaks: history.Peaks{PeakBytesPerSec: 3e9}, From: "collectors"}})
	if err != nil {
		s.T.Fatal(err)
	}
	jobs = slices.Delete(slices.Clone(jobs), last, last+1)
	jobs = append(jobs[max(0, len(jobs)-most):], j) // it comes last and finds what is free
	for _, j := range jobs {
		if _, err := s.Jobs.Dispatch(context.Background(), dispatch.Request{Job: j.ID, User: j.User, App: j.App,
			Nodes: j.Nodes}); err != nil {
			s.T.Fatal(err)
		}
	}
	return j.ID
}

// pipes hands out connections inside of the process.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// Dial opens a connection to the server inside of the process, as by TCP.
func (s *Site) Dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case s.pipes <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// DialContext opens a connection to the server as a dialer of package net does, in whichever way the site has one.
func (s *Site) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	if s.Unix == "" {
		return s.Dial(ctx)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, addr)
}
