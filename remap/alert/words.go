package alert

import (
	"fmt"
	"strings"
)

// line says an alert in one line.
func line(a *Alert) string {
	var b strings.Builder
	state := "firing"
	if !a.Ended.IsZero() {
		state = "ended"
	}
	fmt.Fprintf(&b, "%s %s %s: %s", a.ID, state, a.Severity, a.Summary)
	if len(a.Hurt) > 0 {
		fmt.Fprintf(&b, "; hurts %s", hurtWords(a.Hurt))
	}
	if a.Owner != "" {
		fmt.Fprintf(&b, "; %s takes care of it", a.Owner)
	}
	if a.URL != "" {
		fmt.Fprintf(&b, "; %s", a.URL)
	}
	return clean(b.String())
}

const hurtShown = 5

func hurtWords(hurt []Hurt) string {
	var words []string
	for _, h := range hurt[:min(len(hurt), hurtShown)] {
		w := "job " + string(h.Job)
		if h.User != "" {
			w += " of " + h.User
		}
		if h.Share > 0 {
			w += fmt.Sprintf(" (waits %.0f %%)", 100*h.Share)
		}
		words = append(words, w)
	}
	if more := len(hurt) - hurtShown; more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	return strings.Join(words, ", ")
}

// clean keeps an alert in its line: names of jobs come from users.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}
