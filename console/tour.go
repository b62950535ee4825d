package console

import (
	"fmt"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/console/screen/plan"
	"fairway/remap"
)

// tour leads an operator in six steps from "something is slow" to "it helped": a line on every screen says what to look
// at and which key is next. It does nothing itself: each step is over when the operator has done it.
type tour struct {
	step int // 0 without a tour
	slow topology.ForwarderID
}

// The steps.
const (
	tourNone = iota
	tourSlow
	tourWhy
	tourWho
	tourMove
	tourApprove
	tourHelped
)

// follow goes on to the step that the operator has reached.
func (t *tour) follow(s *screen.State, top screen.Screen) {
	for before := -1; before != t.step; {
		before = t.step
		on := top.Name()
		switch t.step {
		case tourSlow:
			t.slow = accusedOf(s)
			if t.slow != "" && (on == screen.OnForwarder || on == screen.OnFinding) {
				t.step++
			}
		case tourWhy:
			if on == screen.OnFinding {
				t.step++
			}
		case tourWho:
			if on == screen.OnJobs {
				t.step++
			}
		case tourMove:
			if on == screen.OnPlan {
				t.step++
			}
		case tourApprove:
			if v := plan.Shown(top); v != nil && v.State != remap.Proposed && v.State != remap.Approved &&
				v.State != remap.Applying {
				t.step++
			}
		}
	}
}

// accusedOf is the forwarder that is slow: confirmed before suspected.
func accusedOf(s *screen.State) topology.ForwarderID {
	id, best := topology.ForwarderID(""), 0
	for i := range s.Shown.Forwarders {
		f := s.Accused(s.Shown.Forwarders[i].ID)
		if f == nil || f.ExcludedBy != "" {
			continue
		}
		if rank := map[anomaly.State]int{anomaly.Confirmed: 2, anomaly.Suspect: 1}[f.State]; rank > best {
			id, best = s.Shown.Forwarders[i].ID, rank
		}
	}
	return id
}

// lines are the tour's on top of a screen; nothing without a tour.
func (t *tour) lines(s *screen.State, keys *Keys, top screen.Screen, w int) []string {
	if t.step == tourNone {
		return nil
	}
	t.follow(s, top)
	lines := chart.Paragraphs(w, fmt.Sprintf("TOUR %d of %d  %s", t.step, tourHelped, t.text(s, keys, top)))
	for i := range lines {
		lines[i] = s.Palette.Paint(s.Palette.Suspect, lines[i])
	}
	return lines
}

func (t *tour) text(s *screen.State, keys *Keys, top screen.Screen) string {
	key := func(a screen.Action, on string) string { return keys.name(on, a) }
	slow := chart.Clean(string(t.slow))
	switch t.step {
	case tourSlow:
		if t.slow == "" {
			return "Nothing is slow yet. A demo makes one forwarder slow within two minutes: it becomes the first row."
		}
		return fmt.Sprintf("Something is slow: %s. It is the first row, its minutes leave the band of its peers. "+
			"Open it: %s", slow, key(screen.ActOpen, screen.OnOverview))
	case tourWhy:
		return "What it does, beside its peers. Why it is accused: " + key(screen.ActWhy, screen.OnForwarder)
	case tourWho:
		return "The evidence, and since when. Who suffers, and how much: " + key(screen.ActJobs, screen.OnFinding)
	case tourMove:
		for _, w := range s.Shown.Waiting {
			if r := s.Forwarder(t.slow); r != nil && r.Plan == w.ID {
				return fmt.Sprintf("The jobs that wait come first. A plan moves nodes away from %s: %s, then %s", slow,
					key(screen.ActOverview, screen.OnJobs), key(screen.ActApprove, screen.OnOverview))
			}
		}
		if top.Name() == screen.OnPropose {
			return "Choose where its nodes go (an idle, healthy one), enter, write why in ten letters or more, enter"
		}
		return fmt.Sprintf("The jobs that wait come first. Move nodes away from %s: %s, %s, %s", slow,
			key(screen.ActOverview, screen.OnJobs), key(screen.ActOpen, screen.OnOverview),
			key(screen.ActPropose, screen.OnForwarder))
	case tourApprove:
		if v := plan.Shown(top); v != nil && v.State != remap.Proposed {
			return "Its nodes are being moved, and each is observed where it went."
		}
		return fmt.Sprintf(
			"What would change, and its checks. Nothing has happened yet. Say why (%s, text, enter), then "+
				"approve: %s, and %s once more", key(screen.ActPanel, screen.OnPlan),
			key(screen.ActApprove, screen.OnPlan),
			key(screen.ActApprove, screen.OnPlan))
	}
	v := plan.Shown(top)
	switch {
	case v == nil || v.Effect == nil || v.Effect.Verdict == remap.Measuring:
		return "Moved and observed. Did it help? EFFECT measures it for a minute on the plan's page."
	case v.Effect.Verdict == remap.Helped:
		return fmt.Sprintf("It helped: see EFFECT. %s takes it back whenever you like. That was the tour; %s leaves.",
			key(screen.ActRollBack, screen.OnPlan), key(screen.ActQuit, screen.OnPlan))
	}
	return fmt.Sprintf("EFFECT says what the move brought; %s takes it back. That was the tour; %s leaves.",
		key(screen.ActRollBack, screen.OnPlan), key(screen.ActQuit, screen.OnPlan))
}

// Guide begins the tour.
func Guide(m *Model) { m.visit.tour.step = tourSlow }

// OfDemo makes it a demo's console: browser says where its browser is, and q asks once, because the demo ends with it.
func OfDemo(m *Model, browser string) { m.visit.demo = browser }
