package tables

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap"
	"fairway/remap/queue"
)

// A limit reaches its queue with the next table, is done when the queue reports it, and lifted when the queue reports
// none: then the table is byte for byte what it was. A queue that reports nothing has failed.
func TestLimitsReachTheirQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		limits, tables, deaf := remap.Limits{}, []string{}, false
		here := site(job("1", 1, "c0"), job("2", 2, "c1"))
		c := Config{Settings: Defaults(), Situation: func() *remap.Situation { return here },
			Limits: func() remap.Limits { mu.Lock(); defer mu.Unlock(); return limits }}
		c.Policy, c.Forwarders, c.Lambda = "job-fair", []string{"f0"}, 0
		c.Order = func(_ context.Context, _ topology.NodeID, o wire.Order) (wire.OrderResult, error) {
			mu.Lock()
			defer mu.Unlock()
			if deaf {
				return wire.OrderResult{}, errors.New("no agent connected")
			}
			if o.Kind == wire.OrderShare {
				tables = append(tables, string(o.Body))
				return wire.OrderResult{OK: true}, nil
			}
			var t queue.Table
			if err := json.Unmarshal([]byte(tables[len(tables)-1]), &t); err != nil {
				return wire.OrderResult{}, err
			}
			r := queue.Report{Limits: map[string]float64{}}
			for _, j := range t.Jobs {
				if j.Limit > 0 {
					r.Limits[j.Row.Job] = j.Limit
				}
			}
			body, err := json.Marshal(r)
			return wire.OrderResult{OK: true, Body: body}, err
		}
		s := New(c)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan bool)
		go func() { s.Run(ctx); close(done) }()
		time.Sleep(1500 * time.Millisecond)
		if why := s.CanLimit("f0"); why != "" {
			t.Error(why)
		}
		if s.CanLimit("f1") == "" {
			t.Error("f1 has no queue, and it is taken to keep limits")
		}
		settle := func(limit float64) (r remap.Result) {
			t.Helper()
			from := time.Now()
			if err := s.Settle(ctx, remap.Plan{Job: "2", Moves: []remap.Move{{Node: "f0", Limit: limit}}},
				func(x remap.Result) { r = x }); err != nil {
				t.Fatal(err)
			}
			t.Logf("limit %g: %v %s after %s", limit, r.OK, r.Error, time.Since(from))
			return r
		}
		set := func(l remap.Limits) { mu.Lock(); limits = l; mu.Unlock() }
		set(remap.Limits{"f0": {"2": .05}})
		if r := settle(.05); !r.OK || r.Took > 3*time.Second {
			t.Errorf("%+v", r)
		}
		if !s.Keeps("f0", "2", .05, time.Now().Add(-3*time.Second)) || s.Keeps("f0", "2", 0, time.Time{}) {
			t.Error("the queue reported it")
		}
		set(nil)
		if r := settle(0); !r.OK {
			t.Errorf("%+v", r)
		}
		mu.Lock()
		if n := len(tables); n != 3 || tables[0] != tables[2] || tables[0] == tables[1] {
			t.Errorf("tables: %q", tables)
		}
		deaf = true
		mu.Unlock()
		set(remap.Limits{"f0": {"2": .05}})
		if r := settle(.05); r.OK || r.Error == "" {
			t.Errorf("nobody reported it: %+v", r)
		}
		cancel()
		<-done
	})
}
