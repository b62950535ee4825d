package ingest

import (
	"slices"
	"sync"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

const (
	// fewClients is how many clients that are not configured a token's forwarders may list at least.
	fewClients = 64
	// clientsEach is how many clients a forwarder may list where none is configured, peersTimes how many times as many
	// as those of the other tokens list on average a forwarder, if that is more. TaihuLight's forwarders have 512.
	clientsEach = 1024
	peersTimes  = 4
	// fewestPeers is how many other tokens must list clients for that.
	fewestPeers = 3
)

// clientLists bounds the clients that forwarders list.
type clientLists struct {
	roles      map[topology.NodeID]topology.Role // of the configured nodes
	configured int                               // compute nodes

	mu sync.Mutex         // guards what follows
	of map[string]float64 // clients a forwarder, by the token's name, where no compute node is configured
}

func newClientLists(roles map[topology.NodeID]topology.Role) *clientLists {
	l := &clientLists{roles: roles, of: map[string]float64{}}
	for _, r := range roles {
		if r == topology.Compute {
			l.configured++
		}
	}
	return l
}

// drop takes the clients out of a forwarder's list for which its token has no room, and counts them: those that
// are configured are taken, others and floating addresses up to a number.
func (l *clientLists) drop(p *sender, f *collector.Frame, now time.Time) (dropped int) {
	if f.Role != topology.Forwarder || len(f.Routes) == 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listing[f.Node] = struct{}{}
	p.clients.most = l.most(p)
	had := len(f.Routes)
	f.Routes = slices.DeleteFunc(f.Routes, func(r collector.Route) bool {
		if r.Client == "" {
			r.Client = topology.NodeID(r.Address)
		}
		return l.roles[r.Client] == topology.RoleUnknown && !p.clients.take(r.Client, now)
	})
	if l.configured == 0 {
		l.note(p.name, float64(len(p.clients.seen))/float64(len(p.listing)))
	}
	return had - len(f.Routes)
}

// most is how many clients that are not configured the forwarders of a token may list: a tenth of the configured
// ones; where none is, a number a forwarder, more if those of other tokens list more. p.mu is held.
func (l *clientLists) most(p *sender) int {
	most := max(l.configured/10, fewClients)
	if l.configured == 0 {
		most = len(p.listing) * max(clientsEach, int(peersTimes*l.peers(p.name)))
	}
	return min(most, p.limits.Nodes)
}

func (l *clientLists) note(token string, each float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of[token] = each
}

// peers is the median of what the forwarders of other tokens list; 0 where too few do.
func (l *clientLists) peers(token string) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	others := make([]float64, 0, len(l.of))
	for name, each := range l.of {
		if name != token {
			others = append(others, each)
		}
	}
	if len(others) < fewestPeers {
		return 0
	}
	slices.Sort(others)
	return others[len(others)/2]
}
