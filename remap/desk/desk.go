// Package desk is the state machine over the journal: it proposes, approves, applies, verifies, rolls back and
// records plans, and keeps exclusions, standing approvals, findings and canaries.
package desk

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/journal"
)

// Desk is the one place where plans are proposed, approved, applied, verified, rolled back and recorded. It is
// composed of its nouns, which share one recorder: nothing is answered before it is on disk, and the driver gets
// no order that is not on disk.
//
// All methods may be called concurrently.
type Desk struct {
	*recorder
	*plans
	*answers
	*standings
	*exclusions
	*findings
	*trust
	runs *runs
	cfg  *Config
}

// Config is what a desk works with.
type Config struct {
	Settings Settings
	// Path is the journal's file.
	Path   string
	Driver remap.Driver
	// Situation returns the present situation; it may be called from any goroutine.
	Situation func() *remap.Situation
	// RoleOf returns the role that a person who came through a listener (Person.Via) has at present; known is
	// false where only the next sign-in shows it. nil: it is never known. It may be called from any goroutine.
	RoleOf func(name, via string) (role remap.Role, known bool)
	// Drain says what became of an excluded forwarder's traffic; nil: nobody makes nodes avoid it.
	Drain func(topology.ForwarderID) *remap.Drain
	// Queues keep the limits of plans; nil: nobody does.
	Queues Queues
	// Together is the log that several daemons keep the journal by; nil: this daemon is alone. A desk that is not
	// alone only shows until Lead.
	Together Together
	Log      *slog.Logger // nil: discard
}

// tickEvery is how often the desk checks plans that expire, wait for their start or wait to be observed.
const tickEvery = 500 * time.Millisecond

// Open replays the journal at cfg.Path, takes up what was under way and starts the desk. Errors are those of
// journal.Open and of Settings.Validate.
func Open(cfg Config) (*Desk, journal.Summary, error) {
	if err := cfg.Settings.Validate(); err != nil {
		return nil, journal.Summary{}, err
	}
	s := newState()
	j, sum, err := journal.Open(cfg.Path, s.replay)
	if err != nil {
		return nil, sum, err
	}
	return start(cfg, s, j), sum, nil
}

func start(cfg Config, s *state, j *journal.Journal) *Desk {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	rec := newRecorder(s, j, cfg.Log)
	rec.together.log = cfg.Together
	d := &Desk{cfg: &cfg, recorder: rec, plans: &plans{rec: rec}, exclusions: &exclusions{cfg: &cfg, rec: rec},
		runs: newRuns(&cfg, rec)}
	d.findings = &findings{cfg: &cfg, rec: rec}
	d.standings = &standings{cfg: &cfg, rec: rec}
	d.trust = &trust{rec: rec}
	d.answers = &answers{cfg: &cfg, rec: rec, plans: d.plans, runs: d.runs, standings: d.standings,
		shown: map[string][]remap.Preview{}}
	rec.recorded = d.publish
	d.plans.publish()
	d.exclusions.publish()
	d.trust.publish()
	go rec.own(d.runs, func(now time.Time) {
		d.exclusions.keepLeases(now)
		d.runs.tick(now)
		d.answers.forget()
	})
	return d
}

// Settings returns the rules of the desk.
func (d *Desk) Settings() Settings { return d.cfg.Settings }

// publish shows a new record's effect to those who do not wait for the owner.
func (d *Desk) publish(r *journal.Record) {
	switch {
	case r.Exclusion != nil:
		d.exclusions.publish()
		d.notify(FeedChanged)
	case r.Finding != nil:
		d.notify(FindingsChanged)
	case r.Revoked != nil:
		d.trust.publish()
	case r.Standing != nil || r.Canary != nil || r.Kind == journal.StepEnrol:
	default:
		if r.State != "" || r.Kind == journal.StepPropose || r.Kind == journal.StepHold {
			d.plans.publish()
		}
		d.notify(r.Plan)
	}
}

// Close stops what is under way, which the next start takes up again, and closes the journal.
// It waits for every goroutine of the desk.
func (d *Desk) Close() error {
	close(d.quit)
	<-d.done
	d.notices.close()
	return d.journal.Close()
}

