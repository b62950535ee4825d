package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
)

// script is a detector that returns what the test wants.
type script struct {
	verdicts  []anomaly.Verdict
	forgotten []topology.NodeID
}

func (s *script) Forget(n topology.NodeID) { s.forgotten = append(s.forgotten, n) }

func (s *script) Verdicts(time.Time, *Machine) []anomaly.Verdict { return s.verdicts }

func alarm(node topology.NodeID) anomaly.Verdict {
	return anomaly.Verdict{Node: node, Kind: anomaly.FailSlow, Level: anomaly.Alarm, Confidence: 0.97, Score: 14,
		Model: "test-1", Sentence: "writes on " + string(node) + " take 9.8 times as long as on its peers"}
}

// memory is a recorder that keeps every finding as it last was.
type memory struct {
	mu       sync.Mutex // guards everything that follows
	findings []anomaly.Finding
	changes  []anomaly.Change
	fails    error
	during   func() // called while changes are recorded
}

func (m *memory) Findings(context.Context) ([]anomaly.Finding, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.findings), m.fails
}

func (m *memory) RecordFindings(_ context.Context, changes []anomaly.Change) error {
	if m.during != nil {
		m.during()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails != nil {
		return m.fails
	}
	m.changes = append(m.changes, changes...)
	for _, c := range changes {
		i := slices.IndexFunc(m.findings, func(f anomaly.Finding) bool { return f.ID == c.Finding.ID })
		if i < 0 {
			m.findings = append(m.findings, c.Finding)
		} else {
			m.findings[i] = c.Finding
		}
	}
	return nil
}

// excluded are the nodes that findings exclude by policy.
func (m *memory) excluded() map[topology.NodeID]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[topology.NodeID]string{}
	for _, f := range m.findings {
		if f.ExcludedBy != "" {
			out[f.Node] = f.ExcludedBy
		}
	}
	return out
}

// testLoop is a loop over a machine of twenty forwarders.
type testLoop struct {
	*Loop
	t       *testing.T
	says    *script
	journal *memory
	now     time.Time
}

func newLoop(t *testing.T, mode anomaly.Mode) *testLoop {
	l := &testLoop{t: t, says: &script{}, journal: &memory{}, now: time.Unix(1_800_000_000, 0)}
	set := anomaly.DefaultSettings()
	set.Mode, set.ClearSeconds = mode, 5
	var err error
	l.Loop, err = New(t.Context(), Config{Settings: set, Recorder: l.journal, Detector: l.says,
		Machine: func() *Machine {
			m := &Machine{Excluded: l.journal.excluded()}
			for i := range 20 {
				m.Forwarders = append(m.Forwarders, topology.ForwarderID(fmt.Sprintf("fwd%d", i)))
			}
			m.Healthy = 20 - len(m.Excluded)
			return m
		}}, l.now)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *testLoop) step(n int, vs ...anomaly.Verdict) error {
	l.says.verdicts = vs
	for range n {
		l.now = l.now.Add(time.Second)
		if err := l.Step(l.t.Context(), l.now); err != nil {
			return err
		}
	}
	return nil
}

// states are the findings that are shown, with their states.
func (l *testLoop) states() string {
	var out []string
	for _, f := range l.Findings() {
		out = append(out, f.ID+" "+string(f.State))
	}
	return strings.Join(out, ", ")
}

// A change is shown once it is recorded: not while that is under way, and not when it fails, also when the
// recorder cannot be read afterwards.
func TestAChangeIsShownOnceItIsRecorded(t *testing.T) {
	l := newLoop(t, anomaly.ModeAuto)
	l.journal.during = func() {
		if got := l.states(); got != "" {
			t.Errorf("while the first change is recorded %q is shown", got)
		}
	}
	l.journal.fails = errors.New("disk full")
	for range 3 {
		if err := l.step(1, alarm("fwd1")); err == nil || l.states() != "" || len(l.Suspected()) != 0 {
			t.Fatalf("nothing was recorded: %v; shown is %q, suspected %v", err, l.states(), l.Suspected())
		}
	}
	l.journal.fails = nil
	if err := l.step(1, alarm("fwd1")); err != nil || l.states() != "F-0001 suspect" {
		t.Errorf("recorded: %v; shown is %q", err, l.states())
	}
	l.journal.during = nil
	if err := l.step(5, alarm("fwd1")); err != nil || l.states() != "F-0001 excluded" {
		t.Errorf("after five more seconds: %v; shown is %q", err, l.states())
	}
	l.journal.fails = errors.New("disk full")
	if err := l.step(1, alarm("fwd1"), alarm("fwd2")); err == nil || l.states() != "F-0001 excluded" {
		t.Errorf("a second one was not recorded: %v; shown is %q", err, l.states())
	}
}

