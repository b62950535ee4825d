// Package scraped reads what exporters counted, as a Prometheus keeps it or a folder has it that was saved: what each
// server did between two scrapes, in fairway's own metrics. It asks and reads; it changes nothing.
//
// A counter that went backwards and an interval in which a scrape is missing give no value.
package scraped

import (
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"fairway/collector"
)

// Subject is what an interval is of.
type Subject struct {
	Kind  Kind
	Name  string
	Node  string // the node that has it
	Group string // of subjects that do the same kind of work
}

// Interval is what one subject did between two scrapes.
type Interval struct {
	Subject Subject
	By      string // the node that counted it
	End     time.Time
	Every   time.Duration // from scrape to scrape, usually
	Samples []collector.Sample
	Means   []Mean
}

// Mean is a mean time with what it is of.
type Mean struct {
	Metric       collector.Metric
	Operation    string // where operations are timed apart
	Ops, Seconds float64
}

// Series is a series of an exporter, in order of time.
type Series struct {
	Labels map[string]string
	Points []Point
}

// Point is one value.
type Point struct {
	Millis int64 // Unix
	Value  float64
}

// nameLabel has a series' metric.
const nameLabel = "__name__"

// Summary is what was read.
type Summary struct {
	Exporters []string
	Series    int
	Values    int
	Resets    int       // counters that went backwards
	Missed    int       // intervals without a scrape
	Jobs      bool      // some series are of jobs
	From, To  time.Time // of the intervals
}

// Reader turns series into intervals. It is not for concurrent use.
type Reader struct {
	table    table
	named    map[string]bool // nodes
	serves   map[string]bool // nodes that serve NFS
	counters map[string]*counter
	scrapes  map[string]*scrape
	take     func(Interval) error
	exported map[string]bool
	sum      Summary
}

// NewReader makes a reader of the servers that its series show and of nodes that are named.
func NewReader(named []string, take func(Interval) error) *Reader {
	r := &Reader{table: newTable(), named: map[string]bool{}, serves: map[string]bool{},
		counters: map[string]*counter{}, scrapes: map[string]*scrape{}, take: take, exported: map[string]bool{}}
	for _, n := range named {
		r.named[n] = true
	}
	return r
}

// counter is one series.
type counter struct {
	id     int
	labels string // all of them
	scrape *scrape
	shares []share
	last   int64 // of its newest point
}

// Take reads a batch: all series of a stretch of time that begins where the batch before ended.
func (r *Reader) Take(batch []Series) error {
	for i := range batch {
		r.notice(&batch[i])
	}
	for i := range batch {
		r.gather(&batch[i])
	}
	var out []Interval
	for _, key := range slices.Sorted(maps.Keys(r.scrapes)) {
		out = r.scrapes[key].walk(out, &r.sum)
	}
	slices.SortStableFunc(out, func(a, b Interval) int { return a.End.Compare(b.End) })
	for i := range out {
		if r.sum.From.IsZero() {
			r.sum.From = out[i].End.Add(-out[i].Every)
		}
		r.sum.To = out[i].End
		if err := r.take(out[i]); err != nil {
			return err
		}
	}
	return nil
}

// Summary is of what was read so far.
func (r *Reader) Summary() Summary {
	s := r.sum
	s.Exporters, s.Series = slices.Sorted(maps.Keys(r.exported)), len(r.counters)
	return s
}

// notice sees which nodes serve NFS, and whether there are series of jobs.
func (r *Reader) notice(s *Series) {
	name := s.Labels[nameLabel]
	if name == "node_nfsd_server_threads" && len(s.Points) > 0 && s.Points[len(s.Points)-1].Value > 0 {
		r.serves[nodeOf(s.Labels)] = true
	}
	r.sum.Jobs = r.sum.Jobs || isOfJobs(name)
}

// isOfJobs reports whether a metric is of a job's share of a target.
func isOfJobs(name string) bool {
	return strings.HasPrefix(name, "lustre_job_") || strings.HasPrefix(name, "lustre2_jobstats_")
}

// nodeOf is the node that labels name.
func nodeOf(labels map[string]string) string {
	if host := labels["host"]; host != "" {
		return host
	}
	if host, _, err := net.SplitHostPort(labels["instance"]); err == nil {
		return host
	}
	return labels["instance"]
}

// isNamed reports whether a node was named, with its domain or without.
func (r *Reader) isNamed(node string) bool {
	short, _, _ := strings.Cut(node, ".")
	return r.named[node] || r.named[short]
}

