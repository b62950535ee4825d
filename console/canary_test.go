package console_test

import (
	"testing"
	"time"

	"fairway/cmd/lab/simsite"
	"fairway/remap/desk"

	tea "github.com/charmbracelet/bubbletea"
)

// atForwarder is an operator looking at a forwarder, while fwd001 is found slow.
func atForwarder(t *testing.T, id string) *script {
	s := newScript(t, 8, 120, 36)
	s.accuse()
	s.press(":", id, "enter")
	s.sees(" " + id + " ")
	return s
}

func TestACanaryAsksOnceAndSaysWhatItFound(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := atForwarder(t, "fwd003")
		s.press("C")
		s.asked()
		s.sees("Send a canary through fwd003", "C again does it")
		s.press("wait", "down", "C") // any other key takes the question back
		s.asked()
		s.press("wait", "C")
		s.asked("canary fwd003")
		s.sees("the canary came back", "CANARY    12:04:39 by olga   read ")
	})
}

func TestACanaryIsNotSentByHaste(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := atForwarder(t, "fwd003")
		s.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("CC")})
		s.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("CCCC"), Paste: true})
		s.asked()
	})
}

func TestACanaryIsRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*script)
		says string
	}{
		{"in a replay", func(s *script) { s.press("H") }, "refused: actions are off in a replay"},
		{"on old data", func(s *script) {
			s.lose(true)
			s.pass(12 * time.Second)
		}, "refused: the data on screen is too old to decide by (since 12:04:3"},
		{"by the server", func(s *script) {
			s.press("C", "wait", "C")
			s.wire.calls = nil
		}, "the last one on fwd003 began 1s ago, at most one in 10s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			atNoon(t, func(t *testing.T) {
				s := atForwarder(t, "fwd003")
				c.do(s)
				s.press("C", "wait", "C")
				s.asked()
				s.sees(c.says)
			})
		})
	}
}

// A viewer is offered nothing that would be refused, and learns why from the key.
func TestAViewerIsOfferedNoCanary(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := asViewer(t, 120, 36)
		s.press(":", "fwd001", "enter")
		s.lacks("C canary")
		s.press("C")
		s.sees("refused: canary needs the role operator, vic is \"viewer\"")
		s.press(":", "canary")
		s.sees("refused: canary needs the role operator")
		s.asked()
	})
}

// asViewer is somebody who may look only, while fwd001 is found slow.
func asViewer(t *testing.T, w, h int) *script {
	s := layout{Options: simsite.Options{Forwarders: 8, Compute: 32}, w: w, h: h, secret: simsite.ViewerSecret}.start(t)
	s.accuse()
	return s
}

// j, o and w of a forwarder's page: its jobs, its storage targets, and why.
func TestTheListsOfAForwarder(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := atForwarder(t, "fwd001")
		s.sees("STATE     healthy -> suspect 12:04:31 -> confirmed 12:04:36", "BACKEND ")
		s.press("o")
		s.lacks("CLIENT ")
		s.press("enter")
		s.sees("no job is chosen: j goes to the jobs here")
		s.press("o")
		s.sees("CLIENT ")
		s.press("w")
		s.sees(" F-0001   fwd001   slow writes   CONFIRMED", "EVIDENCE")
		s.press("esc", "j", "down")
		s.press("?")
		s.sees(" j           the jobs here", " down        move down", " up k        move up")
		s.asked()
		s.press("1", ":", "fwd003", "enter", "w")
		s.sees("fwd003", "STATE     healthy   history: no earlier finding",
			"no finding is open here: nothing is known to be wrong")
	})
}

// e shows what the desk knew of the forwarders that a plan touches, d all of its changes.
func TestThePlansEvidence(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := atPlan(t)
		s.press("e")
		s.sees("EVIDENCE  as it was at 12:04:31, when the plan was proposed: 8 forwarders healthy", "fwd001 ",
			"FINDINGS  none is open")
		s.accuse()
		s.sees("F-0001    fwd001 ")
		s.press("d")
		s.sees("c[00004-00007] (4)  fwd001 -> fwd004")
		s.press("e", "e")
		s.sees("CHANGE    4 compute nodes")
		s.asked()
	})
}

// TestAForwarderOffersWhatTheServerPermits: a limit that only the server knows is shown before the key is pressed.
func TestAForwarderOffersWhatTheServerPermits(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := layout{Options: simsite.Options{Forwarders: 8, Compute: 32,
			Desk: func(set *desk.Settings) { set.MaxExcluded = 0.1 }}, w: 120, h: 36}.start(t)
		s.second()
		s.press(":", "fwd000", "enter")
		s.sees("e drain...")
		s.press("e", "its disk is dying", "enter", "wait", "A")
		s.asked("exclude fwd000")
		s.second()
		s.press("esc", ":", "fwd002", "enter")
		s.lacks("e drain...")
		s.press("e")
		s.sees("refused: 2 of 8 forwarders would be excluded, at most 1 may be")
	})
}
