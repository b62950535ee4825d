package scenariotest

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Draw makes a scenario from a seed: 48 to 96 nodes, an hour, six to ten faults of all kinds after
// the first quarter of an hour, and every confounder.
func Draw(seed uint64) *Scenario {
	r := rand.New(rand.NewPCG(seed, 0xd4a7))
	return draw(r, &Scenario{Seed: seed, Nodes: 48 + r.IntN(49), Seconds: 3600})
}

// DrawSized makes a scenario of that many nodes, with as many faults and disturbances to a node as Draw, and a mix
// of work of its own.
func DrawSized(seed uint64, nodes int, mix Mix) *Scenario {
	r := rand.New(rand.NewPCG(seed, 0x512e))
	s := draw(r, &Scenario{Seed: seed, Nodes: nodes, Seconds: 3600})
	s.mix(r, mix)
	return s
}

// usualNodes is how many nodes the number of faults of a scenario is meant for.
const usualNodes = 72

func draw(r *rand.Rand, s *Scenario) *Scenario {
	if r.IntN(3) == 0 {
		s.Reserve = s.Nodes / 3
	}
	for len(s.Jobs) < s.Nodes {
		s.Jobs = append(s.Jobs, drawJob(r, s, len(s.Jobs)))
	}
	s.drawFaults(r)
	at := 1000 + r.IntN(1200)
	s.Brownouts = []Brownout{{Pool: -1, Start: at, End: at + 200 + r.IntN(300), Times: 2.5 + 2*r.Float64()},
		{Pool: r.IntN(poolSet), Start: 1800 + r.IntN(500), End: 2600 + r.IntN(600), Times: 3 + 2*r.Float64()}}
	s.Missing = []Fault{{Node: r.IntN(s.Nodes), Start: 1000, End: 1900, Severity: 0.1},
		{Node: r.IntN(s.Nodes), Start: 2000, End: 2150, Severity: 1}}
	s.Restart = []Brownout{{Start: 1400 + r.IntN(600), End: 2020}}
	s.Restart[0].End = s.Restart[0].Start + 8 + r.IntN(12)
	at = 1000 + r.IntN(1500)
	s.Reboot = []Fault{{Node: r.IntN(s.Nodes), Start: at, End: at + 60 + r.IntN(100)}}
	return s
}

func drawJob(r *rand.Rand, s *Scenario, i int) Job {
	j := Job{ID: fmt.Sprintf("j%04d", i), Cost: 1, Pool: r.IntN(poolSet), Count: 1 + r.IntN(8), End: s.Seconds}
	j.Count = min(j.Count, s.Nodes)
	service := s.Nodes - s.Reserve
	if j.First = r.IntN(service); j.First+j.Count > service {
		j.First = max(0, service-j.Count)
	}
	if r.IntN(2) == 0 {
		j.Start = r.IntN(2400)
		j.End = min(s.Seconds, j.Start+300+r.IntN(3000))
	}
	sizes := []float64{64e3, 128e3, 256e3, 512e3, 1e6}
	j.Size = sizes[r.IntN(len(sizes))]
	j.Every = 120 + r.IntN(600)
	j.Burst = 5 + r.IntN(45)
	rate := (0.02 + 0.3*r.Float64()) * peak
	switch k := r.IntN(40); {
	case i == 0: // few jobs of a layer read at random or wait for every write
		j.Flow, j.Size, j.Cost, rate = RandomFlow, 64e3, 3+5*r.Float64(), 0.12*peak
		j.Every, j.Burst = 3600, 100+r.IntN(500)
	case i == 1:
		j.Flow, j.Size, j.Cost, rate = SyncFlow, 64e3, 3+5*r.Float64(), (0.03+0.05*r.Float64())*peak
		j.Every, j.Burst = 3600, 100+r.IntN(700)
	case k < 16:
		j.Flow = WriteFlow
	case k < 31:
		j.Flow = ReadFlow
	case k < 33: // as fast as it can
		j.Flow, j.Size, rate = []Flow{ReadFlow, WriteFlow}[r.IntN(2)], 1e6, 1.5*peak
		j.Burst = min(j.Every, 20+r.IntN(60))
	case k < 37:
		j.Flow, j.Size, j.Cost, rate = SharedFlow, sizes[r.IntN(3)], 15+60*r.Float64(), peak
		j.Size = min(j.Size, 128e3*float64(1+r.IntN(2)))
	case k < 38:
		j.Flow, j.PerSec = StormFlow, 4000+30000*r.Float64()
		return j
	default:
		j.Flow, j.Every, j.Burst, rate = ReadFlow, 100, 100, 0.1*peak // always
	}
	j.PerSec = rate / j.Size
	return j
}

