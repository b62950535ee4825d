package screen

import (
	"fmt"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/remap"
	"fairway/webui/api"
)

// State is what all screens share; View adds only the terminal's size.
type State struct {
	Now time.Time // of the newest event
	// Shown is the overview on screen, Received when it came by the local clock; Received is zero before the
	// first one. Newest is the newest overview, which is another one while the console is paused.
	Shown    api.Overview
	Received time.Time
	Newest   api.Overview
	came     time.Time
	// Lost says why the server cannot be reached, LostSince since when; nil while it can.
	Lost      error
	LostSince time.Time
	Paused    bool
	Past      time.Time // the second that a replay shows; zero while live
	// Note is the answer to the last key press, on the bottom line until the next one.
	Note string
	// reported is an answer that nobody has to react to: it gives way to the keys.
	reported struct {
		text  string
		until time.Time
	}
	Palette *chart.Palette
	Trend   Trend
	Host    Host
	Server  Server
}

// reportedFor is how long an answer hides the keys.
const reportedFor = 10 * time.Second

// Report notes that what was asked for is done.
func Report(s *State, text string) {
	s.Note, s.reported.text, s.reported.until = text, text, s.Now.Add(reportedFor)
}

// Noted is the note while it is to be shown.
func Noted(s *State) string {
	if s.Note == s.reported.text && !s.Now.Before(s.reported.until) {
		return ""
	}
	return s.Note
}

// Take shows a new overview, or notes why none came.
func (s *State) Take(o api.Overview, err error, at time.Time) {
	s.Now = at
	if err != nil {
		if s.Lost == nil {
			s.LostSince = at
		}
		s.Lost = err
		return
	}
	s.Lost, s.LostSince = nil, time.Time{}
	s.Newest, s.came = o, at
	s.Trend.take(&o)
	if !s.Paused {
		s.Live()
	}
}

// Live puts the newest overview on screen.
func (s *State) Live() {
	s.Paused, s.Past = false, time.Time{}
	s.Show(s.Newest, s.came)
}

// Show puts an overview on screen.
func (s *State) Show(o api.Overview, received time.Time) {
	s.Shown, s.Received = o, received
}

// Replays says that a second of the past is shown.
func (s *State) Replays() bool { return !s.Past.IsZero() }

// Age is how old the shown second is, counted from its end; the server's clock says how old it was when it
// came, ours how long ago that is.
func (s *State) Age() time.Duration {
	if s.Received.IsZero() || s.Shown.At.IsZero() {
		return 0
	}
	then := time.Duration(0)
	if !s.Shown.SentAt.IsZero() {
		then = s.Shown.SentAt.Sub(s.Shown.At) - time.Second
	}
	return max(0, then) + max(0, s.Now.Sub(s.Received))
}

// Fresh says that data came a moment ago and nothing else on screen depends on the clock.
func (s *State) Fresh(now time.Time) bool {
	return s.Lost == nil && !s.Paused && !s.Received.IsZero() && now.Sub(s.Received) < 1500*time.Millisecond
}

// AsOf is the time that ages are of: now, or the second that a replay shows.
func (s *State) AsOf() time.Time {
	if s.Replays() {
		return s.Past
	}
	return s.Now
}

// Stale says that the shown numbers are too old to be believed or acted on.
func (s *State) Stale() bool {
	if s.Replays() {
		return s.Shown.At.IsZero()
	}
	return s.Received.IsZero() || s.Shown.At.IsZero() || s.Age() > s.StaleAfter()
}

// LateAfter is the age at which the server calls a second late, StaleAfter that at which its numbers are hidden.
func (s *State) LateAfter() time.Duration { return limit(s.Shown.LateAfter, remap.LateAfter) }

// StaleAfter is described at LateAfter.
func (s *State) StaleAfter() time.Duration { return limit(s.Shown.StaleAfter, remap.StaleAfter) }

// limit is what the server sent, or what holds before it has sent anything.
func limit(seconds float64, before time.Duration) time.Duration {
	if seconds <= 0 {
		return before
	}
	return time.Duration(seconds * float64(time.Second))
}

// TooOld says since when data is missing, where it is too old to decide by.
func (s *State) TooOld() string {
	since := "none yet"
	if !s.Shown.At.IsZero() {
		since = "since " + chart.Clock(s.Shown.At)
	}
	return "the data on screen is too old to decide by (" + since + ")"
}

// Forwarder finds a row of the shown overview.
func (s *State) Forwarder(id topology.ForwarderID) *api.ForwarderRow {
	for i := range s.Shown.Forwarders {
		if s.Shown.Forwarders[i].ID == id {
			return &s.Shown.Forwarders[i]
		}
	}
	return nil
}

// Standing is a forwarder's state; once the data stops every one of them is stale.
func (s *State) Standing(r *api.ForwarderRow) remap.ForwarderState {
	if s.Stale() {
		return remap.ForwarderStale
	}
	return remap.ForwarderState(chart.Clean(string(r.State)))
}

// StandingText is the standing as lists write it.
func (s *State) StandingText(r *api.ForwarderRow) string { return s.Standing(r).Text(r.Busy) }

// Serves says how many compute nodes use a forwarder.
func Serves(r *api.ForwarderRow) string {
	text := anomaly.Counted(r.Clients, "compute node")
	if r.Clients == 0 && r.Sharing > 0 {
		text = "shares of " + anomaly.Counted(r.Sharing, "compute node")
	} else if r.Sharing > 0 {
		text += fmt.Sprintf(" and shares of %d more", r.Sharing)
	}
	if r.Assumed > 0 {
		text += fmt.Sprintf(" (%d more assumed by the default mapping)", r.Assumed)
	}
	return text
}

// Value hides a number that is too old: a stale forwarder's, or everybody's once the data stops.
func (s *State) Value(r *api.ForwarderRow, v *float64) *float64 {
	if s.Standing(r) == remap.ForwarderStale {
		return nil
	}
	return v
}

// TitleRoom is how many of w columns a title may have before what stands behind it.
func (s *State) TitleRoom(w int) int {
	w -= len("LIVE 12:00:00 GMT+8 late 3s") + 2
	if s.Shown.Simulated {
		w -= len(" SIMULATED") // stands before it
	}
	return w
}

// Key is what the key of an action is called on the screen shown.
func (s *State) Key(a Action) string { return s.Host.Key(a) }

// Bold paints a line that stands out.
func (s *State) Bold(line string) string { return s.Palette.Paint(s.Palette.Bold, line) }

// BoldLines paints lines that stand out.
func BoldLines(s *State, lines []string) []string {
	for i := range lines {
		lines[i] = s.Bold(lines[i])
	}
	return lines
}