// What a person did to a finding is shown at once, and outlives a step that is being recorded meanwhile.
func TestPersonsChangesAreAdopted(t *testing.T) {
	l := newLoop(t, anomaly.ModeObserve)
	l.step(1, alarm("fwd1"), alarm("fwd2"))
	all := l.Findings()
	l.journal.during = func() { // the second in which both are confirmed
		l.Adopt(anomaly.Acknowledge(all[0], l.now, "olga", "olga", "acknowledged").Finding)
		l.Adopt(anomaly.Dismiss(all[1], l.now, "olga", "a planned rebuild").Finding)
		if got := l.states(); got != "F-0001 suspect, F-0002 dismissed" {
			t.Errorf("shown is %q", got)
		}
	}
	l.step(4, alarm("fwd1"), alarm("fwd2"))
	l.step(1, alarm("fwd1"), alarm("fwd2"))
	l.journal.during = nil
	l.step(30, alarm("fwd1"), alarm("fwd2"))
	if f := l.Findings()[0]; f.State != anomaly.Confirmed || f.Owner != "olga" {
		t.Errorf("the acknowledged one: %+v", f)
	}
	if got := l.states(); got != "F-0001 confirmed, F-0002 dismissed" {
		t.Errorf("shown is %q", got)
	}
}

// slowStore answers every read after some time, with an error or, on mute, never.
type slowStore struct {
	takes time.Duration
	err   error
	mute  chan struct{}
}

func (s slowStore) Select(ctx context.Context, _ tsdb.Query) ([]tsdb.Series, error) {
	if s.mute != nil {
		<-s.mute
	}
	time.Sleep(s.takes)
	return nil, s.err
}

// The evidence of all changes of a second has one deadline, whatever the store does, and what could not be read
// is named.
func TestEvidenceHasADeadline(t *testing.T) {
	for _, tc := range []struct {
		name  string
		store slowStore
		most  time.Duration
	}{
		{"fails after 200 ms", slowStore{takes: 200 * time.Millisecond, err: errors.New("HTTP 503")},
			400 * time.Millisecond},
		{"answers after a minute", slowStore{takes: time.Minute}, evidenceWithin},
		{"never answers", slowStore{mute: make(chan struct{})}, evidenceWithin},
	} {
		synctest.Test(t, func(t *testing.T) {
			defer time.Sleep(2 * time.Minute) // until the reads that were left behind have ended
			if tc.store.mute != nil {
				tc.store.mute = make(chan struct{}) // of this bubble
				defer close(tc.store.mute)
			}
			l := newLoop(t, anomaly.ModeObserve)
			l.evidence.store = tc.store
			for n := range 6 { // more than mostReading
				begun := time.Now()
				err := l.step(1, alarm(topology.NodeID(fmt.Sprint("fwd", 2*n))),
					alarm(topology.NodeID(fmt.Sprint("fwd", 2*n+1))))
				if took := time.Since(begun); err != nil || took > tc.most {
					t.Errorf("%s: a second with two findings took %s, want at most %s: %v", tc.name, took, tc.most, err)
				}
			}
			for _, c := range l.journal.changes {
				if c.Frozen == nil || len(c.Frozen.Missing) != len(frozenMetrics) || len(c.Frozen.Series) != 0 {
					t.Fatalf("%s: the evidence of %s is %+v", tc.name, c.Finding.ID, c.Frozen)
				}
			}
			if got := len(l.journal.changes); got < 12 {
				t.Errorf("%s: %d changes are recorded, want 12 suspicions", tc.name, got)
			}
			if n := int(l.evidence.reading.Load()); n > mostReading*len(frozenMetrics) {
				t.Errorf("%s: %d metrics are being read in the store", tc.name, n)
			}
		})
	}
}

// rows is a store of seconds, which it averages over steps as the real one does.
type rows map[topology.NodeID][]tsdb.Point

func (r rows) Select(_ context.Context, q tsdb.Query) (out []tsdb.Series, _ error) {
	if q.Metric != collector.WriteBytes {
		return nil, nil
	}
	for _, n := range q.Nodes {
		s := tsdb.Series{Node: n}
		count := 0.0
		for _, p := range r[n] {
			if p.TimeMillis < q.FromMillis || p.TimeMillis >= q.ToMillis {
				continue
			}
			p.TimeMillis -= p.TimeMillis % max(q.StepMillis, 1000)
			last := len(s.Points) - 1
			if last < 0 || s.Points[last].TimeMillis != p.TimeMillis {
				s.Points, count = append(s.Points, p), 1
				continue
			}
			count++
			s.Points[last].Value += (p.Value - s.Points[last].Value) / count
		}
		out = append(out, s)
	}
	return out, nil
}

