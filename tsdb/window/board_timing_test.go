package window

import (
	"fmt"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

// bigMachine is one second of TaihuLight: 40,960 compute nodes and 240 forwarders that list them.
func bigMachine() []collector.Frame {
	var frames []collector.Frame
	samples := make([]collector.Sample, 12)
	for i := range samples {
		samples[i] = collector.Sample{Metric: collector.Metric(i + 1), Value: float64(i)}
	}
	lists := make([][]collector.Route, 240)
	for i := range 40960 {
		n, f := topology.NodeID(fmt.Sprintf("cn%05d", i)), topology.ForwarderID(fmt.Sprintf("fwd%03d", i%240))
		lists[i%240] = append(lists[i%240], collector.Route{Client: n, Forwarder: f})
		frames = append(frames, collector.Frame{Node: n, Role: topology.Compute, Samples: samples, RoutesComplete: true,
			Routes: []collector.Route{{Client: n, Forwarder: f, Generation: 1}}})
	}
	for i, l := range lists {
		frames = append(frames, collector.Frame{Node: topology.NodeID(fmt.Sprintf("fwd%03d", i)),
			Role: topology.Forwarder, Samples: samples, Routes: l, RoutesComplete: true})
	}
	return frames
}

func setTime(frames []collector.Frame, at time.Time) {
	for i := range frames {
		frames[i].TimeMillis = at.UnixMilli()
	}
}

// BenchmarkBoardSecond is what one second of the largest machine costs.
func BenchmarkBoardSecond(b *testing.B) {
	frames, board, at := bigMachine(), NewBoard(0), t0
	b.ReportAllocs()
	for b.Loop() {
		at = at.Add(time.Second)
		setTime(frames, at)
		board.Take(frames, at.Add(time.Second))
	}
}

// BenchmarkRoutes is what one look at the mapping of the largest machine costs.
func BenchmarkRoutes(b *testing.B) {
	frames, board := bigMachine(), NewBoard(0)
	setTime(frames, t0)
	board.Take(frames, t0.Add(time.Second))
	b.ReportAllocs()
	for b.Loop() {
		if n := len(board.Routes(t0.Add(time.Second))); n != 40960 {
			b.Fatal(n)
		}
	}
}

// BenchmarkLearn is what finding the machine's nodes costs when none is configured.
func BenchmarkLearn(b *testing.B) {
	frames, board := bigMachine(), NewBoard(0)
	setTime(frames, t0)
	board.Take(frames, t0.Add(time.Second))
	b.ReportAllocs()
	for b.Loop() {
		board.Learn(topology.Machine{}, t0.Add(time.Second))
	}
}
