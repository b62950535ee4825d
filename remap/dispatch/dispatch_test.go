package dispatch

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/desk"
	"fairway/remap/policy/dfra"
	"fairway/tsdb"
	"fairway/tsdb/history"
	"fairway/tsdb/window"
)

// machine is a site in memory: 8 compute nodes on 2 forwarders, and spare ones. It is also the
// driver, and what the collectors see.
type machine struct {
	mu   sync.Mutex // guards everything that follows
	at   topology.Mapping
	topo *topology.Machine
	busy map[topology.ForwarderID]bool
	// unknown are the forwarders whose agents report nothing of what they move.
	unknown map[topology.ForwarderID]bool
	behind  map[topology.ForwarderID]topology.NodeID // the forwarders' back ends
	finds   []anomaly.Finding
	frames  []collector.Frame
	desk    *desk.Desk
	jobs    func() []remap.Job
	deaf    bool          // no node follows an order
	takes   time.Duration // for a move or a way back
}

func (m *machine) refuse(deaf bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deaf = deaf
}

func newMachine(nodes, defaults, spares int) *machine {
	m := &machine{at: topology.Mapping{}, topo: &topology.Machine{Name: "test", Default: topology.Mapping{}},
		busy: map[topology.ForwarderID]bool{}}
	for i := range defaults + spares {
		m.topo.Nodes = append(m.topo.Nodes, topology.Node{ID: topology.NodeID(fmt.Sprintf("f%d", i)),
			Role: topology.Forwarder})
	}
	for i := range nodes {
		n := cn(i)
		m.topo.Nodes = append(m.topo.Nodes, topology.Node{ID: n, Role: topology.Compute})
		m.topo.Default[n] = topology.ForwarderID(fmt.Sprintf("f%d", i*defaults/nodes))
		m.at[n] = m.topo.Default[n]
	}
	return m
}

func cn(i int) topology.NodeID { return topology.NodeID(fmt.Sprintf("c%d", i)) }

func cns(from, to int) (out []topology.NodeID) {
	for i := from; i < to; i++ {
		out = append(out, cn(i))
	}
	return out
}

func (m *machine) situation() *remap.Situation {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	p := remap.SituationParts{At: now, Machine: m.topo, Routes: map[topology.NodeID]window.Route{},
		Load: map[topology.ForwarderID]remap.Load{}, Findings: m.finds}
	for _, n := range m.topo.ByRole(topology.Forwarder) {
		l := remap.Load{LastSeen: now, ReadBytesPerSec: new(0.0), WriteBytesPerSec: new(0.0),
			MetaOpsPerSec: new(0.0)}
		if m.unknown[topology.ForwarderID(n.ID)] {
			l = remap.Load{LastSeen: now}
		}
		if m.busy[topology.ForwarderID(n.ID)] {
			l.WriteBytesPerSec = new(1e9)
		}
		l.BackEnd = m.behind[topology.ForwarderID(n.ID)]
		p.Load[topology.ForwarderID(n.ID)] = l
	}
	for n, f := range m.at {
		p.Routes[n] = window.Route{Forwarder: f, At: now, ByMount: true}
	}
	if m.desk != nil {
		p.Owner, p.Excluded = m.desk.Owners(), m.desk.Excluded()
	}
	if m.jobs != nil {
		p.Jobs = m.jobs()
	}
	return remap.BuildSituation(p)
}

func (m *machine) Preview(context.Context, remap.Plan) ([]string, error) { return nil, nil }

func (m *machine) Apply(_ context.Context, p remap.Plan, report func(remap.Result)) error {
	return m.move(p.Moves, func(v remap.Move) topology.ForwarderID { return v.To }, report)
}

func (m *machine) Restore(_ context.Context, p remap.Plan, report func(remap.Result)) error {
	return m.move(p.Moves, func(v remap.Move) topology.ForwarderID { return v.From }, report)
}

func (m *machine) move(moves []remap.Move, to func(remap.Move) topology.ForwarderID, report func(remap.Result)) error {
	time.Sleep(m.takes)
	for _, v := range moves {
		m.mu.Lock()
		deaf := m.deaf
		if !deaf {
			m.at[v.Node] = to(v)
		}
		m.mu.Unlock()
		if deaf {
			report(remap.Result{Node: v.Node, Tries: 1, At: time.Now(), Error: "no answer"})
			continue
		}
		report(remap.Result{Node: v.Node, OK: true, Tries: 1, At: time.Now()})
	}
	return nil
}

