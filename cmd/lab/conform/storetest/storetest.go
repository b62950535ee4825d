// Package storetest proves that a tsdb.Store keeps the contract. Every implementation runs it.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
)

// Factory makes an empty store's opener for one test: calling it again after Close opens the same
// data. A store that shows samples late wraps itself so that reads wait for what was appended.
type Factory func(t *testing.T) (open func() tsdb.Store)

// Run runs the suite.
func Run(t *testing.T, f Factory) { run(t, f, 0) }

// RunDigits runs the suite on a store whose server keeps only so many significant digits of a
// value that is not an integer below 10^15, and those only among values of like size.
func RunDigits(t *testing.T, f Factory, digits int) { run(t, f, digits) }

func run(t *testing.T, f Factory, digits int) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, *suite)
	}{
		{"the range includes its start and excludes its end", inclusiveStart},
		{"appending again changes nothing", idempotent},
		{"another value replaces the old one", replaces},
		{"values come back exactly", exactValues},
		{"a gap stays a gap", gaps},
		{"a not-a-number is a gap", notANumber},
		{"metrics come and go", metricsComeAndGo},
		{"two frames of one second add up", framesAddUp},
		{"nodes come and go and are answered in the query's order", nodesComeAndGo},
		{"a node's name is a name whatever its letters", oddNames},
		{"samples an hour late are taken", late},
		{"rows in any order", anyOrder},
		{"one clock a day ahead does not matter", clockAhead},
		{"buckets keep sum, count, minimum and maximum", buckets},
		{"occupancy counts reported seconds only", occupancy},
		{"several writers", severalWriters},
		{"what was answered is there after reopening", reopen},
		{"a closed store says so", closed},
		{"a bad frame does not cost the others", badFrame},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &suite{T: t, open: f(t), digits: digits}
			s.base = time.Now().Add(-2*time.Hour).Unix() / 600 * 600
			s.store = s.open()
			c.run(t, s)
			if s.store != nil {
				if err := s.store.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}
		})
	}
}

// suite is one test's store and the second its data begins at.
type suite struct {
	*testing.T
	open  func() tsdb.Store
	store tsdb.Store
	base  int64
	// digits is how many significant digits of a fraction the store keeps; 0 is all of them.
	digits int
}

func (s *suite) frame(node topology.NodeID, sec int64, samples ...collector.Sample) collector.Frame {
	return collector.Frame{Node: node, Role: topology.Forwarder, TimeMillis: (s.base + sec) * 1000, Samples: samples}
}

func (s *suite) append(frames ...collector.Frame) {
	s.Helper()
	if err := s.store.Append(context.Background(), frames); err != nil {
		s.Fatalf("Append: %v", err)
	}
}

func read(v float64) collector.Sample { return collector.Sample{Metric: collector.ReadBytes, Value: v} }
func write(v float64) collector.Sample {
	return collector.Sample{Metric: collector.WriteBytes, Value: v}
}

func (s *suite) query(q tsdb.Query) []tsdb.Series {
	s.Helper()
	out, err := s.store.Select(context.Background(), q)
	if err != nil {
		s.Fatalf("Select: %v", err)
	}
	return out
}

// points returns one node's raw points as "second:value" relative to the base.
func (s *suite) points(node topology.NodeID, m collector.Metric, from, to int64) []string {
	s.Helper()
	out := s.query(tsdb.Query{Nodes: []topology.NodeID{node}, Metric: m, FromMillis: (s.base + from) * 1000,
		ToMillis: (s.base + to) * 1000})
	var text []string
	for _, series := range out {
		for _, p := range series.Points {
			text = append(text, fmt.Sprintf("%d:%v", p.TimeMillis/1000-s.base, p.Value))
		}
	}
	return text
}

func (s *suite) want(got []string, want ...string) {
	s.Helper()
	if !slices.Equal(got, want) {
		s.Errorf("got %v, want %v", got, want)
	}
}

func inclusiveStart(_ *testing.T, s *suite) {
	for sec := range int64(5) {
		s.append(s.frame("f1", sec, read(float64(sec))))
	}
	s.want(s.points("f1", collector.ReadBytes, 1, 3), "1:1", "2:2")
	s.want(s.points("f1", collector.ReadBytes, 3, 3))
	s.want(s.points("f1", collector.ReadBytes, 4, 100), "4:4")
	s.want(s.points("nobody", collector.ReadBytes, 0, 100))
	s.want(s.points("f1", collector.MetaWait, 0, 100))
}

