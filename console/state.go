package console

import (
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
)

// State is everything a screen is drawn from; View adds only the terminal's size.
type State struct {
	Now time.Time // of the newest event
	// Shown is the overview on screen, Received when it came by the local clock; Received is zero
	// before the first one.
	Shown    api.Overview
	Received time.Time
	// Lost says why the server cannot be reached, LostSince since when; nil while it can.
	Lost      error
	LostSince time.Time
	Paused    bool
	// Note is the last answer to a key press, on the bottom line until the next one.
	Note     string
	Requests []Request // oldest first, at most maxRequests
	Palette  *Palette

	keys   *Keys
	metric int
	sort   sorting
	filter string
	pages  []page    // the last one is shown
	replay *replay   // nil while live
	first  time.Time // to be shown once there is a picture: an address named a second of the past
	// firstSpeed is how fast it then runs.
	firstSpeed int
	newest     api.Overview
	came       time.Time
}

// maxRequests is how many requests the log keeps.
const maxRequests = 200

// Request is one request this console sent.
type Request struct {
	At   time.Time
	Call string
	Took time.Duration
	Err  error
}

func (s *State) page() page { return s.pages[len(s.pages)-1] }

// take shows a new overview, or notes that there is none.
func (s *State) take(o api.Overview, err error, at time.Time) {
	s.Now = at
	if err != nil {
		if s.Lost == nil {
			s.LostSince = at
		}
		s.Lost = err
		return
	}
	s.Lost, s.LostSince = nil, time.Time{}
	s.newest, s.came = o, at
	if !s.Paused {
		s.live()
	}
}

// live puts the newest overview on screen.
func (s *State) live() {
	s.Paused, s.replay = false, nil
	s.Shown, s.Received = s.newest, s.came
}

// setMetric shows another metric.
func (s *State) setMetric(i int) {
	s.metric = i % len(metrics)
}

// age is how old the shown second is, counted from its end; the server's clock says how old it was
// when it came, ours how long ago that is.
func (s *State) age() time.Duration {
	if s.Received.IsZero() || s.Shown.At.IsZero() {
		return 0
	}
	then := time.Duration(0)
	if !s.Shown.SentAt.IsZero() {
		then = s.Shown.SentAt.Sub(s.Shown.At) - time.Second
	}
	return max(0, then) + max(0, s.Now.Sub(s.Received))
}

// fresh says that data came a moment ago and nothing else on screen depends on the clock.
func (s *State) fresh(now time.Time) bool {
	return s.Lost == nil && !s.Paused && !s.Received.IsZero() && now.Sub(s.Received) < 1500*time.Millisecond
}

// asOf is the time that ages are of: now, or the second that a replay shows.
func (s *State) asOf() time.Time {
	if s.replay != nil {
		return s.replay.at
	}
	return s.Now
}

// stale says that the shown numbers are too old to be believed or acted on.
func (s *State) stale() bool {
	if s.replay != nil {
		return s.Shown.At.IsZero()
	}
	return s.Received.IsZero() || s.Shown.At.IsZero() || s.age() > remap.StaleAfter
}

// forwarder finds a row of the shown overview.
func (s *State) forwarder(id topology.ForwarderID) *api.ForwarderRow {
	for i := range s.Shown.Forwarders {
		if s.Shown.Forwarders[i].ID == id {
			return &s.Shown.Forwarders[i]
		}
	}
	return nil
}

// standing is a forwarder's state; once the data stops every one of them is stale.
func (s *State) standing(r *api.ForwarderRow) remap.ForwarderState {
	if s.stale() {
		return remap.ForwarderStale
	}
	return remap.ForwarderState(clean(string(r.State)))
}

// value hides a number that is too old: a stale forwarder's, or everybody's once the data stops.
func (s *State) value(r *api.ForwarderRow, v *float64) *float64 {
	if s.standing(r) == remap.ForwarderStale {
		return nil
	}
	return v
}
