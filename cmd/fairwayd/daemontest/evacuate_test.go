package daemontest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/cmd/lab/testbed"
	"fairway/cmd/lab/testbed/workload"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/dispatch"
	"fairway/webui/api"
)

// TestRunningJobsAreEvacuated has a rule that acts look after two jobs on four real forwarders. Of faults that are
// drawn (forwarder, kind, second) each must see the jobs' nodes elsewhere within 30 seconds of its confirmation,
// without a hand and without an I/O error; of look-alikes none may be acted on. It draws as many
// of each as FAIRWAY_EVACUATIONS is, on two such sites at once.
func TestRunningJobsAreEvacuated(t *testing.T) {
	// Starving is left out: these jobs need a hundredth of a processor of a forwarder.
	evacuations(t, testbed.Config{}, []testbed.Fault{{Kind: testbed.SlowData, Amount: 0.03},
		{Kind: testbed.StopGo}, {Kind: testbed.SlowSend, Amount: 0.03}, {Kind: testbed.Hang}, {Kind: testbed.Kill}})
}

// TestRunningJobsLeaveGateways is the same on nfs-ganesha gateways.
func TestRunningJobsLeaveGateways(t *testing.T) {
	evacuations(t, testbed.Config{Layer: testbed.NFS}, []testbed.Fault{{Kind: testbed.StopGo},
		{Kind: testbed.SlowSend, Amount: 0.005}, {Kind: testbed.StarvedCPU, Amount: 0.02}, {Kind: testbed.Hang},
		{Kind: testbed.Kill}})
}

const (
	sitesAtOnce     = 2
	evacuateSeed    = 20261127
	confirmedWithin = 3 * time.Minute
	actedWithin     = 30 * time.Second
	// measuredFor is how long a fault stays after the move: what the move brought is then known.
	measuredFor    = 56 * time.Second
	lookAlikeFor   = 50 * time.Second
	calmWithin     = 6 * time.Minute
	detectorsLearn = 70 * time.Second
)

// evacuations shares the rounds out among sites that are alike but for their draws.
func evacuations(t *testing.T, cfg testbed.Config, faults []testbed.Fault) {
	rounds, err := strconv.Atoi(os.Getenv("FAIRWAY_EVACUATIONS"))
	if err != nil {
		t.Skip("skipped: takes three minutes a fault; set FAIRWAY_EVACUATIONS=20")
	}
	for i := range min(rounds, sitesAtOnce) {
		t.Run(fmt.Sprint("site", i), func(t *testing.T) {
			t.Parallel()
			newEvacuation(t, cfg, uint64(i)).play(faults, (rounds+i)/sitesAtOnce)
		})
	}
}

// evacuation is a real site with two jobs whose nodes lie over all forwarders.
type evacuation struct {
	t      *testing.T
	tb     *testbed.Testbed
	d      *realDaemon
	rand   *rand.Rand
	jobs   map[string]context.CancelFunc
	wait   sync.WaitGroup
	starts int // of jobs
	// next are what has not been drawn since all of its kind have.
	next map[string][]string

	mu   sync.Mutex // guards what follows
	errs []error    // of the jobs' I/O
}

func newEvacuation(t *testing.T, cfg testbed.Config, draw uint64) *evacuation {
	t.Helper()
	cfg.Forwarders, cfg.ComputeNodes = 4, 8
	tb, d := newRealSite(t, cfg, "return_after = \"10s\"\n"+
		"[forwarder]\npeak_bytes_per_sec = 1e9\n[findings]\nclear_seconds = 20\nforget_after = \"1m\"\n"+
		"[[rule]]\nname = \"move\"\ncondition = [\"slow\", \"hung\", \"dead\"]\naction = \"act\"\n"+
		"at_most_a_day = 100\n[probe]\nexport = \"ATTACH\"\n")
	e := &evacuation{t: t, tb: tb, d: d, rand: rand.New(rand.NewPCG(evacuateSeed, draw)),
		jobs: map[string]context.CancelFunc{}, next: map[string][]string{}}
	t.Cleanup(func() {
		for _, stop := range e.jobs {
			stop()
		}
		e.wait.Wait()
	})
	wantReporting(t, d, "fwd000", "fwd001", "fwd002", "fwd003")
	e.start("1001")
	e.start("1002")
	time.Sleep(detectorsLearn)
	e.wantNoErrors()
	return e
}

