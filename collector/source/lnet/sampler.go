package lnet

import (
	"fmt"
	"time"
)

// SampleHz is how often a router's gauges are sampled: the messages in it, its free buffers, its interfaces'
// credits. A router at half speed under a quarter of its load is found in seconds from 20 samples a second, and not
// at all from one.
const SampleHz = 20

// gauges are sums over the samples of one second.
type gauges struct {
	samples            float64
	inside             float64 // messages in the router
	pools, nis         float64 // samples that have buffers, and interfaces
	free               float64 // least share of free buffers of any pool and CPU partition
	noBuffer, noCredit float64 // messages that wait for a buffer, and for an interface's credit
}

// sample reads the stats, buffers and nis of a root once. The first two take LNet's exclusive lock.
func (s *Source) sample(root string) (add func(*gauges), err error) {
	var one gauges
	b, err := s.read(root + "/stats")
	var st Stats
	if err == nil {
		if st, err = ParseStats(b); err != nil {
			err = fmt.Errorf("%s/stats: %w", root, err)
		}
	}
	if err == nil {
		one.samples, one.inside = 1, float64(st.MsgsAlloc)
	}
	if b, bad := s.read(root + "/buffers"); bad == nil {
		pools, _ := ParseBuffers(b)
		one.addPools(pools)
	}
	if b, bad := s.read(root + "/nis"); bad == nil {
		nis, _ := ParseNIs(b)
		one.addNIs(nis)
	}
	return func(sum *gauges) {
		sum.samples, sum.inside = sum.samples+one.samples, sum.inside+one.inside
		sum.pools, sum.nis, sum.free = sum.pools+one.pools, sum.nis+one.nis, sum.free+one.free
		sum.noBuffer, sum.noCredit = sum.noBuffer+one.noBuffer, sum.noCredit+one.noCredit
	}, err
}

// readGauges returns what was sampled since the last tick; a router's sampling begins with its first tick. That no
// sample came in most of a second is an error: one that hangs is the last one.
func (s *Source) readGauges(root string, router bool) (sum gauges, err error) {
	switch {
	case !router:
		s.gauges.Stop()
		s.sampled = ""
		return sum, nil
	case s.sampled != root:
		s.gauges.Stop()
		s.sampled = root
		s.gauges.Start(time.Second/SampleHz, func() (func(*gauges), error) { return s.sample(root) })
		return sum, nil
	}
	sum, over, err := s.gauges.Take()
	if sum.samples == 0 && err == nil && over > time.Second/2 {
		err = fmt.Errorf("no sample of stats, buffers and nis below %s in %s: a read of one of them does not end, or "+
			"the node has no time for it; messages in the router and their time are not known", root,
			over.Round(time.Millisecond))
	}
	return sum, err
}

// addPools takes the buffers: one starved CPU partition is enough to stall its peers.
func (g *gauges) addPools(pools []Pool) {
	free := 1.0
	for _, p := range pools {
		if p.Count <= 0 {
			continue
		}
		g.pools = 1
		free = min(free, float64(max(0, p.Credits))/float64(p.Count))
		g.noBuffer += float64(max(0, -p.Credits))
	}
	g.free = free * g.pools
}

func (g *gauges) addNIs(nis []NI) {
	for _, n := range nis {
		g.nis = 1
		g.noCredit += float64(max(0, -n.Credits))
	}
}
