package dispatch

import (
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
)

// backEnds are the metadata operations of one second that are in service of the servers behind gateways: of what jobs
// have under way these do not wait.
type backEnds struct {
	situation *remap.Situation
	served    map[topology.NodeID]float64 // in service, by server
	asked     map[topology.NodeID]float64 // operations a second of all compute nodes, by server
	jobs      []atBackEnd
	// timed are the gateways that report how long they serve an operation, with what is behind them in it.
	timed map[topology.ForwarderID]bool
}

// atBackEnd is what a node of a job asks of a server through a gateway.
type atBackEnd struct {
	job         *seen
	gateway     topology.ForwarderID
	server      topology.NodeID
	rate, under float64
}

// behind is empty where no forwarder is a client of one server alone.
func behind(s *remap.Situation) *backEnds {
	for _, l := range s.Load {
		if l.BackEnd != "" {
			return &backEnds{situation: s, served: map[topology.NodeID]float64{}, asked: map[topology.NodeID]float64{},
				timed: map[topology.ForwarderID]bool{}}
		}
	}
	return nil
}

// add takes a node's newest second; of is its job's, nil without one.
func (b *backEnds) add(f *collector.Frame, of *seen) {
	if b == nil {
		return
	}
	rate, known := f.Value(collector.MetaOps)
	if !known {
		return
	}
	rate = max(rate, 0) // a sender may say anything, and what others ask is divided by the sum
	took, timed := f.Value(collector.MetaExec)
	switch f.Role {
	case topology.Storage:
		b.served[f.Node] = rate * took
	case topology.Forwarder:
		b.timed[topology.ForwarderID(f.Node)] = timed
	case topology.Compute:
		gateway := b.situation.Observed[f.Node]
		server := b.situation.Load[gateway].BackEnd
		if server == "" {
			return
		}
		b.asked[server] += rate
		if took, known = f.Value(collector.ClientMeta); known && of != nil {
			b.jobs = append(b.jobs, atBackEnd{of, gateway, server, rate, rate * took})
		}
	}
}

// share gives each job its part of what the servers have in service, by what its nodes ask for: a server does not count
// for whom it serves.
func (b *backEnds) share() {
	if b == nil {
		return
	}
	for _, n := range b.jobs {
		if !b.timed[n.gateway] && n.rate > 0 {
			n.job.served += min(n.under, b.served[n.server]*n.rate/b.asked[n.server])
		}
	}
}
