package gateways

import (
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/anomaly/watch"
	"fairway/collector"
	"fairway/collector/source/lustre"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// foreign is a Lustre client's files as another program writes them: of an old release below proc, with tabs, lines in
// another order, names that nobody knows and operations that are drawn, not queued. It shares nothing with the writers
// and the model of this package.
type foreign struct {
	chances *rand.Rand
	targets [3]foreignTarget
	slow    [3]float64 // how many times as long requests to each target take
}

// foreignTarget is one target's counts since the mount.
type foreignTarget struct {
	reads, writes, readMicros, writeMicros, readSquares, writeSquares, bytes, pings uint64
}

const (
	foreignRate   = 60        // calls a second to each target, half of them reads
	foreignBytes  = 1 << 20   // of a call
	foreignMicros = 8_000     // that a call takes
	foreignSpread = 0.5       // of the logarithm
	foreignBegan  = 1_600_000 // calls before
)

// second draws what happened.
func (f *foreign) second() {
	for i := range f.targets {
		t := &f.targets[i]
		draws := foreignRate/2 + f.chances.IntN(foreignRate)
		for range draws {
			took := uint64(foreignMicros * f.slow[i] *
				math.Exp(foreignSpread*f.chances.NormFloat64()-foreignSpread*foreignSpread/2))
			t.bytes += foreignBytes
			if f.chances.IntN(2) == 0 {
				t.reads, t.readMicros, t.readSquares = t.reads+1, t.readMicros+took, t.readSquares+took*took
			} else {
				t.writes, t.writeMicros, t.writeSquares = t.writes+1, t.writeMicros+took, t.writeSquares+took*took
			}
		}
		t.pings++
	}
}

// Open opens a file of this moment.
func (f *foreign) Open(name string) (fs.File, error) {
	tree := fstest.MapFS{"proc/fs/lustre/version": {Data: []byte("lustre: 2.7.19.8\nkernel: patchless_client\n")}}
	var in, out uint64
	for i := range f.targets {
		t := &f.targets[i]
		in, out = in+t.reads, out+t.writes
		const before = foreignBegan
		tree[fmt.Sprintf("proc/fs/lustre/osc/work-OST%04x-osc-ffff880812345000/stats", i)] = &fstest.MapFile{
			Data: fmt.Appendf(nil, "snapshot_time\t%d.000417 secs.usecs\n"+
				"obd_ping\t%d\tsamples\t[usec]\t90\t1200\t%d\t%d\n"+
				"ost_write\t%d\tsamples\t[usec]\t210\t900000\t%d\t%d\n"+
				"ost_of_tomorrow\t7\tsamples\t[furlongs]\t1\t2\t9\t17\n"+
				"ost_read\t%d\tsamples\t[usec]\t180\t900000\t%d\t%d\n"+
				"req_waittime\t%d\tsamples\t[usec]\t90\t900000\t%d\t%d\n"+
				"read_bytes\t%d\tsamples\t[bytes]\t4096\t1048576\t%d\n"+
				"write_bytes\t%d\tsamples\t[bytes]\t4096\t1048576\t%d\n", time.Now().Unix(),
				t.pings, 300*t.pings, 90_000*t.pings,
				before+t.writes, before*9000+t.writeMicros, t.writeSquares,
				before+t.reads, before*9000+t.readMicros, t.readSquares,
				2*before+t.reads+t.writes+t.pings, 2*before*9000+t.readMicros+t.writeMicros+300*t.pings, t.readSquares,
				before+t.reads, (before+t.reads)*foreignBytes, before+t.writes, (before+t.writes)*foreignBytes)}
	}
	tree["proc/fs/lustre/llite/work-ffff880812345000/stats"] = &fstest.MapFile{Data: fmt.Appendf(nil,
		"snapshot_time\t%d.000417 secs.usecs\nioctl 3 samples [regs]\nwrite_bytes %d samples [bytes] 4096 1048576 %d\n"+
			"read_bytes %d samples [bytes] 4096 1048576 %d\ngetattr 900 samples [regs]\n", time.Now().Unix(), out,
		out*foreignBytes, in, in*foreignBytes)}
	return tree.Open(name)
}

// Files of Lustre clients that another program wrote are read and judged: the gateway that takes twice as long to every
// target is found and no other, and a target that takes four times as long from everywhere accuses none.
func TestTreesOfAnotherWriterAreJudged(t *testing.T) {
	const healthy, within, sick = 90, 90, 2
	for _, c := range []struct {
		name string
		slow func(gateway int) [3]float64
		want string
	}{{"a gateway", func(g int) [3]float64 {
		if g == sick {
			return [3]float64{2, 2, 2}
		}
		return [3]float64{1, 1, 1}
	}, "gate2"}, {"a target", func(int) [3]float64 { return [3]float64{1, 4, 1} }, ""}} {
		t.Run(c.name, func(t *testing.T) {
			board := window.NewBoard(0)
			detectors := watch.NewDetectors(board, failslow.DefaultSettings())
			machine := watch.Machine{Mapping: topology.Mapping{}}
			var trees []*foreign
			var sources []collector.Source
			for i := range 4 {
				f := &foreign{chances: rand.New(rand.NewPCG(91, uint64(i))), slow: [3]float64{1, 1, 1}}
				trees, sources = append(trees, f), append(sources, lustre.New(f))
				machine.Forwarders = append(machine.Forwarders, topology.ForwarderID(fmt.Sprintf("gate%d", i)))
			}
			found := map[string]string{}
			begun := time.Now()
			for second := range healthy + within {
				now := begun.Add(time.Duration(second) * time.Second)
				var frames []collector.Frame
				for i, s := range sources {
					if second == healthy {
						trees[i].slow = c.slow(i)
					}
					trees[i].second()
					r := collector.Reading{Now: now}
					if err := s.Read(t.Context(), &r); err != nil {
						t.Fatal(err)
					}
					frames = append(frames, collector.Frame{Node: machine.Forwarders[i].Node(),
						Role:       topology.Forwarder,
						TimeMillis: now.Add(-time.Second).UnixMilli(), Samples: r.Samples, Targets: r.Targets})
				}
				board.Take(frames, now)
				for _, v := range detectors.Verdicts(now, &machine) {
					if v.Level == anomaly.Alarm && v.Kind.Accuses() {
						found[string(v.Node)] = fmt.Sprintf("second %d: %s", second, v.Sentence)
					}
				}
				if second == healthy-1 && len(found) > 0 {
					t.Errorf("found while all were healthy: %v", found)
				}
			}
			if c.want != "" && !strings.Contains(found[c.want], "x slow") {
				t.Errorf("found %v, want %s", found, c.want)
			}
			if delete(found, c.want); len(found) > 0 {
				t.Errorf("found as well: %v", found)
			}
		})
	}
}
