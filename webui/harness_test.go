package webui

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/anomaly/interference"
	"fairway/anomaly/watch"
	"fairway/cmd/fairway-demo/simmachine"
	"fairway/collector"
	"fairway/collector/ingest"
	"fairway/collector/probe"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/desk"
	"fairway/remap/dispatch"
	"fairway/remap/policy/dfra"
	"fairway/remap/queue/tables"
	"fairway/remap/situation"
	"fairway/tsdb/engine"
	"fairway/tsdb/history"
	"fairway/tsdb/window"
	"fairway/webui/access"
	"fairway/webui/api"
	"fairway/webui/live"
)

const (
	hookSecret     = "hook-secret"
	agentSecret    = "agent-secret"
	operatorSecret = "operator-secret"
	viewerSecret   = "viewer-secret"
	adminSecret    = "admin-secret"
)

// machine is a small site that shows itself as frames and obeys remaps. It implements remap.Driver.
type machine struct {
	mu     sync.Mutex
	topo   *topology.Machine
	routes topology.Mapping
	gens   map[topology.NodeID]uint64
	silent map[topology.NodeID]bool
	rand   *rand.Rand
	slow   time.Duration // of one move
	steady bool
	// typical is a busy client's bytes/s.
	typical float64
	sim     *simmachine.Machine // lives instead, where it is not nil
}

const forwarderPeak = 2.5e9

func newMachine(forwarders, compute int) *machine {
	m := &machine{topo: &topology.Machine{Name: "hpc1", Default: topology.Mapping{}}, routes: topology.Mapping{},
		gens: map[topology.NodeID]uint64{}, silent: map[topology.NodeID]bool{}, rand: rand.New(rand.NewPCG(1, 2))}
	m.typical = min(8e7, 0.8*forwarderPeak*float64(forwarders)/float64(compute))
	for i := range forwarders {
		m.topo.Nodes = append(m.topo.Nodes, topology.Node{ID: topology.NodeID(fmt.Sprintf("fwd%03d", i)),
			Role: topology.Forwarder,
			Rack: fmt.Sprint("r", i/48), PeakBytesPerSec: forwarderPeak})
	}
	for i := range compute {
		n := topology.NodeID(fmt.Sprintf("c%05d", i))
		m.topo.Nodes = append(m.topo.Nodes, topology.Node{ID: n, Role: topology.Compute, PeakBytesPerSec: 2e8})
		m.routes[n] = topology.ForwarderID(fmt.Sprintf("fwd%03d", i*forwarders/compute))
	}
	for n, f := range m.routes {
		m.topo.Default[n] = f
	}
	return m
}

// frames is the machine's second t.
func (m *machine) frames(t time.Time) (frames []collector.Frame) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sec := t.Truncate(time.Second)
	if m.sim != nil {
		return cloneFrames(m.sim.Step(sec.Add(time.Second)))
	}
	wave, noise := float64(sec.Unix())/20, func(int) float64 { return 0.8 + 0.4*m.rand.Float64() }
	if m.steady {
		wave, noise = 0, func(i int) float64 { return 1 + float64(i%37)/10 }
	}
	sums := map[topology.ForwarderID]float64{}
	for i, n := range m.topo.Nodes {
		if n.Role != topology.Compute || m.silent[n.ID] {
			continue
		}
		bw := 0.0
		if i%3 != 0 {
			bw = m.typical * (1 + math.Sin(wave+float64(i/40))) * (0.2 + float64(i/171*37%11)/10) * noise(i)
		}
		sums[m.routes[n.ID]] += bw
		f := collector.Frame{Node: n.ID, Role: topology.Compute, TimeMillis: sec.UnixMilli(), RoutesComplete: true,
			Routes: []collector.Route{{Client: n.ID, Forwarder: m.routes[n.ID], Generation: m.gens[n.ID]}},
			Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: bw / 4},
				{Metric: collector.WriteBytes, Value: bw * 3 / 4},
				{Metric: collector.MetaOps, Value: bw / 1e6}, {Metric: collector.ClientWrite, Value: 0.002 + bw/1e11}}}
		if bw > 0 {
			f.Jobs = []collector.JobSamples{{Job: topology.JobID(fmt.Sprint(88200 + i/40)), Samples: f.Samples[:2]}}
		}
		frames = append(frames, f)
	}
	for _, n := range m.topo.ByRole(topology.Forwarder) {
		if m.silent[n.ID] {
			continue
		}
		sum := min(sums[topology.ForwarderID(n.ID)], forwarderPeak)
		frames = append(frames, collector.Frame{Node: n.ID, Role: topology.Forwarder, TimeMillis: sec.UnixMilli(),
			Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: sum / 4},
				{Metric: collector.WriteBytes, Value: sum * 3 / 4},
				{Metric: collector.QueueLen, Value: math.Round(sum / 4e7)},
				{Metric: collector.MetaWait, Value: sum / 1e11},
				{Metric: collector.MetaOps, Value: sum / 1e6}, {Metric: collector.ServerTime, Value: 0.001 + sum/1e12},
				{Metric: collector.ThreadsBusy, Value: math.Round(16 * sum / forwarderPeak)},
				{Metric: collector.Threads, Value: 16}, {Metric: collector.Errors, Value: 0}},
			Sources: []collector.SourceStatus{{Name: "diod", Duration: 3 * time.Millisecond}}})
	}
	return frames
}

