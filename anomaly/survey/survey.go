// Package survey compares servers by what exporters counted: how much of its own peak each moves, how even a group is,
// who differs from its peers, and what cannot be known from there. The comparison is
// package targetslow's, with one point from scrape to scrape.
package survey

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/targetslow"
	"fairway/collector"
	"fairway/collector/scraped"
	"fairway/collector/topology"
)

const (
	// fewOps between two scrapes say nothing of what an operation takes.
	fewOps = 10
	// mostMembers bounds a group.
	mostMembers = 20_000
)

// Survey gathers intervals. It has no clock; its methods must not be called concurrently.
type Survey struct {
	every  time.Duration // between two false alarms of a healthy server
	groups map[string]*group
}

// New makes a survey that accuses a healthy server once in every on average.
func New(every time.Duration) *Survey { return &Survey{every, map[string]*group{}} }

// group are subjects that do the same kind of work.
type group struct {
	name     string
	kind     scraped.Kind
	width    int64 // ms, from scrape to scrape
	slot     int64 // that is gathered: its number
	members  map[string]*member
	slow     *targetslow.Detector
	compared map[string]int // slots in which a class was compared
	timed    bool           // some member has times
	findings map[[2]string]*difference
	points   []targetslow.Point
}

// member is one subject of a group.
type member struct {
	scraped.Subject
	metric collector.Metric // of its loads
	loads  []float32        // of each slot, a second
	means  map[collector.Metric]*spent
	now    gathered
}

type spent struct{ ops, seconds float64 }

// gathered is what a member did in the slot.
type gathered struct {
	slot  int64
	load  float64
	known bool            // the load
	by    map[string]bool // who counted
	took  map[string]spent
}

// difference is that a member differs from its peers in a class of operations.
type difference struct {
	since, until time.Time // until is zero while it goes on
	ratio        float64   // the largest
	confidence   float64
}

// Take takes an interval. They come in order of their ends.
func (s *Survey) Take(i scraped.Interval) error {
	if i.Every <= 0 {
		return nil
	}
	g := s.groups[i.Subject.Group]
	if g == nil {
		g = &group{name: i.Subject.Group, kind: i.Subject.Kind, width: i.Every.Milliseconds(),
			members: map[string]*member{}, compared: map[string]int{}, findings: map[[2]string]*difference{},
			slow: targetslow.New(targetslow.DefaultRules(), s.every, i.Every)}
		s.groups[g.name] = g
	}
	if slot := i.End.UnixMilli() / max(g.width, 1); slot > g.slot {
		g.close()
		g.slot = slot
	}
	g.add(&i)
	return nil
}

// add adds an interval to the slot.
func (g *group) add(i *scraped.Interval) {
	m := g.members[i.Subject.Name]
	if m == nil {
		if len(g.members) >= mostMembers {
			return
		}
		m = &member{means: map[collector.Metric]*spent{}}
		g.members[i.Subject.Name] = m
	}
	m.Subject = i.Subject // a target may fail over to another node
	n := &m.now
	if n.slot != g.slot {
		*n = gathered{slot: g.slot, by: map[string]bool{}, took: map[string]spent{}}
	}
	if n.by[i.By] {
		return // scraped by two, or a little early
	}
	n.by[i.By] = true
	if load, metric, ok := loadOf(i.Samples); ok {
		m.metric = metric
		n.load, n.known = n.load+load, true
	}
	for _, t := range i.Means {
		class := classOf(t)
		n.took[class] = spent{n.took[class].ops + t.Ops, n.took[class].seconds + t.Seconds}
		mean := anomaly.Entry(m.means, t.Metric)
		mean.ops, mean.seconds = mean.ops+t.Ops, mean.seconds+t.Seconds
		g.timed = true
	}
}

// loadOf is what a subject moved: bytes a second where they are known, else operations. Of a node's links the busier
// direction counts: what a gateway takes in it sends on.
func loadOf(samples []collector.Sample) (load float64, metric collector.Metric, ok bool) {
	for _, of := range [][2]collector.Metric{{collector.ReadBytes, collector.WriteBytes}, {collector.RoutedBytes},
		{collector.LinkRxBytes, collector.LinkTxBytes}, {collector.MetaOps}, {collector.ReadOps, collector.WriteOps}} {
		a, knownA := collector.SampleOf(samples, of[0])
		b, knownB := collector.SampleOf(samples, of[1])
		switch {
		case !knownA && !knownB:
		case of[0] == collector.LinkRxBytes:
			return max(a, b), of[0], true
		default:
			return a + b, of[0], true
		}
	}
	return 0, 0, false
}

// classOf is what operations are compared under.
func classOf(t scraped.Mean) string {
	switch t.Metric {
	case collector.ReadExec, collector.ClientRead:
		return "reads"
	case collector.WriteExec, collector.ClientWrite:
		return "writes"
	}
	return cmp.Or(t.Operation, "metadata operations")
}

// close compares the members of the slot.
func (g *group) close() {
	g.points = g.points[:0]
	many := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(g.members)) {
		m := g.members[name]
		n := &m.now
		if n.slot != g.slot || n.by == nil {
			continue
		}
		if n.known {
			m.loads = append(m.loads, float32(n.load))
		}
		for _, class := range slices.Sorted(maps.Keys(n.took)) {
			if t := n.took[class]; t.ops >= fewOps {
				g.points = append(g.points, targetslow.Point{Target: topology.NodeID(name), Group: class,
					Cost: t.seconds / t.ops})
				many[class]++
			}
		}
	}
	for class, n := range many {
		if n > targetslow.DefaultRules().FewestPeers {
			g.compared[class]++
		}
	}
	at := time.UnixMilli((g.slot + 1) * g.width).UTC()
	for _, v := range g.slow.Take(at, g.points) {
		g.note(at, &v)
	}
}

// note takes a verdict. The evidence against one that is well again fades for hours: by then it is over.
func (g *group) note(at time.Time, v *anomaly.Verdict) {
	key := [2]string{string(v.Node), v.Class}
	d := g.findings[key]
	if v.Level == anomaly.Alarm && d == nil {
		d = &difference{since: v.Since}
		g.findings[key] = d
	}
	switch ratio := v.Evidence["ratio"]; {
	case d == nil:
	case v.Level == anomaly.Alarm && math.Log(ratio) > targetslow.DefaultRules().Mild.Tolerated:
		d.until, d.ratio, d.confidence = time.Time{}, max(d.ratio, ratio), max(d.confidence, v.Confidence)
	case d.until.IsZero():
		d.until = at
	}
}
