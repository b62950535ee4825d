package desk

import (
	"fmt"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/remap"
)

// Settings are the rules of the desk that a site may change.
type Settings struct {
	Mode           remap.Mode    `toml:"mode" help:"observe (no plan runs), approve (people do) or auto (rules do)."`
	PlansPerMinute int           `toml:"plans_per_minute" help:"Most plans approved by rule in a minute; others wait."`
	ProposalTTL    time.Duration `toml:"-"`
	ApprovalTTL    time.Duration `toml:"-"`
	VerifyWithin   time.Duration `toml:"verify_within" help:"How long a new mapping may take to be seen."`
	SelfApproval   bool          `toml:"self_approval" help:"Whether its proposer may approve a plan."`
	TwoPersons     bool          `toml:"two_persons" help:"Whether big or doubtful plans need two approvals."`
	BigPlan        int           `toml:"big_plan" help:"Moves above which a plan is big."`
	HealthyFloor   int           `toml:"-"`
	MaxExcluded    float64       `toml:"max_excluded" help:"Largest share of forwarders excluded at once, or one."`
	ReturnAfter    time.Duration `toml:"return_after" help:"How long a forwarder is well before nodes go back to it."`
	FeedLease      time.Duration `toml:"-"`
	MaxApplying    int           `toml:"-"`
}

// DefaultSettings are closed where they have a choice.
func DefaultSettings() Settings {
	return Settings{
		Mode:           remap.ModeApprove,
		PlansPerMinute: 6,
		ProposalTTL:    15 * time.Minute,
		ApprovalTTL:    2 * time.Minute,
		VerifyWithin:   30 * time.Second,
		TwoPersons:     true,
		BigPlan:        4096,
		HealthyFloor:   1,
		MaxExcluded:    0.25,
		ReturnAfter:    5 * time.Minute,
		FeedLease:      time.Minute,
		MaxApplying:    4,
	}
}

// Bound returns the rules of findings within the desk's limits: an exclusion that the desk refuses would take
// every other change of its second with it, again and again.
func (s Settings) Bound(f anomaly.Settings) anomaly.Settings {
	f.MaxExcluded = min(f.MaxExcluded, s.MaxExcluded)
	f.HealthyFloor = max(f.HealthyFloor, s.HealthyFloor)
	return f
}

// Validate says which setting is out of its range.
func (s Settings) Validate() error {
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"verify_within", s.VerifyWithin}, {"return_after", s.ReturnAfter}} {
		if d.value < time.Second || d.value > 24*time.Hour {
			return fmt.Errorf("desk.%s = %s: want 1s to 24h", d.name, d.value)
		}
	}
	for _, n := range []struct {
		name       string
		value, min int
	}{{"big_plan", s.BigPlan, 1}, {"plans_per_minute", s.PlansPerMinute, 0}} {
		if n.value < n.min {
			return fmt.Errorf("desk.%s = %d: want at least %d", n.name, n.value, n.min)
		}
	}
	if !slices.Contains([]remap.Mode{remap.ModeObserve, remap.ModeApprove, remap.ModeAuto}, s.Mode) {
		return fmt.Errorf("desk.mode = %q: want observe, approve or auto", s.Mode)
	}
	if s.MaxExcluded < 0 || s.MaxExcluded > 1 {
		return fmt.Errorf("desk.max_excluded = %g: want a share of 0 to 1", s.MaxExcluded)
	}
	return nil
}
