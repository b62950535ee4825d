// Package simsite is a whole daemon around a simulated machine in one process, with the real store, desk, detectors
// and web API: what the tests of the API and of its faces run on.
package simsite

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/anomaly/watch"
	"fairway/cmd/lab/simmachine"
	"fairway/collector"
	"fairway/collector/ingest"
	"fairway/collector/probe"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/desk"
	"fairway/remap/dispatch"
	"fairway/remap/effect"
	"fairway/remap/policy/dfra"
	"fairway/remap/policy/evacuate"
	"fairway/remap/queue/tables"
	"fairway/remap/situation"
	"fairway/tsdb"
	"fairway/tsdb/engine"
	"fairway/tsdb/history"
	"fairway/tsdb/promapi"
	"fairway/tsdb/window"
	"fairway/webui"
	"fairway/webui/access"
	"fairway/webui/access/budget"
	"fairway/webui/api"
	"fairway/webui/live"
)

const (
	HookSecret     = "hook-secret"
	AgentSecret    = "agent-secret"
	OperatorSecret = "operator-secret"
	ViewerSecret   = "viewer-secret"
	AdminSecret    = "admin-secret"
)

// Site is a whole daemon around a machine, with real parts.
type Site struct {
	T       testing.TB
	Machine *Machine
	Board   *window.Board
	Store   *engine.DB
	Desk    *desk.Desk
	Ingest  *ingest.Hub
	History *history.Store
	Jobs    *dispatch.Dispatcher
	Picture *live.Picture
	Server  *webui.Server
	Loop    *watch.Loop
	Canary  *watch.Canaries // by files of a folder
	Says    *Detector
	Listeners
	Time
}

// Listeners are where a site listens.
type Listeners struct {
	TCP  string // HOST:PORT; offline a name that DialContext alone leads to the server
	Unix string // path
	HTTP *http.Server
	Stop context.CancelFunc // of the server's Run
	pipes
}

// Time is what a site believes of now.
type Time struct {
	FindMu sync.Mutex
	Find   []anomaly.Finding
	Past   atomic.Pointer[time.Time] // when it is here, while a past is played
	// LogStart is when the job of the only I/O log began.
	LogStart time.Time
}

// Detector lets a test say who is slow while the server runs.
type Detector struct {
	watch.Detector // nil: nobody is accused
	real           *watch.Detectors
}

// Verdicts are those of the detector that the test has put there.
func (d *Detector) Verdicts(now time.Time, m *watch.Machine) []anomaly.Verdict {
	real := d.real.Verdicts(now, m)
	switch d.Detector {
	case nil:
		return nil
	case d.real:
		return real
	}
	return d.Detector.Verdicts(now, m)
}

// Forget is watch.Detector's.
func (d *Detector) Forget(n topology.NodeID) { d.real.Forget(n) }

// Wraps put something of a test's own around a part of the server.
type Wraps struct {
	Answers func(http.Handler) http.Handler // by TCP and Dial
	Seconds func(tsdb.Store) tsdb.Store     // that it reads
	Shared  func([]topology.NodeID) []api.SharedTarget
}

// Options are what a test wants to be otherwise.
type Options struct {
	Access     func(*access.Config)
	Forwarders int
	Compute    int
	Simulated  bool
	Empty      bool // no node is known yet
	Desk       func(*desk.Settings)
	Sim        *simmachine.Machine
	Log        *slog.Logger
	Steady     bool // every second has the same numbers
	Gathering  func() (tables.Gathering, bool)
	NoArchive  bool
	Sites      []api.Site
	Mute       topology.NodeID // never reports
	Wraps
	// nothing listens: Dial alone reaches the server, as in a bubble of synctest
	Offline bool
}