func idempotent(_ *testing.T, s *suite) {
	frames := []collector.Frame{s.frame("f1", 0, read(1), write(2)), s.frame("f1", 1, read(1), write(3)),
		s.frame("f1", 2, read(4))}
	for range 3 {
		s.append(frames...)
	}
	s.append(frames[1])
	s.want(s.points("f1", collector.ReadBytes, 0, 10), "0:1", "1:1", "2:4")
	s.want(s.points("f1", collector.WriteBytes, 0, 10), "0:2", "1:3")
}

func replaces(_ *testing.T, s *suite) {
	s.append(s.frame("f1", 0, read(1)), s.frame("f1", 1, read(1)), s.frame("f1", 2, read(1)), s.frame("f1", 3, read(1)))
	s.append(s.frame("f1", 1, read(7)))
	s.append(s.frame("f1", 3, read(8)))
	s.want(s.points("f1", collector.ReadBytes, 0, 10), "0:1", "1:7", "2:1", "3:8")
}

func exactValues(_ *testing.T, s *suite) {
	values := []float64{
		0, 1, -1, 0.1, 1e-6, 1 << 52, 1<<53 - 1, -(1<<53 - 1), 1 << 53, 1<<53 + 2, collector.MaxValue, 5e-324,
		123456.789012345,
		-collector.MaxValue / 3, math.Pi, 2.5e9, 3, 3, 3, 0.000351, 0.000352,
	}
	if s.digits > 0 {
		s.nearValues(values)
		return
	}
	for i, v := range values {
		s.append(s.frame("f1", int64(i), read(v)))
	}
	out := s.query(tsdb.Query{Nodes: []topology.NodeID{"f1"}, Metric: collector.ReadBytes, FromMillis: s.base * 1000,
		ToMillis: (s.base + 100) * 1000})
	if len(out) != 1 || len(out[0].Points) != len(values) {
		s.Fatalf("got %v, want %d points", out, len(values))
	}
	for i, p := range out[0].Points {
		if p.Value != values[i] {
			s.Errorf("value %d: got %v, want %v", i, p.Value, values[i])
		}
	}
}

// nearValues is exactValues for a store that rounds: a series for each value, integers exact.
func (s *suite) nearValues(values []float64) {
	s.Helper()
	node := func(i int) topology.NodeID { return topology.NodeID(fmt.Sprintf("f%d", i)) }
	for i, v := range values {
		s.append(s.frame(node(i), 0, read(v)))
	}
	for i, v := range values {
		out := s.query(tsdb.Query{Nodes: []topology.NodeID{node(i)}, Metric: collector.ReadBytes,
			FromMillis: s.base * 1000, ToMillis: (s.base + 1) * 1000})
		if len(out) != 1 || len(out[0].Points) != 1 {
			s.Fatalf("value %v: got %v, want one point", v, out)
		}
		near := math.Abs(v) * math.Pow10(1-s.digits)
		if v == math.Trunc(v) && math.Abs(v) < 1e15 || near == 0 {
			near = math.SmallestNonzeroFloat64
		}
		if got := out[0].Points[0].Value; math.Abs(got-v) > near {
			s.Errorf("value %d: got %v, want %v", i, got, v)
		}
	}
}

func gaps(_ *testing.T, s *suite) {
	s.append(s.frame("f1", 0, read(0)), s.frame("f1", 1, read(0)))
	s.append(s.frame("f1", 4, read(0)), s.frame("f1", 300, read(0)))
	s.want(s.points("f1", collector.ReadBytes, 0, 400), "0:0", "1:0", "4:0", "300:0")
}

func notANumber(_ *testing.T, s *suite) {
	s.append(s.frame("f1", 0, read(1)), s.frame("f1", 1, read(math.NaN())), s.frame("f1", 2, read(1)),
		s.frame("f1", 3, read(2*collector.MaxValue)))
	s.want(s.points("f1", collector.ReadBytes, 0, 10), "0:1", "2:1")
}

