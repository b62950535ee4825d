package desk_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/watch"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/desk"
	"fairway/remap/driver"
	"fairway/remap/journal"
	"fairway/remap/situation"
	"fairway/tsdb"
	"fairway/tsdb/engine"
)

var (
	olga = remap.Person{Name: "olga", Role: remap.Operator, Via: "unix"}
	vera = remap.Person{Name: "vera", Role: remap.Viewer, Via: "unix"}
)

const why = "its array is being rebuilt"

// script is a detector that says what the test wants.
type script struct{ verdicts []anomaly.Verdict }

func (*script) Forget(topology.NodeID) {}

func (s *script) Verdicts(time.Time, *watch.Machine) []anomaly.Verdict { return s.verdicts }

func alarm(node topology.NodeID) anomaly.Verdict {
	return anomaly.Verdict{Node: node, Kind: anomaly.FailSlow, Level: anomaly.Alarm, Confidence: 0.97, Score: 14,
		Model:    "test-1",
		Sentence: "writes on " + string(node) + " take 9.8 times as long as on its peers",
		Impact:   []anomaly.Impact{{Job: "88231", Share: 0.12}}}
}

// site is a desk, a store and a loop of detectors over a machine of twenty forwarders.
type site struct {
	*watch.Loop
	*desk.Review
	t     *testing.T
	dir   string
	set   anomaly.Settings
	desk  *desk.Desk
	store *engine.DB
	reads watch.Series // the store, for evidence
	says  *script
	now   time.Time
}

func newSite(t *testing.T, mode anomaly.Mode) *site {
	s := &site{t: t, dir: t.TempDir(), set: anomaly.DefaultSettings(), says: &script{}, now: time.Now()}
	s.set.Mode, s.set.Hold, s.set.ClearSeconds, s.set.Trial = mode, 20*time.Second, 5, 5*time.Second
	var err error
	if s.store, err = engine.Open(filepath.Join(s.dir, "store"), engine.Options{}); err != nil {
		t.Fatal(err)
	}
	s.reads = s.store
	s.open()
	t.Cleanup(func() {
		s.desk.Close()
		if err := s.store.Close(); err != nil {
			t.Error(err)
		}
		if _, err := journal.Verify(filepath.Join(s.dir, "journal")); err != nil {
			t.Error(err)
		}
	})
	return s
}

