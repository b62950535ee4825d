package sitefiles

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fairway/cmd/lab/sitefiles/format"
	"fairway/cmd/lab/sitefiles/model"
	"fairway/collector"
	"fairway/collector/topology"
)

// How a site begins whose conditions stay as they are: until its queues are as they will be, and until enough of that
// is recorded. Each time that it has coasted for some minutes more is recorded, or a chance of the first minute, as a
// router whose queue is long for ten seconds of it, would last as long as the coasting.
const settles, recorded, coasts, recordsMore = 10, 60, 120, 10

// rest lets the site live for some seconds in which nothing happens to it: message by message, and where they are many
// most of them by coasting.
func (w *watched) rest(t *testing.T, seconds int) {
	t.Helper()
	begins := min(settles, seconds)
	w.run(t, begins)
	seconds -= begins
	for records := recorded; seconds > 0; records = recordsMore {
		records = min(records, seconds)
		w.model.Record()
		w.run(t, records)
		coast := min(coasts, seconds-records)
		if coast > 0 {
			w.coast(t)
			w.run(t, coast)
		}
		w.coasted, seconds = w.coasted+coast, seconds-records-coast
	}
	w.model.Resume()
}

func (w *watched) coast(t *testing.T) {
	t.Helper()
	if err := w.model.Coast(); err != nil {
		t.Fatal(err)
	}
}

// seen is what the detector sees of some routers, each second: the logarithms of the time in a router, of its messages
// and of its bytes, and what senders have on their way through it.
type seen [4]struct{ n, sum, squares float64 }

var seenNames = [...]string{"log of the time", "log of the messages", "log of the bytes", "messages held"}

func (s *seen) add(i int, x float64) {
	s[i].n, s[i].sum, s[i].squares = s[i].n+1, s[i].sum+x, s[i].squares+x*x
}

func (s *seen) of(i int) (mean, spread float64) {
	mean = s[i].sum / s[i].n
	return mean, math.Sqrt(max(0, s[i].squares/s[i].n-mean*mean))
}

// look lets the site live and adds what is seen of a router, and of all others.
func (w *watched) look(t *testing.T, seconds int, id topology.NodeID, one, others *seen) {
	for range seconds {
		w.run(t, 1)
		held, own := map[topology.NodeID]float64{}, map[topology.TargetID]topology.NodeID{}
		to := func(of topology.NodeID) *seen {
			if of == id {
				return one
			}
			return others
		}
		for i := range w.frames {
			f := &w.frames[i]
			for k, m := range []collector.Metric{collector.TransitTime, collector.RoutedOps, collector.RoutedBytes} {
				if v, known := f.Value(m); known && v > 0 && f.Role == topology.Forwarder {
					to(f.Node).add(k, math.Log(v))
				}
			}
			for _, target := range f.Targets {
				if _, is := collector.SampleOf(target.Samples, collector.RoutedOps); is {
					own[target.Target] = f.Node
				}
			}
		}
		for i := range w.frames {
			for _, target := range w.frames[i].Targets {
				if r, is := own[target.Target]; is && w.frames[i].Role != topology.Forwarder {
					n, _ := collector.SampleOf(target.Samples, collector.InFlight)
					held[r] += n
				}
			}
		}
		for r, n := range held {
			to(r).add(len(seenNames)-1, n)
		}
	}
}

