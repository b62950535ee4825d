// Package live makes immutable snapshots of what both faces show: the newest second of every node, and what follows
// from it.
//
// Frames arrive on the board (tsdb/window); Run turns them into snapshots, one to two a second. A reader takes the
// newest snapshot and waits for nobody.
package live

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/watch"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/remap/desk"
	"fairway/remap/journal"
	"fairway/tsdb"
	"fairway/tsdb/window"
	"fairway/webui/api"
)

// Config is what snapshots are made from.
type Config struct {
	Board *window.Board
	// Situation returns the snapshot that the desk decides on; it may be shared and must not block.
	Situation func() *remap.Situation
	Store     tsdb.Store // for the series of a forwarder's page
	Simulated bool
	// Notice is api.Overview.Notice as it is now; nil: no notice.
	Notice func() string
	// Lateness is the daemon's own, which every surface says first. nil: it is on time.
	Lateness *watch.Lateness
	// JobsKnown says that the batch system reports jobs, so that an empty list means no job; JobsAt lists those that
	// ran in a past second, with their nodes. nil: not known.
	JobsKnown func() bool
	JobsAt    func(time.Time) ([]remap.Job, error)
	// Journal visits the desk's records after a number in order, and returns the last one's (desk.Desk.Since);
	// nil: a replay knows no findings and no plans.
	Journal func(after uint64, visit func(*journal.Record) error) (last uint64, err error)
	// Canary returns a forwarder's newest canary, nil without one; nil: no canaries are sent.
	Canary func(topology.ForwarderID) *anomaly.Canary
	// Detectors compare forwarders; nil, or nil returned: how long clients wait is not known.
	Detectors func() *watch.Detectors
	// Effect is what a plan under measurement has brought so far, nil: nobody measures it; nil: nobody measures any.
	Effect func(plan string) *remap.Effect
	Log    *slog.Logger // nil: discard
}

// How the frames of one second become one snapshot.
const (
	gather     = 120 * time.Millisecond // agents tick together; wait for the rest of them
	leastApart = 450 * time.Millisecond
	beat       = time.Second // states age even when nothing comes
	// maxAhead is how far ahead of the daemon a node's clock may be and still set the time shown.
	maxAhead = 2 * time.Second
)

// Picture makes the snapshots. Arrived, Snapshot and the readers may be called concurrently.
type Picture struct {
	cfg  Config
	log  *slog.Logger
	kick chan struct{}
	snap atomic.Pointer[Snapshot]
	past past

	// What follows belongs to Run.
	desk       *desk.Desk
	plans      []remap.Plan // that wait for a person, are on their way, or were moved within the last minutes
	forwarders *places      // of the newest snapshot's machine
	compute    int          // how many compute nodes that has
}

// New returns a Picture whose first snapshot is of what the board has now.
func New(cfg Config) *Picture {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	p := &Picture{cfg: cfg, log: cfg.Log, kick: make(chan struct{}, 1)}
	p.past.cfg = &p.cfg
	p.snap.Store(p.build(nil))
	return p
}

// Arrived says that new frames lie on the board.
func (p *Picture) Arrived() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// Snapshot returns the newest snapshot; never nil.
func (p *Picture) Snapshot() *Snapshot { return p.snap.Load() }

// Run makes snapshots until ctx ends and hands each to publish, and whether plans changed. publish is
// called from Run's goroutine. desk may be nil.
func (p *Picture) Run(ctx context.Context, desk *desk.Desk, publish func(s *Snapshot, plansChanged bool)) {
	p.desk = desk
	var changes <-chan string
	if desk != nil {
		c, stop := desk.Watch(64)
		defer stop()
		changes = c
		p.readPlans(ctx)
	}
	next := time.NewTimer(0)
	defer next.Stop()
	var last time.Time
	due := time.Now().Add(beat)
	plansChanged, waiting := false, false
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-changes:
			if !open {
				changes = nil
				continue
			}
			// A plan that is applied changes many times a second; at most ten snapshots a second follow it.
			plansChanged = true
			next.Reset(100 * time.Millisecond)
			continue
		case <-p.kick:
			// Frames that come before that snapshot is made join it.
			if !waiting {
				waiting = true
				next.Reset(max(gather, leastApart-time.Since(last)))
			}
			continue
		case <-next.C:
		}
		if plansChanged {
			p.readPlans(ctx)
		}
		last = time.Now()
		p.cfg.Lateness.Note(due, last)
		due = last.Add(beat)
		s := p.build(p.Snapshot())
		p.snap.Store(s)
		publish(s, plansChanged)
		plansChanged, waiting = false, false
		next.Reset(beat)
	}
}

