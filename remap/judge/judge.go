// Package judge keeps the findings of a running machine: once a second it asks the detectors, leads
// each finding through its life, freezes the evidence of every change into the desk's journal, and
// lets a policy exclude and return forwarders.
package judge

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/desk"
	"fairway/tsdb"
)

// Detector says once a second what it makes of the machine. It is called from one goroutine.
type Detector interface {
	Verdicts(now time.Time, s *remap.Situation) []anomaly.Verdict
}

// Config is what a judge works with.
type Config struct {
	Settings  anomaly.Settings
	Desk      *desk.Desk
	Situation func() *remap.Situation
	Detector  Detector   // nil: findings are kept and none is made
	Store     tsdb.Store // for the frozen evidence
	Log       *slog.Logger
}

// Judge owns the tracker. Its methods may be called concurrently; Findings, Suspected and Probe never wait.
type Judge struct {
	cfg       Config
	list      atomic.Pointer[[]anomaly.Finding]
	suspected atomic.Pointer[[]topology.NodeID]
	cost      cost

	probes struct {
		mu   sync.Mutex // guards the rest; nobody waits while he holds it
		came []probed   // outcomes that the tracker has not had yet
	}

	mu      sync.Mutex // guards everything that follows, and is held over the desk's answer
	tracker *anomaly.Tracker
	now     time.Time // of the newest step
}

// probed is the outcome of a canary probe.
type probed struct {
	node topology.NodeID
	ok   bool
}

// maxProbed bounds the outcomes kept while the journal's disk does not answer: the oldest go.
const maxProbed = 4096

// showClosed is how long a closed finding stays in the list.
const showClosed = time.Hour

// policy is who the tracker is at the desk.
var policy = remap.Person{Name: "findings", Role: remap.Operator, Via: remap.ViaPolicy}

// New takes up the findings of the desk's journal.
func New(ctx context.Context, cfg Config) (*Judge, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	// The tracker keeps the desk's limits as well: an exclusion that the desk refuses would take every
	// other change of its second with it, again and again.
	desk := cfg.Desk.Settings()
	cfg.Settings.MaxExcluded = min(cfg.Settings.MaxExcluded, desk.MaxExcluded)
	cfg.Settings.HealthyFloor = max(cfg.Settings.HealthyFloor, desk.HealthyFloor)
	j := &Judge{cfg: cfg}
	j.list.Store(&[]anomaly.Finding{})
	j.suspected.Store(&[]topology.NodeID{})
	j.mu.Lock()
	defer j.mu.Unlock()
	return j, j.replay(ctx, time.Now())
}

// replay makes the tracker what the journal says.
func (j *Judge) replay(ctx context.Context, now time.Time) error {
	all, err := j.cfg.Desk.Findings(ctx)
	if err != nil {
		return fmt.Errorf("findings: %w", err)
	}
	j.tracker = anomaly.NewTracker(j.cfg.Settings, all)
	j.publish(now)
	return nil
}

func (j *Judge) publish(now time.Time) {
	all, suspected := j.tracker.Findings(now.Add(-showClosed)), j.tracker.Suspected()
	j.list.Store(&all)
	j.suspected.Store(&suspected)
}

// Findings returns the open findings, the oldest first, then those closed within the last hour. It
// is shared and must not be changed.
func (j *Judge) Findings() []anomaly.Finding { return *j.list.Load() }

// Settings are the rules of a finding's life.
func (j *Judge) Settings() anomaly.Settings { return j.cfg.Settings }

// Suspected lists the nodes that canary probes look at more often, as of the newest step. It is shared and must
// not be changed.
func (j *Judge) Suspected() []topology.NodeID { return *j.suspected.Load() }

// Probe takes the outcome of one canary probe; the next step counts it.
func (j *Judge) Probe(node topology.NodeID, ok bool) {
	j.probes.mu.Lock()
	defer j.probes.mu.Unlock()
	if len(j.probes.came) >= maxProbed {
		j.probes.came = j.probes.came[1:]
	}
	j.probes.came = append(j.probes.came, probed{node, ok})
}

// takeProbes gives the tracker the outcomes that have come; j.mu is held.
func (j *Judge) takeProbes() {
	j.probes.mu.Lock()
	came := j.probes.came
	j.probes.came = nil
	j.probes.mu.Unlock()
	for _, p := range came {
		j.tracker.Probe(p.node, p.ok)
	}
}

// Run judges once a second until ctx ends.
func (j *Judge) Run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if err := j.Step(ctx, now); err != nil && ctx.Err() == nil {
				j.cfg.Log.Error("the findings of a second were not recorded and are made again", "err", err)
			}
		}
	}
}

