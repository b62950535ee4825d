package console_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/remap"
	"fairway/webui/api"
)

// atForwarder is an operator looking at the suspect forwarder.
func atForwarder(t *testing.T) *script {
	s := newScript(t, 240, 120, 36)
	s.second()
	s.press("right", "right", "right", "enter")
	s.sees(" fwd003   SUSPECT")
	return s
}

func TestACanaryAsksOnceAndSaysWhatItFound(t *testing.T) {
	s := atForwarder(t)
	s.press("C")
	s.asked()
	s.sees("Send a canary through fwd003", "C again does it")
	s.press("wait", "down", "C") // any other key takes the question back
	s.asked()
	s.press("wait", "C")
	s.asked("canary fwd003")
	s.sees("the canary came back",
		"CANARY    12:04:31 by olga   read 1.3 ms (peers 1.1)   write 41 ms (peers 3.9)   stat 0.4 ms (peers 0.4)")
}

func TestACanaryIsNotSentByHaste(t *testing.T) {
	s := atForwarder(t)
	s.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("CC")})
	s.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("CCCC"), Paste: true})
	s.asked()
}

func TestACanaryIsRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*script)
		says string
	}{
		{"in a replay", func(s *script) { s.press("H") }, "refused: actions are off in a replay"},
		{"to a viewer", func(s *script) {
			s.fake.Do(func(o *api.Overview) { o.Role = "viewer" })
			s.second()
		}, "refused: canary needs the role operator, olga is \"viewer\""},
		{"on old data", func(s *script) {
			s.fake.Lose(fmt.Errorf("%w: connection refused", api.ErrUnreachable))
			s.pass(12 * time.Second)
		}, "refused: the data on screen is too old to decide by (since 12:04:30)"},
		{"by the server", func(s *script) {
			s.fake.NoCanary = fmt.Errorf("%w: the last one on fwd003 began 4s ago, at most one in 10s; try again in 6s",
				api.ErrConflict)
		}, "refused: conflict: the last one on fwd003 began 4s ago, at most one in 10s; try again in 6s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := atForwarder(t)
			c.do(s)
			s.press("C", "wait", "C")
			s.asked()
			s.sees(c.says)
		})
	}
	s := atForwarder(t)
	s.fake.Do(func(o *api.Overview) { o.Role = "viewer" })
	s.second()
	if strings.Contains(s.screen(), "C canary") {
		t.Errorf("a viewer is offered a canary:\n%s", s.screen())
	}
	s.press(":", "canary")
	s.sees("refused: canary needs the role operator")
}

// j, o and w of a forwarder's page: its jobs, its storage targets, and why.
func TestTheListsOfAForwarder(t *testing.T) {
	s := atForwarder(t)
	s.sees("STATE     healthy -> suspect 12:00:31 -> (confirmed after 5 s of alarm)",
		"history: 1 earlier, F-0033 slow reads 2026-10-02, 37m",
		"threads 16/16 busy", "wait/exec write 9.8x (peers 1.1)",
		"scratch-OST0043           395     180      38     9.0", ": 3 more (o)")
	s.press("o", "down", "down", "down", "down")
	s.sees(">scratch-OST0047", "scratch-OST0048")
	if strings.Contains(s.screen(), "CLIENT ") {
		t.Errorf("the whole page is not the backend's:\n%s", s.screen())
	}
	s.press("enter")
	s.sees("no job is chosen: j goes to the jobs here")
	s.press("o")
	s.sees("CLIENT ")
	s.press("w")
	s.sees(" F-0091   fwd003   slow writes   SUSPECT", "EVIDENCE")
	s.press("esc", "j", "down")
	s.sees(">88260")
	s.press("w")
	s.sees(" why job 88260's I/O took as long as it did")
	s.press("esc", "enter")
	s.sees(" job 88260")
	s.press("esc")
	s.fake.Do(func(o *api.Overview) { o.At = o.At.Add(-time.Minute) }) // its agents report no more
	s.second()
	s.press("j", "j")
	if strings.Contains(s.screen(), "75      75") {
		t.Errorf("old numbers of jobs are shown:\n%s", s.screen())
	}
	s.press("?")
	s.sees(" j           the jobs here", " down        move down", " up k        move up")
	s.asked()
	s = newScript(t, 240, 120, 36)
	s.second()
	s.press("right", "enter", "w")
	s.sees("fwd001   BUSY 69 %", "STATE     healthy   history: no earlier finding",
		"BACKEND   not reported by this layer",
		"no finding is open here: nothing is known to be wrong")
}

// e shows what the desk knew of the forwarders that a plan touches, d all of its changes.
func TestThePlansEvidence(t *testing.T) {
	s := atPlan(t)
	s.press("e")
	s.sees("EVIDENCE  as it was at 12:04:31, when the plan was proposed: 231 forwarders healthy, 126 of them idle",
		"fwd001        busy 68 %   900    812", "FINDINGS  none is open")
	s.fake.Do(func(o *api.Overview) { o.Findings[0].Node = "fwd001" })
	s.second()
	s.sees("F-0091    fwd001 suspect: write service time 9.8x")
	s.press("d")
	s.sees("c6  fwd001 -> fwd200")
	s.press("e", "e")
	s.sees("CHANGE    6 compute nodes")
	s.asked()
}

// TestAForwarderOffersWhatTheServerPermits: a limit that only the server knows is shown before the key is pressed.
func TestAForwarderOffersWhatTheServerPermits(t *testing.T) {
	s := atForwarder(t)
	s.sees("e exclude...")
	s.fake.ForwarderOptions = &remap.Options{Can: []remap.Action{remap.ActCanary},
		WhyNot: map[remap.Action]string{remap.ActExclude: "3 of 3 forwarders that may be excluded are"}}
	s.now = s.now.Add(time.Second)
	s.second()
	s.lacks("e exclude...")
	s.press("e")
	s.sees("refused: 3 of 3 forwarders that may be excluded are")
}

// TestTheServerSaysWhenDataIsTooOld: a site whose seconds come late is not stale at the default age.
func TestTheServerSaysWhenDataIsTooOld(t *testing.T) {
	s := newScript(t, 240, 120, 36)
	s.fake.Do(func(o *api.Overview) { o.LateAfter, o.StaleAfter = 20, 30 })
	s.second()
	s.pass(15 * time.Second)
	s.sees("LIVE 12:04:30 age ")
	s.now = s.now.Add(20 * time.Second)
	s.press("wait", "x")
	s.sees("NO DATA since 12:04:30")
}