func (m *machine) Observe(context.Context, []topology.NodeID) (topology.Mapping, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at.Clone(), nil
}

func (m *machine) show(visit func(*collector.Frame)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.frames {
		visit(&m.frames[i])
	}
}

func (m *machine) mapping() topology.Mapping {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at.Clone()
}

// Select answers profiles from the machine's frames.
func (m *machine) Select(_ context.Context, q tsdb.Query) ([]tsdb.Series, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []tsdb.Series
	for _, n := range q.Nodes {
		s := tsdb.Series{Node: n}
		for _, f := range m.frames {
			if v, ok := f.Value(q.Metric); ok && f.Node == n && f.TimeMillis >= q.FromMillis &&
				f.TimeMillis < q.ToMillis {
				s.Points = append(s.Points, tsdb.Point{TimeMillis: f.TimeMillis, Value: v})
			}
		}
		if len(s.Points) > 0 {
			out = append(out, s)
		}
	}
	return out, nil
}

// site is a machine with its desk, history and dispatcher.
type site struct {
	*machine
	d       *Dispatcher
	hist    *history.Store
	journal string
}

// limits make a job of 4 nodes that do I/O worth 2 forwarders.
var limits = dfra.Config{F: 2, NMin: 2, VMinBytes: 1e9, HighBW: 5e9, FwdPeakBW: 1e9, CNPeakBW: 5e8}

