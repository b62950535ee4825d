package situation

import (
	"fmt"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// BenchmarkSituation builds the situation of 240 forwarders and 40,960 compute nodes anew.
func BenchmarkSituation(b *testing.B) {
	board, conf := window.NewBoard(0), &topology.Machine{Name: "big", Default: topology.Mapping{}}
	var frames []collector.Frame
	now := time.Now()
	for i := range 240 {
		id := topology.NodeID(fmt.Sprintf("fwd%03d", i))
		conf.Nodes = append(conf.Nodes, topology.Node{ID: id, Role: topology.Forwarder})
		frames = append(frames, collector.Frame{Node: id, Role: topology.Forwarder, TimeMillis: now.UnixMilli() - 1000})
	}
	for i := range 40960 {
		id, f := topology.NodeID(fmt.Sprintf("c%05d", i)), topology.ForwarderID(fmt.Sprintf("fwd%03d", i/512))
		conf.Nodes = append(conf.Nodes, topology.Node{ID: id, Role: topology.Compute})
		conf.Default[id] = f
		frames = append(frames, collector.Frame{Node: id, Role: topology.Compute, TimeMillis: now.UnixMilli() - 1000,
			RoutesComplete: true,
			Routes:         []collector.Route{{Client: id, Forwarder: f, Generation: 1}}})
	}
	board.Take(frames, now)
	s := New(Config{Machine: conf, Board: board})
	for b.Loop() {
		s.made.Store(nil)
		s.Situation()
	}
}
