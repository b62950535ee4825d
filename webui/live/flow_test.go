package live

import (
	"fmt"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/place"
	"fairway/tsdb/window"
)

// bigPicture is one of 80 jobs on 40,960 compute nodes behind 240 forwarders.
func bigPicture() *Picture {
	board, now := window.NewBoard(0), time.Now()
	sit := &remap.Situation{Machine: &topology.Machine{}, Places: place.Places{Observed: topology.Mapping{}}}
	jobs := make([]remap.Job, 80)
	var frames []collector.Frame
	for i := range 240 {
		id := topology.NodeID(fmt.Sprintf("fwd%03d", i))
		sit.Machine.Nodes = append(sit.Machine.Nodes, topology.Node{ID: id, Role: topology.Forwarder})
		frames = append(frames, collector.Frame{Node: id, Role: topology.Forwarder, TimeMillis: now.UnixMilli()})
	}
	for i := range 40960 {
		id, f, j := topology.NodeID(fmt.Sprintf("c%05d", i)), topology.ForwarderID(fmt.Sprintf("fwd%03d", i%240)),
			&jobs[i/512]
		j.ID = topology.JobID(fmt.Sprint(i / 512))
		j.Nodes = append(j.Nodes, id)
		sit.Machine.Nodes = append(sit.Machine.Nodes, topology.Node{ID: id, Role: topology.Compute})
		sit.Observed[id] = f
		sit.Used = sit.Observed
		frames = append(frames, collector.Frame{Node: id, Role: topology.Compute, TimeMillis: now.UnixMilli(),
			Jobs: []collector.JobSamples{{Job: j.ID,
				Samples: []collector.Sample{{Metric: collector.WriteBytes, Value: 1e6}}}}})
	}
	sit.Jobs = jobs
	board.Take(frames, now)
	return New(Config{Board: board, Situation: func() *remap.Situation { return sit }})
}

func TestFlowIsCountedOnceASnapshot(t *testing.T) {
	p := bigPicture()
	f := p.Flow()
	if len(f.Links) != 80*240 || f.Links[0].Nodes == 0 || f.Links[0].WriteBytesPerSec == 0 {
		t.Fatalf("%d links, the first is %+v", len(f.Links), f.Links[0])
	}
	if n := testing.AllocsPerRun(5, func() { p.Flow() }); n != 0 {
		t.Errorf("asked again it allocates %v times: it was counted again", n)
	}
	p.snap.Store(p.build(p.Snapshot()))
	if again := p.Flow(); len(again.Links) == 0 || &again.Links[0] == &f.Links[0] {
		t.Error("a new snapshot shows the flow of the one before")
	}
}

func BenchmarkFlow(b *testing.B) {
	p := bigPicture()
	s := p.Snapshot()
	for b.Loop() {
		p.countFlow(s)
	}
}
