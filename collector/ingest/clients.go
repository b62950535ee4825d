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

// clientLists is what the forwarders of each token list, where no compute node is configured.
type clientLists struct {
	mu sync.Mutex         // guards what follows
	of map[string]float64 // clients a forwarder, by the token's name
}

// dropClients takes the clients out of a forwarder's list for which its token has no room, and counts them: those that
// are configured are taken, others and floating addresses up to a number.
func (h *Hub) dropClients(p *sender, f *collector.Frame, now time.Time) (dropped int) {
	if f.Role != topology.Forwarder || len(f.Routes) == 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listing[f.Node] = struct{}{}
	p.clients.most = h.mostClients(p)
	had := len(f.Routes)
	f.Routes = slices.DeleteFunc(f.Routes, func(r collector.Route) bool {
		if r.Client == "" {
			r.Client = topology.NodeID(r.Address)
		}
		return h.cfg.Roles[r.Client] == topology.RoleUnknown && !p.clients.take(r.Client, now)
	})
	if h.computeNodes == 0 {
		h.clients.note(p.name, float64(len(p.clients.seen))/float64(len(p.listing)))
	}
	return had - len(f.Routes)
}

// mostClients is how many clients that are not configured the forwarders of a token may list: a tenth of the configured
// ones; where none is, a number a forwarder, more if those of other tokens list more. p.mu is held.
func (h *Hub) mostClients(p *sender) int {
	most := max(h.computeNodes/10, fewClients)
	if h.computeNodes == 0 {
		most = len(p.listing) * max(clientsEach, int(peersTimes*h.clients.peers(p.name)))
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
