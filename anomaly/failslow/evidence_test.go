package failslow

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/compare"
)

// long is a long block of a background with that mean.
func long(mean float64) estimate { return estimate{mean * 400, 400} }

// quiet is a detector with one node that has been known for long.
func quiet() (*Detector, *node) {
	d := New(DefaultSettings())
	d.now = 100000
	n := d.node("fwd0")
	for c := range 2 {
		n.Habit.Offset[c][small].N = 1000
	}
	return d, n
}

// TestOldEvidenceCountsOnce: what a class showed in its last block before a job hid it stands beside each later block
// of the other class, but wins no more than it did once.
func TestOldEvidenceCountsOnce(t *testing.T) {
	d, n := quiet()
	for block := range 20 {
		d.now += longSeconds
		n.long[Read][small] = long(0.3)
		if block == 0 {
			n.long[Write][small] = long(0.12)
		}
		d.closeLong(n)
	}
	once := compare.Against(0.12, 1.0/400+0.052*0.052+0.04/1000, 0.1)
	if got := n.Tests[mild].Log; got < once || got > 2*once+1e-9 {
		t.Errorf("20 blocks of reads beside one of writes won %.2f, want %.2f to %.2f", got, once, 2*once)
	}
}

// TestAYoungNodeIsFoundWell: a node that is in doubt teaches nothing, so that its own offset stays unknown; its health
// counts all the same, and only its slowness does not yet.
func TestAYoungNodeIsFoundWell(t *testing.T) {
	for _, c := range []struct {
		mean        float64
		least, most float64
	}{{0, 0, 5}, {0.4, 6, 6}} {
		d, n := quiet()
		n.Habit.Offset, n.level = [2][regimes]compare.Mean{}, anomaly.Doubt
		n.Tests[mild].Log = 6
		for range 10 {
			d.now += longSeconds
			n.long[Read][small], n.long[Write][small] = long(c.mean), long(c.mean)
			d.closeLong(n)
		}
		if got := n.Tests[mild].Log; got < c.least || got > c.most {
			t.Errorf("residuals of %g: %.2f, want %g to %g", c.mean, got, c.least, c.most)
		}
	}
}

// TestCanariesCountBesideLoad: what is always a little slower is so for canaries, too; and what load and canaries show
// one after the other makes one wealth.
func TestCanariesCountBesideLoad(t *testing.T) {
	healthy, slow := [classes]float64{}, [classes]float64{0.8, 0.8, 0}
	for _, c := range []struct {
		took              [classes]float64
		sudden, mild, all float64 // wealths after it, from 8
	}{{healthy, 8, 7, 7}, {slow, 8, 14, 14}} {
		d, n := quiet()
		for _, i := range []int{sudden, mild, joint} {
			n.Tests[i].Log = 8
		}
		d.betCanary(n, &d.canaries.Level[0], c.took, &waiting{}, false)
		if s, m, j := n.Tests[sudden].Log, n.Tests[mild].Log, n.Tests[joint].Log; s != c.sudden || m != c.mild ||
			j != c.all {
			t.Errorf("canaries %v: sudden %g, mild %g, joint %g, want %g, %g, %g", c.took, s, m, j, c.sudden, c.mild,
				c.all)
		}
	}
}

// TestLoadAndCanariesMakeOneCapital: neither alone is enough yet. What jobs stream leaves more to the canaries.
func TestLoadAndCanariesMakeOneCapital(t *testing.T) {
	for _, c := range []struct {
		kind, canaries int // canaries that it takes
	}{{background, 1}, {compared, 1}, {streamed, 2}} {
		d, n := quiet()
		for range 4 {
			d.now += blockSeconds
			n.short[Read][c.kind], n.short[Write][c.kind] = long(0.9), long(0.9)
			d.closeShort(n)
		}
		for i := range 4 {
			if d.decide(n); n.Alarm != (i >= c.canaries) {
				t.Errorf("kind %d, after %d canaries: alarm %v, joint %.1f, sudden %.1f of %.1f", c.kind, i,
					n.Alarm, n.Tests[joint].Log, n.Tests[sudden].Log, d.limit)
			}
			d.now += 10
			d.betCanary(n, &d.canaries.Level[0], [classes]float64{0.9, 0.9, 0}, &waiting{}, false)
		}
	}
}