func metricsComeAndGo(_ *testing.T, s *suite) {
	s.append(
		s.frame("f1", 0, read(5)),
		s.frame("f1", 1, read(5), write(6)),
		s.frame("f1", 2, write(6)),
		s.frame("f1", 3, write(6), read(5)),
		s.frame("f1", 4, write(6), collector.Sample{Metric: collector.CacheHitRatio, Value: 0.5}))
	s.want(s.points("f1", collector.ReadBytes, 0, 10), "0:5", "1:5", "3:5")
	s.want(s.points("f1", collector.WriteBytes, 0, 10), "1:6", "2:6", "3:6", "4:6")
	s.want(s.points("f1", collector.CacheHitRatio, 0, 10), "4:0.5")
	nodes, err := s.store.Nodes(context.Background())
	want := []collector.Metric{collector.ReadBytes, collector.WriteBytes, collector.CacheHitRatio}
	if err != nil || len(nodes) != 1 || nodes[0].Node != "f1" || nodes[0].Role != topology.Forwarder ||
		!slices.Equal(nodes[0].Metrics, want) {
		s.Errorf("Nodes: got %v %v, want f1, a forwarder, with %v", nodes, err, want)
	}
}

func framesAddUp(_ *testing.T, s *suite) {
	for sec := range int64(3) {
		s.append(s.frame("f1", sec, read(float64(sec))))
		s.append(s.frame("f1", sec, write(10)))
	}
	s.want(s.points("f1", collector.ReadBytes, 0, 10), "0:0", "1:1", "2:2")
	s.want(s.points("f1", collector.WriteBytes, 0, 10), "0:10", "1:10", "2:10")
}

func nodesComeAndGo(_ *testing.T, s *suite) {
	for sec := range int64(10) {
		s.append(s.frame("f1", sec, read(1)))
		if sec%2 == 0 {
			s.append(s.frame("f2", sec, read(2)))
		}
	}
	s.append(s.frame("f3", 9, read(3)))
	out := s.query(tsdb.Query{
		Nodes: []topology.NodeID{"f3", "nobody", "f1", "f2"}, Metric: collector.ReadBytes,
		FromMillis: s.base * 1000, ToMillis: (s.base + 10) * 1000,
	})
	var got []string
	for _, series := range out {
		got = append(got, fmt.Sprintf("%s:%d", series.Node, len(series.Points)))
	}
	s.want(got, "f3:1", "f1:10", "f2:5")
}

func oddNames(_ *testing.T, s *suite) {
	names := []topology.NodeID{`f1`, `f.`, `f.*`, `f1|f2`, `"`, `a"b`, `${f1}`, `a\b`, `a b,c=d`, `') or true`, "узел",
		`{}`, `/*`}
	for i, n := range names {
		s.append(s.frame(n, 0, read(float64(i))))
	}
	out := s.query(tsdb.Query{Nodes: names, Metric: collector.ReadBytes, FromMillis: s.base * 1000,
		ToMillis: (s.base + 1) * 1000})
	for i, n := range names {
		if len(out) != len(names) || out[i].Node != n || len(out[i].Points) != 1 ||
			out[i].Points[0].Value != float64(i) {
			s.Fatalf("name %q: got %v", n, out)
		}
	}
	s.want(s.points("f.", collector.ReadBytes, 0, 10), "0:1")
}

func late(_ *testing.T, s *suite) {
	s.append(s.frame("f1", 3600, read(1)))
	s.append(s.frame("f1", 0, read(2)), s.frame("f1", 1800, read(3)))
	s.want(s.points("f1", collector.ReadBytes, 0, 4000), "0:2", "1800:3", "3600:1")
}

func anyOrder(_ *testing.T, s *suite) {
	for _, sec := range []int64{5, 3, 4, 0, 9, 1, 8, 2} {
		s.append(s.frame("f1", sec, read(float64(sec%3))))
	}
	s.append(s.frame("f1", 8, read(2)), s.frame("f1", 3, write(1)))
	s.want(s.points("f1", collector.ReadBytes, 0, 10), "0:0", "1:1", "2:2", "3:0", "4:1", "5:2", "8:2", "9:0")
	s.want(s.points("f1", collector.WriteBytes, 0, 10), "3:1")
}

func clockAhead(_ *testing.T, s *suite) {
	const day = 86400
	s.append(s.frame("good", 0, read(1)), s.frame("bad", 0, read(1)))
	s.append(s.frame("bad", day+1, read(2)), s.frame("good", 1, read(2)))
	s.append(s.frame("good", 2, read(3)), s.frame("bad", 2, read(3)))
	s.append(s.frame("good", 130, read(4)), s.frame("bad", 130, read(4)))
	s.want(s.points("good", collector.ReadBytes, 0, 200), "0:1", "1:2", "2:3", "130:4")
	s.want(s.points("bad", collector.ReadBytes, 0, 200), "0:1", "2:3", "130:4")
}

