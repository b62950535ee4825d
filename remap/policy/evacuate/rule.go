package evacuate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/remap"
)

// What a rule does with a job that waits.
const (
	Propose = "propose" // puts a plan on the desk
	Act     = "act"     // and approves it
)

// Rule says what becomes of running jobs behind a forwarder that is confirmed to be ill. Of several that fit, the first
// one counts; where none does, a plan is proposed.
type Rule struct {
	Name        string        `toml:"name" json:"name" help:"Its name in plans, alerts and the audit."`
	Conditions  []string      `toml:"condition" json:"condition,omitempty" help:"Of slow, hung, dead; empty: not hung."`
	Ratio       float64       `toml:"ratio" json:"ratio,omitempty" help:"Least ratio to its peers of a slow one."`
	For         time.Duration `toml:"for" json:"for_ns,omitempty" help:"How long it must have been confirmed."`
	Application string        `toml:"application" json:"application,omitempty" help:"Of jobs of this one; empty: all."`
	User        string        `toml:"user" json:"user,omitempty" help:"Of jobs of this user; empty: all."`
	Hours       string        `toml:"hours" json:"hours,omitempty" help:"Local time, as 08:00-18:00; empty: always."`
	AtMost      int           `toml:"at_most_a_day" json:"at_most_a_day,omitempty" help:"Acts in 24 h; then it asks."`
	Loss        float64       `toml:"loss" json:"loss,omitempty" help:"What jobs at the target may lose; 0: 0.05."`
	Action      string        `toml:"action" json:"action" help:"propose, or act: move without a hand."`
}

// The bounds of a rule that does not say its own.
const (
	defaultLoss   = 0.05
	defaultAtMost = 10
)

// Validate names the entry and the field that cannot be.
func Validate(rules []Rule) error {
	names := map[string]bool{}
	for i, r := range rules {
		bad := func(format string, args ...any) error {
			return fmt.Errorf("[[rule]] number %d: %s", i+1, fmt.Sprintf(format, args...))
		}
		switch _, _, err := r.hours(); {
		case r.Name == "" || remap.CheckText(r.Name) != nil:
			return bad("name = %q: want a name in one line", r.Name)
		case names[r.Name]:
			return bad("name = %q is listed twice", r.Name)
		case r.Action != Propose && r.Action != Act:
			return bad("action = %q: want %s or %s", r.Action, Propose, Act)
		case r.Ratio < 0 || r.Ratio > 1000:
			return bad("ratio = %g: want 0 to 1000", r.Ratio)
		case r.For < 0 || r.For > 7*24*time.Hour:
			return bad("for = %s: want 0s to 168h", r.For)
		case r.AtMost < 0:
			return bad("at_most_a_day = %d: want 0 (which is %d) or more", r.AtMost, defaultAtMost)
		case r.Loss < 0 || r.Loss > 1:
			return bad("loss = %g: want a share of 0 to 1", r.Loss)
		case err != nil:
			return bad("%v", err)
		}
		for _, c := range r.Conditions {
			if !slices.Contains(evacuated, anomaly.Condition(c)) {
				return bad("condition %q: want slow, hung or dead", c)
			}
		}
		names[r.Name] = true
	}
	return nil
}

// hours are the minutes of the day between which the rule holds; both 0: always.
func (r *Rule) hours() (from, to int, err error) {
	if r.Hours == "" {
		return 0, 0, nil
	}
	first, last, ok := strings.Cut(r.Hours, "-")
	a, errA := time.Parse("15:04", first)
	b, errB := time.Parse("15:04", last)
	if !ok || errA != nil || errB != nil || a.Equal(b) {
		return 0, 0, fmt.Errorf("hours = %q: want two times of the day, as 08:00-18:00", r.Hours)
	}
	return a.Hour()*60 + a.Minute(), b.Hour()*60 + b.Minute(), nil
}

// holds says whether at is within the rule's hours, over midnight too.
func (r *Rule) holds(at time.Time) bool {
	from, to, err := r.hours()
	if err != nil || from == to {
		return err == nil
	}
	minute := at.Local().Hour()*60 + at.Local().Minute()
	if from < to {
		return minute >= from && minute < to
	}
	return minute >= from || minute < to
}

// fits says whether the rule is about a finding and a job at a time.
func (r *Rule) fits(f *anomaly.Finding, j *remap.Job, at time.Time) bool {
	return (len(r.Conditions) == 0 || slices.Contains(r.Conditions, string(f.Condition))) &&
		(f.Condition != anomaly.Slow || ratioOf(f) >= r.Ratio) &&
		(r.Application == "" || r.Application == j.App) && (r.User == "" || r.User == j.User) && r.holds(at)
}

// find returns the first rule about a finding and a job at a time; nil: none is.
func find(rules []Rule, f *anomaly.Finding, j *remap.Job, at time.Time) *Rule {
	for i := range rules {
		if rules[i].fits(f, j, at) {
			return &rules[i]
		}
	}
	return nil
}

// atMost is how often the rule acts in 24 hours.
func (r *Rule) atMost() int {
	if r.AtMost == 0 {
		return defaultAtMost
	}
	return r.AtMost
}

// loss is what jobs at the targets may lose; of no rule the default.
func (r *Rule) loss() float64 {
	if r == nil || r.Loss == 0 {
		return defaultLoss
	}
	return r.Loss
}

// evacuated are the conditions of a forwarder whose jobs are moved. The jobs of one that only does not report
// may be well.
var evacuated = []anomaly.Condition{anomaly.Slow, anomaly.Hung, anomaly.Dead}

// ratioOf is by how much a finding has its node slower than its peers; 0: not known.
func ratioOf(f *anomaly.Finding) float64 {
	if f.Factor > 0 {
		return f.Factor
	}
	ratio := 0.0
	for _, class := range []string{"read", "write", "meta"} {
		ratio = max(ratio, f.Evidence[class+"_ratio"])
	}
	return ratio
}