// What the detector sees of a site that coasts has the mean and the spread of the same site's that moves each message,
// healthy and with a router's link at three quarters, a half and a tenth of its speed.
func TestCoastingLooksLikeMessages(t *testing.T) {
	if os.Getenv("FAIRWAY_LONG") == "" {
		t.Skip("skipped: takes a minute of a processor: make prove")
	}
	const warm, seconds, sick = 20, 80, "rtr2"
	for _, left := range []float64{1, 0.75, 0.5, 0.1} {
		view := func(coast bool) (one, others seen) {
			synctest.Test(t, func(t *testing.T) {
				w := watchSite(t, model.Small(21))
				defer w.close()
				w.run(t, warm)
				if err := w.model.Break(model.Fault{Kind: model.FaultLink, Node: sick, Value: left}); err != nil {
					t.Fatal(err)
				}
				w.run(t, settles)
				if !coast {
					w.look(t, recorded+seconds, sick, &one, &others)
					return
				}
				for _, records := range []int{recorded, recordsMore} {
					w.model.Record()
					w.run(t, records)
					w.coast(t)
					w.look(t, seconds/2, sick, &one, &others)
				}
			})
			return one, others
		}
		one, others := view(false)
		oneCoasts, othersCoast := view(true)
		for _, c := range []struct {
			whose          string
			is, want       *seen
			differ, spread float64 // the one router's seconds are a third as many, and its queues longer
		}{{"others", &othersCoast, &others, 0.05, 1.25}, {sick, &oneCoasts, &one, 0.15, 1.6}} {
			for i, what := range seenNames {
				mean, spread := c.is.of(i)
				wantMean, wantSpread := c.want.of(i)
				differ, most, mostSpread := math.Abs(mean-wantMean), c.differ, c.spread
				if i == len(seenNames)-1 { // is looked at once a second, and as often 0
					differ, most, mostSpread = differ/wantMean, 0.25, 1.6
				}
				says := fmt.Sprintf("link at %g, %s: %s %.3f, spread %.3f; by messages %.3f and %.3f", left, c.whose,
					what, mean, spread, wantMean, wantSpread)
				t.Log(says)
				if x := spread / wantSpread; differ > most || x > mostSpread || x < 1/mostSpread {
					t.Error(says)
				}
			}
		}
	}
}

// TestSoakCoastingFaults says when routers are found that become slow, by messages and where all but the first seconds
// of the fault are coasted.
func TestSoakCoastingFaults(t *testing.T) {
	soak(t)
	const warm, within = 180, 200
	for _, f := range []model.Fault{{Kind: model.FaultLink, Node: "rtr2", Value: 0.8},
		{Kind: model.FaultLink, Node: "rtr2", Value: 0.75}, {Kind: model.FaultLink, Node: "rtr2", Value: 0.5}} {
		atLoads(t, f, func(t *testing.T, load float64) {
			found := map[bool][]int{}
			for seed := uint64(401); seed <= 404; seed++ {
				for _, coast := range []bool{false, true} {
					synctest.Test(t, func(t *testing.T) {
						site := model.Small(seed)
						site.Load = load
						w := watchSite(t, site)
						defer w.close()
						run := w.run
						if coast {
							run = w.rest
						}
						run(t, warm)
						if err := w.model.Break(f); err != nil {
							t.Fatal(err)
						}
						run(t, within)
						found[coast] = append(found[coast], w.first["fail_slow rtr2"])
						for what := range w.first {
							if accuses(what) && what != "fail_slow rtr2" {
								t.Errorf("seed %d, coasting %v: %s is found: %s", seed, coast, what, w.says[what])
							}
						}
					})
				}
			}
			t.Logf("| link %g | %g | found at %v s by messages, %v s coasting, of faults from %d s on |", f.Value, load,
				found[false], found[true], warm)
		})
	}
}

// routersOnly leaves the files out that say nothing of routers: Lustre's, by which other nodes are judged.
func (w *watched) routersOnly() {
	w.files = func(n *model.Node, now time.Duration) format.Tree {
		t := w.writer.LNet(n)
		if n.Role == model.Router {
			w.writer.Linux(n, now, t)
		}
		return t
	}
	for name, all := range w.sources {
		w.sources[name] = slices.DeleteFunc(all, func(s collector.Source) bool { return s.Name() == "lustre" })
	}
}

// anySite is a site of its own kind for each seed, as unrestful's, and of a size of its own.
func anySite(t *testing.T, seed uint64, rng *rand.Rand) *watched {
	c := model.Small(seed)
	c.Routers, c.Clients, c.OSS = 4+2*rng.IntN(7), 8+rng.IntN(5), 2+rng.IntN(3)
	c.Load = 0.2 + 0.8*rng.Float64()
	if rng.IntN(3) == 0 {
		c.Groups = 2
	}
	c.Older = rng.IntN(3) / 2
	w := watchSite(t, c)
	w.routersOnly()
	for _, j := range w.model.Jobs {
		switch rng.IntN(4) {
		case 0: // phases
			j.Mix.On, j.Mix.Off = time.Duration(5+rng.IntN(30))*time.Second, time.Duration(5+rng.IntN(30))*time.Second
		case 1: // bursts
			j.Mix.On, j.Mix.Off = time.Duration(1+rng.IntN(2))*time.Second, time.Duration(3+rng.IntN(8))*time.Second
		case 2:
			j.Mix.Metadata = 0.8
		}
	}
	return w
}

