package decisions

import (
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
)

// Without an open finding the command says since when, and what was compared, not a heading alone.
func TestNoOpenFindingIsSaid(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.Local)
	closed := []anomaly.Finding{{ID: "F-0002", Node: "fwd002", State: anomaly.Returned, Changed: at},
		{ID: "F-0001", Node: "fwd001", State: anomaly.Dismissed, Changed: at.Add(-time.Minute)}}
	for _, c := range []struct {
		closed []anomaly.Finding
		calm   string
		want   string
	}{
		{nil, "", "no finding is open, and none was closed within the last hour\n"},
		{closed, "Nothing is slow. 8 of 8 forwarders do I/O now and were compared.",
			"no finding is open since 12:00:00: F-0002 of fwd002 was the last (--all lists it)\n" +
				"Nothing is slow. 8 of 8 forwarders do I/O now and were compared.\n"},
	} {
		var out strings.Builder
		if err := printNoFinding(&out, c.closed, c.calm); err != nil || out.String() != c.want {
			t.Errorf("%v: %q %v, want %q", c.closed, out.String(), err, c.want)
		}
	}
}
