package live

import (
	"fmt"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/tsdb/window"
	"fairway/webui/api"
)

// shown are the eight numbers of a forwarder that the benchmarks read, most of them in the overview.
var shown = []collector.Metric{collector.ReadBytes, collector.WriteBytes, collector.QueueLen, collector.MetaWait,
	collector.ServerTime, collector.MetaOps, collector.Errors, collector.ReadOps}

// fullMachine has 240 forwarders, 41,488 compute nodes and 288 storage servers on its board, all of which reported
// eight metrics.
func fullMachine() (*Picture, *remap.Situation) {
	board, now := window.NewBoard(0), time.Now()
	machine := &topology.Machine{}
	var frames []collector.Frame
	add := func(r topology.Role, format string, n int) {
		for i := range n {
			id := topology.NodeID(fmt.Sprintf(format, i))
			f := collector.Frame{Node: id, Role: r, TimeMillis: now.UnixMilli() - 1000}
			for k, m := range shown {
				f.Samples = append(f.Samples, collector.Sample{Metric: m, Value: float64(i*len(shown) + k)})
			}
			machine.Nodes = append(machine.Nodes, topology.Node{ID: id, Role: r, PeakBytesPerSec: 1e6})
			frames = append(frames, f)
		}
	}
	add(topology.Compute, "c%05d", 41488)
	add(topology.Forwarder, "fwd%03d", 240)
	add(topology.Storage, "oss%03d", 288)
	board.Take(frames, now)
	parts := remap.SituationParts{At: now, Machine: machine, Load: map[topology.ForwarderID]remap.Load{}}
	for _, n := range machine.ByRole(topology.Forwarder) {
		parts.Load[topology.ForwarderID(n.ID)] = remap.Load{LastSeen: now}
	}
	sit := remap.BuildSituation(parts)
	return New(Config{Board: board, Situation: func() *remap.Situation { return sit }}), sit
}

// A node that joins the board after a grid and a snapshot were made is in the next ones, whatever joined before it.
func TestNodesThatJoinAreShown(t *testing.T) {
	p, sit := fullMachine()
	sit.Machine = &topology.Machine{Nodes: append([]topology.Node{{ID: "c-new", Role: topology.Compute,
		PeakBytesPerSec: 1e6},
		{ID: "fwd-new", Role: topology.Forwarder}}, sit.Machine.Nodes...)}
	sit.Load["fwd-new"] = remap.Load{LastSeen: sit.At}
	g := NewGrids(p)
	s := p.build(p.Snapshot())
	cells := func() []byte { return g.Frame(s, 0)[gridHeader:] }
	before := cells()
	if before[0] != api.LevelUnknown || before[1] != api.LevelIdle ||
		s.Overview.Forwarders[0].Value(collector.ReadBytes) != nil {
		t.Fatalf("before they report: cells %v, forwarder %+v", before[:2], s.Overview.Forwarders[0])
	}
	samples := []collector.Sample{{Metric: collector.ReadBytes, Value: 5e5}}
	at := sit.At.UnixMilli() - 1000
	p.cfg.Board.Take([]collector.Frame{{Node: "not listed", Role: topology.Compute, TimeMillis: at, Samples: samples},
		{Node: "c-new", Role: topology.Compute, TimeMillis: at, Samples: samples},
		{Node: "fwd-new", Role: topology.Forwarder, TimeMillis: at, Samples: samples}}, sit.At)
	after := cells()
	if after[0] != 5 || string(after[1:]) != string(before[1:]) {
		t.Errorf("the new node's cell is %d, or another cell changed", after[0])
	}
	s = p.build(s)
	if v := s.Overview.Forwarders[0].Value(collector.ReadBytes); v == nil || *v != 5e5 {
		t.Errorf("the new forwarder's line is %+v", s.Overview.Forwarders[0])
	}
	if v := s.Overview.Forwarders[1].Value(collector.WriteBytes); v == nil || *v != 1 {
		t.Errorf("the first forwarder's line is %+v", s.Overview.Forwarders[1])
	}
}

// BenchmarkNewestSecond reads the newest second of 240 forwarders x 8 metrics into the overview's lines.
func BenchmarkNewestSecond(b *testing.B) {
	p, sit := fullMachine()
	rows := make([]api.ForwarderRow, 240)
	b.ReportAllocs()
	for b.Loop() {
		if at := p.readForwarders(rows, sit.At); at.IsZero() || *rows[239].Value(collector.Errors) == 0 {
			b.Fatalf("the newest second is %s, the last line %+v", at, rows[239])
		}
	}
}

// BenchmarkGridFrame makes a frame of a heat map of 41,488 cells.
func BenchmarkGridFrame(b *testing.B) {
	p, _ := fullMachine()
	g, s := NewGrids(p), p.Snapshot()
	b.ReportAllocs()
	for b.Loop() {
		if f := g.Frame(s, 0); f[len(f)-1] == api.LevelUnknown {
			b.Fatal("the last cell is not known")
		}
	}
}

// BenchmarkSnapshot makes the snapshot that follows another one.
func BenchmarkSnapshot(b *testing.B) {
	p, _ := fullMachine()
	b.ReportAllocs()
	for b.Loop() {
		p.build(p.Snapshot())
	}
}
