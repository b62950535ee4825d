package dispatch

import (
	"testing"

	"fairway/collector"
)

// How many metadata operations are under way is their rate times their time where somebody times them, and else what
// the compute node says, never both.
func TestMetadataUnderWay(t *testing.T) {
	for name, c := range map[string]struct {
		samples []collector.Sample
		want    float64
	}{
		"timed":  {[]collector.Sample{{Metric: collector.ClientMeta, Value: 0.02}}, 2},
		"listed": {[]collector.Sample{{Metric: collector.MetaInFlight, Value: 3}}, 3},
		"both": {[]collector.Sample{{Metric: collector.MetaInFlight, Value: 3},
			{Metric: collector.ClientMeta, Value: 0.02}}, 2},
		"neither": {nil, 0},
	} {
		var s seen
		all := append(c.samples, collector.Sample{Metric: collector.MetaOps, Value: 100})
		s.add(&collector.Frame{Samples: all}, "f1")
		if s.metaWait != c.want {
			t.Errorf("%s: %g under way, want %g", name, s.metaWait, c.want)
		}
	}
}