// gather adds the points of a series to its scrape.
func (r *Reader) gather(s *Series) {
	id, all := identify(s.Labels)
	c := r.counters[id]
	if c == nil {
		c = &counter{id: len(r.counters), labels: all, scrape: r.scrape(s.Labels)}
		if c.shares = r.shares(c.scrape, s.Labels); len(c.shares) == 0 {
			return
		}
		r.counters[id] = c
	}
	if c.labels != all {
		return // one mount in another place: the kernel counts them together
	}
	for _, p := range s.Points {
		if p.Millis <= c.last || !collector.IsValue(p.Value) || p.Value < 0 {
			continue
		}
		if c.last > 0 && c.scrape.every == 0 {
			c.scrape.gaps = append(c.scrape.gaps, p.Millis-c.last)
		}
		c.last = p.Millis
		r.sum.Values++
		c.scrape.readings = append(c.scrape.readings, reading{p.Millis, c, p.Value})
	}
}

// scrape finds or adds what a series is read with.
func (r *Reader) scrape(labels map[string]string) *scrape {
	key := strings.Join([]string{labels["instance"], labels["job"], labels["host"], labels["db"]}, "\x00")
	s := r.scrapes[key]
	if s == nil {
		s = &scrape{node: nodeOf(labels)}
		r.scrapes[key] = s
	}
	return s
}

// identify names a series, without and with the place of its mount.
func identify(labels map[string]string) (id, all string) {
	var short, long strings.Builder
	for _, l := range slices.Sorted(maps.Keys(labels)) {
		for _, b := range []*strings.Builder{&short, &long} {
			if b == &long || l != "mountpoint" {
				b.WriteString(l)
				b.WriteByte(0)
				b.WriteString(labels[l])
				b.WriteByte(0)
			}
		}
	}
	return short.String(), long.String()
}

// shares is what a series adds to, by each row that it matches.
func (r *Reader) shares(of *scrape, labels map[string]string) (out []share) {
	for i := range r.table {
		m := &r.table[i]
		if !m.matches(labels) {
			continue
		}
		s := subjectOf(&m.row, labels)
		if s.Kind == Node && !r.isNamed(s.Node) || s.Kind == Disk && !r.isNamed(s.Node) && !r.serves[s.Node] {
			continue
		}
		factor, operations := m.scale, []string{""}
		switch {
		case m.part == histogram:
			var ok bool
			if factor, ok = bucketSeconds(labels[m.apart]); !ok {
				continue
			}
		case m.part == spent:
			operations[0] = labels[m.apart]
		case m.apart != "":
			operations = append(operations, labels[m.apart])
		}
		r.exported[m.exporter] = true
		for _, s := range addServer(s) {
			for _, o := range operations {
				out = append(out, share{of.subject(s), quantity{m.metric, o}, m.part, factor})
			}
		}
	}
	return out
}

// addServer adds to a target the node that serves it.
func addServer(s Subject) []Subject {
	if s.Kind != Target {
		return []Subject{s}
	}
	group := "Lustre's object servers"
	if isMetadata(s.Name) {
		group = "Lustre's metadata servers"
	}
	return []Subject{s, {Server, s.Node, s.Node, group}}
}

func isMetadata(target string) bool { return strings.Contains(target, "MDT") }

// subjectOf is what a series of a row is of.
func subjectOf(r *row, labels map[string]string) Subject {
	node := nodeOf(labels)
	ofJob := ""
	if labels["job"] != "" {
		ofJob = " of the scrape job " + labels["job"]
	}
	name := node
	if r.subject != "" {
		name = labels[r.subject]
	}
	switch r.kind {
	case Target:
		what := "OSTs"
		if isMetadata(name) {
			what = "MDTs"
		}
		if i := strings.LastIndexAny(name, "-"); i > 0 {
			what += " of " + name[:i]
		}
		return Subject{Target, name, node, what}
	case NFSServer:
		return Subject{NFSServer, node, node, "NFS servers" + ofJob}
	case SeenNFS:
		server, path := name, ""
		if i := strings.LastIndex(name, ":/"); i > 0 {
			server, path = name[:i], " of "+name[i+1:]
		}
		return Subject{SeenNFS, server, server, "NFS servers" + path + " as clients see them"}
	case Router:
		return Subject{Router, node, node, "LNet routers"}
	case Disk:
		return Subject{Disk, node + " " + name, node, "disks " + name + ofJob}
	}
	return Subject{Node, node, node, "nodes that were named"}
}

// bucketSeconds is what operations of a bucket of Lustre's brw_stats take: a bucket ends at its label and the one
// before at half of it.
func bucketSeconds(text string) (float64, bool) {
	n, thousands := strings.CutSuffix(text, "K")
	ms, err := strconv.ParseFloat(n, 64)
	if err != nil || !(ms > 0) {
		return 0, false
	}
	if thousands {
		ms *= 1024
	}
	return 0.75e-3 * ms, true
}
