package replay

import (
	"context"
	"errors"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/anomaly/watch"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// Play reads a record's moments at their times and judges each second, by the clock of a testing/synctest bubble. It
// returns the changes of findings; each second it hands what is open to look, which may be nil.
func Play(ctx context.Context, s *Site, record []Moment,
	look func(now time.Time, open []anomaly.Finding, board *window.Board)) (changes []anomaly.Change, err error) {
	p := &player{site: s, agents: map[string]*agent{}, board: window.NewBoard(0),
		tracker: anomaly.NewTracker(anomaly.DefaultSettings(), nil)}
	p.detectors = watch.NewDetectors(p.board, failslow.DefaultSettings())
	defer func() { err = errors.Join(err, p.close()) }()
	if len(record) == 0 {
		return nil, errors.New("an empty record")
	}
	const after = 900 * time.Millisecond // of a second: what came late in it is there
	judge := record[0].At.Truncate(time.Second).Add(after)
	for i := range record {
		for ; judge.Before(record[i].At); judge = judge.Add(time.Second) {
			time.Sleep(time.Until(judge))
			changes = append(changes, p.judge(judge)...)
			if look != nil {
				look(judge, p.tracker.Findings(judge), p.board)
			}
		}
		time.Sleep(time.Until(record[i].At))
		if err := p.take(ctx, &record[i]); err != nil {
			return changes, err
		}
	}
	return changes, nil
}

type player struct {
	site      *Site
	agents    map[string]*agent
	board     *window.Board
	detectors *watch.Detectors
	tracker   *anomaly.Tracker
}

func (p *player) take(ctx context.Context, m *Moment) error {
	a := p.agents[m.Node]
	if a == nil {
		var err error
		if a, err = p.site.newAgent(m.Node); err != nil {
			return err
		}
		p.agents[m.Node] = a
	}
	a.take(m)
	p.board.Take([]collector.Frame{a.frame(ctx, m)}, m.At)
	return nil
}

// judge asks the detectors about the newest second.
func (p *player) judge(now time.Time) []anomaly.Change {
	seen := p.board.Routes(now)
	m := &watch.Machine{Mapping: window.Mapping(seen), Spread: map[topology.NodeID][]topology.Share{}}
	for n, r := range seen {
		if len(r.Shares) > 1 {
			m.Spread[n] = r.Shares
		}
	}
	for f := range p.site.Forwarders {
		m.Forwarders = append(m.Forwarders, f)
	}
	slices.Sort(m.Forwarders)
	m.Healthy = len(m.Forwarders)
	verdicts := p.detectors.Verdicts(now, m)
	changes := p.tracker.Step(now, verdicts, anomaly.Pool{Forwarders: len(m.Forwarders), Healthy: m.Healthy})
	for i := range changes {
		if changes[i].Cleared {
			p.detectors.Forget(changes[i].Finding.Node)
		}
	}
	return changes
}

func (p *player) close() (err error) {
	for _, a := range p.agents {
		err = errors.Join(err, a.close())
	}
	return err
}