func buckets(_ *testing.T, s *suite) {
	for sec := range int64(600) {
		if sec%60 != 7 {
			s.append(s.frame("f1", sec, read(float64(sec))))
		}
	}
	for _, c := range []struct {
		agg   tsdb.Agg
		first float64
	}{{tsdb.AggMin, 60}, {tsdb.AggMax, 119}, {tsdb.AggLast, 119}, {tsdb.AggCount, 59}, {tsdb.AggSum, 89.5*60 - 67},
		{tsdb.AggMean, (89.5*60 - 67) / 59}, {"", (89.5*60 - 67) / 59}} {
		out := s.query(tsdb.Query{
			Nodes: []topology.NodeID{"f1"}, Metric: collector.ReadBytes, Agg: c.agg,
			FromMillis: (s.base + 60) * 1000, ToMillis: (s.base + 300) * 1000, StepMillis: 60_000,
		})
		if len(out) != 1 || len(out[0].Points) != 4 {
			s.Fatalf("%s: got %v, want four buckets", c.agg, out)
		}
		p := out[0].Points[0]
		if p.TimeMillis != (s.base+60)*1000 || math.Abs(p.Value-c.first) > 1e-9*c.first {
			s.Errorf("%s: got %v, want %v at second 60", c.agg, p, c.first)
		}
	}
	out := s.query(tsdb.Query{ // the range cuts its first and last bucket
		Nodes: []topology.NodeID{"f1"}, Metric: collector.ReadBytes, Agg: tsdb.AggCount,
		FromMillis: (s.base + 50) * 1000, ToMillis: (s.base + 130) * 1000, StepMillis: 60_000,
	})
	want := []tsdb.Point{{TimeMillis: s.base * 1000, Value: 10}, {TimeMillis: (s.base + 60) * 1000, Value: 59},
		{TimeMillis: (s.base + 120) * 1000, Value: 9}}
	if len(out) != 1 || !slices.Equal(out[0].Points, want) {
		s.Errorf("cut range: got %v, want %v", out, want)
	}
}

func occupancy(_ *testing.T, s *suite) {
	const peak = 1000
	for sec := range int64(200) {
		if sec >= 100 && sec < 150 {
			continue // not reported
		}
		r, w := 300.0, 400.0
		if sec < 20 {
			w = 500 // together exactly the threshold
		}
		s.append(s.frame("f1", sec, read(r), write(w)))
	}
	s.append(s.frame("f2", 0, read(900)))
	ask := func(bucket int64, threshold float64) []tsdb.NodeOccupancy {
		s.Helper()
		out, err := s.store.Occupancy(context.Background(), tsdb.OccupancyQuery{
			Nodes: []topology.NodeID{"f2", "f1", "nobody", "nopeak"}, FromMillis: s.base * 1000,
			ToMillis:     (s.base + 200) * 1000,
			BucketMillis: bucket, Threshold: threshold,
			PeakBytesPerSec: map[topology.NodeID]float64{"f1": peak, "f2": peak, "nobody": peak},
		})
		if err != nil {
			s.Fatalf("Occupancy: %v", err)
		}
		return out
	}
	at := func(sec, occupied, seconds int64) tsdb.OccupancyBucket {
		return tsdb.OccupancyBucket{TimeMillis: (s.base + sec) * 1000, Occupied: occupied, Seconds: seconds}
	}
	check := func(got []tsdb.NodeOccupancy, f2, f1 []tsdb.OccupancyBucket) {
		s.Helper()
		if len(got) != 2 || got[0].Node != "f2" || got[1].Node != "f1" || !slices.Equal(got[0].Buckets, f2) ||
			!slices.Equal(got[1].Buckets, f1) {
			s.Errorf("got %v, want f2 %v and f1 %v", got, f2, f1)
		}
	}
	check(ask(0, 0), []tsdb.OccupancyBucket{at(0, 1, 1)}, []tsdb.OccupancyBucket{at(0, 20, 150)})
	check(ask(0, 0.7), []tsdb.OccupancyBucket{at(0, 1, 1)}, []tsdb.OccupancyBucket{at(0, 150, 150)})
	check(ask(60_000, 0.8), []tsdb.OccupancyBucket{at(0, 1, 1)},
		[]tsdb.OccupancyBucket{at(0, 20, 60), at(60, 0, 40), at(120, 0, 30), at(180, 0, 20)})
}

