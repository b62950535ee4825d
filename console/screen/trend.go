package screen

import (
	"slices"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
)

// Trend is the layer's last minutes: what the server sent once, continued by what comes each second.
type Trend struct {
	layer []api.LayerNow
	waits map[topology.ForwarderID][]*float64
	asked Load[api.Trend]
	step  int64 // of the newest one
}

// How many steps of the layer and of a forwarder's clients are kept, and how long one is, seconds.
const (
	layerSteps = 180
	waitSteps  = 60
	stepOf     = 5
)

// Refresh asks the server for the minutes before this console was there.
func (t *Trend) Refresh(s *State) tea.Cmd {
	if t.asked.Have || s.Replays() {
		return nil
	}
	return t.asked.Refresh(s, "the last minutes", s.Server.Trend)
}

// Answer takes them.
func (t *Trend) Answer(msg tea.Msg) {
	if !t.asked.Take(msg) || !t.asked.Have {
		return
	}
	v := &t.asked.Value
	t.layer, t.step = v.Layer, v.End.Unix()/stepOf
	t.waits = make(map[topology.ForwarderID][]*float64, len(v.Waits))
	for id, w := range v.Waits {
		t.waits[id] = w.Slow
	}
	t.asked.Value = api.Trend{} // it is kept in parts
}

// take adds what an overview knows, once a step.
func (t *Trend) take(o *api.Overview) {
	step := o.At.Unix() / stepOf
	if !t.asked.Have || o.Now == nil || step <= t.step {
		return
	}
	for missed := min(step-t.step, layerSteps); missed > 1; missed-- {
		t.layer = push(t.layer, api.LayerNow{}, layerSteps)
		for id, w := range t.waits {
			t.waits[id] = push(w, nil, waitSteps)
		}
	}
	t.step = step
	t.layer = push(t.layer, *o.Now, layerSteps)
	for i := range o.Forwarders {
		r := &o.Forwarders[i]
		t.waits[r.ID] = push(t.waits[r.ID], r.Slow, waitSteps)
	}
}

func push[T any](all []T, v T, most int) []T {
	if len(all) >= most {
		copy(all, all[1:])
		all = all[:len(all)-1]
	}
	return append(all, v)
}

// Layer is one number of the layer, the oldest first.
func (t *Trend) Layer(of func(*api.LayerNow) *float64) []*float64 {
	out := make([]*float64, len(t.layer))
	for i := range t.layer {
		out[i] = of(&t.layer[i])
	}
	return out
}

// unwatched counts the steps before the first of which anything is known.
func (t *Trend) unwatched() int {
	for i := range t.layer {
		if t.layer[i] != (api.LayerNow{}) {
			return i
		}
	}
	return len(t.layer)
}

// Unwatched is how many of w columns lie before anything is known.
func (t *Trend) Unwatched(w int) int {
	n := len(t.layer)
	if w <= 0 || n == 0 {
		return 0
	}
	each := max(1, (n+w-1)/w)
	return max(0, w-(n-t.unwatched()+each-1)/each)
}

// Begun is when the first of the steps shown was watched; zero where all were, or none is known yet.
func (t *Trend) Begun() time.Time {
	before := t.unwatched()
	n := len(t.layer) - before
	if n == 0 || before == 0 {
		return time.Time{}
	}
	return time.Unix((t.step-int64(n)+1)*stepOf, 0)
}

// Slow is how many times as long as its peers a forwarder took, the oldest first.
func (t *Trend) Slow(id topology.ForwarderID) []*float64 { return t.waits[id] }

// Accused is the open finding that holds a forwarder responsible, the surest first; nil without one.
func (s *State) Accused(id topology.ForwarderID) *anomaly.Finding {
	var worst *anomaly.Finding
	for i := range s.Shown.Findings {
		f := &s.Shown.Findings[i]
		if f.Node == id.Node() && f.Kind.Accuses() && f.Open() && (worst == nil || rank(f) > rank(worst)) {
			worst = f
		}
	}
	return worst
}

// hasNote reports whether a person wrote a note about what is open at a forwarder.
func hasNote(s *State, id topology.ForwarderID) bool {
	return slices.ContainsFunc(s.Shown.Findings, func(f anomaly.Finding) bool {
		return f.Notes > 0 && f.Node == id.Node() && f.Open()
	})
}

// rank puts what is confirmed before what is suspected.
func rank(f *anomaly.Finding) int {
	switch f.State {
	case anomaly.Confirmed:
		return 2
	case anomaly.Suspect:
		return 1
	}
	return 0
}

// Sign is a forwarder's standing in two columns: ! slow, ?! suspect, x drained, ? silent, d dedicated.
func (s *State) Sign(r *api.ForwarderRow) string {
	switch s.Standing(r) {
	case remap.ForwarderStale:
		return " ?"
	case remap.ForwarderExcluded:
		return " x"
	case remap.ForwarderDedicated:
		return " d"
	case remap.ForwarderSlow, remap.ForwarderHung, remap.ForwarderDead:
		return " !"
	case remap.ForwarderSuspect, remap.ForwarderTrial:
		return "?!"
	}
	return "  "
}

// SignLook is the look of a sign.
func (s *State) SignLook(sign string) string {
	switch sign {
	case " !":
		return s.Palette.Slow
	case "?!":
		return s.Palette.Suspect
	case " ?", " x":
		return s.Palette.Dim
	}
	return ""
}

// slowness is by what lists are ordered: what is confirmed, then what is suspected, then the slowest.
func slowness(s *State, r *api.ForwarderRow) *float64 {
	v, by := s.Value(r, r.Slow), 0.0
	switch r.State {
	case remap.ForwarderSlow, remap.ForwarderHung, remap.ForwarderDead:
		by = 2000
	case remap.ForwarderSuspect, remap.ForwarderTrial:
		by = 1000
	default:
		return v
	}
	if v != nil {
		by += *v
	}
	return &by
}
