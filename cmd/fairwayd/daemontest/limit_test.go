package daemontest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"fairway/cmd/lab/testbed"
	"fairway/collector/p9"
	queuesource "fairway/collector/source/queue"
	"fairway/remap"
	"fairway/remap/dispatch"
	"fairway/remap/queue"
	"fairway/webui/api"
)

// TestALimitFromProposalToTheWayBack: a job of four nodes keeps a real diod busy, and a request of the other job waits
// for it. A limit is proposed by the command, previewed, approved, kept by the queue and seen there; the other's
// requests take less; rolled back, the queue keeps none, and the audit has every step.
func TestALimitFromProposalToTheWayBack(t *testing.T) {
	tb := realDiods(t, 1)
	d := newRealDaemon(t, "[queue]\npolicy = \"job-fair\"\n[desk]\nself_approval = true\n"+fiveNodes())
	q := startQueue(t, d, tb, "fwd000", "")

	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	t.Cleanup(func() { stop(); clients.Wait() })
	victim := newVictim(t, tb, q.listen, address(4))
	alone := victim.mean()
	for i := range 4 {
		clients.Go(func() { writeFrom(t, ctx, tb, q.listen, address(i), 8, fmt.Sprint("limit", i)) })
	}
	busy := dispatch.Request{Job: "busy", User: "a", App: "x"}
	for i := range 4 {
		busy.Nodes = append(busy.Nodes, nodeID(i))
	}
	for _, j := range []dispatch.Request{busy, {Job: "waits", User: "b", App: "x",
		Nodes: append(busy.Nodes[:0:0], nodeID(4))}} {
		if err := d.ask("/api/v1/dispatch", string(j.Job), j, nil); err != nil {
			t.Fatal(err)
		}
	}
	wait(t, "the queue knows both jobs", func() bool {
		s := stats(q.socket)
		return s["busy"].Connections == 4 && s["waits"].Connections == 1
	})
	beside, before := victim.mean(), victim.moved(q.socket)

	var p api.PlanView
	propose := func() error {
		return d.ask("/api/v1/plans", "limit", api.ManualRemap{Nodes: append(busy.Nodes[:0:0], "fwd000"), Job: "busy",
			Limit: .05, Reason: "it keeps fwd000 busy and job waits waits"}, &p)
	}
	wait(t, "the plan is proposed and may be approved", func() bool {
		return propose() == nil && p.MayApprove == ""
	})
	if p.Title != "limit job busy to 5 % of fwd000" {
		t.Errorf("title %q", p.Title)
	}
	if err := d.ask("/api/v1/plans/"+p.ID+"/approve", "yes", api.Decision{PreviewHash: p.PreviewHash,
		Reason: "the other job waits for it"}, &p); err != nil {
		t.Fatal(err)
	}
	state := func(want remap.PlanState) {
		t.Helper()
		wait(t, "the plan is "+string(want)+"; it is "+string(p.State)+" "+p.Error, func() bool {
			return d.ask("/api/v1/plans/"+p.ID, "", nil, &p) == nil && p.State == want
		})
	}
	approved := time.Now()
	state(remap.Verified)
	t.Logf("verified after %.1f s", time.Since(approved).Seconds())
	if got := report(t, q.socket).Limits; got["busy"] != .05 || len(got) != 1 {
		t.Errorf("the queue keeps %v", got)
	}
	wait(t, "requests of the other job take less with the limit", func() bool {
		limited, total := victim.mean(), victim.moved(q.socket)
		t.Logf("a write of 60 KiB: %.2f ms alone, %.2f beside the busy job, %.2f with the limit; the forwarder moved "+
			"%.1f MB/s before and %.1f with it", 1e3*alone, 1e3*beside, 1e3*limited, before/1e6, total/1e6)
		return limited < beside/1.5 // two thirds are more than what one look differs from the next by
	})
	if err := d.ask("/api/v1/plans/"+p.ID+"/rollback", "back", api.Decision{Reason: "it is enough"}, &p); err != nil {
		t.Fatal(err)
	}
	state(remap.RolledBack)
	if got := report(t, q.socket); got.Limits != nil || got.By != queue.ByLocal {
		t.Errorf("after the way back the queue serves by %s and keeps %v", got.By, got.Limits)
	}
	var audit []api.AuditEntry
	if err := d.ask("/api/v1/audit?subject="+p.ID, "", nil, &audit); err != nil {
		t.Fatal(err)
	}
	var steps []string
	for _, e := range audit {
		steps = append(steps, e.Action)
	}
	for _, want := range []string{"propose", "approve", "start", "results", "observe", "roll_back", "undone"} {
		if !slices.Contains(steps, want) {
			t.Errorf("the audit has %v, and no %s", steps, want)
		}
	}
}

func report(t *testing.T, socket string) (r queue.Report) {
	t.Helper()
	b, err := queuesource.Ask(t.Context(), socket, "GET", "/report", nil)
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// victim writes one piece after the other, with a pause after each.
type victim struct {
	t    *testing.T
	file *p9.Fid
}

func newVictim(t *testing.T, tb *testbed.Testbed, queue string, from netip.Addr) *victim {
	c, root, err := attachFrom(t.Context(), tb, queue, from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	f, err := root.Walk(t.Context())
	if err == nil {
		err = f.Create(t.Context(), "victim", uint32(os.O_RDWR), 0o600, uint32(os.Getegid()))
	}
	if err != nil {
		t.Fatal(err)
	}
	return &victim{t: t, file: f}
}

// mean is how long one of 200 writes took, seconds.
func (v *victim) mean() float64 {
	data, took := make([]byte, 60<<10), 0.0
	const n = 200
	for range n {
		from := time.Now()
		if _, err := v.file.WriteAt(v.t.Context(), data, 0); err != nil {
			v.t.Fatal(err)
		}
		took += time.Since(from).Seconds()
		time.Sleep(5 * time.Millisecond)
	}
	return took / n
}

// moved is what the forwarder moves for all jobs, bytes a second, while the victim writes.
func (v *victim) moved(socket string) float64 {
	sum := func() (n int64) {
		for _, s := range stats(socket) {
			n += s.Bytes
		}
		return n
	}
	before, from := sum(), time.Now()
	v.mean()
	return float64(sum()-before) / time.Since(from).Seconds()
}