// cloneFrames copies what the simulated machine will use again.
func cloneFrames(frames []collector.Frame) []collector.Frame {
	out := slices.Clone(frames)
	for i := range out {
		f := &out[i]
		f.Samples, f.Routes, f.Jobs = slices.Clone(f.Samples), slices.Clone(f.Routes), slices.Clone(f.Jobs)
		for k := range f.Jobs {
			f.Jobs[k].Samples = slices.Clone(f.Jobs[k].Samples)
		}
	}
	return out
}

func (m *machine) Preview(context.Context, remap.Plan) ([]string, error) { return nil, nil }

func (m *machine) Apply(ctx context.Context, p remap.Plan, report func(remap.Result)) error {
	return m.move(ctx, p, report, func(v remap.Move) topology.ForwarderID { return v.To })
}

func (m *machine) Restore(ctx context.Context, p remap.Plan, report func(remap.Result)) error {
	return m.move(ctx, p, report, func(v remap.Move) topology.ForwarderID { return v.From })
}

func (m *machine) move(ctx context.Context, p remap.Plan, report func(remap.Result),
	want func(remap.Move) topology.ForwarderID) error {
	for _, v := range p.Moves {
		select {
		case <-time.After(m.slow):
		case <-ctx.Done():
			return ctx.Err()
		}
		m.mu.Lock()
		m.routes[v.Node] = want(v)
		m.gens[v.Node]++
		if m.sim != nil {
			_ = m.sim.Remap(v.Node, want(v)) // both are the machine's
		}
		m.mu.Unlock()
		report(remap.Result{Node: v.Node, OK: true, Tries: 1, At: time.Now(), Took: m.slow})
	}
	return nil
}

func (m *machine) Observe(_ context.Context, nodes []topology.NodeID) (topology.Mapping, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := topology.Mapping{}
	for _, n := range nodes {
		out[n] = m.routes[n]
	}
	return out, nil
}

// site is a whole daemon around a machine, with real parts.
type site struct {
	t       testing.TB
	machine *machine
	board   *window.Board
	store   *engine.DB
	desk    *desk.Desk
	ingest  *ingest.Hub
	history *history.Store
	jobs    *dispatch.Dispatcher
	picture *live.Picture
	server  *Server
	tcp     string // HOST:PORT
	unix    string // path
	http    *http.Server
	stop    context.CancelFunc // of Run
	findMu  sync.Mutex
	find    []anomaly.Finding
	loop    *watch.Loop
	canary  *watch.Canaries // by files of a folder
	says    *detector
	past    atomic.Pointer[time.Time] // when it is here, while a past is played
}

// detector lets a test say who is slow while the server runs.
type detector struct{ watch.Detector }

func (d *detector) Verdicts(now time.Time, m *watch.Machine) []anomaly.Verdict {
	if d.Detector == nil {
		return nil
	}
	return d.Detector.Verdicts(now, m)
}

type siteOptions struct {
	access     func(*access.Config)
	forwarders int
	compute    int
	simulated  bool
	empty      bool // no node is known yet
	desk       func(*desk.Settings)
	sim        *simmachine.Machine
	log        *slog.Logger
	steady     bool // every second has the same numbers
	gathering  func() (tables.Gathering, bool)
	noArchive  bool
}

