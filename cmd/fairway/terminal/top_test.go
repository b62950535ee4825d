package terminal

import (
	"testing"
	"time"
)

func TestPastMoment(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for arg, back := range map[string]time.Duration{"20m": 20 * time.Minute, "2026-11-21T11:59:00Z": time.Minute,
		"": time.Minute, "-5m": -1, "yesterday": -1, "2026-11-21T12:00:01Z": -1} {
		var args []string
		if arg != "" {
			args = []string{arg}
		}
		at, err := pastMoment(args, now)
		if (err != nil) != (back < 0) || err == nil && now.Sub(at) != back {
			t.Errorf("%q: %s, %v", arg, at, err)
		}
	}
}
