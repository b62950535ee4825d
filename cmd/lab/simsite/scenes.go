package simsite

import (
	"fmt"
	"time"

	"fairway/remap"
	"fairway/remap/dispatch"
	"fairway/tsdb/history"
)

// SignInPath is an address that signs a person in, once.
func (s *Site) SignInPath(name string, role remap.Role) string {
	s.T.Helper()
	path, err := s.Server.SignInPath(name, role)
	if err != nil {
		s.T.Fatal(err)
	}
	return path
}

// AccuseInThePast lets the judge find fwd001 slow from 40 s ago on, and writes it to the journal.
func (s *Site) AccuseInThePast() (since time.Time) {
	s.T.Helper()
	s.Says.Detector = Accuse("fwd001")
	since = time.Now().Truncate(time.Second).Add(-40 * time.Second)
	for i := range 7 {
		s.Judge(since.Add(time.Duration(i) * time.Second))
	}
	return since
}

// StartTwo reports two jobs, of three nodes and of one.
func (s *Site) StartTwo() {
	s.T.Helper()
	s.until("routes are known", func() bool { return len(s.Board.Routes(time.Now())) == len(s.Machine.Topo.Default) })
	nodes := s.Machine.Topo.Default.Clients("fwd001")
	for i, j := range []dispatch.Request{{Job: "8", User: "wei", App: "ROMS", Nodes: nodes[:3]},
		{Job: "9", User: "ann", App: "WRF", Nodes: nodes[3:4]}} {
		res, b := s.Ask("POST", "/api/v1/dispatch", HookSecret, j, "Idempotency-Key", fmt.Sprint("two", i))
		if res.StatusCode != 200 {
			s.T.Fatalf("job %d: %d %s", i, res.StatusCode, b)
		}
	}
	s.until("both jobs run", func() bool { return len(s.Picture.Snapshot().Situation.Jobs) == 2 })
}

// PeriodicRuns puts runs into the history of the kinds of StartTwo's jobs: one that writes every 100 s, and one that
// does when it likes.
func (s *Site) PeriodicRuns() {
	s.T.Helper()
	begun := time.Now().Add(-time.Hour)
	for i, r := range []history.Run{{Job: "p8", User: "wei", App: "ROMS", Nodes: 3},
		{Job: "p9", User: "ann", App: "WRF", Nodes: 1}} {
		p := &history.Profile{Peaks: history.Peaks{PeakNodeBytesPerSec: 1e9}, Coverage: 1, From: "test"}
		at := 0.0
		for k := range 12 {
			p.Phases = append(p.Phases, history.Phase{AtSeconds: at, Seconds: 20, WriteBytes: 40e9})
			at += 100 + float64(i*(k*k%7))*100
		}
		r.Start, r.End, r.Profile = begun, begun.Add(time.Duration(i+1)*time.Minute), p
		if err := s.History.End(r); err != nil {
			s.T.Fatal(err)
		}
	}
}

// until waits until ok says yes.
func (s *Site) until(what string, ok func() bool) {
	s.T.Helper()
	for end := time.Now().Add(90 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	s.T.Fatalf("never: %s", what)
}
