package scenariotest

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/anomaly/recorded"
)

// closedTraces are the siblings of the public traces in which clients wait for answers: as many forwarders, an hour
// each, and six neighbours of the last fail at once.
var closedTraces = []struct {
	name  string
	nodes int
	seed  uint64
	rack  bool
}{{"closed-a", 80, 71, false}, {"closed-b", 64, 72, false}, {"closed-c", 96, 73, true}}

// slot is how many seconds a row of probe.csv speaks for.
const slot = 10

// writeTrace writes a recording into dir, in the files of the public traces.
func writeTrace(dir string, r *Recording) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range []struct {
		name, header string
		rows         func(w io.Writer)
	}{
		{"samples.csv.gz", "rx,ts,node,r_bytes,w_bytes,r_ops,w_ops,m_ops,qlen,r_wait_us,w_wait_us,m_wait_us,r_exe_us," +
			"w_exe_us,m_exe_us", r.samples},
		{"backend.csv.gz", "rx,pool0_us,pool1_us,pool2_us,pool3_us,pool4_us,pool5_us,pool6_us,pool7_us,mds_us",
			r.backend},
		{"probe.csv.gz", "rx,node,read1m_us,write1m_us,stat_us", r.probes},
		{"nodes.csv", "node,group,rack,default_service", r.nodes},
		{"jobs.csv", "job,app,start,end,nodes", r.jobs},
		{"labels.csv", "cat,node,start,end,kind,severity,info,weak_info,obs_s,obs_ops,first_obs", r.truth},
	} {
		if err := writeTable(filepath.Join(dir, f.name), f.header, f.rows); err != nil {
			return err
		}
	}
	return nil
}

func writeTable(path, header string, rows func(w io.Writer)) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, f.Close()) }()
	var out io.Writer = f
	if strings.HasSuffix(path, ".gz") {
		z := gzip.NewWriter(f)
		defer func() { err = cmp.Or(err, z.Close()) }()
		out = z
	}
	w := bufio.NewWriter(out) // it keeps the first error for Flush
	fmt.Fprintln(w, header)
	rows(w)
	return w.Flush()
}

const us = 1e6

func (r *Recording) samples(w io.Writer) {
	for i := range r.Seconds {
		s := &r.Seconds[i]
		for k := range s.Rows {
			o := &s.Rows[k]
			c := &o.Class
			fmt.Fprintf(w, "%d,%d,%s,%.0f,%.0f,%.0f,%.0f,%.0f,%.1f,%.1f,%.1f,%.1f,%.1f,%.1f,%.1f\n", s.RX, s.RX, o.Node,
				c[0].Bytes, c[1].Bytes, c[0].Ops, c[1].Ops, c[2].Ops, o.QueueLen, c[0].Wait*us, c[1].Wait*us,
				c[2].Wait*us, c[0].Exec*us, c[1].Exec*us, c[2].Exec*us)
		}
	}
}

func joined[T any](list []T, between string) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(list), "[]"), " ", between)
}

func (r *Recording) backend(w io.Writer) {
	for i := range r.Seconds {
		s := &r.Seconds[i]
		fmt.Fprintf(w, "%d,", s.RX)
		for _, p := range s.Pools {
			fmt.Fprintf(w, "%.1f,", p*us)
		}
		fmt.Fprintln(w, "190.0") // the metadata server is never slow
	}
}

func (r *Recording) probes(w io.Writer) {
	for i := 0; i < len(r.Seconds); i += slot {
		for n, id := range r.names {
			p := &r.canaries[i*len(r.names)+n]
			fmt.Fprintf(w, "%d,%s,%.1f,%.1f,%.1f\n", r.Seconds[i].RX, id, p.Took[0]*us, p.Took[1]*us, p.Took[2]*us)
		}
	}
}

func (r *Recording) nodes(w io.Writer) {
	const rack = 8
	for n, id := range r.names {
		fmt.Fprintf(w, "%s,A,%d,1\n", id, n/rack)
	}
}

func (r *Recording) jobs(w io.Writer) {
	for _, j := range r.Jobs {
		fmt.Fprintf(w, "%s,,%d,%d,%s\n", j.ID, j.Start, j.End, joined(j.Nodes, ";"))
	}
}

func (r *Recording) truth(w io.Writer) {
	faults := r.Scenario.Faults
	for i, l := range r.Labels() {
		if !l.Fault {
			fmt.Fprintf(w, "conf,%s,%d,%d,%s,,0,0,0,0,\n", l.Node, l.Start, l.End, l.Kind)
			continue
		}
		first := ""
		if l.Seconds > 0 {
			first = fmt.Sprint(l.First)
		}
		fmt.Fprintf(w, "fault,%s,%d,%d,%s,%.3g,%.1f,0,%d,0,%s\n", l.Node, l.Start, l.End, l.Kind, faults[i].Severity,
			l.Info, l.Seconds, first)
	}
}