var faultKinds = []string{"hard", "mild", "mild", "intermittent", "ramp", "meta_slow", "read_slow", "net_loss",
	"link_cap"}

func (s *Scenario) drawFaults(r *rand.Rand) {
	used := map[int]bool{}
	count := 6 + r.IntN(5)
	switch {
	case s.Nodes > 2*usualNodes:
		count = count * s.Nodes / usualNodes
	case s.Nodes < usualNodes/2:
		count = max(1, count*s.Nodes/usualNodes)
	}
	for range count {
		n := r.IntN(s.Nodes - s.Reserve)
		if used[n] {
			continue
		}
		used[n] = true
		f := Fault{Node: n, Kind: faultKinds[r.IntN(len(faultKinds))], Start: 900 + r.IntN(900)}
		f.End = min(s.Seconds-60, f.Start+900+r.IntN(1700))
		switch f.Kind {
		case "hard":
			f.Severity = 0.07 + 0.05*r.Float64()
		case "mild":
			f.Severity = []float64{0.5, 0.7}[r.IntN(2)]
		case "intermittent", "ramp":
			f.Severity = 0.14 + 0.1*r.Float64()
		case "meta_slow":
			f.Severity = 8 + 3*r.Float64()
		case "read_slow":
			f.Severity = 0.15 + 0.2*r.Float64()
		case "net_loss":
			f.Severity = 0.001 + 0.005*r.Float64()
		case "link_cap":
			f.Severity = 0.1 + 0.35*r.Float64()
		}
		s.Faults = append(s.Faults, f)
	}
}

// Mix is what the jobs of a layer do, beside the usual.
type Mix string

// The mixes. In each but Usual three jobs in ten do what it is named after; Rack has six neighbours fail at once.
const (
	Usual  Mix = "usual"
	Shared Mix = "shared files"
	Storms Mix = "metadata storms"
	Dear   Mix = "random reads and synchronous writes"
	Rack   Mix = "a rack at once"
)

func (s *Scenario) mix(r *rand.Rand, mix Mix) {
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if r.IntN(10) >= 3 {
			continue
		}
		switch mix {
		case Shared:
			j.Flow, j.Size, j.Cost = SharedFlow, min(j.Size, 128e3*float64(1+r.IntN(2))), 15+60*r.Float64()
			j.PerSec = peak / j.Size
		case Storms:
			j.Flow, j.PerSec = StormFlow, 4000+30000*r.Float64()
		case Dear:
			j.Flow, j.Size, j.Cost = []Flow{RandomFlow, SyncFlow}[r.IntN(2)], 64e3, 3+5*r.Float64()
			j.PerSec = 0.1 * peak / j.Size
			j.Every, j.Burst = 1800, 100+r.IntN(500)
		}
	}
	if mix != Rack {
		return
	}
	first, start := r.IntN(max(1, s.Nodes-s.Reserve-6)), 1000+r.IntN(600)
	s.Faults = slices.DeleteFunc(s.Faults, func(f Fault) bool { return f.Node >= first && f.Node < first+6 })
	for n := first; n < min(first+6, s.Nodes); n++ {
		s.Faults = append(s.Faults, Fault{Node: n, Kind: "hard", Start: start, End: start + 1500,
			Severity: 0.07 + 0.05*r.Float64()})
	}
}
