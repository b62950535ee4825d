package gateways

import (
	"testing"
	"testing/synctest"

	"fairway/cmd/lab/sitefiles/model"
)

// A slow DVS server is found by what DVS itself reports, with nothing read of Lustre: where DVS times its messages by
// the server's own times, else by its clients' lists of outstanding requests. A slow storage target accuses none.
func TestSlowDVSServerIsFoundWithoutLustre(t *testing.T) {
	slowLinkAndTarget(t, []Layer{DVS, OldDVS}, (*watched).withoutLustre)
}

// A DVS server that answers nothing any more is named as soon as its clients' oldest requests are 4 s old, and no
// other is.
func TestHungDVSServerIsNamed(t *testing.T) {
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
