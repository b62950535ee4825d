package daemontest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/cmd/lab/daemon"
	"fairway/cmd/lab/testbed"
	"fairway/cmd/lab/testbed/workload"
	"fairway/collector/p9"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/dispatch"
	"fairway/webui/api"
)

// TestRunningJobsAreEvacuated has a rule that acts look after two jobs on four real forwarders. Of faults that are
// drawn (forwarder, kind, second) each must see the jobs' nodes elsewhere within 30 seconds of its confirmation,
// without a hand and without an I/O error; of look-alikes none may be acted on, nor on what slows nobody. It draws as
// many of each as FAIRWAY_EVACUATIONS says, "20" or faults and look-alikes "5+20", on two such sites at once.
func TestRunningJobsAreEvacuated(t *testing.T) {
	onSites(t, testbed.Config{}, func(e *evacuation, faults, others int) {
		e.play([]testbed.Fault{{Kind: testbed.SlowData, Amount: 0.03}, {Kind: testbed.StopGo},
			{Kind: testbed.SlowSend, Amount: 0.03}, {Kind: testbed.StarvedCPU, Amount: 0.02}, {Kind: testbed.Hang},
			{Kind: testbed.Kill}}, faults, others)
	})
}

// TestRunningJobsLeaveGateways is the same on nfs-ganesha gateways.
func TestRunningJobsLeaveGateways(t *testing.T) {
	onSites(t, testbed.Config{Layer: testbed.NFS}, func(e *evacuation, faults, others int) {
		e.play([]testbed.Fault{{Kind: testbed.StopGo}, {Kind: testbed.SlowSend, Amount: 0.005},
			{Kind: testbed.StarvedCPU, Amount: 0.02}, {Kind: testbed.Hang}, {Kind: testbed.Kill}}, faults, others)
	})
}

const (
	sitesAtOnce     = 2
	evacuateSeed    = 20261128
	confirmedWithin = 3 * time.Minute
	// slowsSoon is when a fault that slows anybody does so, and slowsNobody the ratio of its clients' times to the
	// others' up to which it does not: nobody is accused of it then.
	slowsSoon   = time.Minute
	slowsNobody = 1.4
	actedWithin = 30 * time.Second
	// measuredFor is how long a fault stays after the move, unless what the move brought is known before.
	measuredFor  = 75 * time.Second
	lookAlikeFor = 50 * time.Second
	calmWithin   = 20 * time.Minute // a suspicion without further evidence is kept for 15
	// brokenFor is how long a gateway may answer with nothing but errors before another is started.
	brokenFor      = 2 * time.Minute
	detectorsLearn = 70 * time.Second
)

// onSites shares the rounds out among sites that are alike but for their draws.
func onSites(t *testing.T, cfg testbed.Config, play func(e *evacuation, faults, others int)) {
	var faults, others int
	switch n, _ := fmt.Sscanf(os.Getenv("FAIRWAY_EVACUATIONS"), "%d+%d", &faults, &others); n {
	case 0:
		t.Skip("skipped: takes two minutes a fault; set FAIRWAY_EVACUATIONS=20")
	case 1:
		others = faults
	}
	for i := range min(max(faults, others), sitesAtOnce) {
		t.Run(fmt.Sprint("site", i), func(t *testing.T) {
			t.Parallel()
			play(newEvacuation(t, cfg, uint64(i)), (faults+i)/sitesAtOnce, (others+i)/sitesAtOnce)
		})
	}
}

// evacuation is a real site with two jobs whose nodes lie over all forwarders.
type evacuation struct {
	t     *testing.T
	tb    *testbed.Testbed
	d     *realDaemon
	rand  *rand.Rand
	jobs  map[string]context.CancelFunc
	wait  sync.WaitGroup
	asked int // writes
	// headlines of slow forwarders, and those of them within 30 % of what clients saw.
	headlines, right int
	// next are what has not been drawn since all of its kind have.
	next map[string][]string

	mu   sync.Mutex // guards what follows
	errs []error    // of the jobs' I/O
}