// happens breaks or changes something other than a router, and mends it: a server's disk or link is slow, all
// servers' disks, a compute node's link; a program ends and another begins, or one node asks for as much as it can; a
// router counts anew.
func (w *watched) happens(t *testing.T, rng *rand.Rand) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	c := w.Model()
	left, lasts := 0.05+0.6*rng.Float64(), 30+rng.IntN(900)
	var faults []model.Fault
	switch rng.IntN(7) {
	case 0:
		faults = []model.Fault{{Kind: model.FaultDisk, Node: fmt.Sprintf("oss%d", 1+rng.IntN(c.OSS)), Value: left}}
	case 1:
		faults = []model.Fault{{Kind: model.FaultLink, Node: fmt.Sprintf("oss%d", 1+rng.IntN(c.OSS)), Value: left}}
	case 2:
		for _, o := range w.model.Of(model.OSS) {
			for _, target := range o.Server.Targets {
				faults = append(faults, model.Fault{Kind: model.FaultDisk, Node: o.Name, Value: left,
					Target: target.Name})
			}
		}
	case 3:
		n := w.model.Of(model.Client)[rng.IntN(c.Clients)]
		faults = []model.Fault{{Kind: model.FaultLink, Node: n.Name, Value: left}}
	case 4:
		r := fmt.Sprintf("rtr%d", 1+rng.IntN(c.Routers))
		w.events = append(w.events, fmt.Sprintf("at %d s %s is started anew", w.seconds, r))
		must(w.model.Reboot(r))
	default:
		j, mix := w.model.Jobs[rng.IntN(4)], model.Mixes()[rng.IntN(len(model.Mixes()))]
		mix.Think = w.model.Think(mix, c.Load)
		clients := j.Clients
		if rng.IntN(3) == 0 { // an elephant
			clients, mix.Depth, mix.Think = clients[:1], 64, 0
			mix.Sizes = []model.Size{{Bytes: 4 * model.MiB, Weight: 1}}
		}
		w.events = append(w.events, fmt.Sprintf("at %d s clients %v begin %+v", w.seconds, clients, mix))
		must(w.model.Start(model.Job{ID: fmt.Sprint(2000 + w.seconds), Clients: clients, Mix: mix}))
	}
	for _, f := range faults {
		must(w.model.Break(f))
	}
	if len(faults) > 0 {
		w.events = append(w.events, fmt.Sprintf("at %d s for %d s: %+v", w.seconds, lasts, faults))
		w.rest(t, lasts)
	}
	for _, f := range faults {
		must(w.model.Mend(f.Node))
	}
	w.rest(t, 30+rng.IntN(1500))
}

// TestSoakRouterDays counts routers that are accused while none is sick, over courses of three hours of sites of many
// kinds, of which the most is coasted: the figures of docs/layers.md.
func TestSoakRouterDays(t *testing.T) {
	first, last := seeds(t)
	const warm, whole = 300, 3 * 3600
	days, coasted, accused := 0.0, 0.0, 0
	for seed := first; seed <= last; seed++ {
		var found []string // reported outside of the bubble: one that fails ends the soak
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 18))
			w := anySite(t, 3000+seed, rng)
			defer w.close()
			for w.rest(t, warm); w.seconds < whole; {
				w.happens(t, rng)
			}
			a := float64(len(w.machine.Forwarders)) / (24 * time.Hour).Seconds()
			days, coasted = days+a*float64(w.seconds), coasted+a*float64(w.coasted)
			for what, at := range w.first {
				if accuses(what) {
					found = append(found, fmt.Sprintf("seed %d, %+v: %s is found after %d s: %s; before that:\n%s",
						seed, w.Model(), what, at, w.says[what], strings.Join(w.events, "\n")))
				}
			}
		})
		accused += len(found)
		for _, what := range found {
			t.Error(what)
		}
		t.Logf("| %d courses | %d in %.2f router-days, %.2f of them coasted |", seed-first+1, accused, days, coasted)
	}
}