// nodesOf are those of a job: every other compute node.
func nodesOf(job string) (out []topology.NodeID) {
	for i := range 4 {
		out = append(out, topology.NodeID(fmt.Sprintf("cn%03d", 2*i+int(job[3]-'1'))))
	}
	return out
}

// start runs a job that reads and writes most of the time.
func (e *evacuation) start(job string) {
	e.t.Helper()
	nodes := nodesOf(job)
	e.starts++
	if err := e.d.ask("/api/v1/dispatch", fmt.Sprint("start", e.starts), dispatch.Request{Job: topology.JobID(job),
		User: "wei", App: "app" + job, Nodes: nodes}, nil); err != nil {
		e.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	e.jobs[job] = stop
	for rank, n := range nodes {
		spec := workload.Spec{Mode: workload.FilePerProcess, Name: "app" + job, BurstBytes: 3 << 20,
			BlockBytes: 128 << 10, BytesPerSec: 4 << 20, ReadBack: true, BurstFiles: 50,
			FilesPerSec: 50, Period: 2 * time.Second, Duration: 6 * time.Hour}
		e.run(ctx, n, append([]string{"env", "SLURM_JOB_ID=" + job, fmt.Sprint("SLURM_PROCID=", rank),
			fmt.Sprint("SLURM_NTASKS=", len(nodes))}, spec.Argv(binary(e.t, "fairway-demo"))...))
	}
}

// run runs a program on a node until ctx ends; an end before that is an I/O error.
func (e *evacuation) run(ctx context.Context, n topology.NodeID, argv []string) {
	e.wait.Go(func() {
		out, err := e.tb.Exec(ctx, n, argv...)
		if ctx.Err() == nil {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.errs = append(e.errs, fmt.Errorf("%s: %v: %s", n, err, out))
		}
	})
}

// end ends a job's programs and reports it.
func (e *evacuation) end(job string) {
	e.t.Helper()
	e.jobs[job]()
	delete(e.jobs, job)
	if err := e.d.ask("/api/v1/jobs/"+job+"/end", fmt.Sprint("end", e.starts), struct{}{}, nil); err != nil {
		e.t.Fatal(err)
	}
}

func (e *evacuation) play(faults []testbed.Fault, rounds int) {
	kinds := map[string]func(){}
	for _, f := range faults {
		kinds[string(f.Kind)] = func() { e.fault(f) }
	}
	for range rounds {
		for _, happen := range []func(){kinds[e.draw("fault", slices.Sorted(maps.Keys(kinds)))], e.lookAlike} {
			e.calm()
			time.Sleep(time.Duration(e.rand.IntN(5000)) * time.Millisecond)
			happen()
		}
	}
	e.calm()
}

// draw draws one of several, each once before any comes again.
func (e *evacuation) draw(of string, all []string) string {
	if len(e.next[of]) == 0 {
		e.rand.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
		e.next[of] = all
	}
	name := e.next[of][0]
	e.next[of] = e.next[of][1:]
	return name
}

// findings are the open ones that accuse a forwarder.
func (e *evacuation) findings() (out []anomaly.Finding) {
	e.t.Helper()
	var all []struct{ anomaly.Finding }
	if err := e.d.ask("/api/v1/findings", "", nil, &all); err != nil {
		e.t.Fatal(err)
	}
	for i := range all {
		if f := all[i].Finding; f.Open() && f.Kind.Accuses() && strings.HasPrefix(string(f.Node), "fwd") {
			out = append(out, f)
		}
	}
	return out
}

// observed is where the nodes are.
func (e *evacuation) observed() topology.Mapping {
	e.t.Helper()
	var m api.MachineView
	if err := e.d.ask("/api/v1/machine", "", nil, &m); err != nil {
		e.t.Fatal(err)
	}
	return m.Observed
}

// acts are the plans that a rule has approved.
func (e *evacuation) acts() (out []remap.Plan) {
	e.t.Helper()
	var rows []struct{ ID string }
	if err := e.d.ask("/api/v1/plans", "", nil, &rows); err != nil {
		e.t.Fatal(err)
	}
	for _, r := range rows {
		var p api.PlanView
		if err := e.d.ask("/api/v1/plans/"+r.ID, "", nil, &p); err != nil {
			e.t.Fatal(err)
		}
		if slices.ContainsFunc(p.Approvals, func(a remap.Approval) bool { return a.By == "rule move" }) {
			out = append(out, p.Plan)
		}
	}
	return out
}

// calm waits until nobody is accused and every node is at home again.
func (e *evacuation) calm() {
	e.t.Helper()
	home := fmt.Sprint(e.tb.Machine().Default)
	for end := time.Now().Add(calmWithin); ; time.Sleep(time.Second) {
		open, at := e.findings(), e.observed()
		if len(open) == 0 && fmt.Sprint(at) == home {
			return
		}
		if time.Now().After(end) {
			e.t.Fatalf("not calm within %s: nodes %v, findings %+v", calmWithin, at, open)
		}
	}
}

// fault draws a forwarder, wants its nodes elsewhere in time, and reports what faces say of that.
func (e *evacuation) fault(f testbed.Fault) {
	e.t.Helper()
	f.Node = topology.NodeID(fmt.Sprintf("fwd%03d", e.rand.IntN(4)))
	before := len(e.acts())
	if err := e.tb.Inject(e.t.Context(), f); err != nil {
		e.t.Fatal(err)
	}
	begun := time.Now()
	row := fmt.Sprintf("%-11s of %s: ", f.Kind, f.Node)
	switch found := e.confirmed(f.Node); {
	case found.ID == "":
		e.t.Errorf("%snot confirmed within %s: %+v", row, confirmedWithin, e.findings())
	default:
		row += fmt.Sprintf("%s confirmed after %s (%s)", found.ID, found.Changed.Sub(begun).Round(time.Second),
			found.Condition)
		took, ok := e.left(f.Node, found.Changed)
		if !ok {
			var v any
			_ = e.d.ask("/api/v1/rules", "", nil, &v)
			e.t.Errorf("%s: nodes are on it still after %s (%s, %+v); rules %v", row, took, found.Sentence,
				found.Impact, v)
		}
		row += fmt.Sprintf(", moved %.1f s later", took.Seconds())
		time.Sleep(10 * time.Second)
		if acts := e.acts(); len(acts) > before {
			e.wantSaid(f, found.ID, acts[:len(acts)-before])
		}
	}
	time.Sleep(measuredFor) // the jobs go on
	e.wantNoErrors()
	if err := e.tb.Clear(e.t.Context(), f); err != nil {
		e.t.Fatal(err)
	}
	e.serveAgain(f)
	e.calm()
	acts := e.acts()
	for _, p := range acts[:len(acts)-before] {
		verified := 0
		for _, r := range p.Results {
			if r.Verified {
				verified++
			}
		}
		row += fmt.Sprintf("; %s: %d of %d nodes verified, %s %s", p.ID, verified, len(p.Moves), p.State, p.Error)
		if p.Effect == nil {
			row += ", not measured"
			continue
		}
		row += ", " + p.Effect.Text()
		if p.Effect.Verdict == remap.NoEffect || p.Effect.Verdict == remap.Worse {
			e.t.Errorf("%s has not helped, by its verdict", p.ID)
		}
	}
	e.t.Log(row)
}

// confirmed waits until a node is; the finding is empty where that takes too long.
func (e *evacuation) confirmed(n topology.NodeID) anomaly.Finding {
	e.t.Helper()
	for end := time.Now().Add(confirmedWithin); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		for _, f := range e.findings() {
			if f.Node == n && f.State == anomaly.Confirmed {
				return f
			}
		}
	}
	return anomaly.Finding{}
}

