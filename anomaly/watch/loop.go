// Package watch is the live loop of detection: once a second it asks the detectors about the newest
// second of the machine, leads every finding through its life, and hands each change, with the
// evidence as it was at that instant, to the recorder. It acts on nothing: the recorder excludes and
// returns forwarders, and persons acknowledge, silence and dismiss findings there.
package watch

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"fairway/anomaly"
	"fairway/collector/topology"
)

// Machine is what the loop must know of the machine at an instant. It is shared and must not be changed.
type Machine struct {
	Forwarders []topology.ForwarderID
	// Healthy counts the forwarders that may carry new work and are not excluded.
	Healthy int
	// Excluded names who excluded each excluded forwarder; anomaly.ByPolicy is the loop itself.
	Excluded map[topology.NodeID]string
	// Quiet are the nodes that somebody works on: nothing is found of them.
	Quiet map[topology.NodeID]bool
	// Mapping is the forwarder that each compute node was observed to use.
	Mapping topology.Mapping
	// Spread are the shares of nodes that use several forwarders; they are not in Mapping.
	Spread map[topology.NodeID][]topology.Share
	// Peaks is what forwarders can move in a direction, bytes/s, where that is known.
	Peaks map[topology.NodeID]float64
	Jobs  []Job
}

// over visits the forwarders that a compute node uses, with their parts of its traffic.
func (m *Machine) over(n topology.NodeID, visit func(f topology.ForwarderID, part float64)) {
	if f, ok := m.Mapping[n]; ok {
		visit(f, 1)
		return
	}
	for _, s := range m.Spread[n] {
		visit(s.Forwarder, s.Part)
	}
}

// Job is a running job and its compute nodes.
type Job struct {
	ID    topology.JobID
	Nodes []topology.NodeID
}

// Detector judges the newest second of the machine. It is called from one goroutine.
type Detector interface {
	Verdicts(now time.Time, m *Machine) []anomaly.Verdict
	// Forget ends what is held against a node that was seen to be well.
	Forget(n topology.NodeID)
}

// Recorder keeps the changes of findings. A change that it refuses has not happened.
type Recorder interface {
	// Findings returns every finding as it last was, in the order in which they were made.
	Findings(ctx context.Context) ([]anomaly.Finding, error)
	// RecordFindings keeps all of the changes, or none on an error. A finding that a person has
	// dismissed meanwhile stays dismissed.
	RecordFindings(ctx context.Context, changes []anomaly.Change) error
}

// Config is what a loop works with.
type Config struct {
	Settings anomaly.Settings
	Machine  func() *Machine
	Recorder Recorder
	Detector Detector // nil: findings are kept and none is made
	Store    Series   // for the frozen evidence; nil: none is kept
	// Acting says whether this loop records what it finds; nil: it does. A loop that does not keeps its detectors'
	// evidence up to date and shows what is recorded.
	Acting func() bool
	// Lateness is the daemon's own: nothing is recorded while it is late. nil: it is on time.
	Lateness *Lateness
	Log      *slog.Logger // nil: discard
}

// Loop owns the tracker. Step is called from one goroutine; the other methods may be called concurrently and
// do no I/O, Freeze excepted.
type Loop struct {
	cfg      Config
	evidence evidence
	cost     cost

	// What is shown: what the recorder has, with the newest words of the detectors.
	list      atomic.Pointer[[]anomaly.Finding]
	suspected atomic.Pointer[[]topology.NodeID]
	inbox     inbox

	// What follows belongs to the goroutine that steps.
	tracker *anomaly.Tracker
	// behind is true while the tracker is not what the recorder has.
	behind bool
}

// inbox holds what came from other goroutines since the newest step.
type inbox struct {
	mu      sync.Mutex // guards everything that follows; no I/O while it is held
	probes  []probed
	adopted []anomaly.Finding
}

// probed is the outcome of a canary probe.
type probed struct {
	node topology.NodeID
	ok   bool
}

// maxProbed bounds the outcomes kept while the recorder does not answer: the oldest go.
const maxProbed = 4096

// showClosed is how long a closed finding stays in the list.
const showClosed = time.Hour

// New continues with the findings that the recorder has.
func New(ctx context.Context, cfg Config, now time.Time) (*Loop, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	l := &Loop{cfg: cfg, evidence: evidence{store: cfg.Store, log: cfg.Log},
		cost: cost{alarms: map[anomaly.Kind]uint64{}}}
	if err := l.reload(ctx); err != nil {
		return nil, err
	}
	l.publish(now)
	return l, nil
}

