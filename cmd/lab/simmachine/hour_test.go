package simmachine_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/anomaly/watch"
	"fairway/cmd/lab/simmachine"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/tsdb/window"
	"fairway/webui/live"
)

// hour is the simulated machine of full size under the daemon's detectors, a second a step of the bubble's clock.
type hour struct {
	t     *testing.T
	m     *simmachine.Machine
	board *window.Board
	loop  *watch.Loop
	jobs  []simmachine.Job
	// suspected counts the seconds of each forwarder under an open finding against it.
	suspected map[topology.NodeID]int
	taken     []collector.Frame
}

// records takes every change of a finding.
type records struct{}

func (records) Findings(context.Context) ([]anomaly.Finding, error)    { return nil, nil }
func (records) RecordFindings(context.Context, []anomaly.Change) error { return nil }

// newHour is the machine of a seed after some hours of work that nobody saw.
func newHour(t *testing.T, seed uint64, hours int) *hour {
	m, err := simmachine.New(simmachine.WorkingDay(seed))
	if err != nil {
		t.Fatal(err)
	}
	h := &hour{t: t, m: m, board: window.NewBoard(0), suspected: map[topology.NodeID]int{}}
	for range hours * 3600 {
		h.m.Pass(time.Now())
		time.Sleep(time.Second)
	}
	watched := watch.Machine{Mapping: m.Machine().Default}
	for _, n := range m.Machine().ByRole(topology.Forwarder) {
		watched.Forwarders = append(watched.Forwarders, topology.ForwarderID(n.ID))
	}
	watched.Healthy = len(watched.Forwarders)
	if h.loop, err = watch.New(t.Context(), watch.Config{Settings: anomaly.DefaultSettings(), Recorder: records{},
		Detector: watch.NewDetectors(h.board, failslow.DefaultSettings()),
		Machine: func() *watch.Machine {
			watched.Jobs = watched.Jobs[:0]
			for _, j := range h.jobs {
				watched.Jobs = append(watched.Jobs, watch.Job{ID: j.ID, Nodes: j.Nodes})
			}
			return &watched
		}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	return h
}

// oneOf is how many compute nodes one stands for: what the detectors learn of their forwarder is the same.
const oneOf = 32

// live lives on for some seconds, or until done says so.
func (h *hour) live(seconds int, done func() bool) (lived int) {
	for ; lived < seconds; lived++ {
		now := time.Now()
		h.taken = h.taken[:0]
		frames, n := h.m.Step(now), 0
		for i := range frames {
			if frames[i].Role == topology.Compute {
				if n++; n%oneOf != 0 {
					continue
				}
			}
			h.taken = append(h.taken, frames[i])
		}
		h.board.Take(h.taken, now)
		if lived%10 == 0 {
			h.jobs = h.m.Jobs()
		}
		if err := h.loop.Step(h.t.Context(), now); err != nil {
			h.t.Fatal(err)
		}
		for _, f := range h.loop.Findings() {
			if f.Open() && f.Kind.Accuses() {
				h.suspected[f.Node]++
			}
		}
		time.Sleep(time.Second)
		if done != nil && done() {
			return lived + 1
		}
	}
	return lived
}

// plant makes a forwarder slow as the demo does.
func (h *hour) plant() (slow topology.ForwarderID) {
	waited := h.live(60, func() (ok bool) { slow, ok = h.m.Busiest(); return ok })
	if slow == "" {
		h.t.Fatalf("for %d s there was no forwarder whose slowness anybody would notice", waited)
	}
	if err := h.m.Slow(slow, time.Now()); err != nil {
		h.t.Fatal(err)
	}
	return slow
}

// finding is the open finding against a forwarder.
func (h *hour) finding(slow topology.ForwarderID) *anomaly.Finding {
	for _, f := range h.loop.Findings() {
		if f.Open() && f.Node == slow.Node() && f.Kind == anomaly.FailSlow {
			return &f
		}
	}
	return nil
}

// overview is what the first page of both faces is drawn from.
func (h *hour) overview() *live.Snapshot {
	now := time.Now()
	parts := remap.SituationParts{At: now, Machine: h.m.Machine(), Routes: h.board.Routes(now),
		Load: map[topology.ForwarderID]remap.Load{}, Findings: h.loop.Findings()}
	for _, j := range h.jobs {
		parts.Jobs = append(parts.Jobs, remap.Job{ID: j.ID, User: j.User, App: j.App, Nodes: j.Nodes})
	}
	for _, n := range h.m.Machine().ByRole(topology.Forwarder) {
		if f, ok := h.board.Frame(n.ID); ok {
			parts.Load[topology.ForwarderID(n.ID)] = remap.LoadOfFrame(&f, n.PeakBytesPerSec, now)
		}
	}
	return live.New(live.Config{Board: h.board, Simulated: true,
		Situation: func() *remap.Situation { return remap.BuildSituation(parts) }}).Snapshot()
}

// firstScreen is how many needs both faces show: three lines each of a terminal of 120x36, cards of 1440x900.
const firstScreen = 3

// TestTheSimulatedHour: an hour of the machine of full size, in which two forwarders become slow as the demo's does.
// Each is confirmed with a victim within a minute and is on the first screen at the end; no other forwarder is
// suspected for long; what jobs do is one finding each.
func TestTheSimulatedHour(t *testing.T) {
	calm, between, rest := 15*60, 20*60, 25*60
	if os.Getenv("FAIRWAY_LONG") == "" {
		calm, between, rest = 5*60, 60, 60
	}
	synctest.Test(t, func(t *testing.T) {
		h := newHour(t, 1, 2)
		h.live(calm, nil)
		planted := []topology.ForwarderID{h.plant()}
		h.hurts(planted[0])
		if rest > 60 {
			h.live(between, nil)
			planted = append(planted, h.plant())
			h.hurts(planted[1])
		}
		h.live(rest, nil)

		o := h.overview().Overview
		for _, slow := range planted {
			at := slices.IndexFunc(o.Needs, func(n advise.Card) bool { return n.Node == slow.Node() })
			if at < 0 || at >= firstScreen {
				t.Errorf("%s is number %d of %d that need somebody", slow, at+1, len(o.Needs))
			}
		}
		for n, seconds := range h.suspected {
			if !slices.Contains(planted, topology.ForwarderID(n)) && seconds > 120 {
				t.Errorf("%s, which is well, was suspected for %d s", n, seconds)
			}
		}
		causes := map[string]anomaly.Finding{} // the newest of each
		all := h.loop.Findings()
		slices.SortFunc(all, func(a, b anomaly.Finding) int { return a.Since.Compare(b.Since) })
		for _, f := range all {
			what := fmt.Sprint(f.Kind, " ", f.Node)
			if f.Kind.OfJob() && len(f.Jobs) > 0 {
				what = fmt.Sprint(f.Kind, " of job ", f.Jobs[0])
				if !strings.Contains(f.Sentence, string(f.Jobs[0])) {
					t.Errorf("the finding of job %s says: %s", f.Jobs[0], f.Sentence)
				}
			}
			if before, twice := causes[what]; twice && f.Since.Sub(before.Changed) < 10*time.Minute {
				t.Errorf("%s is two findings: %s and, %s after it was over, %s", what, before.ID,
					f.Since.Sub(before.Changed), f.ID)
			}
			causes[what] = f
		}
		t.Logf("%d findings of %d causes, %d need somebody; suspected, seconds: %v", len(all), len(causes),
			len(o.Needs), h.suspected)
	})
}

// TestSoakHours: 75 minutes of each of FAIRWAY_SEEDS machines from seed FAIRWAY_FIRST on, after a day and 15 minutes in
// which the detectors learn; three forwarders become slow, 20 minutes apart, as the demo's do. Each must be confirmed,
// nobody else, and no healthy one suspected for more than two minutes in all.
func TestSoakHours(t *testing.T) {
	if os.Getenv("FAIRWAY_SOAK") == "" {
		t.Skip("takes minutes; make soak runs it")
	}
	number := func(name string, none int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
		return none
	}
	first := number("FAIRWAY_FIRST", 1)
	for seed := first; seed < first+number("FAIRWAY_SEEDS", 2); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { soakHour(newHour(t, uint64(seed), 24)) })
		})
	}
}