// left waits until a forwarder has none of its nodes, and returns how long that took since a time.
func (e *evacuation) left(n topology.NodeID, since time.Time) (took time.Duration, ok bool) {
	e.t.Helper()
	for f := topology.ForwarderID(n); ; time.Sleep(200 * time.Millisecond) {
		took = time.Since(since)
		here := slices.Contains(slices.Collect(maps.Values(e.observed())), f)
		if !here || took > actedWithin {
			return took, !here
		}
	}
}

// serveAgain starts a service that its fault has ended: a tracer of a machine with much other work does that.
func (e *evacuation) serveAgain(f testbed.Fault) {
	e.t.Helper()
	c, err := net.DialTimeout("tcp", e.tb.ForwarderAddr(topology.ForwarderID(f.Node)), 10*time.Second)
	if err == nil {
		c.Close()
		return
	}
	e.t.Logf("%s has ended the service of %s (%v): another one is started", f.Kind, f.Node, err)
	f.Kind, f.Amount = testbed.Kill, 0
	if err := errors.Join(e.tb.Inject(e.t.Context(), f), e.tb.Clear(e.t.Context(), f)); err != nil {
		e.t.Fatal(err)
	}
}

// wantNoErrors wants that no program of the jobs has ended.
func (e *evacuation) wantNoErrors() {
	e.t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.errs) > 0 {
		e.t.Errorf("I/O errors: %v", e.errs)
	}
}

