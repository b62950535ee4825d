package slurm

import (
	"strings"
	"testing"
	"time"
)

// TestTimesOfAccounts: what an account's times mean depends on its state and on how long the job lasted.
func TestTimesOfAccounts(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		state, start, end, elapsed string
		from, to                   string // UTC; empty: not known
	}{
		"requeued": {"REQUEUED", "2025-11-08T02:44:00", "2025-11-08T02:50:00", "360", "2025-11-08T01:44",
			"2025-11-08T01:50"},
		"requeued, and a plan": {"REQUEUED", "2025-11-08T02:44:00", "2025-11-09T02:44:00", "0", "2025-11-08T01:44", ""},
		"before it got other nodes": {"RESIZING", "2025-11-08T02:44:00", "2025-11-08T02:50:00", "360",
			"2025-11-08T01:44", "2025-11-08T01:50"},
		"getting other nodes": {"RESIZING", "2025-11-08T02:44:00", "2025-11-09T02:44:00", "360", "2025-11-08T01:44",
			""},
		"running, and a plan": {"RUNNING", "2025-11-08T02:44:00", "2025-11-08T02:50:00", "360", "2025-11-08T01:44",
			""},
		// On 2025-10-26 at 03:00 clocks went back to 02:00.
		"into the second hour": {"COMPLETED", "2025-10-26T01:30:00", "2025-10-26T02:30:00", "7200",
			"2025-10-25T23:30", "2025-10-26T01:30"},
		"into the first hour": {"COMPLETED", "2025-10-26T01:30:00", "2025-10-26T02:30:00", "3600",
			"2025-10-25T23:30", "2025-10-26T00:30"},
		"out of the first hour": {"COMPLETED", "2025-10-26T02:30:00", "2025-10-26T04:00:00", "9000",
			"2025-10-26T00:30", "2025-10-26T03:00"},
		"out of the second hour": {"FAILED", "2025-10-26T02:30:00", "2025-10-26T04:00:00", "5400", "2025-10-26T01:30",
			"2025-10-26T03:00"},
		"suspended for 16 minutes": {"COMPLETED", "2025-10-26T02:30:00", "2025-10-26T04:00:00", "8000",
			"2025-10-26T00:30", "2025-10-26T03:00"},
		"in both": {"FAILED", "2025-10-26T02:50:00", "2025-10-26T02:10:00", "1200", "2025-10-26T00:50",
			"2025-10-26T01:10"},
	} {
		text := "JobID|State|Start|End|ElapsedRaw\n7|" + strings.Join([]string{c.state, c.start, c.end, c.elapsed},
			"|") + "\n"
		err := Read(strings.NewReader(text), Options{Zone: berlin}, func(j *Job) error {
			shown := func(t time.Time) string {
				if t.IsZero() {
					return ""
				}
				return t.UTC().Format("2006-01-02T15:04")
			}
			if from, to := shown(j.Start), shown(j.End); from != c.from || to != c.to {
				t.Errorf("%s: from %s to %s, want %s to %s", name, from, to, c.from, c.to)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