// open starts desk and judge on what the journal has.
func (s *site) open() {
	s.t.Helper()
	var err error
	s.desk, _, err = desk.Open(desk.Config{Settings: desk.DefaultSettings(),
		Path: filepath.Join(s.dir, "journal"), Driver: driver.Unassigned{}, Situation: s.situation})
	if err == nil {
		s.Loop, err = watch.New(s.t.Context(), watch.Config{Settings: s.desk.Settings().Bound(s.set),
			Machine: func() *watch.Machine {
				return situation.ForWatch(s.situation(), s.desk.Feed().Exclusions)
			}, Recorder: s.desk, Detector: s.says, Store: s.reads}, time.Now())
		s.Review = desk.NewReview(s.desk, s.Loop)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) situation() *remap.Situation {
	p := remap.SituationParts{At: time.Now(), Machine: &topology.Machine{Name: "test"},
		Load: map[topology.ForwarderID]remap.Load{}}
	for i := range 20 {
		id := topology.ForwarderID(fmt.Sprintf("fwd%d", i))
		p.Machine.Nodes = append(p.Machine.Nodes, topology.Node{ID: id.Node(), Role: topology.Forwarder})
		p.Load[id] = remap.Load{LastSeen: time.Now(), ReadBytesPerSec: new(0.0), WriteBytesPerSec: new(1e9)}
	}
	if s.Loop != nil {
		p.Findings = s.Findings()
	}
	return remap.BuildSituation(p)
}

func (s *site) step(n int, vs ...anomaly.Verdict) {
	s.t.Helper()
	s.says.verdicts = vs
	for range n {
		s.now = s.now.Add(time.Second)
		if err := s.Step(s.t.Context(), s.now); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *site) want(id string, state anomaly.State) anomaly.Finding {
	s.t.Helper()
	for _, f := range s.Findings() {
		if f.ID == id {
			if f.State != state {
				s.t.Errorf("%s is %s, want %s", id, f.State, state)
			}
			return f
		}
	}
	s.t.Fatalf("there is no %s in %+v", id, s.Findings())
	return anomaly.Finding{}
}

func TestFromAlarmToExclusionAndBack(t *testing.T) {
	s := newSite(t, anomaly.ModeAuto)
	frames := []collector.Frame{}
	for i := range 20 {
		for sec := range 30 {
			v := 100e6
			if i == 1 {
				v = 10e6
			}
			frames = append(frames, collector.Frame{Node: topology.NodeID(fmt.Sprintf("fwd%d", i)),
				Role:       topology.Forwarder,
				TimeMillis: s.now.Add(-time.Duration(sec) * time.Second).UnixMilli(),
				Samples:    []collector.Sample{{Metric: collector.WriteBytes, Value: v}}})
		}
	}
	if err := s.store.Append(t.Context(), frames); err != nil {
		t.Fatal(err)
	}
	s.step(1, alarm("fwd1"))
	s.want("F-0001", anomaly.Suspect)
	s.step(5, alarm("fwd1"))
	s.want("F-0001", anomaly.Excluded)
	feed := s.desk.Feed()
	if len(feed.Exclusions) != 1 || feed.Exclusions[0].By != anomaly.ByPolicy ||
		!strings.Contains(feed.Exclusions[0].Reason, "F-0001: writes on fwd1") {
		t.Errorf("the feed is %+v", feed)
	}
	s.frozen("fwd1", 10e6, 100e6)

	// The daemon dies: finding and exclusion are there again, and go on.
	s.desk.Close()
	s.open()
	s.want("F-0001", anomaly.Excluded)
	s.step(20)
	if f := s.want("F-0001", anomaly.Probation); f.Stage != anomaly.StageCanary || len(s.desk.Feed().Exclusions) != 1 {
		t.Errorf("in its canary stage: %+v, feed %+v", f, s.desk.Feed())
	}
	for range s.set.ProbePasses {
		s.Probe("fwd1", true)
	}
	s.step(1)
	if f := s.want("F-0001", anomaly.Probation); f.Stage != anomaly.StageJob || len(s.desk.Feed().Exclusions) != 0 {
		t.Errorf("after its probes: %+v, feed %+v", f, s.desk.Feed())
	}
	s.step(5, anomaly.Verdict{Node: "fwd1", Kind: anomaly.FailSlow, Level: anomaly.Clean})
	s.want("F-0001", anomaly.Returned)
}

// frozen checks that every change of a node's finding has its evidence in the journal.
func (s *site) frozen(node topology.NodeID, own, peers float64) {
	s.t.Helper()
	n := 0
	_, err := journal.Read(filepath.Join(s.dir, "journal"), func(r *journal.Record) error {
		if r.Finding == nil {
			return nil
		}
		n++
		f := r.Finding.Frozen
		if f == nil || len(f.Series["write_bytes"]) < 20 || f.Series["write_bytes"][0].Value != own ||
			f.Peers["write_bytes"] != peers {
			s.t.Errorf("the evidence of %s %s is %+v", r.Finding.Finding.ID, r.Finding.Finding.State, f)
		}
		if r.Finding.Finding.Model != "test-1" || r.Finding.Finding.Score != 14 {
			s.t.Errorf("model and score are not in %+v", r.Finding.Finding)
		}
		return nil
	})
	if err != nil || n != 3 {
		s.t.Errorf("%d changes in the journal, want 3: %v", n, err)
	}
}

// TestFloorOfTheDeskHolds lets the tracker take more than the desk allows: as many are excluded as the
// desk lets it, and the findings of the others are kept.
func TestFloorOfTheDeskHolds(t *testing.T) {
	s := newSite(t, anomaly.ModeAuto)
	s.set.MaxExcluded = 1
	s.desk.Close()
	s.open()
	var all []anomaly.Verdict
	for i := range 10 {
		all = append(all, alarm(topology.NodeID(fmt.Sprintf("fwd%d", i))))
	}
	s.step(10, all...)
	states := map[anomaly.State]int{}
	for _, f := range s.Findings() {
		states[f.State]++
	}
	if n := len(s.desk.Feed().Exclusions); n != 5 || states[anomaly.Excluded] != 5 || states[anomaly.Confirmed] != 5 {
		t.Errorf("%d of 20 are excluded, the desk allows a quarter; findings %v", n, states)
	}
}

// TestAnotherFindingEndsNoExclusion lets a neighbour's interference begin and end on a forwarder that is
// excluded as slow.
func TestAnotherFindingEndsNoExclusion(t *testing.T) {
	s := newSite(t, anomaly.ModeAuto)
	s.step(6, alarm("fwd1"))
	s.want("F-0001", anomaly.Excluded)
	neighbour := alarm("fwd1")
	neighbour.Kind = anomaly.MetaStorm
	s.step(6, neighbour)
	s.want("F-0002", anomaly.Confirmed)
	s.step(8)
	s.want("F-0002", anomaly.Returned)
	s.want("F-0001", anomaly.Excluded)
	if f := s.desk.Feed(); len(f.Exclusions) != 1 || f.Generation != 1 {
		t.Errorf("the feed is %+v, want the one exclusion of F-0001", f)
	}
}

// busyStore asks the desk while evidence is read, and counts when it does not answer meanwhile.
type busyStore struct {
	tsdb.Store
	ask               func(context.Context) error
	reads, unanswered *atomic.Int32
}

func (b busyStore) Select(ctx context.Context, q tsdb.Query) ([]tsdb.Series, error) {
	b.reads.Add(1)
	if err := b.ask(ctx); err != nil {
		b.unanswered.Add(1)
		return nil, err
	}
	return b.Store.Select(ctx, q)
}

func TestTheDeskWaitsForNoEvidence(t *testing.T) {
	s := newSite(t, anomaly.ModeObserve)
	s.desk.Close()
	store := busyStore{s.store, func(ctx context.Context) error {
		_, err := s.desk.Plans(ctx, 0)
		return err
	}, &atomic.Int32{}, &atomic.Int32{}}
	s.reads = store
	s.open()
	s.step(6, alarm("fwd1"))
	if _, err := s.Dismiss(t.Context(), olga, "F-0001", remap.Answer{Reason: why}); err != nil {
		t.Error(err)
	}
	if store.reads.Load() == 0 || store.unanswered.Load() > 0 {
		t.Errorf("the desk did not answer during %d of %d reads of evidence", store.unanswered.Load(),
			store.reads.Load())
	}
}

// What a person did to findings while the detectors' changes of them were under way stays: a dismissed one is not
// confirmed and excludes nothing, an acknowledged one keeps its owner.
func TestAPersonsWordStaysUnderTheDetectors(t *testing.T) {
	s := newSite(t, anomaly.ModeAuto)
	s.step(1, alarm("fwd1"), alarm("fwd2"))
	var late []anomaly.Change
	for _, f := range s.Findings() {
		c := anomaly.Change{Finding: f, From: f.State, At: s.now, Why: "the alarm held"}
		c.Finding.State, c.Finding.ExcludedBy = anomaly.Excluded, anomaly.ByPolicy
		late = append(late, c)
	}
	if _, err := s.Dismiss(t.Context(), olga, "F-0001", remap.Answer{Reason: why}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acknowledge(t.Context(), olga, "F-0002", remap.Answer{}); err != nil {
		t.Fatal(err)
	}
	if err := s.desk.RecordFindings(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	all, err := s.desk.Findings(t.Context())
	if err != nil || all[0].State != anomaly.Dismissed || all[1].State != anomaly.Excluded || all[1].Owner != "olga" {
		t.Errorf("the findings are %+v, %v", all, err)
	}
	if feed := s.desk.Feed().Exclusions; len(feed) != 1 || feed[0].Forwarder != "fwd2" {
		t.Errorf("the feed is %+v, want fwd2 alone", feed)
	}
}

func TestPeopleJudge(t *testing.T) {
	s := newSite(t, anomaly.ModeObserve)
	s.step(6, alarm("fwd1"))
	s.want("F-0001", anomaly.Confirmed)
	for _, c := range []struct {
		err  error
		want error
	}{
		{of(s.Acknowledge(t.Context(), vera, "F-0001", remap.Answer{})), remap.ErrNotAllowed},
		{of(s.Dismiss(t.Context(), olga, "F-0001", remap.Answer{Reason: "no"})), remap.ErrInvalid},
		{of(s.Dismiss(t.Context(), olga, "F-0009", remap.Answer{Reason: why})), remap.ErrNotFound},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%v, want %v", c.err, c.want)
		}
	}
	if f, err := s.Acknowledge(t.Context(), olga, "F-0001", remap.Answer{Key: "a"}); err != nil || f.Owner != "olga" {
		t.Errorf("%+v, %v", f, err)
	}
	for range 2 { // the same request again
		if f, err := s.Dismiss(t.Context(), olga, "F-0001", remap.Answer{Key: "d", Reason: why}); err != nil ||
			f.State != anomaly.Dismissed || f.Why != why {
			t.Errorf("%+v, %v", f, err)
		}
	}
	s.step(20, alarm("fwd1"))
	if n := len(s.Findings()); n != 1 {
		t.Errorf("a dismissed finding was made again: %+v", s.Findings())
	}
}

func TestWhatIsNotRecordedHasNotHappened(t *testing.T) {
	s := newSite(t, anomaly.ModeObserve)
	s.desk.Close()
	s.says.verdicts = []anomaly.Verdict{alarm("fwd1")}
	if err := s.Step(t.Context(), s.now); err == nil {
		t.Error("a change was made without a journal")
	}
	s.open()
	if n := len(s.Findings()); n != 0 {
		t.Errorf("%d findings, none was recorded", n)
	}
}

func of(_ anomaly.Finding, err error) error { return err }
