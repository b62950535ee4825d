package sitefiles

import (
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/anomaly/watch"
	"fairway/collector"
	"fairway/collector/source/lnet"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// foreign is a router's proc as another program writes it: of an old release, with its own columns and spaces, without
// a queueing model, and with a counter of messages that wraps on the way. It shares nothing with the writers and the
// model of this package.
type foreign struct {
	number  int
	begun   time.Time
	slowAt  time.Time // from then on messages stay in it twice as long
	mu      sync.Mutex
	chances *rand.Rand
}

const (
	foreignRate    = 900    // messages a second
	foreignSize    = 200000 // bytes
	foreignTransit = 0.002  // s
	foreignStart   = math.MaxUint32 - 60*foreignRate
)

// Open writes the files of this moment. How many messages are inside is drawn each time: Poisson's, as of a station
// that serves many at once.
func (f *foreign) Open(name string) (fs.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	messages := uint64(foreignRate * now.Sub(f.begun).Seconds())
	transit := foreignTransit
	if !f.slowAt.IsZero() && !now.Before(f.slowAt) {
		transit *= 2
	}
	inside, left := 0, math.Exp(-foreignRate*transit)
	for p := f.chances.Float64(); p > left; inside++ {
		p *= f.chances.Float64()
	}
	files := map[string]string{
		"stats": fmt.Sprintf("%d 71 0 12 13 %d 0 900 901 %d 0", inside, uint32(foreignStart+messages),
			messages*foreignSize),
		"routes":  "Routing enabled\nnet\thops\tstate\trouter\n",
		"buffers": "pages\tcount\tcredits\tmin\n0\t512\t512\t3\n1\t1024\t1020\t2\n256\t256\t250\t1\n",
		"nis": fmt.Sprintf("nid refs peer max tx min\n0@lo 2 0 0 0 0\n10.7.0.%d@tcp4 4 8 256 255 200\n"+
			"10.8.0.%d@o2ib4 4 8 256 256 190\n", f.number, f.number),
		"peers": "nid refs state last max rtr min tx min queue\n10.7.1.1@tcp4   1 ~rtr 7   8 8 8   7 -2   65536\n" +
			"10.8.1.1@o2ib4  1 ~rtr 7   8 8 8   8 -9   0\n",
	}
	tree := fstest.MapFS{}
	for file, text := range files {
		tree["proc/sys/lnet/"+file] = &fstest.MapFile{Data: []byte(text)}
	}
	return tree.Open(name)
}

// TestTreesOfAnotherWriterAreJudged: files that another program wrote are read, and the slow one of four routers is
// found by them, and no other.
func TestTreesOfAnotherWriterAreJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const healthy, within, slow = 70, 50, 2
		board := window.NewBoard(0)
		detectors := watch.NewDetectors(board, failslow.DefaultSettings())
		machine := watch.Machine{Mapping: topology.Mapping{}}
		var trees []*foreign
		var sources []collector.Source
		for i := range 4 {
			f := &foreign{number: i + 1, begun: time.Now(), chances: rand.New(rand.NewPCG(77, uint64(i)))}
			trees, sources = append(trees, f), append(sources, lnet.New(f))
			defer sources[i].Close()
			machine.Forwarders = append(machine.Forwarders, topology.ForwarderID(fmt.Sprintf("gate%d", i)))
		}
		found := map[string]string{}
		time.Sleep(time.Second / 2) // ticks that come early or late stay in their second
		for second := range healthy + within {
			if second == healthy {
				trees[slow].mu.Lock()
				trees[slow].slowAt = time.Now()
				trees[slow].mu.Unlock()
			}
			time.Sleep(time.Second + time.Duration(second%2)*20*time.Millisecond - 10*time.Millisecond)
			now := time.Now()
			var frames []collector.Frame
			for i, s := range sources {
				r := collector.Reading{Now: now}
				if err := s.Read(t.Context(), &r); err != nil {
					t.Fatal(err)
				}
				frames = append(frames, collector.Frame{Node: topology.NodeID(machine.Forwarders[i]),
					Role: topology.Forwarder, TimeMillis: now.Add(-time.Second).UnixMilli(), Samples: r.Samples,
					Targets: r.Targets})
				if v, ok := collector.SampleOf(r.Samples, collector.RoutedOps); second > 0 &&
					(!ok || math.Abs(v-foreignRate) > 0.02*foreignRate) {
					t.Fatalf("second %d: %g messages a second, known %v", second, v, ok)
				}
			}
			board.Take(frames, now)
			for _, v := range detectors.Verdicts(now, &machine) {
				if v.Level == anomaly.Alarm {
					found[string(v.Node)] = v.Sentence
				}
			}
			if second == healthy-1 && len(found) > 0 {
				t.Errorf("found while all were healthy: %v", found)
			}
		}
		if len(found) != 1 || !strings.Contains(found["gate2"], "x slow") {
			t.Errorf("found %v, want gate2", found)
		}
	})
}
