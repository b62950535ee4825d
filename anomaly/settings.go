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
	ClearSeconds   int           `toml:"-"`
	ForgetAfter    time.Duration `toml:"-"`
	Hold           time.Duration `toml:"-"`
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
	return nil
}