// reload makes the tracker what the recorder has.
func (l *Loop) reload(ctx context.Context) error {
	l.behind = true
	all, err := l.cfg.Recorder.Findings(ctx)
	if err != nil {
		return fmt.Errorf("read the recorded findings: %w", err)
	}
	l.tracker, l.behind = anomaly.NewTracker(l.cfg.Settings, all), false
	return nil
}

// publish shows what the tracker has: called only while that is what the recorder has.
func (l *Loop) publish(now time.Time) {
	l.inbox.mu.Lock()
	defer l.inbox.mu.Unlock()
	for i := range l.inbox.adopted {
		l.tracker.Adopt(l.inbox.adopted[i])
	}
	l.inbox.adopted = nil
	all, suspected := l.tracker.Findings(now.Add(-showClosed)), l.tracker.Suspected()
	l.list.Store(&all)
	l.suspected.Store(&suspected)
}

// Findings returns the open findings, the oldest first, then those closed within the last hour. It
// is shared and must not be changed.
func (l *Loop) Findings() []anomaly.Finding { return *l.list.Load() }

// Settings are the rules of a finding's life.
func (l *Loop) Settings() anomaly.Settings { return l.cfg.Settings }

// Suspected lists the nodes that canary probes look at more often, as of the newest step. It is shared and must
// not be changed.
func (l *Loop) Suspected() []topology.NodeID { return *l.suspected.Load() }

// Probe takes the outcome of one canary probe; the next step counts it.
func (l *Loop) Probe(node topology.NodeID, ok bool) {
	l.inbox.mu.Lock()
	defer l.inbox.mu.Unlock()
	if len(l.inbox.probes) >= maxProbed {
		l.inbox.probes = l.inbox.probes[1:]
	}
	l.inbox.probes = append(l.inbox.probes, probed{node, ok})
}

// Adopt takes a finding as the recorder has it after a person acknowledged, silenced, noted or dismissed it. It is
// shown at once.
func (l *Loop) Adopt(f anomaly.Finding) {
	l.inbox.mu.Lock()
	defer l.inbox.mu.Unlock()
	l.inbox.adopted = append(l.inbox.adopted, f)
	all := slices.Clone(l.Findings())
	if i := slices.IndexFunc(all, func(o anomaly.Finding) bool { return o.ID == f.ID }); i >= 0 {
		all[i] = f
		l.list.Store(&all)
	}
}

// takeInbox gives the tracker what has come since the newest step.
func (l *Loop) takeInbox() {
	l.inbox.mu.Lock()
	defer l.inbox.mu.Unlock()
	for i := range l.inbox.adopted {
		l.tracker.Adopt(l.inbox.adopted[i])
	}
	for _, p := range l.inbox.probes {
		l.tracker.Probe(p.node, p.ok)
	}
	l.inbox.adopted, l.inbox.probes = nil, nil
}

// Run steps once a second until ctx ends.
func (l *Loop) Run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var due time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if !due.IsZero() {
				l.cfg.Lateness.Note(due, now)
			}
			due = now.Add(time.Second)
			if err := l.Step(ctx, now); err != nil && ctx.Err() == nil {
				l.cfg.Log.Error("the findings of a second were not recorded; they are made again", "err", err)
			}
		}
	}
}

// Step judges the second that ended before now. What it changes is shown once the recorder has it.
func (l *Loop) Step(ctx context.Context, now time.Time) error {
	m := l.cfg.Machine()
	verdicts, took := l.detect(now, m)
	l.cost.take(took, verdicts)
	if len(m.Quiet) > 0 { // the detectors' own list stays as it is
		verdicts = slices.DeleteFunc(slices.Clone(verdicts), func(v anomaly.Verdict) bool { return m.Quiet[v.Node] })
	}
	if l.behind {
		if err := l.reload(ctx); err != nil {
			return err
		}
	}
	l.takeInbox()
	acts := l.cfg.Acting == nil || l.cfg.Acting()
	if !acts || l.cfg.Lateness.Within(now) > 0 {
		l.publish(now)
		l.behind = !acts // who is late accuses nobody, and keeps what jobs have lost since the last record
		return nil
	}
	changes := l.tracker.Step(now, verdicts, anomaly.Pool{Forwarders: len(m.Forwarders), Healthy: m.Healthy,
		Excluded: maps.Clone(m.Excluded)})
	if len(changes) > 0 {
		if err := l.record(ctx, now, m, changes); err != nil {
			l.behind = true
			return err
		}
	}
	l.publish(now)
	return nil
}

