package sitefiles

import (
	"strings"
	"testing"
	"testing/synctest"

	"fairway/cmd/lab/sitefiles/model"
)

// The finding of a router that is slow since its processors were throttled, or since its links lose messages, names
// that as its cause; a router that is throttled and not slow is not accused, and what all routers show is not named.
func TestCausesAreNamed(t *testing.T) {
	const saysHeat, saysLoss = "were throttled for", "TCP segments that it sent were sent again"
	heat := func(node string, left float64) model.Fault {
		return model.Fault{Kind: model.FaultThrottle, Node: node, Value: left}
	}
	for name, c := range map[string]struct {
		faults []model.Fault
		found  bool
		says   string // of the cause; "": none
	}{
		"throttled":           {[]model.Fault{heat("rtr2", 0.05)}, true, saysHeat},
		"loses messages":      {[]model.Fault{{Kind: model.FaultLoss, Node: "rtr2", Value: 0.03}}, true, saysLoss},
		"throttled, not slow": {[]model.Fault{heat("rtr2", 0.7)}, false, ""},
		"all are throttled": {[]model.Fault{{Kind: model.FaultLink, Node: "rtr2", Value: 0.1}, heat("rtr1", 0.7),
			heat("rtr2", 0.7), heat("rtr3", 0.7), heat("rtr4", 0.7)}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				site := model.Small(5)
				site.Load = 0.6
				w := watchSite(t, site)
				defer w.close()
				const healthy, within = 60, 75
				w.run(t, healthy)
				for _, f := range c.faults {
					if err := w.model.Break(f); err != nil {
						t.Fatal(err)
					}
				}
				w.run(t, within)
				t.Log(w.first, w.says)
				for what := range w.first {
					if what != "fail_slow rtr2" || !c.found {
						t.Errorf("%s is found: %s", what, w.says[what])
					}
				}
				says := w.says["fail_slow rtr2"]
				if c.found && (says == "" || !strings.Contains(says, c.says) ||
					c.says == "" && (strings.Contains(says, saysHeat) || strings.Contains(says, saysLoss))) {
					t.Errorf("says %q, want the cause %q", says, c.says)
				}
			})
		})
	}
}
