package lnet

import (
	"fmt"
	"path"
	"sync"
	"time"

	"fairway/collector"
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

// sampler reads a router's gauges between two ticks.
type sampler struct {
	source *Source
	root   string
	// The files that are read each time.
	stats, buffers, nis string
	end                 func() // stops it and waits for it

	mu    sync.Mutex // guards what follows
	sum   gauges
	err   error     // of the newest sample
	taken time.Time // the sums before these
}

func newSampler(s *Source, root string) *sampler {
	p := &sampler{source: s, root: root, stats: path.Join(root, "stats"), buffers: path.Join(root, "buffers"),
		nis: path.Join(root, "nis"), taken: time.Now()}
	p.end = collector.Every(time.Second/SampleHz, p.sample, p.failed)
	return p
}

// sample reads stats, buffers and nis once. The first two take LNet's exclusive lock for some microseconds.
func (p *sampler) sample() {
	var one gauges
	b, err := p.source.read(p.stats)
	var st Stats
	if err == nil {
		if st, err = ParseStats(b); err != nil {
			err = fmt.Errorf("%s: %w", p.stats, err)
		}
	}
	if err == nil {
		one.samples, one.inside = 1, float64(st.MsgsAlloc)
	}
	if b, bad := p.source.read(p.buffers); bad == nil {
		pools, _ := ParseBuffers(b)
		one.addPools(pools)
	}
	if b, bad := p.source.read(p.nis); bad == nil {
		nis, _ := ParseNIs(b)
		one.addNIs(nis)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
	s := &p.sum
	s.samples, s.inside = s.samples+one.samples, s.inside+one.inside
	s.pools, s.nis = s.pools+one.pools, s.nis+one.nis
	s.free, s.noBuffer, s.noCredit = s.free+one.free, s.noBuffer+one.noBuffer, s.noCredit+one.noCredit
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

// failed notes why a sample was not taken.
func (p *sampler) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

// take returns the sums since the last time. That no sample came in most of a second is an error: one that hangs is the
// last one.
func (p *sampler) take() (gauges, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum, err, now := p.sum, p.err, time.Now()
	if sum.samples == 0 && err == nil && now.Sub(p.taken) > time.Second/2 {
		err = fmt.Errorf("no sample of %s, %s and %s in %s: a read of one of them does not end, or the node has no "+
			"time for it; messages in the router and their time are not known", p.stats, p.buffers, p.nis,
			now.Sub(p.taken).Round(time.Millisecond))
	}
	p.sum, p.err, p.taken = gauges{}, nil, now
	return sum, err
}