// A peer that has seconds on both sides of a minute counts once in the peers' median.
func TestPeersCountOnceAcrossAMinute(t *testing.T) {
	l := newLoop(t, anomaly.ModeObserve)
	l.now = time.Unix(1_800_000_000, 0).Truncate(time.Minute).Add(4 * time.Second)
	store := rows{}
	for n, v := range map[topology.NodeID]float64{"fwd1": 99, "fwd2": 10, "fwd3": 20, "fwd4": 30} {
		from := 10
		if n == "fwd2" || n == "fwd3" { // they report since the minute began
			from = 4
		}
		for ; from > 0; from-- {
			store[n] = append(store[n],
				tsdb.Point{TimeMillis: l.now.Add(-time.Duration(from) * time.Second).UnixMilli(),
					Value: v})
		}
	}
	l.evidence.store = store
	if err := l.step(1, alarm("fwd1")); err != nil {
		t.Fatal(err)
	}
	f := l.journal.changes[0].Frozen
	if f.Peers["write_bytes"] != 20 || len(f.Series["write_bytes"]) != 10 || len(f.Missing) != 0 {
		t.Errorf("the evidence is %+v, want the peers' median 20", f)
	}
}

// While the recorder does not answer, canaries go on: their outcomes count afterwards.
func TestProbesDoNotWaitForTheRecorder(t *testing.T) {
	l := newLoop(t, anomaly.ModeAuto)
	l.step(10, alarm("fwd1"))
	l.journal.during = func() {
		if got := l.Suspected(); !slices.Equal(got, []topology.NodeID{"fwd1"}) {
			t.Errorf("suspected %v", got)
		}
		for range 3 * maxProbed {
			l.Probe("fwd1", true)
		}
		if n := len(l.inbox.probes); n > maxProbed {
			t.Errorf("%d outcomes are kept, want %d at most", n, maxProbed)
		}
	}
	l.step(1, alarm("fwd2"))
	l.journal.during = nil
	l.step(1)
	if n := len(l.inbox.probes); n != 0 {
		t.Errorf("%d outcomes are left after a step", n)
	}
}

// Detectors learn who was seen to be well.
func TestDetectorsForgetWhomCanariesClear(t *testing.T) {
	l := newLoop(t, anomaly.ModeObserve)
	l.step(6, alarm("fwd1"))
	for range 6 {
		l.Probe("fwd1", true)
	}
	l.step(10)
	if got := l.says.forgotten; l.states() != "F-0001 returned" || !slices.Equal(got, []topology.NodeID{"fwd1"}) {
		t.Errorf("%s, forgotten is %v", l.states(), got)
	}
}

func TestMetrics(t *testing.T) {
	l := newLoop(t, anomaly.ModeObserve)
	l.step(6, alarm("fwd1"))
	var b strings.Builder
	l.WriteMetrics(&b)
	for _, want := range []string{"fairway_detector_seconds_total 6",
		`fairway_detector_alarm_seconds_total{kind="fail_slow"} 6`,
		`fairway_findings{kind="fail_slow",state="confirmed"} 1`, "fairway_detector_cpu_seconds_total "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestMaintenanceIsQuiet: nothing is found of a node that somebody works on, and its neighbours are judged as ever.
func TestMaintenanceIsQuiet(t *testing.T) {
	rec, now := &memory{}, time.Now()
	machine := &Machine{Forwarders: []topology.ForwarderID{"fwd1", "fwd2"}, Healthy: 2,
		Quiet: map[topology.NodeID]bool{"fwd1": true}}
	verdicts := &script{verdicts: []anomaly.Verdict{alarm("fwd1"), alarm("fwd2")}}
	l, err := New(t.Context(), Config{Settings: anomaly.DefaultSettings(), Recorder: rec, Detector: verdicts,
		Machine: func() *Machine { return machine }}, now)
	if err != nil {
		t.Fatal(err)
	}
	step := func() {
		now = now.Add(time.Second)
		if err := l.Step(t.Context(), now); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		step()
	}
	if all := l.Findings(); len(all) != 1 || all[0].Node != "fwd2" {
		t.Fatalf("found %+v, want fwd2 alone", all)
	}
	machine = &Machine{Forwarders: machine.Forwarders, Healthy: 2}
	for range 20 {
		step()
	}
	if all := l.Findings(); len(all) != 2 {
		t.Errorf("after the maintenance: found %+v, want both", all)
	}
}
