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
	// Mode says how far the desk goes by itself.
	Mode remap.Mode `toml:"mode"`
	// PlansPerMinute bounds what is approved by rule.
	PlansPerMinute int `toml:"plans_per_minute"`
	// ProposalTTL is how long a proposal waits for approvals.
	ProposalTTL time.Duration `toml:"proposal_ttl"`
	// ApprovalTTL is how long an approved plan may wait for its start.
	ApprovalTTL time.Duration `toml:"approval_ttl"`
	// VerifyWithin is how long the collector may take to see the new mapping.
	VerifyWithin time.Duration `toml:"verify_within"`
	// SelfApproval lets the proposer approve; for sites where one operator works alone.
	SelfApproval bool `toml:"self_approval"`
	// TwoPersons asks for a second approval of big or doubtful plans.
	TwoPersons bool `toml:"two_persons"`
	// BigPlan is the number of moves above which a plan needs two approvals.
	BigPlan int `toml:"big_plan"`
	// HealthyFloor is the smallest number of healthy forwarders that must be left for everybody.
	HealthyFloor int `toml:"healthy_floor"`
	// MaxExcluded is the largest share of the forwarders that may be excluded at once, 0..1; one may
	// be where the share is less than one forwarder.
	MaxExcluded float64 `toml:"max_excluded"`
	// FeedLease is how long a reader may rely on the list of exclusions it read.
	FeedLease time.Duration `toml:"feed_lease"`
	// MaxApplying is how many plans may be applied or rolled back at once.
	MaxApplying int `toml:"max_applying"`
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
	}{{"proposal_ttl", s.ProposalTTL}, {"approval_ttl", s.ApprovalTTL}, {"verify_within", s.VerifyWithin},
		{"feed_lease", s.FeedLease}} {
		if d.value < time.Second || d.value > 24*time.Hour {
			return fmt.Errorf("desk.%s = %s: want 1s to 24h", d.name, d.value)
		}
	}
	for _, n := range []struct {
		name       string
		value, min int
	}{{"big_plan", s.BigPlan, 1}, {"healthy_floor", s.HealthyFloor, 0}, {"max_applying", s.MaxApplying, 1},
		{"plans_per_minute", s.PlansPerMinute, 0}} {
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
