package report

import (
	"strings"
	"testing"
	"time"
)

// TestTheNewestDayIsNotCutOff: a day that begins close to the chart's end has its name before its line.
func TestTheNewestDayIsNotCutOff(t *testing.T) {
	to := time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC)
	r := Report{From: to.AddDate(0, 0, -7), To: to}
	axis := r.axis()
	if !strings.Contains(axis, `text-anchor="end">Wed 25 Nov<`) || strings.Count(axis, `"end"`) != 1 {
		t.Errorf("the days are %s", axis)
	}
}