func newSite(t *testing.T, m *machine, mode remap.Mode, change ...func(*desk.Settings)) *site {
	t.Helper()
	dir := t.TempDir()
	h, _, err := history.Open(filepath.Join(dir, "history"))
	if err != nil {
		t.Fatal(err)
	}
	set := desk.DefaultSettings()
	set.Mode, set.PlansPerMinute, set.HealthyFloor = mode, 1000, 1
	for _, c := range change {
		c(&set)
	}
	journal := filepath.Join(dir, "journal")
	desk, _, err := desk.Open(desk.Config{Settings: set, Path: journal, Driver: m, Situation: m.situation})
	if err != nil {
		t.Fatal(err)
	}
	m.desk = desk
	s := &site{machine: m, hist: h, journal: journal}
	s.d = New(Config{Desk: desk, History: h, Situation: m.situation, Frames: m.show, Seconds: m, Name: "dfra",
		Policy: dfra.Decide, Limits: limits, LiveAfter: 10 * time.Second})
	m.jobs = s.d.Running
	t.Cleanup(func() {
		if err := errors.Join(desk.Close(), h.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// past puts an ended run of an application into the history.
func (s *site) past(t *testing.T, app string, nodes int, change func(*history.Profile)) {
	t.Helper()
	queue := 1.0
	p := &history.Profile{WriteBytes: 1e12, IONodes: nodes, Mode: topology.ModeNN, MetaQueue: &queue, Coverage: 1,
		From: "test"}
	if change != nil {
		change(p)
	}
	end := time.Now().Add(-time.Hour)
	err := s.hist.End(history.Run{Job: topology.JobID("old-" + app), User: "wei", App: app, Nodes: nodes,
		Start: end.Add(-time.Hour), End: end, Profile: p})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *site) dispatch(t *testing.T, id topology.JobID, app string, nodes []topology.NodeID) Answer {
	t.Helper()
	a, err := s.d.Dispatch(t.Context(), Request{Job: id, User: "wei", App: app, Nodes: nodes})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (s *site) wantState(t *testing.T, plan string, want remap.PlanState) remap.Plan {
	t.Helper()
	p, err := s.desk.Plan(t.Context(), plan)
	if err != nil || p.State != want {
		t.Fatalf("plan %s is %s (%s), %v, want %s", plan, p.State, p.Error, err, want)
	}
	return p
}

func TestAJobIsScaledOutVerifiedMeasuredAndRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, newMachine(8, 2, 3), remap.ModeAuto)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.d.Run(ctx) }()
		defer func() { stop(); <-done }()
		s.past(t, "ROMS", 4, nil)
		a := s.dispatch(t, "1", "ROMS", cns(0, 4))
		if a.Decision.Action != dfra.Upgrade || a.Decision.Count != 2 || a.Plan == "" || a.Prediction == nil ||
			a.Prediction.Depth != 1 {
			t.Fatalf("%+v", a)
		}
		time.Sleep(3 * time.Second)
		s.wantState(t, a.Plan, remap.Verified)
		want := topology.Mapping{"c0": "f2", "c1": "f2", "c2": "f3", "c3": "f3", "c4": "f1", "c5": "f1", "c6": "f1",
			"c7": "f1"}
		if got := s.mapping(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("mapping %v, want %v", got, want)
		}
		if again := s.dispatch(t, "1", "ROMS", cns(0, 4)); again.Plan != a.Plan || again.State != remap.Verified {
			t.Errorf("asked again: %+v", again)
		}
		if r := s.d.Running(); len(r) != 1 || r[0].App != "ROMS" {
			t.Errorf("running %+v", r)
		}
		s.mu.Lock()
		for i := range 4 {
			s.frames = append(s.frames, collector.Frame{Node: cn(i),
				TimeMillis: time.Now().Truncate(time.Second).UnixMilli(),
				Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: 0},
					{Metric: collector.WriteBytes, Value: 3e8}}})
		}
		s.at["c3"] = "f4" // another hand's, for a moment
		s.mu.Unlock()
		time.Sleep(1500 * time.Millisecond) // a look falls into it, whichever comes first where both are due
		s.mu.Lock()
		s.at["c3"] = "f3"
		s.mu.Unlock()
		time.Sleep(500 * time.Millisecond)
		e, err := s.d.End(t.Context(), "1")
		if err != nil || !e.Known || !slices.Equal(e.Plans, []string{a.Plan}) {
			t.Fatalf("end: %+v, %v", e, err)
		}
		time.Sleep(10 * time.Second)
		s.wantState(t, a.Plan, remap.Restored)
		if got := s.mapping(); fmt.Sprint(got) != fmt.Sprint(s.topo.Default) {
			t.Errorf("mapping %v, want the default one", got)
		}
		p, err := s.desk.Plan(t.Context(), a.Plan)
		if err != nil || p.Ledger == nil || p.Ledger.Predicted.VolumeBytes != 1e12 || p.Ledger.Measured == nil ||
			p.Ledger.Measured.VolumeBytes != 1.2e9 {
			t.Errorf("ledger %+v, %v", p.Ledger, err)
		}
		// 1 TB through one forwarder of 1 GB/s, and through two.
		if *p.Ledger.DefaultIOSeconds != 1000 || *p.Ledger.PlannedIOSeconds != 500 {
			t.Errorf("expected %g s and %g s", *p.Ledger.DefaultIOSeconds, *p.Ledger.PlannedIOSeconds)
		}
		r, ok, err := s.hist.Job("1")
		if err != nil || !ok || r.Profile == nil || r.Profile.IONodes != 4 ||
			!slices.Equal(r.Forwarders, []topology.ForwarderID{"f2", "f3", "f4"}) {
			t.Errorf("history %+v, %v, %v", r, ok, err)
		}
		if e, err := s.d.End(t.Context(), "1"); err != nil || e.Known || len(e.Plans) != 0 {
			t.Errorf("ended twice: %+v, %v", e, err)
		}
	})
}

func TestApproveModeOnlyProposesAndTheEndWithdraws(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, newMachine(8, 2, 2), remap.ModeApprove)
		s.past(t, "ROMS", 4, nil)
		a := s.dispatch(t, "1", "ROMS", cns(0, 4))
		if a.State != remap.Proposed {
			t.Fatalf("%+v", a)
		}
		// What is proposed for one job is not proposed for another.
		b := s.dispatch(t, "2", "ROMS", cns(4, 8))
		if b.Plan != "" || b.Decision.Action != dfra.Default {
			t.Errorf("both spare forwarders are claimed, and yet: %+v", b)
		}
		if _, err := s.d.End(t.Context(), "1"); err != nil {
			t.Fatal(err)
		}
		p := s.wantState(t, a.Plan, remap.Withdrawn)
		if e := p.Ended; e == nil || !strings.HasPrefix(e.By, "policy ") || e.Reason != "job 1 has ended" {
			t.Errorf("who withdrew it and why: %+v", e)
		}
		if c := s.dispatch(t, "3", "ROMS", cns(0, 4)); c.State != remap.Proposed {
			t.Errorf("the withdrawn forwarders are not free: %+v", c)
		}
	})
}