func newSite(t testing.TB, o siteOptions) *site {
	t.Helper()
	if o.forwarders == 0 {
		o.forwarders, o.compute = 8, 32
	}
	dir := t.TempDir()
	s := &site{t: t, machine: newMachine(o.forwarders, o.compute), board: window.NewBoard(0)}
	if o.sim != nil {
		s.machine.sim, s.machine.topo, s.machine.routes = o.sim, o.sim.Machine(), o.sim.Machine().Default.Clone()
	}
	s.machine.steady = o.steady
	if o.empty {
		s.machine.topo.Nodes = nil
	}
	var err error
	if s.store, err = engine.Open(filepath.Join(dir, "store"),
		engine.Options{SyncInterval: 50 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	set := desk.DefaultSettings()
	if o.desk != nil {
		o.desk(&set)
	}
	journal := filepath.Join(dir, "journal")
	if s.desk, _, err = desk.Open(desk.Config{Settings: set, Path: journal, Driver: s.machine,
		Situation: s.situation}); err != nil {
		t.Fatal(err)
	}
	if s.history, _, err = history.Open(filepath.Join(dir, "history")); err != nil {
		t.Fatal(err)
	}
	s.jobs = dispatch.New(dispatch.Config{Desk: s.desk, History: s.history, Situation: s.situation,
		Frames: s.board.Visit, Seconds: s.store,
		Name: "dfra", Policy: dfra.Decide, Limits: dfra.Config{F: 2, NMin: 2}})
	s.says = &detector{}
	if s.loop, err = watch.New(context.Background(), watch.Config{Settings: anomaly.DefaultSettings(), Recorder: s.desk,
		Machine: func() *watch.Machine {
			return situation.ForWatch(s.situation(), s.desk.Feed().Exclusions)
		}, Detector: s.says, Store: s.store}, time.Now()); err != nil {
		t.Fatal(err)
	}
	s.canary = watch.NewCanaries(s.loop, watch.NewDetectors(s.board, failslow.DefaultSettings(),
		interference.DefaultSettings()), s.store.Append, probe.DefaultLimits(),
		func(n topology.NodeID) (probe.Way, bool) {
			return probe.ByFile{Dir: dir, File: "canary." + string(n), Size: 4096}, n != "fwd007"
		})
	s.picture = live.New(live.Config{Board: s.board, Situation: s.situation, Store: s.store, Simulated: o.simulated,
		Journal: s.desk.Since, JobsKnown: s.history.Known, JobsAt: s.jobsAt, Canary: s.newestCanary})
	s.ingest = ingest.New(ingest.Config{Store: s.store, Observe: s.take})
	people := access.Config{Anonymous: remap.Viewer, Tokens: []access.Token{
		{Name: "agents", Role: access.RoleAgent, SHA256: access.HashToken(agentSecret)},
		{Name: "vic", Role: remap.Viewer, SHA256: access.HashToken(viewerSecret)},
		{Name: "slurm", Role: access.RoleScheduler, SHA256: access.HashToken(hookSecret)},
		{Name: "olga", Role: remap.Operator, SHA256: access.HashToken(operatorSecret)},
		{Name: "ada", Role: remap.Admin, SHA256: access.HashToken(adminSecret)},
	}}
	if o.access != nil {
		o.access(&people)
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.tcp = tcp.Addr().String()
	if people.OIDC != nil {
		people.OIDC.URL = "http://" + s.tcp
	}
	if o.gathering == nil {
		o.gathering = func() (v tables.Gathering, ok bool) { return v, false }
	}
	options := Options{Canaries: desk.NewCanaries(s.desk, s.canary), Archive: fakeArchive{}, Version: "test",
		Log: o.log}
	if o.noArchive {
		options.Archive = nil
	}
	s.server, err = New(Config{Access: people, Picture: s.picture, Store: s.store, Desk: s.desk, Ingest: s.ingest,
		Jobs: s.jobs, Findings: s.loop.Settings(), Review: desk.NewReview(s.desk, s.loop), Gathering: o.gathering,
		PromQL: http.NotFoundHandler(), Options: options})
	if err != nil {
		t.Fatal(err)
	}
	s.open(dir, tcp)
	return s
}

// open serves the listeners and ends everything with the test, in the daemon's order.
func (s *site) open(dir string, tcp net.Listener) {
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	var wait sync.WaitGroup
	wait.Go(func() { s.server.Run(ctx) })
	wait.Go(func() { s.jobs.Run(ctx) })
	wait.Go(func() { s.canary.Run(ctx) })
	s.unix = filepath.Join(dir, "s")
	local, err := net.Listen("unix", s.unix)
	if err != nil {
		s.t.Fatal(err)
	}
	s.http = s.server.HTTP(access.TCP)
	other := s.server.HTTP(access.UnixSocket)
	wait.Go(func() { s.http.Serve(tcp) })
	wait.Go(func() { other.Serve(local) })
	s.t.Cleanup(func() {
		cancel()
		s.ingest.Close()
		s.http.Close()
		other.Close()
		wait.Wait()
		s.desk.Close()
		s.history.Close()
		s.store.Close()
	})
}

func (s *site) jobsAt(at time.Time) (jobs []remap.Job, err error) {
	runs, err := s.history.At(at)
	for i := range runs {
		jobs = append(jobs, remap.Job{ID: runs[i].Job, Nodes: runs[i].NodeList})
	}
	return jobs, err
}

func (s *site) newestCanary(f topology.ForwarderID) *anomaly.Canary {
	c, ok := s.canary.Newest(f)
	if !ok {
		return nil
	}
	return &c
}

func (s *site) situation() *remap.Situation {
	now := time.Now()
	if p := s.past.Load(); p != nil {
		now = *p
	}
	parts := remap.SituationParts{At: now, Machine: s.machine.topo, Routes: s.board.Routes(now),
		Load: map[topology.ForwarderID]remap.Load{}}
	for _, n := range s.machine.topo.ByRole(topology.Forwarder) {
		f, ok := s.board.Frame(n.ID)
		if !ok {
			continue
		}
		l := remap.Load{LastSeen: time.UnixMilli(f.TimeMillis + 1000), PeakBytesPerSec: n.PeakBytesPerSec}
		if l.LastSeen.After(now) {
			l.LastSeen = now
		}
		l.ReadBytesPerSec, _ = f.Value(collector.ReadBytes)
		l.WriteBytesPerSec, _ = f.Value(collector.WriteBytes)
		l.Occupancy = min(1, (l.ReadBytesPerSec+l.WriteBytesPerSec)/forwarderPeak)
		parts.Load[topology.ForwarderID(n.ID)] = l
	}
	s.findMu.Lock()
	parts.Findings = s.find
	s.findMu.Unlock()
	if s.desk != nil {
		parts.Owner, parts.Excluded = s.desk.Owners(), s.desk.Excluded()
	}
	if s.jobs != nil {
		parts.Jobs = s.jobs.Running()
	}
	return remap.BuildSituation(parts)
}

func (s *site) take(frames []collector.Frame, now time.Time) {
	s.board.Take(frames, now)
	s.picture.Arrived()
}

// tick lets the machine's second at now arrive, without the wire.
func (s *site) tick(now time.Time) {
	frames := s.machine.frames(now)
	s.take(frames, now)
	go s.store.Append(context.Background(), frames) // durability is waited for elsewhere
}

// run ticks every second until the test ends, after so many seconds of past. The past reaches up to the
// first tick, however long it takes to store it: a second that is left out is one in which nobody reported.
func (s *site) run(past int) {
	next := time.Now().Add(-time.Duration(past) * time.Second)
	for next.Before(time.Now().Add(-time.Second)) {
		var frames []collector.Frame
		for ; next.Before(time.Now().Add(-time.Second)); next = next.Add(time.Second) {
			frames = append(frames, s.machine.frames(next)...)
		}
		if err := s.store.Append(context.Background(), frames); err != nil {
			s.t.Fatal(err)
		}
	}
	s.tick(time.Now().Add(-time.Second))
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for t := time.NewTicker(time.Second); ; {
			select {
			case now := <-t.C:
				s.tick(now.Add(-time.Second))
			case <-stop:
				t.Stop()
				return
			}
		}
	}()
	s.t.Cleanup(func() { close(stop); <-done })
}

// ask sends one request by TCP; body may be nil. secret "": no token.
func (s *site) ask(method, path, secret string, body any, headers ...string) (*http.Response, []byte) {
	s.t.Helper()
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			s.t.Fatal(err)
		}
		in = bytes.NewReader(b)
	}
	r, err := http.NewRequest(method, "http://"+s.tcp+path, in)
	if err != nil {
		s.t.Fatal(err)
	}
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	return s.do(http.DefaultClient, r)
}