// lookAlike draws what slows jobs down without a fault of one forwarder, and wants that no rule acts.
func (e *evacuation) lookAlike() {
	e.t.Helper()
	before := len(e.acts())
	kinds := map[string]func() (stop func()){
		"slow back end":    e.slowBackEnd,
		"busy neighbour":   e.busyNeighbour,
		"slow client":      e.slowClient,
		"a job that stops": func() func() { e.end("1001"); return func() { e.start("1001") } },
	}
	name := e.draw("look-alike", slices.Sorted(maps.Keys(kinds)))
	stop := kinds[name]()
	time.Sleep(lookAlikeFor)
	acted := e.acts()
	stop()
	if len(acted) > before {
		e.t.Errorf("%s: acted: %+v", name, acted[0])
	}
	e.wantNoErrors()
	e.t.Logf("%s: %d acts; accused %d", name, len(acted)-before, len(e.findings()))
}

// slowBackEnd slows what lies behind all forwarders alike.
func (e *evacuation) slowBackEnd() func() {
	var on []testbed.Fault
	machine := e.tb.Machine()
	behind := topology.Forwarder // they have the file system themselves
	if len(machine.ByRole(topology.Storage)) > 0 {
		behind = topology.Storage
	}
	for _, n := range machine.Nodes {
		if n.Role == behind {
			on = append(on, testbed.Fault{Kind: testbed.SlowData, Node: n.ID, Amount: 0.03})
		}
	}
	return e.inject(on...)
}

// slowClient slows the link of one compute node to a part of what its job asks for.
func (e *evacuation) slowClient() func() {
	return e.inject(testbed.Fault{Kind: testbed.SlowLink, Node: e.client(), Amount: 3e5})
}

// client draws a compute node.
func (e *evacuation) client() topology.NodeID {
	return topology.NodeID(fmt.Sprintf("cn%03d", e.rand.IntN(8)))
}

// inject switches faults on at once, so that no node is the only one for a while; stop switches them off.
func (e *evacuation) inject(on ...testbed.Fault) (stop func()) {
	e.t.Helper()
	errs := make([]error, len(on))
	var wait sync.WaitGroup
	for i := range on {
		wait.Go(func() { errs[i] = e.tb.Inject(e.t.Context(), on[i]) })
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		e.t.Fatal(err)
	}
	return func() {
		for _, f := range on {
			if err := e.tb.Clear(e.t.Context(), f); err != nil {
				e.t.Fatal(err)
			}
		}
	}
}

// busyNeighbour writes through one forwarder as fast as it goes, from one node.
func (e *evacuation) busyNeighbour() func() {
	ctx, stop := context.WithCancel(context.Background())
	spec := workload.Spec{Mode: workload.FilePerProcess, Name: "neighbour", BurstBytes: 64 << 20, BlockBytes: 1 << 20,
		BurstFiles: 50, Period: 5 * time.Second, Duration: time.Hour}
	e.run(ctx, e.client(), append([]string{"env", "SLURM_PROCID=0", "SLURM_NTASKS=1"},
		spec.Argv(binary(e.t, "fairway-demo"))...))
	return stop
}