func TestNoHistoryChangesNothing(t *testing.T) {
	s := newSite(t, newMachine(8, 2, 2), remap.ModeAuto)
	a := s.dispatch(t, "1", "ROMS", cns(0, 4))
	if a.Plan != "" || a.Prediction != nil || *a.Decision.FirstFailed != "history" || a.Decision.Remap {
		t.Errorf("%+v", a)
	}
}

func TestAnUnknownMetadataQueueGrantsNothing(t *testing.T) {
	s := newSite(t, newMachine(8, 2, 2), remap.ModeAuto)
	s.past(t, "ROMS", 4, func(p *history.Profile) { p.MetaQueue = nil })
	a := s.dispatch(t, "1", "ROMS", cns(0, 4))
	if a.Plan != "" || *a.Decision.FirstFailed != "metadata" || !strings.Contains(fmt.Sprint(a.Decision.Reasons),
		"it is not known how many") {
		t.Errorf("%+v", a)
	}
}

func TestASlowDefaultForwarderIsReplaced(t *testing.T) {
	m := newMachine(8, 2, 1)
	m.finds = []anomaly.Finding{{ID: "F-1", Node: "f0", Kind: anomaly.FailSlow, State: anomaly.Confirmed}}
	s := newSite(t, m, remap.ModeApprove)
	a := s.dispatch(t, "1", "NEW", cns(2, 6)) // half on f0, half on f1
	p, err := s.desk.Plan(t.Context(), a.Plan)
	if err != nil || p.Dedicated || len(p.Moves) != 2 || p.Moves[0] != (remap.Move{Node: "c2", From: "f0", To: "f2"}) {
		t.Errorf("%+v, %v; %+v", p.Moves, err, a)
	}
	m.unknown = map[topology.ForwarderID]bool{"f1": true, "f2": true}
	if a := s.dispatch(t, "3", "NEW", cns(2, 4)); a.Plan != "" {
		t.Errorf("a forwarder of unknown load was handed out: %+v", a)
	}
	m.unknown, m.finds[0].State = nil, anomaly.Suspect
	if a := s.dispatch(t, "2", "NEW", cns(0, 2)); a.Plan != "" {
		t.Errorf("a suspicion moved a job: %+v", a)
	}
}

// A job behind a sick back end goes to a forwarder in front of another one, or stays where it is.
func TestNobodyIsMovedWithinASickBackEnd(t *testing.T) {
	m := newMachine(8, 2, 2)
	m.behind = map[topology.ForwarderID]topology.NodeID{"f0": "be0", "f1": "be1", "f2": "be0", "f3": "be1"}
	m.finds = []anomaly.Finding{{ID: "F-1", Node: "be0", Kind: anomaly.TargetSlow, State: anomaly.Confirmed}}
	s := newSite(t, m, remap.ModeApprove)
	a := s.dispatch(t, "1", "NEW", cns(2, 6)) // half on f0, half on f1
	p, err := s.desk.Plan(t.Context(), a.Plan)
	if err != nil || len(p.Moves) != 2 || p.Moves[0] != (remap.Move{Node: "c2", From: "f0", To: "f3"}) {
		t.Errorf("%+v, %v; %+v; want c2 and c3 on f3, which is in front of be1", p.Moves, err, a)
	}
	if why := a.Decision.Reasons[len(a.Decision.Reasons)-1].Text; !strings.HasPrefix(why,
		"its forwarder f0 waits for its back end be0, which is slow (F-1); ") {
		t.Errorf("the reason is %q", why)
	}
	m.busy["f3"] = true
	if a := s.dispatch(t, "2", "NEW", cns(0, 2)); a.Plan != "" {
		t.Errorf("moved within the sick back end: %+v", a)
	}
}

// Of the gateways that nobody uses a job is granted some of each back end: two in front of one carry no more than it.
func TestGrantedGatewaysAreOfDifferentBackEnds(t *testing.T) {
	m := newMachine(8, 2, 4)
	m.behind = map[topology.ForwarderID]topology.NodeID{"f0": "be0", "f1": "be1", "f2": "be0", "f3": "be0", "f4": "be1",
		"f5": "be1"}
	s := newSite(t, m, remap.ModeApprove)
	s.past(t, "BIG", 8, nil)
	a := s.dispatch(t, "1", "BIG", cns(0, 8))
	if got := fmt.Sprint(a.Decision.Forwarders); got != "[f2 f4 f3 f5]" {
		t.Errorf("granted are %s: %+v", got, a.Decision)
	}
}

