package gateways

import (
	"fmt"
	"testing"
	"testing/synctest"

	"fairway/cmd/fairway-demo/sitefiles/model"
)

// A slow DVS server is found by what DVS itself reports, with nothing read of Lustre: where DVS times its messages by
// the server's own times, else by its clients' lists of outstanding requests. A slow storage target accuses none.
func TestSlowDVSServerIsFoundWithoutLustre(t *testing.T) {
	if underRace {
		t.Skip("minutes of a simulated site")
	}
	const healthy, within = 60, 120
	for _, l := range []Layer{DVS, OldDVS} {
		for _, c := range []struct {
			fault model.Fault
			want  string
		}{{model.Fault{Kind: model.FaultLink, Node: "gw2", Value: 0.1}, "fail_slow gw2"},
			{model.Fault{Kind: model.FaultDisk, Node: "ost1", Value: 0.1}, ""}} {
			t.Run(fmt.Sprintf("%s %s", l, c.fault.Kind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := watchGateways(t, l, 7)
					w.withoutLustre()
					w.run(t, healthy)
					if err := w.Break(c.fault); err != nil {
						t.Fatal(err)
					}
					w.run(t, within)
					for what, says := range w.accused() {
						if what != c.want {
							t.Errorf("%s is found: %s", what, says)
						}
					}
					if c.want == "" {
						return
					}
					t.Logf("found after %d s: %s", w.first[c.want]-healthy, w.says[c.want])
					if w.first[c.want] <= healthy {
						t.Errorf("%s: found at %d, want after %d: %v", c.want, w.first[c.want], healthy, w.says)
					}
				})
			})
		}
	}
}

// A DVS server that answers nothing any more is named as soon as its clients' oldest requests are 4 s old, and no
// other is.
func TestHungDVSServerIsNamed(t *testing.T) {
	if underRace {
		t.Skip("a minute of a simulated site")
	}
	const healthy, within, want = 60, 30, "fail_slow gw3"
	for _, l := range []Layer{DVS, OldDVS} {
		synctest.Test(t, func(t *testing.T) {
			w := watchGateways(t, l, 11)
			w.run(t, healthy)
			if err := w.Break(model.Fault{Kind: model.FaultHung, Node: "gw3"}); err != nil {
				t.Fatal(err)
			}
			w.run(t, within)
			t.Logf("%s: found after %d s: %s", l, w.first[want]-healthy, w.says[want])
			const bar = 6 // 4 s, and the seconds that begin and end them
			if at := w.first[want]; at <= healthy || at > healthy+bar {
				t.Errorf("%s: found at %d, want within %d s of %d", l, at, bar, healthy)
			}
			if err := w.Mend("gw3"); err != nil {
				t.Fatal(err)
			}
			w.run(t, within)
			for what, says := range w.accused() {
				if what != want {
					t.Errorf("%s: %s is found: %s", l, what, says)
				}
			}
		})
	}
}