func newEvacuation(t *testing.T, cfg testbed.Config, draw uint64) *evacuation {
	t.Helper()
	if cfg.Forwarders = 4; cfg.ComputeNodes == 0 {
		cfg.ComputeNodes = 8
	}
	tb, d := newRealSite(t, cfg, "return_after = \"10s\"\nself_approval = true\ntwo_persons = false\n"+
		"[forwarder]\npeak_bytes_per_sec = 1e9\n[[rule]]\nname = \"move\"\n"+
		"condition = [\"slow\", \"hung\", \"dead\"]\naction = \"act\"\nat_most_a_day = 100\n"+
		"[probe]\nexport = \"ATTACH\"\n")
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
	e.report(job, nodes)
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

// report has the daemon know of a job's start.
func (e *evacuation) report(job string, nodes []topology.NodeID) {
	e.t.Helper()
	e.ask("/api/v1/dispatch", dispatch.Request{Job: topology.JobID(job), User: "wei", App: "app" + job, Nodes: nodes},
		nil)
}

// ask asks the daemon; a body makes it a write of its own.
func (e *evacuation) ask(path string, body, into any) {
	e.t.Helper()
	e.asked++
	if err := e.d.ask(path, fmt.Sprint("asked", e.asked), body, into); err != nil {
		e.t.Fatal(err)
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
	e.ask("/api/v1/jobs/"+job+"/end", struct{}{}, nil)
}

// play has so many faults and look-alikes happen in an order that is drawn.
func (e *evacuation) play(kinds []testbed.Fault, faults, lookAlikes int) {
	var order []func()
	for range faults {
		order = append(order, func() { e.fault(e.drawFault(kinds)) })
	}
	for range lookAlikes {
		order = append(order, e.lookAlike)
	}
	e.rand.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
	for _, happen := range order {
		e.calm()
		time.Sleep(time.Duration(e.rand.IntN(5000)) * time.Millisecond)
		happen()
	}
	e.calm()
	e.t.Logf("%d of %d headlines are within 30 %% of what clients saw", e.right, e.headlines)
	if 5*e.right < 4*e.headlines {
		e.t.Error("fewer than four of five headlines are what clients saw")
	}
}

// drawFault draws one of some kinds, and its forwarder.
func (e *evacuation) drawFault(kinds []testbed.Fault) testbed.Fault {
	var names []string
	for _, f := range kinds {
		names = append(names, string(f.Kind))
	}
	name := e.draw("fault", names)
	f := kinds[slices.IndexFunc(kinds, func(f testbed.Fault) bool { return string(f.Kind) == name })]
	f.Node = topology.NodeID(fmt.Sprintf("fwd%03d", e.rand.IntN(4)))
	return f
}

// draw draws one of several, each once before any comes again.
func (e *evacuation) draw(of string, all []string) string {
	if len(e.next[of]) == 0 {
		all = slices.Clone(all)
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
	e.ask("/api/v1/findings", nil, &all)
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
	e.ask("/api/v1/machine", nil, &m)
	return m.Observed
}

// acts are the plans that a rule has approved.
func (e *evacuation) acts() (out []remap.Plan) {
	e.t.Helper()
	var rows []struct{ ID string }
	e.ask("/api/v1/plans", nil, &rows)
	for _, r := range rows {
		var p api.PlanView
		e.ask("/api/v1/plans/"+r.ID, nil, &p)
		if slices.ContainsFunc(p.Approvals, func(a remap.Approval) bool { return a.By == "rule move" }) {
			out = append(out, p.Plan)
		}
	}
	return out
}

// calm waits until nobody is accused and every node is at home again.
func (e *evacuation) calm() {
	e.t.Helper()
	home := fmt.Sprint(e.working(e.tb.Machine().Default))
	looked := time.Now()
	for end := time.Now().Add(calmWithin); ; time.Sleep(time.Second) {
		open, at := e.findings(), e.observed()
		if len(open) == 0 && fmt.Sprint(e.working(at)) == home {
			return
		}
		if time.Since(looked) > brokenFor {
			looked = time.Now()
			for i := range open {
				e.serveAgain(open[i].Node, "what was before")
			}
		}
		if time.Now().After(end) {
			e.t.Fatalf("not calm within %s: nodes %v, findings %+v", calmWithin, at, open)
		}
	}
}

// working are the places of the nodes of jobs that work; one that is idle may be elsewhere.
func (e *evacuation) working(at topology.Mapping) topology.Mapping {
	out := topology.Mapping{}
	for _, job := range []string{"1001", "1002"} {
		for _, n := range nodesOf(job) {
			out[n] = at[n]
		}
	}
	return out
}

// fault wants a forwarder's nodes elsewhere in time, and reports what faces say of that.
func (e *evacuation) fault(f testbed.Fault) {
	e.t.Helper()
	before := len(e.acts())
	if err := e.tb.Inject(e.t.Context(), f); err != nil {
		e.t.Fatal(err)
	}
	begun := time.Now()
	row := fmt.Sprintf("%-11s of %s: ", f.Kind, f.Node)
	found := e.confirmed(f.Node, begun)
	slower := e.slower(f.Node, begun)
	row += fmt.Sprintf("%.1fx for its clients (%s); ", slower.Ratio(), slower.Class)
	switch serves := conditions[f.Kind] == ""; {
	case found.ID == "" && serves && slower.Ratio() < slowsNobody:
		row += "accused of nothing"
	case found.ID == "":
		e.t.Errorf("%snot confirmed after %s: %+v", row, time.Since(begun).Round(time.Second), e.findings())
	case serves && slower.Ratio() < 1.2:
		e.t.Errorf("%sconfirmed, and it slows nobody: %s", row, found.Sentence)
		fallthrough
	default:
		row += fmt.Sprintf("%s confirmed after %s (%s %s)", found.ID, found.Changed.Sub(begun).Round(time.Second),
			found.Condition, found.Headline())
		if shown := found.Factor / slower.Ratio(); found.Condition == anomaly.Slow {
			if e.headlines++; shown < 1.3 && (shown > 1/1.3 || found.FactorAtLeast) {
				e.right++
			}
		}
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
		for end := time.Now().Add(measuredFor); !e.measured(before) && time.Now().Before(end); {
			time.Sleep(time.Second)
		}
	}
	e.wantNoErrors()
	if err := e.tb.Clear(e.t.Context(), f); err != nil {
		e.t.Fatal(err)
	}
	e.serveAgain(f.Node, string(f.Kind))
	cleared := time.Now()
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
	e.t.Logf("%s; all is as before %s after the fault", row, time.Since(cleared).Round(time.Second))
}

// measured says whether it is known of all plans of the rule, but for so many old ones, what they brought.
func (e *evacuation) measured(but int) bool {
	e.t.Helper()
	acts := e.acts()
	return !slices.ContainsFunc(acts[:len(acts)-but], func(p remap.Plan) bool {
		return p.Effect == nil || p.Effect.Verdict == remap.Measuring
	})
}

// confirmed waits until a node is; the finding is empty where that takes too long, or is not to be expected.
func (e *evacuation) confirmed(n topology.NodeID, begun time.Time) anomaly.Finding {
	e.t.Helper()
	for looked := begun.Add(slowsSoon); time.Since(begun) < confirmedWithin; time.Sleep(200 * time.Millisecond) {
		all := e.findings()
		for _, f := range all {
			if f.Node == n && f.State == anomaly.Confirmed {
				return f
			}
		}
		if time.Since(looked) > 5*time.Second {
			looked = time.Now()
			if w := e.slower(n, begun); len(all) == 0 && w.Ratio() > 0 && w.Ratio() < slowsNobody {
				break
			}
		}
	}
	return anomaly.Finding{}
}

// slower is what requests took the nodes behind a forwarder since a time beside those of their jobs' others.
func (e *evacuation) slower(n topology.NodeID, since time.Time) daemon.Waited {
	e.t.Helper()
	var behind, others []topology.NodeID
	for job := range e.jobs {
		for _, c := range nodesOf(job) {
			if e.tb.Machine().Default[c] == topology.ForwarderID(n) {
				behind = append(behind, c)
			} else {
				others = append(others, c)
			}
		}
	}
	return e.waited(behind, others, since, time.Now())
}

func (e *evacuation) waited(nodes, others []topology.NodeID, from, to time.Time) daemon.Waited {
	e.t.Helper()
	w, err := daemon.ClientsWaited(func(path string, into any) error { return e.d.ask(path, "", nil, into) }, nodes,
		others, from, to)
	if err != nil {
		e.t.Fatal(err)
	}
	return w
}

// left waits until a forwarder has none of its nodes, and returns how long that took since a time.
func (e *evacuation) left(n topology.NodeID, since time.Time) (took time.Duration, ok bool) {
	e.t.Helper()
	for f := topology.ForwarderID(n); ; time.Sleep(200 * time.Millisecond) {
		took = time.Since(since)
		here := slices.Contains(slices.Collect(maps.Values(e.working(e.observed()))), f)
		if !here || took > actedWithin {
			return took, !here
		}
	}
}

// serveAgain starts another service where a fault has ended one (a tracer does, on a machine with much other work) or
// has left one that answers with nothing but errors (ganesha's client of its back end does, after a restart).
func (e *evacuation) serveAgain(n topology.NodeID, after string) {
	e.t.Helper()
	err := e.serves(n)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	e.t.Logf("%s has ended the service of %s (%v): another one is started", after, n, err)
	f := testbed.Fault{Kind: testbed.Kill, Node: n}
	if err := errors.Join(e.tb.Inject(e.t.Context(), f), e.tb.Clear(e.t.Context(), f)); err != nil {
		e.t.Fatal(err)
	}
}

// serves asks a forwarder for a file that is not there.
func (e *evacuation) serves(n topology.NodeID) error {
	ctx, cancel := context.WithTimeout(e.t.Context(), 10*time.Second)
	defer cancel()
	c, err := p9.Dial(ctx, e.tb.ForwarderAddr(topology.ForwarderID(n)), 64<<10)
	if err != nil {
		return err
	}
	defer c.Close()
	root, err := c.Attach(ctx, e.tb.Attach(), uint32(os.Geteuid()))
	if err == nil {
		_, err = root.Walk(ctx, "there-is-no-such-file")
	}
	return err
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
