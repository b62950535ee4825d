package dvs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"fairway/collector"
)

// SampleHz is how often a client's list of outstanding requests is read. While it is, the node's DVS sends nothing and
// its interrupts are off, for about a microsecond an entry.
const SampleHz = 10

// gauges are sums over the samples of one second.
type gauges struct {
	samples float64
	all     float64
	class   [classes]float64
	oldest  time.Duration // of any of them
}

// sample reads the list once.
func (s *Source) sample() (add func(*gauges), err error) {
	all, err := s.requests()
	if err != nil {
		return nil, err
	}
	return func(sum *gauges) {
		sum.samples++
		for i := range all {
			r := &all[i]
			if r.Kind == lock {
				continue
			}
			sum.all++
			sum.oldest = max(sum.oldest, r.Age)
			if c, ok := classOf(r.Kind); ok {
				sum.class[c]++
			}
		}
	}, nil
}

// requests reads the list.
func (s *Source) requests() ([]Request, error) {
	for _, root := range roots {
		name := path.Join(root.transport, "requests")
		b, err := s.read(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, asRoot(err)
		}
		all, err := ParseRequests(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w; what hangs is not seen", name, err)
		}
		return all, nil
	}
	return nil, fmt.Errorf("no list of outstanding requests in %s or %s; what hangs is not seen", roots[0].transport,
		roots[1].transport)
}

// listTimes make times of the list, by Little's law: as many requests as are under way in the mean, over as many as end
// in a second.
type listTimes struct {
	usual [classes]float64 // requests that a second's samples saw, smoothed over those before
}

const (
	// enoughSeen is how many requests of a class the samples of a second have usually seen where the second's own are
	// taken for a time: fewer are mostly chance. What a second itself saw does not count: seconds that are reported
	// because they saw many would make a lightly used server look slow.
	enoughSeen = 5
	// smoothSeen is the weight of a second in what is usual.
	smoothSeen = 0.1
)

// add reports the times of a second that ends perSecond operations of each class.
func (l *listTimes) add(into *collector.Reading, g *gauges, perSecond [classes]float64) {
	for c, seen := range g.class {
		if l.usual[c] >= enoughSeen && perSecond[c] > 0 {
			into.Add(metricsOf[c].client, seen/g.samples/perSecond[c])
		}
		l.usual[c] += smoothSeen * (seen - l.usual[c])
	}
}

// outstanding reports what a client waits for. Sampling begins with the first tick that finds a mount.
func (s *Source) outstanding(into *collector.Reading, perSecond [classes]float64, exact bool) error {
	s.gauges.Start(time.Second/SampleHz, s.sample)
	s.gauges.Add(s.sample) // what is wrong with the list now is known now
	g, _, err := s.gauges.Take()
	if g.samples == 0 || s.rates.Seconds() == 0 { // else they are of more than the second
		return err
	}
	into.Add(collector.InFlight, g.all/g.samples)
	into.Add(collector.RequestAge, g.oldest.Seconds())
	if !exact {
		into.Add(collector.MetaInFlight, g.class[meta]/g.samples)
		s.list.add(into, &g, perSecond)
	}
	return err
}