// TestScoreOfClosedTraces writes the traces in which clients wait for answers, into FAIRWAY_TRACES if that is set,
// reads them back as 'fairway detect' does, and scores the detector and the usual rules by the labels among them. It
// takes the last, with the most faults; all of them where FAIRWAY_TRACES is set, or FAIRWAY_LONG, as make prove has it.
func TestScoreOfClosedTraces(t *testing.T) {
	if testing.Short() {
		t.Skip("hours of simulated forwarders, written and read")
	}
	into := os.Getenv("FAIRWAY_TRACES")
	if into == "" {
		into = t.TempDir()
	}
	traces := closedTraces
	if os.Getenv("FAIRWAY_TRACES") == "" && os.Getenv("FAIRWAY_LONG") == "" {
		traces = traces[2:]
	}
	var own, fixed, peers Score
	for _, c := range traces {
		s := DrawLoops(c.seed, c.nodes)
		if c.rack {
			s.mix(rand.New(rand.NewPCG(c.seed, c.seed)), Rack)
		}
		dir := filepath.Join(into, c.name)
		if err := writeTrace(dir, Record(s)); err != nil {
			t.Fatal(err)
		}
		score(t, dir, &own, &fixed, &peers)
	}
	t.Log("built in:        ", own.String())
	t.Log("fixed threshold: ", fixed.String())
	t.Log("peer z-score:    ", peers.String())
	for _, f := range append(own.FalseAlarms, own.NotFound...) {
		t.Log(f)
	}
	if own.Precision() < 0.95 || own.Recall() < 0.85 || own.FalsePerNodeDay() > 0.2 || own.HealthyMost > 1 {
		t.Error("below the bar")
	}
}

// TestTraceIsTheLayer: what is written of a layer and read back gives the detector what the layer itself gave it.
func TestTraceIsTheLayer(t *testing.T) {
	s := DrawLoops(2003, 4)
	s.Seconds = 400
	r := Record(s)
	dir := t.TempDir()
	if err := writeTrace(dir, r); err != nil {
		t.Fatal(err)
	}
	trace, err := recorded.Open(dir, func(e *recorded.RowError) { t.Error(e) })
	if err != nil {
		t.Fatal(err)
	}
	defer trace.Close()
	if len(trace.Nodes) != s.Nodes || len(trace.Jobs) != len(r.Jobs) || len(readLabels(t, dir)) != len(r.labels) {
		t.Errorf("%d nodes, %d jobs and %d labels, want %d, %d and %d", len(trace.Nodes), len(trace.Jobs),
			len(readLabels(t, dir)), s.Nodes, len(r.Jobs), len(r.labels))
	}
	const near = 0.051e-6 // a written time has a tenth of a microsecond
	for i := range r.Seconds {
		got, err := trace.Next()
		if err != nil {
			t.Fatal(i, err)
		}
		want := &r.Seconds[i]
		if got.RX != want.RX || len(got.Rows) != len(want.Rows) || len(got.Pools) != len(want.Pools) {
			t.Fatalf("second %d: %d with %d rows and %d pools, want %d, %d and %d", i, got.RX, len(got.Rows),
				len(got.Pools), want.RX, len(want.Rows), len(want.Pools))
		}
		for k := range want.Rows {
			a, b := &got.Rows[k], &want.Rows[k]
			for c := range a.Class {
				x, y := a.Class[c], b.Class[c]
				if a.Node != b.Node || x.Ops != y.Ops || math.Abs(x.Bytes-y.Bytes) > 0.5 ||
					math.Abs(x.Exec-y.Exec) > near {
					t.Fatalf("second %d: %s, class %d: %+v, want %+v", i, a.Node, c, x, y)
				}
			}
			p, ok := trace.Canary(b.Node)
			if q := r.canaries[i/slot*slot*s.Nodes+k]; ok && math.Abs(p.Took[0]-q.Took[0]) > near {
				t.Fatalf("second %d: canary of %s %v, want %v", i, b.Node, p, q)
			}
		}
	}
}

// score adds what the detector and the usual rules say of a trace.
func score(t *testing.T, dir string, own, fixed, peers *Score) {
	t.Helper()
	var events []recorded.Event
	sum, err := recorded.Detect(context.Background(), dir, recorded.DefaultSettings(), func(e recorded.Event) error {
		events = append(events, e)
		return nil
	}, func(e *recorded.RowError) { t.Error(e) })
	if err != nil {
		t.Fatal(err)
	}
	from, to, nodes, rules := naive(t, dir)
	name := filepath.Base(dir)
	t.Logf("%s: %d rows in %d seconds", name, sum.Rows, sum.Seconds)
	own.Add(name, readLabels(t, dir), events, nodes, from, to)
	fixed.Add(name, readLabels(t, dir), rules[0], nodes, from, to)
	peers.Add(name, readLabels(t, dir), rules[1], nodes, from, to)
}