func TestLiveDataOverrideHistoryOfANeighbour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, newMachine(8, 1, 2), remap.ModeApprove)
		s.past(t, "LOUD", 4, func(p *history.Profile) { p.Mode = topology.ModeN1 })
		s.past(t, "SMALL", 2, func(p *history.Profile) { p.WriteBytes = 1 })
		s.dispatch(t, "1", "LOUD", cns(0, 4))
		if _, err := s.d.End(t.Context(), "1"); err != nil { // its plan goes, it stays on f0
			t.Fatal(err)
		}
		s.d.cfg.Policy = dfra.KeepDefault
		s.dispatch(t, "2", "LOUD", cns(0, 4))
		s.d.cfg.Policy = dfra.Decide
		if a := s.dispatch(t, "3", "SMALL", cns(4, 6)); a.Decision.Action != dfra.Isolate {
			t.Errorf("beside an N-1 neighbour: %+v", a.Decision)
		}
		frame := func(bytes float64) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.frames = []collector.Frame{{Node: "c0", TimeMillis: time.Now().UnixMilli(),
				Samples: []collector.Sample{{Metric: collector.WriteBytes, Value: bytes}}}}
		}
		frame(0)
		s.d.watch(time.Now())
		time.Sleep(11 * time.Second)
		frame(0)
		s.d.watch(time.Now())
		if a := s.dispatch(t, "4", "SMALL", cns(6, 8)); a.Decision.Action != dfra.Default {
			t.Errorf("beside a neighbour that is quiet now: %+v", a.Decision)
		}
		if _, err := s.d.End(t.Context(), "3"); err != nil {
			t.Fatal(err)
		}
		frame(6e9)
		s.d.watch(time.Now())
		a := s.dispatch(t, "5", "SMALL", cns(4, 6))
		if a.Decision.Action != dfra.Isolate || !strings.Contains(fmt.Sprint(a.Decision.Interference),
			"high-bandwidth") {
			t.Errorf("beside a neighbour that is louder than its history: %+v", a.Decision)
		}
	})
}

func TestAnEndThatWasNeverToldIsFoundAtTheNextStart(t *testing.T) {
	s := newSite(t, newMachine(8, 2, 2), remap.ModeApprove)
	s.past(t, "ROMS", 4, nil)
	a := s.dispatch(t, "1", "ROMS", cns(0, 4))
	s.dispatch(t, "2", "OTHER", cns(3, 5))
	s.wantState(t, a.Plan, remap.Withdrawn)
	if r := s.d.Running(); len(r) != 1 || r[0].ID != "2" {
		t.Errorf("running %+v", r)
	}
}

func TestRunningJobsSurviveARestart(t *testing.T) {
	s := newSite(t, newMachine(8, 2, 2), remap.ModeApprove)
	s.dispatch(t, "1", "ROMS", cns(0, 4))
	d := New(s.d.cfg)
	if r := d.Running(); len(r) != 1 || r[0].ID != "1" || len(r[0].Nodes) != 4 {
		t.Fatalf("running %+v", r)
	}
	if e, err := d.End(t.Context(), "1"); err != nil || !e.Known {
		t.Errorf("end %+v, %v", e, err)
	}
}

func TestBadRequestsNameTheField(t *testing.T) {
	s := newSite(t, newMachine(8, 2, 2), remap.ModeAuto)
	for want, r := range map[string]Request{
		"job: it has no number":                      {Nodes: cns(0, 1)},
		"nodes: a job has at least one":              {Job: "1"},
		`nodes: "f0" is not a compute node of test`:  {Job: "1", Nodes: []topology.NodeID{"f0"}},
		`nodes: "c77" is not a compute node of test`: {Job: "1", Nodes: []topology.NodeID{"c77"}},
		`nodes: "c1" is listed twice`:                {Job: "1", Nodes: []topology.NodeID{"c1", "c1"}},
		"longer than 400 bytes":                      {Job: "1", App: strings.Repeat("x", 500), Nodes: cns(0, 1)},
	} {
		if _, err := s.d.Dispatch(t.Context(), r); !errors.Is(err, remap.ErrInvalid) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if len(s.d.Running()) != 0 {
		t.Error("a refused job runs")
	}
}
