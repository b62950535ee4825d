package watch

import (
	"testing"
	"time"
)

// TestAStarvedDaemonAccusesNobody: ticks that come late hold the record back for a while, on time they do not.
func TestAStarvedDaemonAccusesNobody(t *testing.T) {
	begin := time.Unix(1_790_000_000, 0)
	for name, c := range map[string]struct {
		ticks []time.Duration
		held  bool
	}{
		"on time":         {[]time.Duration{1e6, 1e9 + 9e8, 2e9, 3e9 + 1e9}, false},
		"late":            {[]time.Duration{0, 2.6e9}, true},
		"late, long ago":  {[]time.Duration{0, 3e9, 4e9, 5e9}, true},
		"the first alone": {[]time.Duration{0}, false},
	} {
		var s starvation
		var now time.Time
		for _, d := range c.ticks {
			now = begin.Add(d)
			s.note(now)
		}
		if held := now.Before(s.until); held != c.held {
			t.Errorf("%s: held %v", name, held)
		}
		for i := range 20 { // a second each, on time
			now = now.Add(time.Second)
			s.note(now)
			if held := now.Before(s.until); held && time.Duration(i+1)*time.Second >= afterStarving {
				t.Errorf("%s: held %d s after", name, i+1)
			}
		}
	}
}