// TestCanariesFollowTheLayerByTheirOwnShare: a canary of large requests is slowed by less than the background, whose
// common factor the layer shows. Neither during such times nor after them does a healthy one look slow.
func TestCanariesFollowTheLayerByTheirOwnShare(t *testing.T) {
	for _, share := range []float64{0.2, 0.5, 0.9} {
		r := rand.New(rand.NewPCG(5, 5))
		l := &canaryLevel{}
		for _, phase := range []struct {
			common, actual float64
			canaries       int
		}{{0, 0, 400}, {0.25, 0.25, 300}, {-0.1, 0, 100}, {0, 0, 300}, {0.25, 0.25, 100}} {
			sum, n := 0.0, 0
			for i := range phase.canaries {
				x := -6 + share*phase.actual + 0.07*r.NormFloat64()
				common := phase.common + 0.03*r.NormFloat64()
				if i >= 20 && l.Usual[Read].N > judgeAfter {
					sum += x - l.usual(Read, common)
					n++
				}
				l.teach(Read, x, common)
			}
			if mean := sum / float64(n); math.Abs(mean) > 0.09 {
				t.Errorf("share %g, common factor %g: canaries look %.2f slower", share, phase.common, mean)
			}
		}
	}
}

// TestABackgroundWithAJobsRequestsInItIsNone: where all backgrounds ask for as much at a time, a second whose mean is
// another has a job in it; where they do not, nothing can be known.
func TestABackgroundWithAJobsRequestsInItIsNone(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for _, c := range []struct {
		name   string
		draw   func() float64
		usual  float64
		others float64
		want   bool
	}{
		{"all 16 kB", func() float64 { return 16e3 }, 16e3, 29e3, false},
		{"one in ten with a job's", func() float64 { return []float64{16e3, 29e3}[r.IntN(10)/9] }, 16e3, 29e3, false},
		{"from 4 to 32 kB", func() float64 { return 4e3 * math.Exp2(3*r.Float64()) }, 12e3, 29e3, true},
	} {
		var z sizes
		for range 5000 {
			z.usual(c.draw(), 100)
		}
		if !z.usual(c.usual, 100) || z.usual(c.others, 100) != c.want {
			t.Errorf("%s: %g is usual: %v, %g: %v", c.name, c.usual, z.usual(c.usual, 100), c.others,
				z.usual(c.others, 100))
		}
	}
}

// TestFewOperationsDoNotDriftUpwards: while a job makes writes dear, the reads' noise alone decides; a bet that never
// loses much must not win by that.
func TestFewOperationsDoNotDriftUpwards(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	const sd = 0.2 // of a block with few operations
	sum, blocks := 0.0, 100000
	d, n := quiet()
	for range blocks {
		n.Tests[sudden].Log = 5
		n.short[Read][small] = estimate{sd * r.NormFloat64() / (sd * sd), 1 / (sd * sd)}
		n.short[Write][large] = estimate{1e4, 1e4}
		d.closeShort(n)
		sum += math.Exp(n.Tests[sudden].Log - 5)
	}
	if mean := sum / float64(blocks); mean > 1.01 {
		t.Errorf("the mean factor is %.3f", mean)
	}
}

// TestStreamsBehindASlowPoolProveNothing: what a job streams may all lie behind the slowest storage pool.
func TestStreamsBehindASlowPoolProveNothing(t *testing.T) {
	for worst, want := range map[float64]float64{1: 0.5, 1.3: 0.5 - math.Log(1.3), 4: 0} {
		d, n := quiet()
		d.Backend(worst, 1)
		n.Seen = d.now
		for c := range 2 {
			s := &n.now
			s.seen[c], s.known[c], s.regime[c], s.residual[c], s.ops[c], s.size[c] = true, true, large, 0.5, 1000, 1e5
		}
		d.collect(n, &Observation{})
		if got := n.long[Write][streamed].mean(); math.Abs(got-want) > 1e-9 {
			t.Errorf("slowest pool %g times: %.3f, want %.3f", worst, got, want)
		}
	}
}

// TestASecondWithAJobsRequestsIsStreamed: below 32 KiB, too.
func TestASecondWithAJobsRequestsIsStreamed(t *testing.T) {
	l, d := newLayer(6), New(DefaultSettings())
	for s := range 400 {
		rows := l.next(func(n int, o *Observation) {
			if n == 2 && s == 399 {
				o.Class[Read].Bytes = 29e3 * o.Class[Read].Ops
			}
		})
		d.Second(time.Unix(l.now, 0), rows)
	}
	for n, want := range []int{small, small, large} {
		if got := d.node(l.rows[n].Node).now.regime[Read]; got != want {
			t.Errorf("fwd %d: regime %d, want %d", n, got, want)
		}
	}
}
