package layout

import (
	"math"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector/topology"
)

const stateVersion = 1

// state is what was learnt, and the evidence so far, by the names of the file. What is gathered over a block, and who
// holds routers up, shows itself again in seconds.
type state struct {
	Version int
	Routers []kept
	Usual   []savedLoad
	Noise   habit
}

// kept is what outlives a restart of one router.
type kept struct {
	ID     topology.NodeID
	Group  string
	Habit  habit
	Wealth failslow.SequentialTest
	Alarm  bool
	Since  int64
	Ratio  float64 // smoothed log ratio to the peers
	// Stopped routers have forwarded nothing for long enough while senders waited, Hung counts such seconds.
	Stopped bool
	Hung    int
}

type savedLoad struct {
	Group        string
	Size, Amount int
	Habit        habit
}

// MarshalBinary saves what was learnt and the evidence so far.
func (g *Group) MarshalBinary() ([]byte, error) {
	s := state{Version: stateVersion, Noise: g.noise}
	for _, r := range g.order {
		s.Routers = append(s.Routers, r.kept)
	}
	for l, h := range g.usual {
		s.Usual = append(s.Usual, savedLoad{l.group, l.size, l.amount, *h})
	}
	return anomaly.Save(s)
}

// UnmarshalBinary takes up a saved state; none at all is an empty one. On an error the group is as it was.
func (g *Group) UnmarshalBinary(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	var s state
	if err := anomaly.Load(b, &s, &s.Version, stateVersion); err != nil {
		return err
	}
	g.routers, g.order, g.usual, g.noise = map[topology.NodeID]*router{}, nil, map[load]*habit{}, s.Noise
	for _, k := range s.Routers {
		r := g.router(k.ID)
		r.kept = k
		r.newest.x, r.newest.apart = math.NaN(), math.NaN()
	}
	for _, l := range s.Usual {
		g.usual[load{l.Group, l.Size, l.Amount}] = &l.Habit
	}
	return nil
}