// WriteMetrics writes the desk's counters in Prometheus text format. It waits for nothing: a disk that
// hangs is seen in fairway_journal_write_seconds.
func (d *Desk) WriteMetrics(w io.Writer) {
	states, writing, broken := *d.plans.count.Load(), time.Duration(0), 0
	if since := d.writing.Load(); since != nil {
		writing = time.Since(*since)
	}
	if d.broken.Load() {
		broken = 1
	}
	for _, s := range slices.Sorted(maps.Keys(states)) {
		if states[s] > 0 {
			fmt.Fprintf(w, "fairway_plans{state=%q} %d\n", s, states[s])
		}
	}
	fmt.Fprintf(w, "fairway_plan_runs %d\n", d.runs.count.Load())
	fmt.Fprintf(w, "fairway_journal_records %d\n", d.records.Load())
	fmt.Fprintf(w, "fairway_journal_broken %d\n", broken)
	fmt.Fprintf(w, "fairway_journal_write_seconds %g\n", writing.Seconds())
	fmt.Fprintf(w, "fairway_plan_notices_dropped_total %d\n", d.DroppedChanges())
}

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

// state is what the journal's records add up to, a table a noun. Only take changes it, at replay and live alike,
// so that a restart ends where the last record left off.
type state struct {
	plans      planTable
	exclusions exclusionTable
	standings  standingTable
	findings   findingTable
	keys       keyTable
	trust      trustTable
}

func newState() *state {
	return &state{plans: newPlanTable(), exclusions: newExclusionTable(),
		findings: findingTable{at: map[string]int{}, ofNode: map[topology.NodeID][]int{}}, keys: keyTable{}}
}

// draft is what the first records of a batch will have changed when a later one comes.
type draft struct {
	states   map[string]remap.PlanState
	proposed int
	excluded map[topology.ForwarderID]bool
	standing map[string]bool
}

// note adds a record to the draft.
func (d *draft) note(r *journal.Record) {
	if d.states == nil {
		*d = draft{states: map[string]remap.PlanState{}, excluded: map[topology.ForwarderID]bool{},
			standing: map[string]bool{}}
	}
	switch {
	case r.Exclusion != nil:
		d.excluded[r.Exclusion.Forwarder] = r.Kind != journal.StepReturn
	case r.Standing != nil:
		d.standing[r.Standing.ID] = r.Kind == journal.StepAllow
	case r.Kind == journal.StepPropose:
		d.proposed++
		d.states[r.Plan] = r.Proposed.State
	case r.State != "":
		d.states[r.Plan] = r.State
	}
}

// check says which record of a batch does not follow from the state and the records before it.
func (s *state) check(recs []*journal.Record) error {
	var d draft
	for i, r := range recs {
		var err error
		switch r.Kind {
		case journal.StepExclude, journal.StepReturn, journal.StepMaintenance:
			err = s.exclusions.check(r, &d)
		case journal.StepFinding:
			err = s.findings.check(r)
		case journal.StepAllow, journal.StepRevoke:
			err = s.standings.check(r, &d)
		case journal.StepRevokeNodes, journal.StepRevoked:
			err = s.trust.check(r)
		case journal.StepCanary, journal.StepCanaryDone, journal.StepEnrol:
		default:
			err = s.plans.check(r, &d)
		}
		if err != nil {
			return fmt.Errorf("step %s does not fit: %w", r.Kind, err)
		}
		if i < len(recs)-1 {
			d.note(r)
		}
	}
	return nil
}

// take makes a checked record part of the state.
func (s *state) take(r *journal.Record) {
	s.keys.take(r)
	switch r.Kind {
	case journal.StepExclude, journal.StepReturn, journal.StepMaintenance:
		s.exclusions.take(r)
	case journal.StepFinding:
		s.findings.take(r)
	case journal.StepAllow, journal.StepRevoke:
		s.standings.take(r)
	case journal.StepRevokeNodes, journal.StepRevoked:
		s.trust.take(r)
	case journal.StepCanary, journal.StepCanaryDone, journal.StepEnrol:
		// Nothing follows from it but its place in the audit.
	default:
		s.plans.take(r)
	}
}

// replay takes a record that is in the journal already.
func (s *state) replay(r *journal.Record) error {
	if err := s.check([]*journal.Record{r}); err != nil {
		return err
	}
	s.take(r)
	return nil
}
