package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap"
	"fairway/remap/queue"
	"fairway/remap/queue/tables"
)

// twoQueues are two forwarders that do 8,000 requests a second each, behind queues that a Sender serves. Job 1
// has four nodes, two at each; jobs 2 and 3 have two nodes, at one forwarder each (Figure 5 of the paper).
type twoQueues struct {
	queues map[topology.NodeID]*queue.Queue
	pipes  map[topology.NodeID]func(from string, ctx context.Context)
	cut    atomic.Bool // f1 cannot be reached
	sender *tables.Sender
}

var places = []struct {
	job, user string
	nodes     map[string]topology.ForwarderID
}{
	{"1", "ann", map[string]topology.ForwarderID{"10.0.0.1": "f0", "10.0.0.2": "f0", "10.0.0.3": "f1",
		"10.0.0.4": "f1"}},
	{"2", "bob", map[string]topology.ForwarderID{"10.0.1.1": "f0", "10.0.1.2": "f0"}},
	{"3", "eve", map[string]topology.ForwarderID{"10.0.2.1": "f1", "10.0.2.2": "f1"}},
}

func newTwoQueues(ctx context.Context, all *sync.WaitGroup, lambda time.Duration) *twoQueues {
	w := &twoQueues{queues: map[topology.NodeID]*queue.Queue{},
		pipes: map[topology.NodeID]func(string, context.Context){}}
	m := &topology.Machine{Name: "test", Default: topology.Mapping{}}
	for i, f := range []topology.NodeID{"f0", "f1"} {
		m.Nodes = append(m.Nodes, topology.Node{ID: f, Role: topology.Forwarder})
		fwd, p := queue.NewForwarder(), queue.NewPipes()
		r := queue.New(queue.Config{Seed: uint64(i + 1),
			Dial: func(ctx context.Context) (net.Conn, error) { return queue.DialFwd(fwd, ctx) }})
		w.queues[f] = r
		all.Go(func() { _ = r.Serve(ctx, p) })
		w.pipes[f] = func(from string, ctx context.Context) {
			queue.KeepWriting(ctx, queue.DialPipes(p, from), 32,
				1024)
		}
	}
	var jobs []remap.Job
	for _, j := range places {
		job := remap.Job{ID: topology.JobID(j.job), User: j.user, Start: time.Now()}
		for n, f := range j.nodes {
			m.Nodes = append(m.Nodes, topology.Node{ID: topology.NodeID(n), Role: topology.Compute})
			m.Default[topology.NodeID(n)] = f
			job.Nodes = append(job.Nodes, topology.NodeID(n))
		}
		jobs = append(jobs, job)
	}
	c := tables.Config{Settings: tables.Defaults(), Order: w.order}
	c.Policy, c.Lambda = "size-fair", lambda
	c.Situation = func() *remap.Situation {
		return remap.BuildSituation(remap.SituationParts{At: time.Now(), Machine: m, Jobs: jobs})
	}
	w.sender = tables.New(c)
	all.Go(func() { w.sender.Run(ctx) })
	return w
}

// order is what the agent and the queue's control socket do.
func (w *twoQueues) order(_ context.Context, n topology.NodeID, o wire.Order) (wire.OrderResult, error) {
	if n == "f1" && w.cut.Load() {
		return wire.OrderResult{}, errors.New("no agent connected")
	}
	r, body := w.queues[n], strings.NewReader(string(o.Body))
	switch o.Kind {
	case wire.OrderReport:
		b, err := json.Marshal(r.Report())
		return wire.OrderResult{OK: err == nil, Body: b}, err
	case wire.OrderGlobal:
		g, err := queue.ReadGlobal(body)
		if err == nil {
			err = r.Gathered(g)
		}
		return wire.OrderResult{OK: err == nil}, err
	}
	t, err := queue.ReadTable(body)
	if err == nil {
		err = r.Share(t)
	}
	return wire.OrderResult{OK: err == nil}, err
}

// begin starts the clients of a job that use a forwarder.
func (w *twoQueues) begin(ctx context.Context, all *sync.WaitGroup, job int, f topology.ForwarderID) {
	for n, at := range places[job].nodes {
		if at == f {
			all.Go(func() { w.pipes[f.Node()](n, ctx) })
		}
	}
}

// parts are what jobs 1 to 3 have of all bytes during d.
func (w *twoQueues) parts(d time.Duration) (out [3]float64) {
	bytes := func(sign float64) {
		for _, r := range w.queues {
			for i, j := range places {
				out[i] += sign * float64(r.Stats()[j.job].Bytes)
			}
		}
	}
	bytes(-1)
	time.Sleep(d)
	bytes(1)
	sum := out[0] + out[1] + out[2]
	for i := range out {
		out[i] /= sum
	}
	return out
}

// TestGlobalShares: by the second interval of 50 ms the shares are global; a queue that cannot be reached goes
// back to its local shares after a while, and so does the other that is then alone; and where the placement does
// not allow the global shares that is reported.
func TestGlobalShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lambda = 50 * time.Millisecond
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		defer func() { stop(); all.Wait(); time.Sleep(time.Second) }() // the forwarders end what they have
		w := newTwoQueues(ctx, &all, lambda)
		first, stopFirst := context.WithCancel(ctx)
		defer stopFirst()
		want := func(what string, got [3]float64, within float64, want ...float64) {
			t.Helper()
			for i := range want {
				if math.Abs(got[i]/want[i]-1) > within {
					t.Errorf("%s: jobs have %.3f, want %.3f within %g", what, got, want, within)
					return
				}
			}
			t.Logf("%s: %.3f", what, got)
		}
		says := func(why string, by ...queue.By) {
			t.Helper()
			v, ok := w.sender.Gathering()
			text, _ := json.Marshal(v)
			if !ok || !strings.Contains(string(text), why) || v.Reachable == strings.Contains(why, "only at") {
				t.Errorf("it says %s, want %q", text, why)
			}
			for i := range by {
				if got := w.queues[topology.NodeID(fmt.Sprint("f", i))].Report().By; got != by[i] ||
					v.Queues[i].By != by[i] && v.Queues[i].Why == "" {
					t.Errorf("f%d serves by %s and is shown by %+v, want %s", i, got, v.Queues[i], by[i])
				}
			}
		}
		time.Sleep(2*time.Second + time.Millisecond) // the queues know their jobs
		w.begin(ctx, &all, 0, "f0")
		w.begin(first, &all, 0, "f1")
		w.begin(ctx, &all, 1, "f0")
		w.begin(ctx, &all, 2, "f1")
		want("first interval", w.parts(lambda), .25, 2./3, 1./6, 1./6)
		for range 4 {
			want("later interval", w.parts(lambda), .25, .5, .25, .25) // 100 draws of 8 requests
		}
		want("global", w.parts(2*time.Second), .05, .5, .25, .25)
		says(`"reachable":true`, queue.ByGlobal, queue.ByGlobal)

		w.cut.Store(true)
		time.Sleep(3500 * time.Millisecond)
		want("cut off", w.parts(time.Second), .08, 2./3, 1./6, 1./6)
		says("does not answer", queue.ByLocal, queue.ByLocal)
		w.cut.Store(false)
		time.Sleep(3 * lambda)
		want("together again", w.parts(time.Second), .08, .5, .25, .25)

		stopFirst() // job 1 goes on at f0 only: that is too little for it and job 2
		time.Sleep(3 * lambda)
		want("out of reach", w.parts(time.Second), .08, 1./3, 1./6, .5)
		says("they have more work than is done only at f0, 1 of 2 forwarders", queue.ByGlobal, queue.ByGlobal)
	})
}