func (p *Picture) readPlans(ctx context.Context) {
	plans, err := p.desk.Waiting(ctx)
	if err != nil {
		p.log.Warn("the plans could not be read; the overview shows the last known ones", "err", err)
		return
	}
	newest, err := p.desk.Plans(ctx, mostFollowed)
	for i := range newest {
		q := &newest[i]
		if q.State.Final() && !q.State.Moved() || q.State == remap.Proposed ||
			time.Since(q.Changed) > advise.Stays+followedFor && !answers(q, p.Snapshot().Overview.Findings) {
			continue
		}
		whole, err := p.desk.Plan(ctx, q.ID)
		if err == nil {
			plans = append(plans, whole)
		}
	}
	if err != nil {
		p.log.Warn("the plans on their way could not be read; the overview shows those that wait", "err", err)
	}
	p.plans = plans
}

// answers says that a plan was carried out since a finding began that is still open.
func answers(q *remap.Plan, all []anomaly.Finding) bool {
	return slices.ContainsFunc(all, func(f anomaly.Finding) bool {
		return f.Open() && q.Changed.After(f.Since)
	})
}

const (
	// mostFollowed is how many of the newest plans are looked through for those on their way.
	mostFollowed = 64
	// followedFor is how long before the end of its measurement a plan may have changed.
	followedFor = 5 * time.Minute
)

// Advice is what the snapshot's cards are made of.
func (s *Snapshot) Advice() advise.Input { return s.advice }

// CardOf is a finding's card, also where it needs nobody.
func (s *Snapshot) CardOf(f *anomaly.Finding) advise.Card {
	if i := slices.IndexFunc(s.Overview.Needs, func(c advise.Card) bool { return c.Finding == f.ID }); i >= 0 {
		return s.Overview.Needs[i]
	}
	return advise.Of(f, s.advice)
}

// PlanRow is a plan as a line of a list.
func PlanRow(p *remap.Plan) api.PlanRow {
	return api.PlanRow{ID: p.ID, Title: remap.Title(p), State: p.State, Created: p.Created, Expires: p.Expires}
}

// sameNodes says that two machines list the same nodes, which is so when one was not made anew.
func sameNodes(a, b *topology.Machine) bool {
	return a == b || slices.EqualFunc(a.Nodes, b.Nodes, func(x, y topology.Node) bool { return x.ID == y.ID })
}

// places say where the board's nodes are in one layer of the machine, so that a reader of a whole layer looks
// up no names.
type places struct {
	nodes   []topology.Node // the layer, in the machine's order
	members int             // of the board when at was made
	at      []int32         // by a node's number on the board; -1 for one of another layer
}

func newPlaces(m *topology.Machine, r topology.Role) *places {
	return &places{nodes: m.ByRole(r), members: -1}
}

// follow finds the nodes that joined the board since the last call.
func (p *places) follow(b *window.Board) {
	members := b.Members()
	if members == p.members {
		return
	}
	byName := make(map[topology.NodeID]int32, len(p.nodes))
	for i, n := range p.nodes {
		byName[n.ID] = int32(i)
	}
	p.members, p.at = members, p.at[:0]
	b.All(func(n *window.Node) {
		i, ok := byName[n.Node]
		if !ok {
			i = -1
		}
		p.at = append(p.at, i)
	})
}

// of returns the place of a node, -1 for one of another layer and for one that joined just now.
func (p *places) of(n *window.Node) int {
	if int(n.Number) >= len(p.at) {
		return -1
	}
	return int(p.at[n.Number])
}