// New starts a site that ends with the test.
func New(t testing.TB, o Options) *Site {
	t.Helper()
	if o.Forwarders == 0 {
		o.Forwarders, o.Compute = 8, 32
	}
	dir := t.TempDir()
	s := &Site{T: t, Machine: newMachine(o.Forwarders, o.Compute), Board: window.NewBoard(0)}
	s.LogStart = time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	if o.Sim != nil {
		s.Machine.Sim, s.Machine.Topo, s.Machine.Routes = o.Sim, o.Sim.Machine(), o.Sim.Machine().Default.Clone()
	}
	s.Machine.Steady, s.Machine.Silent[o.Mute] = o.Steady, true
	if o.Empty {
		s.Machine.Topo.Nodes = nil
	}
	var err error
	if s.Store, err = engine.Open(filepath.Join(dir, "store"),
		engine.Options{SyncInterval: 2 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	set := desk.DefaultSettings()
	if o.Desk != nil {
		o.Desk(&set)
	}
	journal := filepath.Join(dir, "journal")
	if s.Desk, _, err = desk.Open(desk.Config{Settings: set, Path: journal, Driver: s.Machine,
		Situation: s.Situation}); err != nil {
		t.Fatal(err)
	}
	if s.History, _, err = history.Open(filepath.Join(dir, "history")); err != nil {
		t.Fatal(err)
	}
	s.Jobs = dispatch.New(dispatch.Config{Desk: s.Desk, History: s.History, Situation: s.Situation,
		Frames: s.Board.Visit, Seconds: s.Store,
		Name: "dfra", Policy: dfra.Decide, Limits: dfra.Config{F: 2, NMin: 2}})
	meter := effect.NewMeter(effect.Config{Desk: s.Desk, Situation: s.Situation, Seconds: s.Store,
		Log: slog.Default()})
	s.Says = &Detector{real: watch.NewDetectors(s.Board, failslow.DefaultSettings())}
	if s.Loop, err = watch.New(context.Background(), watch.Config{Settings: anomaly.DefaultSettings(), Recorder: s.Desk,
		Machine: func() *watch.Machine {
			return situation.ForWatch(s.Situation(), s.Desk.Feed().Exclusions)
		}, Detector: s.Says, Store: s.Store}, time.Now()); err != nil {
		t.Fatal(err)
	}
	limits := probe.DefaultLimits()
	limits.AtOnce = 1 // of two that end in the same instant either could be the newest
	detectors := watch.NewDetectors(s.Board, failslow.DefaultSettings())
	s.Canary = watch.NewCanaries(s.Loop, detectors, s.Store.Append, limits,
		func(n topology.NodeID) (probe.Way, bool) {
			return probe.ByFile{Dir: dir, File: "canary." + string(n), Size: 4096}, n != "fwd007"
		})
	var seconds tsdb.Store = s.Store
	if o.Seconds != nil {
		seconds = o.Seconds(seconds)
	}
	s.Picture = live.New(live.Config{Board: s.Board, Situation: s.Situation, Store: seconds, Simulated: o.Simulated,
		Journal: s.Desk.Since, JobsKnown: s.History.Known, JobsAt: s.jobsAt, Canary: s.newestCanary,
		Detectors: func() *watch.Detectors { return s.Says.real }})
	s.Ingest = ingest.New(ingest.Config{Store: s.Store, Observe: s.Take})
	crowd := budget.Defaults()
	crowd.FeedsEach = crowd.Feeds // tests have hundreds of listeners at one address
	people := access.Config{Limits: crowd, Anonymous: remap.Viewer, Tokens: []access.Token{
		{Name: "agents", Role: access.RoleAgent, SHA256: access.HashToken(AgentSecret)},
		{Name: "vic", Role: remap.Viewer, SHA256: access.HashToken(ViewerSecret)},
		{Name: "slurm", Role: access.RoleScheduler, SHA256: access.HashToken(HookSecret)},
		{Name: "olga", Role: remap.Operator, SHA256: access.HashToken(OperatorSecret)},
		{Name: "ada", Role: remap.Admin, SHA256: access.HashToken(AdminSecret)},
	}}
	if o.Access != nil {
		o.Access(&people)
	}
	var tcp net.Listener
	s.TCP = "localhost"
	if !o.Offline {
		if tcp, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		s.TCP = tcp.Addr().String()
	}
	if people.OIDC != nil {
		people.OIDC.URL = "http://" + s.TCP
	}
	if o.Gathering == nil {
		o.Gathering = func() (v tables.Gathering, ok bool) { return v, false }
	}
	options := webui.Options{Canaries: desk.NewCanaries(s.Desk, s.Canary), Archive: archive{s.LogStart},
		Version: "test", Addresses: webui.Addresses{Sites: o.Sites}, Shared: o.Shared,
		Log: o.Log, Effect: meter.Newest}
	if o.NoArchive {
		options.Archive = nil
	}
	s.Server, err = webui.New(webui.Config{Access: people, Picture: s.Picture, Store: seconds, Desk: s.Desk,
		Ingest: s.Ingest,
		Jobs:   s.Jobs, Findings: s.Loop.Settings(), Review: desk.NewReview(s.Desk, s.Loop), Gathering: o.Gathering,
		Rules: evacuate.New(evacuate.Config{Desk: s.Desk, Situation: s.Situation,
			Rules:   []evacuate.Rule{{Name: "night", Action: evacuate.Act}},
			Running: func(time.Time) ([]remap.Job, error) { return s.Jobs.Running(), nil }}),
		PromQL: promapi.New(promapi.Config{Store: seconds}), Options: options})
	if err != nil {
		t.Fatal(err)
	}
	s.open(dir, tcp, o.Answers, meter.Run)
	return s
}

// open serves the listeners and ends everything with the test, in the daemon's order.
func (s *Site) open(dir string, tcp net.Listener, wrap func(http.Handler) http.Handler, meter func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	s.Stop = cancel
	var wait sync.WaitGroup
	wait.Go(func() { s.Server.Run(ctx) })
	wait.Go(func() { s.Jobs.Run(ctx) })
	wait.Go(func() { s.Canary.Run(ctx) })
	wait.Go(func() { meter(ctx) })
	s.HTTP, s.pipes = s.Server.HTTP(access.TCP), pipes(make(chan net.Conn))
	if wrap != nil {
		s.HTTP.Handler = wrap(s.HTTP.Handler)
	}
	other := s.Server.HTTP(access.UnixSocket)
	wait.Go(func() { s.HTTP.Serve(s.pipes) })
	if tcp != nil {
		s.Unix = filepath.Join(dir, "s")
		local, err := net.Listen("unix", s.Unix)
		if err != nil {
			s.T.Fatal(err)
		}
		wait.Go(func() { s.HTTP.Serve(tcp) })
		wait.Go(func() { other.Serve(local) })
	}
	s.T.Cleanup(func() {
		cancel()
		s.Ingest.Close()
		s.HTTP.Close()
		other.Close()
		wait.Wait()
		s.Desk.Close()
		s.History.Close()
		s.Store.Close()
	})
}

func (s *Site) jobsAt(at time.Time) (jobs []remap.Job, err error) {
	runs, err := s.History.At(at)
	for i := range runs {
		jobs = append(jobs, remap.Job{ID: runs[i].Job, Nodes: runs[i].NodeList})
	}
	return jobs, err
}

func (s *Site) newestCanary(f topology.ForwarderID) *anomaly.Canary {
	c, ok := s.Canary.Newest(f)
	if !ok {
		return nil
	}
	return &c
}

// Situation is the snapshot of now.
func (s *Site) Situation() *remap.Situation {
	now := time.Now()
	if p := s.Past.Load(); p != nil {
		now = *p
	}
	parts := remap.SituationParts{At: now, Machine: s.Machine.Topo, Routes: s.Board.Routes(now),
		Load: map[topology.ForwarderID]remap.Load{}}
	for _, n := range s.Machine.Topo.ByRole(topology.Forwarder) {
		f, ok := s.Board.Frame(n.ID)
		if !ok {
			continue
		}
		l := remap.LoadOfFrame(&f, n.PeakBytesPerSec, now)
		l.Occupancy = l.Busy()
		parts.Load[topology.ForwarderID(n.ID)] = l
	}
	s.FindMu.Lock()
	parts.Findings = s.Find
	s.FindMu.Unlock()
	if s.Desk != nil {
		parts.Owner, parts.Excluded = s.Desk.Owners(), s.Desk.Excluded()
	}
	if s.Jobs != nil {
		parts.Jobs = s.Jobs.Running()
	}
	return remap.BuildSituation(parts)
}

// Take lets frames arrive.
func (s *Site) Take(frames []collector.Frame, now time.Time) {
	s.Board.Take(frames, now)
	s.Picture.Arrived()
}

// Tick lets the machine's second at now arrive, without the wire.
func (s *Site) Tick(now time.Time) {
	frames := s.Machine.Frames(now)
	s.Take(frames, now)
	go s.Store.Append(context.Background(), frames) // durability is waited for elsewhere
}

// Run ticks every second until the test ends, after so many seconds of past. The past reaches up to the
// first tick, however long it takes to store it: a second that is left out is one in which nobody reported.
func (s *Site) Run(past int) {
	next := time.Now().Add(-time.Duration(past) * time.Second)
	for next.Before(time.Now().Add(-time.Second)) {
		var frames []collector.Frame
		for ; next.Before(time.Now().Add(-time.Second)); next = next.Add(time.Second) {
			frames = append(frames, s.Machine.Frames(next)...)
		}
		if err := s.Store.Append(context.Background(), frames); err != nil {
			s.T.Fatal(err)
		}
	}
	s.Tick(time.Now().Add(-time.Second))
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for t := time.NewTicker(time.Second); ; {
			select {
			case now := <-t.C:
				s.Tick(now.Add(-time.Second))
			case <-stop:
				t.Stop()
				return
			}
		}
	}()
	s.T.Cleanup(func() { close(stop); <-done })
}

// Flags are those of a command line of a person, whose token a file has.
func (s *Site) Flags(secret string) []string {
	s.T.Helper()
	file := filepath.Join(s.T.TempDir(), "token")
	if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
		s.T.Fatal(err)
	}
	return []string{"--addr", "http://" + s.TCP, "--token-file", file}
}

// Ask sends one request by TCP; body may be nil. secret "": no token.
func (s *Site) Ask(method, path, secret string, body any, headers ...string) (*http.Response, []byte) {
	s.T.Helper()
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			s.T.Fatal(err)
		}
		in = bytes.NewReader(b)
	}
	r, err := http.NewRequest(method, "http://"+s.TCP+path, in)
	if err != nil {
		s.T.Fatal(err)
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
	if s.Unix == "" { // nothing listens
		return s.Do(&http.Client{Transport: &http.Transport{DialContext: s.DialContext, DisableKeepAlives: true}}, r)
	}
	return s.Do(http.DefaultClient, r)
}

// Do sends a request that is already made.
func (s *Site) Do(c *http.Client, r *http.Request) (*http.Response, []byte) {
	s.T.Helper()
	res, err := c.Do(r)
	if err != nil {
		s.T.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.T.Fatal(err)
	}
	return res, b
}
