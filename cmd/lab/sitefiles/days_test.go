package sitefiles

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fairway/cmd/lab/sitefiles/format"
	"fairway/cmd/lab/sitefiles/model"
	"fairway/collector"
)

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

// reboot has a node of the site count anew.
func (w *watched) reboot(name string) {
	n := w.model.Node(name)
	n.Since = w.model.Now()
	n.LNet = model.Counters{Alloc: n.LNet.Alloc, AllocMax: n.LNet.Alloc}
	for _, p := range n.Peers {
		p.Sent, p.Received = model.Counts{}, model.Counts{}
		p.Tx.Min, p.Rtr.Min = p.Tx.Now, p.Rtr.Now
	}
	for _, ni := range n.NIs {
		ni.Sent, ni.Received, ni.InBytes, ni.OutBytes = model.Counts{}, model.Counts{}, 0, 0
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
	left, lasts := 0.05+0.6*rng.Float64(), 30+rng.IntN(300)
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
		w.reboot(r)
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
		w.run(t, lasts)
	}
	for _, f := range faults {
		must(w.model.Mend(f.Node))
	}
	w.run(t, 30+rng.IntN(300))
}

// TestSoakRouterDays counts routers that are accused while none is sick, over courses of half an hour of sites of many
// kinds.
func TestSoakRouterDays(t *testing.T) {
	first, last := seeds(t)
	const warm, whole = 120, 1800
	days, accused := 0.0, 0
	for seed := first; seed <= last; seed++ {
		var found []string // reported outside of the bubble: one that fails ends the soak
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 18))
			w := anySite(t, 3000+seed, rng)
			defer w.close()
			for w.run(t, warm); w.seconds < whole; {
				w.happens(t, rng)
			}
			days += float64(len(w.machine.Forwarders)) * float64(w.seconds) / (24 * time.Hour).Seconds()
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
		t.Logf("| %d courses | %d in %.2f router-days |", seed-first+1, accused, days)
	}
}