func soakHour(h *hour) {
	const mostSuspected = 120 // seconds of a healthy forwarder

	h.live(15*60, nil)
	slow := map[topology.NodeID]bool{}
	for range 3 {
		node := h.plant()
		slow[node.Node()] = true
		begun := time.Now()
		confirmed := func() bool { f := h.finding(node); return f != nil && f.State == anomaly.Confirmed }
		took := h.live(20*60, confirmed)
		if !confirmed() {
			h.t.Errorf("%s was not confirmed in %d s", node, took)
		}
		h.t.Logf("%s: confirmed after %d s", node, took)
		h.live(20*60-int(time.Since(begun).Seconds()), nil)
	}
	h.live(15*60, nil)
	for _, f := range h.loop.Findings() {
		if f.Kind == anomaly.FailSlow && !slow[f.Node] {
			h.t.Logf("%s, which is well: %s now, since %s, changed %s: %s", f.Node, f.State, f.Since, f.Changed,
				f.Sentence)
			if slices.ContainsFunc(f.Steps, func(s anomaly.Step) bool { return s.State == anomaly.Confirmed }) {
				h.t.Errorf("%s is well and was confirmed", f.Node)
			}
		}
	}
	for n, seconds := range h.suspected {
		if !slow[n] && seconds > mostSuspected {
			h.t.Errorf("%s, which is well, was suspected for %d s, more than %d", n, seconds, mostSuspected)
		}
	}
}

// hurts waits until a forwarder is confirmed slow with a victim.
func (h *hour) hurts(slow topology.ForwarderID) {
	h.t.Helper()
	took := h.live(60, func() bool {
		f := h.finding(slow)
		return f != nil && f.State == anomaly.Confirmed && len(f.Impact) > 0
	})
	f := h.finding(slow)
	if f == nil || f.State != anomaly.Confirmed || len(f.Impact) == 0 {
		h.t.Fatalf("%s is slow for %d s and the finding is %+v", slow, took, f)
	}
	h.t.Logf("after %d s: %s; %v", took, f.Sentence, f.Impact)
}
