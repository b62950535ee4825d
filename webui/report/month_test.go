package report

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb"
	"fairway/tsdb/engine"
	"fairway/tsdb/history"
)

// monthMetrics are those that a forwarder of diod or of a gateway reports each second.
var monthMetrics = [...]collector.Metric{collector.ReadBytes, collector.WriteBytes, collector.ReadOps,
	collector.WriteOps, collector.QueueLen, collector.MetaOps, collector.MetaWait, collector.ServerTime}

// spanSeconds is what one call appends: a block of the store.
const spanSeconds = 120

// hourOfFrames draws an hour of the forwarders, a block each: bursts of jobs over a background, whole numbers.
func hourOfFrames(rnd *rand.Rand, forwarders int) [][]collector.Frame {
	hour := make([][]collector.Frame, 0, 3600/spanSeconds)
	burst := make([]float64, forwarders) // operations a second
	for sec := range 3600 {
		if sec%spanSeconds == 0 {
			hour = append(hour, make([]collector.Frame, 0, spanSeconds*forwarders))
		}
		for f := range burst {
			switch rnd.IntN(60) {
			case 0:
				burst[f] = float64(100 + rnd.IntN(2000))
			case 1, 2:
				burst[f] = 0
			}
			draw := func(mean float64) float64 { return float64(int(mean * (.8 + .4*rnd.Float64()))) }
			reads, writes := draw(20+burst[f]/2), draw(10+burst[f])
			values := [len(monthMetrics)]float64{reads * 65536, writes * 1048576, reads, writes, draw(burst[f] / 100),
				draw(50), float64(int(80+40*rnd.Float64())) / 1e6, float64(int(400+90*rnd.Float64())) / 1e6}
			samples := make([]collector.Sample, len(monthMetrics))
			for i, m := range monthMetrics {
				samples[i] = collector.Sample{Metric: m, Value: values[i]}
			}
			hour[len(hour)-1] = append(hour[len(hour)-1], collector.Frame{Role: topology.Forwarder, Samples: samples})
		}
	}
	return hour
}

// fillSeconds appends every second of [from, to): the drawn hour again and again, each time another forwarder's.
func fillSeconds(b *testing.B, store tsdb.Store, forwarders []topology.NodeID, from, to time.Time) {
	hour := hourOfFrames(rand.New(rand.NewPCG(1, 2)), len(forwarders))
	for shift, at := 0, from; at.Before(to); shift, at = shift+1, at.Add(time.Hour) {
		for block, frames := range hour {
			for i := range frames {
				sec := block*spanSeconds + i/len(forwarders)
				frames[i].Node = forwarders[(i+shift)%len(forwarders)]
				frames[i].TimeMillis = at.UnixMilli() + 1000*int64(sec)
			}
			if err := store.Append(b.Context(), frames); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkReport is a month of 240 forwarders, of which the store keeps every second as it does by default, with
// 100,000 runs of jobs in the history. It writes some GB first, for minutes.
func BenchmarkReport(b *testing.B) {
	from, to := monday.AddDate(0, 0, -30), monday
	store, err := engine.Open(b.TempDir(), engine.Options{SyncInterval: time.Millisecond})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	forwarders := make([]topology.NodeID, 240)
	for i := range forwarders {
		forwarders[i] = topology.NodeID(fmt.Sprintf("fwd%03d", i))
	}
	fillSeconds(b, store, forwarders, from, to)
	jobs, _, err := history.Open(b.TempDir() + "/history")
	if err != nil {
		b.Fatal(err)
	}
	defer jobs.Close()
	_, err = jobs.Import(b.Context(), func(yield func(history.Run, error) bool) {
		for i := range 100_000 {
			end := from.Add(time.Duration(i) * (to.Sub(from) / 100_000))
			if !yield(history.Run{Job: topology.JobID(fmt.Sprint(i)), User: fmt.Sprint("u", i%300),
				App:     fmt.Sprint("a", i%900),
				Project: fmt.Sprint("p", i%50), Nodes: 1 + i%64, Start: end.Add(-time.Hour), End: end,
				Profile: &history.Profile{ReadBytes: 1e9, WriteBytes: 1e9, MetaOps: 1000, IOSeconds: 60, From: "csv"}},
				nil) {
				return
			}
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	s := Sources{Site: "hpc1", Runs: jobs.Each, Records: records(), Store: store, Forwarders: forwarders}
	begun := cpuSeconds(b)
	defer func() { b.ReportMetric((cpuSeconds(b)-begun)/float64(b.N), "cpu-s/op") }()
	for b.Loop() {
		r, err := Make(b.Context(), s, from, to, to)
		if err != nil || r.Total.Runs != 100_000 || r.Layer.Reported != 1 {
			b.Fatalf("%v: %+v, %g of the seconds", err, r.Total, r.Layer.Reported)
		}
	}
}

// cpuSeconds is what the process has worked, which other work on the machine changes little.
func cpuSeconds(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
