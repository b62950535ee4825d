package sitefiles

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairway/cmd/fairway-demo/sitefiles/model"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/driver"
	"fairway/remap/driver/agent"
	"fairway/remap/drivertest"
	"fairway/remap/node"
)

// TestAClientsRouteAloneIsNeverDone: a plan that replaces a client's route ends with what its data still crosses, and
// an idle client's with that nothing was seen.
func TestAClientsRouteAloneIsNeverDone(t *testing.T) {
	for _, idle := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			cfg := model.Small(11)
			if idle {
				cfg.Jobs = []model.Job{}
			}
			s := newSite(t, Options{Model: cfg, Dir: "unused"})
			handlers := map[topology.NodeID]map[string]stream.OrderHandler{}
			for _, n := range s.model.Nodes {
				m := moverOf(s, n.Name, "")
				h := m.Handlers(true)
				for kind, do := range node.Handlers(m, true) {
					h[kind] = do
				}
				handlers[topology.NodeID(n.Name)] = h
			}
			addr := func(topology.ForwarderID) (string, bool) { return "-", true }
			d := agent.New(drivertest.NewAgents(handlers), addr,
				driver.Fan{Parallel: 4, Tries: 1, Timeout: 5 * time.Second})
			d.SetRouters(func() []topology.NodeID { return []topology.NodeID{"rtr1", "rtr2", "rtr3", "rtr4"} })
			p := remap.Plan{ID: "P-1", Moves: []remap.Move{{Node: "cn1", From: "rtr1", To: "rtr3"}}}
			lines, err := d.Preview(t.Context(), p)
			if err != nil || len(lines) != 1 || !strings.Contains(lines[0], "servers still choose the router") {
				t.Errorf("the preview is %q, %v", lines, err)
			}
			stop, ended := make(chan struct{}), make(chan struct{})
			go func() { // the site lives with the clock
				defer close(ended)
				for begun := time.Now(); ; {
					select {
					case <-stop:
						return
					case <-time.After(100 * time.Millisecond):
						s.Do(func(m *model.Site) { m.Run(time.Since(begun)) })
					}
				}
			}()
			var mu sync.Mutex
			var got []remap.Result
			err = d.Apply(t.Context(), p, func(r remap.Result) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, r)
			})
			close(stop)
			<-ended
			want := "data still crosses rtr"
			if idle {
				want = "quiet"
			}
			if err != nil || len(got) != 1 || got[0].OK || !strings.Contains(got[0].Error, want) {
				t.Errorf("idle %v: %s, %v; want %q", idle, fmt.Sprintf("%+v", got), err, want)
			}
		})
	}
}
