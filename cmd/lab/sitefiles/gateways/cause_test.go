package gateways

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"fairway/cmd/lab/sitefiles/model"
)

// What throttled processors and lost segments are in a sentence.
const (
	saysHeat = "throttled"
	saysLoss = "sent again"
)

// The finding of a gateway that is slow since its processors were throttled, or since its answers are lost on the way,
// names that as its cause. Nobody else is accused; a gateway that is throttled and not slow is not, either; and what
// all gateways show, or one showed before, is not named as that of a slow link.
func TestCausesAreNamed(t *testing.T) {
	if os.Getenv("FAIRWAY_LONG") == "" {
		t.Skip("skipped: takes a minute and a half; routers have it in make test: make prove")
	}
	heat := func(node string, left float64) model.Fault {
		return model.Fault{Kind: model.FaultThrottle, Node: node, Value: left}
	}
	slow := model.Fault{Kind: model.FaultLink, Node: "gw2", Value: 0.1}
	for name, c := range map[string]struct {
		before, then []model.Fault
		layers       []Layer
		found        bool
		says         string // of the cause; "": none
	}{
		"throttled": {nil, []model.Fault{heat("gw2", 0.03)}, []Layer{NFS, DVS, OldDVS, GPFS}, true, saysHeat},
		"loses answers": {nil, []model.Fault{{Kind: model.FaultLoss, Node: "gw2", Value: 0.05}},
			[]Layer{NFS, DVS, OldDVS, GPFS}, true, saysLoss},
		"throttled, not slow": {nil, []model.Fault{heat("gw2", 0.6)}, Layers(), false, ""},
		"all are throttled": {nil, []model.Fault{slow, heat("gw1", 0.6), heat("gw2", 0.6), heat("gw3", 0.6),
			heat("gw4", 0.6)}, Layers(), true, ""},
		"was throttled before": {[]model.Fault{heat("gw2", 0.6)}, []model.Fault{slow}, Layers(), true, ""},
	} {
		for _, l := range c.layers {
			t.Run(fmt.Sprintf("%s, %s", name, l), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := watchGateways(t, l, 7)
					const healthy, within = 90, 90
					for _, faults := range [][]model.Fault{c.before, c.then} {
						for _, f := range faults {
							if err := w.Break(f); err != nil {
								t.Fatal(err)
							}
						}
						w.run(t, healthy)
					}
					first := w.accused()
					for what, says := range first {
						if what != "fail_slow gw2" || !c.found {
							t.Errorf("%s is found: %s", what, says)
						}
					}
					if !c.found {
						return
					}
					for _, says := range []string{first["fail_slow gw2"], w.newest["fail_slow gw2"]} {
						if says == "" || !strings.Contains(says, c.says) ||
							c.says == "" && (strings.Contains(says, saysHeat) || strings.Contains(says, saysLoss)) {
							t.Errorf("says %q, want the cause %q", says, c.says)
						}
					}
				})
			})
		}
	}
}