// Step judges the second that ended before now.
func (j *Judge) Step(ctx context.Context, now time.Time) error {
	s := j.cfg.Situation()
	verdicts, took := j.detect(now, s)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.cost.take(took, verdicts)
	j.now = now
	j.takeProbes()
	changes := j.tracker.Step(now, verdicts, j.pool(s))
	j.publish(now)
	if len(changes) == 0 {
		return nil
	}
	for i := range changes {
		changes[i].Frozen = j.freeze(ctx, changes[i].Finding.Node, s, now)
	}
	err := j.cfg.Desk.RecordFindings(ctx, policy, remap.Answer{}, false, "",
		func() ([]anomaly.Change, error) { return changes, nil })
	if err != nil {
		// What is not in the journal has not happened.
		return fmt.Errorf("%w; %w", err, j.replay(ctx, now))
	}
	for _, c := range changes {
		j.cfg.Log.Info("finding", "id", c.Finding.ID, "node", c.Finding.Node, "kind", c.Finding.Kind, "state",
			c.Finding.State, "why", c.Why)
	}
	return nil
}

// detect asks the detector, and measures what that costs.
func (j *Judge) detect(now time.Time, s *remap.Situation) ([]anomaly.Verdict, time.Duration) {
	if j.cfg.Detector == nil {
		return nil, 0
	}
	runtime.LockOSThread() // its clock is that of one thread
	defer runtime.UnlockOSThread()
	begun := cpuTime()
	verdicts := j.cfg.Detector.Verdicts(now, s)
	return verdicts, cpuTime() - begun
}

// pool counts what there is to withhold from. The desk's own list counts: the situation's may be
// a moment old.
func (j *Judge) pool(s *remap.Situation) anomaly.Pool {
	p := anomaly.Pool{Forwarders: len(s.Index.Forwarders()), Excluded: map[topology.NodeID]string{}}
	p.Healthy, _ = s.Healthy()
	for _, e := range j.cfg.Desk.Feed().Exclusions {
		p.Excluded[e.Forwarder.Node()] = e.By
	}
	return p
}

// Acknowledge notes that a person looks after a finding. Errors are those of Dismiss.
func (j *Judge) Acknowledge(ctx context.Context, by remap.Person, id string, a remap.Answer) (anomaly.Finding, error) {
	return j.say(ctx, by, "ack "+id, id, a, false, func(t *anomaly.Tracker, now time.Time, id, by,
		why string) (anomaly.Change, error) {
		words := "acknowledged"
		if why != "" {
			words += ": " + why
		}
		return t.Acknowledge(now, id, by, words)
	})
}

// Dismiss ends a finding that a person says is none; an exclusion by policy ends with it. Errors:
// remap.ErrNotFound, ErrNotAllowed, ErrInvalid (reason), ErrConflict.
func (j *Judge) Dismiss(ctx context.Context, by remap.Person, id string, a remap.Answer) (anomaly.Finding, error) {
	return j.say(ctx, by, "dismiss "+id, id, a, true, (*anomaly.Tracker).Dismiss)
}

// MaxSilence bounds a silence: somebody looks at the finding once in a while.
const MaxSilence = 7 * 24 * time.Hour

// Silence keeps a finding from calling anybody for so long; 0 ends a silence. Errors are those of
// Dismiss, and remap.ErrInvalid for another time than 1m to MaxSilence.
func (j *Judge) Silence(ctx context.Context, by remap.Person, id string, long time.Duration,
	a remap.Answer) (anomaly.Finding, error) {
	if long != 0 && (long < time.Minute || long > MaxSilence) {
		return anomaly.Finding{}, fmt.Errorf("%w: a silence of %s: want 1m to %s, or 0 to end one", remap.ErrInvalid,
			long, MaxSilence)
	}
	return j.say(ctx, by, fmt.Sprintf("silence %s %s", id, long), id, a, false,
		func(t *anomaly.Tracker, now time.Time, id, by, why string) (anomaly.Change, error) {
			words := "silenced for " + spell(long)
			if long == 0 {
				words = "its silence was ended"
			}
			if why != "" {
				words += ": " + why
			}
			return t.Silence(now, id, by, words, now.Add(long))
		})
}

// spell writes a time without parts that are nothing: 4h, 30m, 1h30m.
func spell(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func (j *Judge) say(ctx context.Context, by remap.Person, body, id string, a remap.Answer, reasoned bool,
	verb func(t *anomaly.Tracker, now time.Time, id, by, why string) (anomaly.Change, error)) (anomaly.Finding, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now, s := time.Now(), j.cfg.Situation()
	// The evidence is read before the desk is asked: the desk waits for no store.
	var frozen *anomaly.Frozen
	for _, f := range j.Findings() {
		if f.ID == id {
			frozen = j.freeze(ctx, f.Node, s, now)
		}
	}
	err := j.cfg.Desk.RecordFindings(ctx, by, a, reasoned, body, func() ([]anomaly.Change, error) {
		c, err := verb(j.tracker, now, id, by.Name, a.Reason)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", remap.ErrNotFound, err)
		}
		c.Frozen = frozen
		return []anomaly.Change{c}, nil
	})
	if err != nil {
		return anomaly.Finding{}, joinReplay(err, j.replay(ctx, now))
	}
	j.publish(now)
	for _, f := range j.Findings() {
		if f.ID == id {
			return f, nil
		}
	}
	return anomaly.Finding{}, fmt.Errorf("finding %q: %w", id, remap.ErrNotFound)
}

func joinReplay(err, replay error) error {
	if replay != nil {
		return fmt.Errorf("%w; %w", err, replay)
	}
	return err
}
