package simsite

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fairway/cmd/lab/simmachine"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
)

// Machine is a small site that shows itself as frames and obeys remaps. It implements remap.Driver.
type Machine struct {
	Mu     sync.Mutex // guards everything that follows
	Topo   *topology.Machine
	Routes topology.Mapping
	Gens   map[topology.NodeID]uint64
	Silent map[topology.NodeID]bool
	Broken map[topology.NodeID]bool // compute nodes that no move reaches
	rand   *rand.Rand
	Slow   time.Duration // of one move
	Steady bool
	// Typical is a busy client's bytes/s.
	Typical float64
	Sim     *simmachine.Machine // lives instead, where it is not nil
	// Previews is how many the driver was asked for; not guarded.
	Previews atomic.Int32
}

// ForwarderPeak is what every forwarder can move, bytes/s.
const ForwarderPeak = 2.5e9

func newMachine(forwarders, compute int) *Machine {
	m := &Machine{Topo: &topology.Machine{Name: "hpc1", Default: topology.Mapping{}}, Routes: topology.Mapping{},
		Gens: map[topology.NodeID]uint64{}, Silent: map[topology.NodeID]bool{}, Broken: map[topology.NodeID]bool{},
		rand: rand.New(rand.NewPCG(1, 2))}
	m.Typical = min(8e7, 0.8*ForwarderPeak*float64(forwarders)/float64(compute))
	for i := range forwarders {
		m.Topo.Nodes = append(m.Topo.Nodes, topology.Node{ID: topology.NodeID(fmt.Sprintf("fwd%03d", i)),
			Role: topology.Forwarder,
			Rack: fmt.Sprint("r", i/48), PeakBytesPerSec: ForwarderPeak})
	}
	for i := range compute {
		n := topology.NodeID(fmt.Sprintf("c%05d", i))
		m.Topo.Nodes = append(m.Topo.Nodes, topology.Node{ID: n, Role: topology.Compute, PeakBytesPerSec: 2e8})
		m.Routes[n] = topology.ForwarderID(fmt.Sprintf("fwd%03d", i*forwarders/compute))
	}
	for n, f := range m.Routes {
		m.Topo.Default[n] = f
	}
	return m
}

// Frames is the machine's second t.
func (m *Machine) Frames(t time.Time) (frames []collector.Frame) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	sec := t.Truncate(time.Second)
	if m.Sim != nil {
		frames = cloneFrames(m.Sim.Step(sec.Add(time.Second)))
		return slices.DeleteFunc(frames, func(f collector.Frame) bool { return m.Silent[f.Node] })
	}
	wave, noise := float64(sec.Unix())/20, func(int) float64 { return 0.8 + 0.4*m.rand.Float64() }
	if m.Steady {
		wave, noise = 0, func(i int) float64 { return 1 + float64(i%37)/10 }
	}
	sums := map[topology.ForwarderID]float64{}
	for i, n := range m.Topo.Nodes {
		if n.Role != topology.Compute || m.Silent[n.ID] {
			continue
		}
		bw := 0.0
		if i%3 != 0 {
			bw = m.Typical * (1 + math.Sin(wave+float64(i/40))) * (0.2 + float64(i/171*37%11)/10) * noise(i)
		}
		sums[m.Routes[n.ID]] += bw
		f := collector.Frame{Node: n.ID, Role: topology.Compute, TimeMillis: sec.UnixMilli(), RoutesComplete: true,
			Routes: []collector.Route{{Client: n.ID, Forwarder: m.Routes[n.ID], Generation: m.Gens[n.ID]}},
			Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: bw / 4},
				{Metric: collector.WriteBytes, Value: bw * 3 / 4},
				{Metric: collector.MetaOps, Value: bw / 1e6}, {Metric: collector.ClientWrite, Value: 0.002 + bw/1e11}}}
		if bw > 0 {
			f.Jobs = []collector.JobSamples{{Job: topology.JobID(fmt.Sprint(88200 + i/40)), Samples: f.Samples[:2]}}
		}
		frames = append(frames, f)
	}
	for _, n := range m.Topo.ByRole(topology.Forwarder) {
		if m.Silent[n.ID] {
			continue
		}
		sum := min(sums[topology.ForwarderID(n.ID)], ForwarderPeak)
		frames = append(frames, collector.Frame{Node: n.ID, Role: topology.Forwarder, TimeMillis: sec.UnixMilli(),
			Samples: []collector.Sample{{Metric: collector.ReadBytes, Value: sum / 4},
				{Metric: collector.WriteBytes, Value: sum * 3 / 4},
				{Metric: collector.QueueLen, Value: math.Round(sum / 4e7)},
				{Metric: collector.MetaWait, Value: sum / 1e11},
				{Metric: collector.MetaOps, Value: sum / 1e6}, {Metric: collector.ServerTime, Value: 0.001 + sum/1e12},
				{Metric: collector.ThreadsBusy, Value: math.Round(16 * sum / ForwarderPeak)},
				{Metric: collector.Threads, Value: 16}, {Metric: collector.Errors, Value: 0}},
			Sources: []collector.SourceStatus{{Name: "diod", Duration: 3 * time.Millisecond}}})
	}
	return frames
}

// cloneFrames copies what the simulated machine will use again.
func cloneFrames(frames []collector.Frame) []collector.Frame {
	out := slices.Clone(frames)
	for i := range out {
		f := &out[i]
		f.Samples, f.Routes, f.Jobs = slices.Clone(f.Samples), slices.Clone(f.Routes), slices.Clone(f.Jobs)
		for k := range f.Jobs {
			f.Jobs[k].Samples = slices.Clone(f.Jobs[k].Samples)
		}
	}
	return out
}

// Preview is remap.Driver's.
func (m *Machine) Preview(context.Context, remap.Plan) ([]string, error) {
	m.Previews.Add(1)
	return nil, nil
}

// Apply is remap.Driver's.
func (m *Machine) Apply(ctx context.Context, p remap.Plan, report func(remap.Result)) error {
	return m.move(ctx, p, report, func(v remap.Move) topology.ForwarderID { return v.To })
}

// Restore is remap.Driver's.
func (m *Machine) Restore(ctx context.Context, p remap.Plan, report func(remap.Result)) error {
	return m.move(ctx, p, report, func(v remap.Move) topology.ForwarderID { return v.From })
}

func (m *Machine) move(ctx context.Context, p remap.Plan, report func(remap.Result),
	want func(remap.Move) topology.ForwarderID) error {
	for _, v := range p.Moves {
		select {
		case <-time.After(m.Slow):
		case <-ctx.Done():
			return ctx.Err()
		}
		m.Mu.Lock()
		if m.Broken[v.Node] {
			m.Mu.Unlock()
			report(remap.Result{Node: v.Node, Tries: 3, At: time.Now(), Error: "mount does not answer"})
			continue
		}
		m.Routes[v.Node] = want(v)
		m.Gens[v.Node]++
		if m.Sim != nil {
			_ = m.Sim.Remap(v.Node, want(v)) // both are the machine's
		}
		m.Mu.Unlock()
		report(remap.Result{Node: v.Node, OK: true, Tries: 1, At: time.Now(), Took: m.Slow})
	}
	return nil
}

// Observe is remap.Driver's.
func (m *Machine) Observe(_ context.Context, nodes []topology.NodeID) (topology.Mapping, error) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	out := topology.Mapping{}
	for _, n := range nodes {
		out[n] = m.Routes[n]
	}
	return out, nil
}
