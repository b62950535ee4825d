package forwarder

import (
	"fmt"
	"strings"

	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/webui/api"
)

// life is how far the open finding has come and what it waits for, and what was found before.
func life(s *screen.State, l *api.ForwarderLife, w int) []string {
	if l == nil {
		return nil
	}
	var steps []string
	if !s.Replays() {
		steps = []string{"healthy"}
		for _, one := range l.Steps {
			steps = append(steps, fmt.Sprintf("%s %s", chart.Clean(string(one.State)), chart.Moment(one.At, s.Now)))
		}
		if l.Next != "" {
			next := chart.Clean(l.Next)
			if !l.NextFrom.IsZero() {
				next += " " + chart.Moment(l.NextFrom, s.Now)
			}
			steps = append(steps, "("+next+")")
		}
	}
	history := "history: no earlier finding"
	if f := l.Last; f != nil {
		history = fmt.Sprintf("history: %d earlier, %s %s %s, %s", l.Earlier, chart.Clean(f.ID), screen.FindingTitle(f),
			f.Since.Local().Format("2006-01-02"), chart.Age(f.Changed.Sub(f.Since)))
		if !f.Open() && f.State != "returned" {
			history += ", " + screen.StateWords(f)
		}
	}
	items := []string{history}
	if len(steps) > 0 {
		items = []string{strings.Join(steps, " -> "), history}
	}
	return chart.LabelledItems("STATE", items, w)
}
