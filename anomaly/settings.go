package anomaly

import (
	"fmt"
	"time"
)

// Mode says whether findings may exclude a forwarder without a person.
type Mode string

// The modes.
const (
	ModeObserve Mode = "observe" // findings are shown; people exclude
	ModeAuto    Mode = "auto"    // a confirmed fail-slow forwarder is excluded, within the floors
)

// Settings are the rules by which findings change state, and the limits that no detector can cross.
// Counts of seconds are of seconds with evidence; durations are of the clock.
type Settings struct {
	Mode           Mode          `toml:"mode" help:"observe (people exclude) or auto (fail-slow forwarders drain)."`
	SuspectSeconds int           `toml:"-"`
	ConfirmSeconds int           `toml:"-"`
	ClearSeconds   int           `toml:"clear_seconds" help:"Seconds at work without doubt that end it."`
	ForgetAfter    time.Duration `toml:"forget_after" help:"How long a suspicion without further evidence is kept."`
	Hold           time.Duration `toml:"hold" help:"Least time of an exclusion by policy; doubles with each relapse."`
	HoldMost       time.Duration `toml:"-"`
	ProbePasses    int           `toml:"-"`
	Trial          time.Duration `toml:"-"`
	Mute           time.Duration `toml:"-"`
	MaxExcluded    float64       `toml:"-"`
	HealthyFloor   int           `toml:"-"`
}

// DefaultSettings show findings and exclude nothing.
func DefaultSettings() Settings {
	return Settings{
		Mode: ModeObserve, SuspectSeconds: 3, ConfirmSeconds: 5, ClearSeconds: 60, ForgetAfter: 15 * time.Minute,
		Hold: 10 * time.Minute, HoldMost: 24 * time.Hour, ProbePasses: 6, Trial: 10 * time.Minute, Mute: 24 * time.Hour,
		MaxExcluded: 0.1, HealthyFloor: 1,
	}
}

// Validate returns an error that names a setting out of its range.
func (s Settings) Validate() error {
	if s.Mode != ModeObserve && s.Mode != ModeAuto {
		return fmt.Errorf("mode = %q: want observe or auto", s.Mode)
	}
	for _, n := range []struct {
		name       string
		value, min int
	}{{"suspect_seconds", s.SuspectSeconds, 1}, {"confirm_seconds", s.ConfirmSeconds, 1},
		{"clear_seconds", s.ClearSeconds, 1},
		{"probe_passes", s.ProbePasses, 1}, {"healthy_floor", s.HealthyFloor, 0}} {
		if n.value < n.min || n.value > 1e6 {
			return fmt.Errorf("%s = %d: want %d to 1000000", n.name, n.value, n.min)
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"forget_after", s.ForgetAfter}, {"hold", s.Hold}, {"hold_most", s.HoldMost}, {"trial", s.Trial},
		{"mute", s.Mute}} {
		if d.value < time.Second || d.value > 30*24*time.Hour {
			return fmt.Errorf("%s = %s: want 1s to 720h", d.name, d.value)
		}
	}
	if s.MaxExcluded < 0 || s.MaxExcluded > 1 {
		return fmt.Errorf("max_excluded = %g: want a share of 0 to 1", s.MaxExcluded)
	}
	if s.HoldMost < s.Hold {
		return fmt.Errorf("hold_most = %s: want at least hold = %s", s.HoldMost, s.Hold)
	}
	return nil
}