func severalWriters(_ *testing.T, s *suite) {
	const writers, secs = 8, 200
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			node := topology.NodeID(fmt.Sprintf("f%d", w))
			var frames []collector.Frame
			for sec := range int64(secs) {
				frames = append(frames, s.frame(node, sec, read(float64(sec)), write(float64(w))))
				if len(frames) == 20 {
					if err := s.store.Append(context.Background(), frames); err != nil {
						s.Errorf("Append: %v", err)
					}
					frames = frames[:0]
				}
			}
		})
		wg.Go(func() { // readers beside them never see a wrong value
			for range 20 {
				out, err := s.store.Select(context.Background(), tsdb.Query{
					Nodes: []topology.NodeID{topology.NodeID(fmt.Sprintf("f%d", w))}, Metric: collector.ReadBytes,
					FromMillis: s.base * 1000, ToMillis: (s.base + secs) * 1000,
				})
				for _, series := range out {
					for _, p := range series.Points {
						if p.Value != float64(p.TimeMillis/1000-s.base) {
							s.Errorf("a reader saw %v", p)
						}
					}
				}
				if err != nil {
					s.Errorf("Select: %v", err)
				}
			}
		})
	}
	wg.Wait()
	for w := range writers {
		if got := s.points(topology.NodeID(fmt.Sprintf("f%d", w)), collector.ReadBytes, 0, secs); len(got) != secs {
			s.Errorf("writer %d: %d points, want %d", w, len(got), secs)
		}
	}
}

func reopen(_ *testing.T, s *suite) {
	for round := range int64(4) {
		for sec := range int64(150) {
			s.append(s.frame("f1", round*150+sec, read(float64(sec)), write(7)), s.frame("f2", round*150+sec, read(3)))
		}
		s.append(s.frame("f1", round*150+3, read(-1)))
		if err := s.store.Close(); err != nil {
			s.Fatalf("Close: %v", err)
		}
		s.store = s.open()
		got := s.points("f1", collector.ReadBytes, 0, 600)
		for tries := 0; len(got) != int(round+1)*150 && tries < 50; tries++ { // a busy server shows it late
			time.Sleep(100 * time.Millisecond)
			got = s.points("f1", collector.ReadBytes, 0, 600)
		}
		if len(got) != int(round+1)*150 || got[3] != "3:-1" {
			s.Fatalf("round %d: %d points, the fourth %q", round, len(got), got[3])
		}
		if got := s.points("f2", collector.ReadBytes, 0, 600); len(got) != int(round+1)*150 {
			s.Fatalf("round %d: f2 has %d points", round, len(got))
		}
		nodes, err := s.store.Nodes(context.Background())
		if got := fmt.Sprint(nodes); err != nil ||
			got != "[{f1 forwarder [read_bytes write_bytes]} {f2 forwarder [read_bytes]}]" {
			s.Fatalf("round %d: nodes %s %v", round, got, err)
		}
	}
}

func closed(t *testing.T, s *suite) {
	if err := s.store.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	ctx := context.Background()
	_, selectErr := s.store.Select(ctx, tsdb.Query{})
	_, occupancyErr := s.store.Occupancy(ctx, tsdb.OccupancyQuery{})
	_, nodesErr := s.store.Nodes(ctx)
	for call, err := range map[string]error{
		"Append": s.store.Append(ctx, nil), "Select": selectErr, "Occupancy": occupancyErr, "Nodes": nodesErr,
		"Close": s.store.Close(),
	} {
		if !errors.Is(err, tsdb.ErrClosed) {
			t.Errorf("%s after Close: %v, want ErrClosed", call, err)
		}
	}
	s.store = nil
}

func badFrame(t *testing.T, s *suite) {
	err := s.store.Append(context.Background(), []collector.Frame{s.frame("f1", 0, read(1)), s.frame("", 0, read(1)),
		s.frame("f2", 0, read(1))})
	if err == nil {
		t.Error("a frame without a node was taken")
	}
	s.want(s.points("f1", collector.ReadBytes, 0, 10), "0:1")
	s.want(s.points("f2", collector.ReadBytes, 0, 10), "0:1")
}
