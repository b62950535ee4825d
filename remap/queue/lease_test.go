package queue

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fairway/collector/topology"
	"fairway/remap/policy/share"
)

// A policy that nobody renews ends with its lease; renewed in time it stays, and a table without a lease
// for ever.
func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Config{Dial: newForwarder().dial})
		policy := func() string {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.sharing.policy.String()
		}
		table := twoJobs("size-fair")
		table.LeaseSeconds = 60
		want := func(after time.Duration, text string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if got := policy(); got != text {
				t.Errorf("the policy is %q, want %q", got, text)
			}
		}
		renew := func() {
			t.Helper()
			if err := r.Share(table); err != nil {
				t.Fatal(err)
			}
		}
		renew()
		want(59*time.Second, "size-fair")
		renew()
		want(59*time.Second, "size-fair")
		want(2*time.Second, share.Policy(nil).String())
		if _, there := r.Stats()["big"]; !there {
			t.Error("the jobs went with the policy")
		}
		renew()
		table.LeaseSeconds = 0
		renew()
		want(24*time.Hour, "size-fair")
		for _, bad := range []float64{-1, 1e12} {
			table.LeaseSeconds = bad
			if err := r.Share(table); err == nil || !strings.Contains(err.Error(), "lease_seconds") {
				t.Errorf("a lease of %g: %v", bad, err)
			}
		}
	})
}

// Clients belong to a job by the name of their node, and are listed by it.
func TestClientsByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := map[string]topology.NodeID{"10.0.0.1": "cn1", "10.0.0.2": "cn2"}
		r := New(Config{Dial: newForwarder().dial,
			Name: func(_ context.Context, a netip.Addr) topology.NodeID { return names[a.String()] }})
		table := twoJobs("size-fair")
		table.Jobs[0].Clients, table.Jobs[0].Nodes = nil, []topology.NodeID{"cn1", "cn2"}
		// a node that is called as its address
		table.Jobs[1].Clients, table.Jobs[1].Nodes = nil, []topology.NodeID{"10.0.0.3"}
		if err := r.Share(table); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		p, done := newPipes(), make(chan error)
		go func() { done <- r.Serve(ctx, p) }()
		for _, from := range []string{"10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.9"} {
			start(ctx, p, from, 1, 100)
		}
		time.Sleep(time.Second)
		s := r.Stats()
		if s["big"].Connections != 3 || s["small"].Connections != 1 || s[""].Connections != 1 {
			t.Errorf("%+v", s)
		}
		clients := r.Clients()
		if len(clients) != 4 || clients[2].Node != "cn1" || clients[2].Connections != 2 ||
			clients[1].Node != "10.0.0.9" {
			t.Errorf("%+v", clients)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second) // the forwarder ends what it has
		table.Jobs[1].Nodes = []topology.NodeID{"cn2"}
		if err := r.Share(table); err == nil || !strings.Contains(err.Error(), `"cn2" is in two jobs`) {
			t.Errorf("one node in two jobs: %v", err)
		}
	})
}