func (l *Loop) record(ctx context.Context, now time.Time, m *Machine, changes []anomaly.Change) error {
	var nodes []topology.NodeID
	for i := range changes {
		nodes = append(nodes, changes[i].Finding.Node)
	}
	frozen := l.evidence.read(ctx, now, nodes, m.Forwarders)
	for i := range changes {
		changes[i].Frozen = frozen[changes[i].Finding.Node]
	}
	if err := l.cfg.Recorder.RecordFindings(ctx, changes); err != nil {
		return err
	}
	for i := range changes {
		f := &changes[i].Finding
		if changes[i].Cleared && l.cfg.Detector != nil {
			l.cfg.Detector.Forget(f.Node)
		}
		l.cfg.Log.Info("finding", "id", f.ID, "node", f.Node, "kind", f.Kind, "state", f.State, "why", f.Why)
	}
	return nil
}

// Freeze reads the evidence about one node at now, for a change that a person makes.
func (l *Loop) Freeze(ctx context.Context, now time.Time, node topology.NodeID) *anomaly.Frozen {
	return l.evidence.read(ctx, now, []topology.NodeID{node}, l.cfg.Machine().Forwarders)[node]
}

// detect asks the detector, and measures what that costs.
func (l *Loop) detect(now time.Time, m *Machine) ([]anomaly.Verdict, time.Duration) {
	if l.cfg.Detector == nil {
		return nil, 0
	}
	runtime.LockOSThread() // its clock is that of one thread
	defer runtime.UnlockOSThread()
	begun := cpuTime()
	verdicts := l.cfg.Detector.Verdicts(now, m)
	return verdicts, cpuTime() - begun
}

// cost is what detection takes, and how often it alarms.
type cost struct {
	mu      sync.Mutex // guards everything that follows
	seconds uint64
	cpu     time.Duration
	alarms  map[anomaly.Kind]uint64
}

func (c *cost) take(cpu time.Duration, verdicts []anomaly.Verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seconds++
	c.cpu += cpu
	for i := range verdicts {
		if verdicts[i].Level == anomaly.Alarm {
			c.alarms[verdicts[i].Kind]++
		}
	}
}

// cpuTime is the processor time of the calling thread: what others do meanwhile does not count.
func cpuTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// WriteMetrics writes the detector's cost and the findings' states in Prometheus text format.
func (l *Loop) WriteMetrics(w io.Writer) {
	l.cost.mu.Lock()
	seconds, cpu, alarms := l.cost.seconds, l.cost.cpu, maps.Clone(l.cost.alarms)
	l.cost.mu.Unlock()
	fmt.Fprintf(w, "fairway_detector_seconds_total %d\n", seconds)
	fmt.Fprintf(w, "fairway_detector_cpu_seconds_total %g\n", cpu.Seconds())
	for _, k := range slices.Sorted(maps.Keys(alarms)) {
		fmt.Fprintf(w, "fairway_detector_alarm_seconds_total{kind=%q} %d\n", k, alarms[k])
	}
	if d, ok := l.cfg.Detector.(interface{ Judged() (lately, all Judged) }); ok {
		_, all := d.Judged()
		fmt.Fprintf(w, "fairway_detector_forwarder_seconds_total{outcome=\"judged\"} %d\n", all.Judged)
		fmt.Fprintf(w, "fairway_detector_forwarder_seconds_total{outcome=\"late\"} %d\n", all.Late)
		fmt.Fprintf(w, "fairway_detector_forwarder_seconds_total{outcome=\"skipped\"} %d\n", all.Skipped)
		fmt.Fprintf(w, "fairway_detector_class_seconds_total %d\n", all.Served)
		fmt.Fprintf(w, "fairway_detector_class_seconds_unknown_total %d\n", all.Unknown)
	}
	type key struct {
		kind  anomaly.Kind
		state anomaly.State
	}
	count := map[key]int{}
	for _, f := range l.Findings() {
		count[key{f.Kind, f.State}]++
	}
	for k, n := range count {
		fmt.Fprintf(w, "fairway_findings{kind=%q,state=%q} %d\n", k.kind, k.state, n)
	}
}