func (s *site) do(c *http.Client, r *http.Request) (*http.Response, []byte) {
	s.t.Helper()
	res, err := c.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res, b
}

// get reads a JSON answer that must be 200.
func get[T any](s *site, path string) (v T) {
	s.t.Helper()
	res, b := s.ask("GET", path, viewerSecret, nil)
	if res.StatusCode != 200 {
		s.t.Fatalf("GET %s: %d %s", path, res.StatusCode, b)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		s.t.Fatalf("GET %s: %v in %s", path, err, b)
	}
	return v
}

var keys int

// post sends a write with an idempotency key of its own.
func (s *site) post(path, secret string, body any) (*http.Response, []byte) {
	s.t.Helper()
	keys++
	return s.ask("POST", path, secret, body, "Idempotency-Key", fmt.Sprint("k", keys))
}

// eventually waits until ok says yes.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

// signIn signs a person in by a one-time code and returns the session's cookie.
func (s *site) signIn(name string, role remap.Role) (cookie string) {
	s.t.Helper()
	_, code, _ := strings.Cut(s.server.gate.SignInPath(name, role), "=")
	res, b := s.ask("POST", "/api/v1/session", "", api.SignIn{Code: code}, "Origin", "http://"+s.tcp)
	for _, c := range res.Cookies() {
		if c.Name == access.CookieName {
			return c.Value
		}
	}
	s.t.Fatalf("%s is not signed in: %d %s", name, res.StatusCode, b)
	return ""
}
