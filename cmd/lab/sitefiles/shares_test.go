package sitefiles

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"fairway/cmd/lab/sitefiles/model"
	"fairway/collector"
	"fairway/collector/source/routes"
	"fairway/collector/topology"
)

// The shares that every client's agent measures, without a right to move anything, are the model's own to .05 after 20
// seconds: with all routers well, and with one at a tenth of its speed, which gets less.
func TestSharesAreTheModels(t *testing.T) {
	for name, fault := range map[string]*model.Fault{"well": nil,
		"slow": {Kind: model.FaultLink, Node: "rtr2", Value: 0.1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := model.Small(23)
				cfg.Load = 0.6
				s := newSite(t, Options{Model: cfg})
				if fault != nil {
					if err := s.model.Break(*fault); err != nil {
						t.Fatal(err)
					}
				}
				judgeShares(t, s)
			})
		})
	}
}

func judgeShares(t *testing.T, s *Site) {
	var sources []*routes.Source
	trees := map[string]*swapped{}
	clients := s.model.Of(model.Client)
	for _, n := range clients {
		trees[n.Name] = &swapped{}
		m := moverOf(s, n.Name, "")
		sources = append(sources, routes.New(routes.Options{Kind: routes.LNet, Node: topology.NodeID(n.Name),
			Root: trees[n.Name], Net: model.ServerNet, Forwarders: m.Gateways, Run: m.Run}))
	}
	from := func() map[string]map[string]uint64 {
		out := map[string]map[string]uint64{}
		for _, r := range s.model.Of(model.Router) {
			for nid, b := range r.Truth.From {
				if out[nid] == nil {
					out[nid] = map[string]uint64{}
				}
				out[nid][r.Name] = b
			}
		}
		return out
	}
	var newest []collector.Reading
	before := from()
	for range 22 { // counts are taken every ten seconds: two of them, and the tick that takes the second
		newest = newest[:0]
		for i, n := range clients {
			trees[n.Name].set(s.writer.All(n, s.model.Now()))
			r := collector.Reading{Now: time.Now()}
			if err := sources[i].Read(t.Context(), &r); err != nil {
				t.Fatal(err)
			}
			newest = append(newest, r)
		}
		time.Sleep(time.Second)
		synctest.Wait() // a source counts beside its reading
		s.model.Run(s.model.Now() + time.Second)
	}
	after, measured := from(), 0
	for i, n := range clients {
		all, truth := 0.0, map[string]float64{}
		for router, b := range after[n.NID()] {
			truth[router] = float64(b - before[n.NID()][router])
			all += truth[router]
		}
		if all == 0 {
			continue
		}
		for _, r := range newest[i].Routes {
			if measured++; r.Assumed {
				t.Errorf("%s moved %.0f MB, and its share of %s is assumed", n.Name, all/1e6, r.Forwarder)
			}
			if want := truth[string(r.Forwarder)] / all; math.Abs(r.Share-want) > 0.05 {
				t.Errorf("%s uses %s for %.3f of its traffic, the model has %.3f", n.Name, r.Forwarder, r.Share,
					want)
			}
		}
	}
	if measured < 2*len(clients) {
		t.Errorf("%d shares of %d clients", measured, len(clients))
	}
}
