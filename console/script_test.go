package console_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/cmd/lab/simsite"
	"fairway/console"
	"fairway/console/screen"
)

// atPlan is an operator looking at somebody else's waiting plan.
func atPlan(t *testing.T) *script {
	s := newScript(t, 8, 120, 36)
	s.second()
	s.propose("fwd004")
	s.second()
	s.press("4", "enter")
	s.sees("P-000001  PROPOSED  proposed by ada", "[ Cancel ]")
	return s
}

func TestEnterNeverApproves(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := atPlan(t)
		s.press("tab", "because it is slow", "enter", "enter")
		s.sees("plans   1 waiting for a person") // Enter pressed Cancel
		s.asked()
	})
}

func TestApproveAsksOnce(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := atPlan(t)
		s.press("tab", "because it is slow", "enter", "A")
		s.asked()
		s.sees("Approve P-000001: 4 compute nodes change their forwarder. A again does it")
		s.press("wait", "down", "A") // any other key takes the question back
		s.asked()
		s.press("wait", "A")
		s.asked("approve P-000001")
		s.seconds(4)
		s.sees("VERIFIED", "verified 4 of 4 at 12:04:3", "by olga at")
	})
}

// Two A that arrive as one, typed ahead or pasted, do not answer the question between them.
func TestApproveIsNotAnsweredByHaste(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := atPlan(t)
		s.press("tab", "because it is slow", "enter")
		s.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("AA")})
		s.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("AAAA"), Paste: true})
		s.asked()
		s.sees("pasted text was ignored")
	})
}

func TestApproveNeedsAReason(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := atPlan(t)
		s.press("tab", "ctrl+u", "too short", "enter", "A", "wait", "A")
		s.asked()
		s.sees("refused: the reason has 9 of at least 10 letters")
	})
}

func TestTheProposerMayNotApprove(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 120, 36)
		s.second()
		s.press("right", "p", "enter", "fwd001 is slow now", "enter")
		s.sees("P-000001  PROPOSED  proposed by olga", "not by you: you proposed it")
		s.press("tab", "because it is slow", "enter", "A", "wait", "A")
		s.asked("propose fwd007")
		s.sees("refused: you proposed it")
	})
}

func TestAChangedPlanIsNotApplied(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := atPlan(t)
		s.press("tab", "because it is slow", "enter", "A")
		s.reroutes()
		s.press("wait", "A")
		s.sees("PROPOSED", "nothing was applied: the plan changed under you", "- c[00004-00007] (4)  fwd001 -> fwd004",
			"+ c00004  fwd007 -> fwd004")
		s.press("A", "wait", "A") // read again, approved again
		s.seconds(4)
		s.sees("VERIFIED")
	})
}

// A change that arrives while the question is on screen takes the question back.
func TestAChangeTakesTheQuestionBack(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := atPlan(t)
		s.press("tab", "because it is slow", "enter", "A")
		s.reroutes()
		s.second()
		s.press("wait", "A")
		s.asked()
	})
}

func TestOldDataApprovesNothing(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := atPlan(t)
		s.press("tab", "because it is slow", "enter")
		s.lose(true)
		s.pass(12 * time.Second)
		s.press("A", "wait", "A")
		s.asked()
		s.sees("NO DATA since 12:04:31", "refused: the data on screen is too old")
		s.lose(false)
		s.second()
		s.sees("LIVE 12:04:4")
		s.press("A", "wait", "A")
		s.asked("approve P-000001")
	})
}

func TestRejectMovesNothing(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := atPlan(t)
		s.press("x")
		s.asked("reject P-000001")
		s.sees("REJECTED")
		s.press("A", "wait", "A", "B", "wait", "B")
		s.asked("reject P-000001")
		s.sees("refused: it is rejected")
	})
}

func TestRollBackWorksDuringApply(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := atPlan(t)
		s.machine(func(m *simsite.Machine) { m.Slow = 3 * time.Second })
		s.approve()
		s.sees("APPLYING", "applying 1/4  ok 1  retry 0  failed 0", "B roll back", "s stop after this batch")
		s.press("B")
		s.asked("approve P-000001")
		s.press("wait", "B")
		s.asked("approve P-000001", "roll back P-000001")
		s.seconds(20)
		s.sees("ROLLED BACK", "rolled back 4/4  ok 4")
	})
}

// A plan that is still rolling back has not ended: the screen names who asked for it, not an end.
func TestARollBackUnderWayHasNotEnded(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := atPlan(t)
		s.approve()
		s.machine(func(m *simsite.Machine) { m.Slow = 3 * time.Second })
		s.press("B", "wait", "B")
		s.seconds(5)
		s.sees("ROLLING BACK", "ROLL BACK by olga at 12:04:38", "rolling back 1/4  ok 1")
	})
}

// Each screen says where to look for what is missing; nothing but a node is part of the machine.
func TestWhatIsNotKnownIsNotCalledANode(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		for _, c := range []struct {
			page, id, lists string
		}{
			{"forwarders", "fwd999", ""},
			{"findings", "F-9999", "3 lists those that are kept."},
			{"plans", "P-999999", "4 lists those that are kept."},
			{"jobs", "99999", "2 lists those that are kept."},
		} {
			s := newScriptAt(t, screen.Address{Page: c.page, ID: c.id})
			s.second()
			s.sees("not found", "The server does not know it, or no longer; : finds what it knows.", c.lists)
			s.lacks("part of the machine")
		}
	})
}

func TestStopNeedsNoQuestion(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := atPlan(t)
		s.press("s")
		s.asked()
		s.sees("refused: it is proposed, not being applied")
		s.machine(func(m *simsite.Machine) { m.Slow = 3 * time.Second })
		s.approve()
		s.press("s")
		s.asked("approve P-000001", "stop P-000001")
	})
}

func TestAFailureIsNamed(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := atPlan(t)
		s.machine(func(m *simsite.Machine) { m.Broken["c00005"] = true })
		s.approve()
		s.sees("PARTIAL", "failed 1", "c00005 failed after 3 tries: mount does not answer")
	})
}

// A lower-case key never changes the machine.
func TestNoLowerCaseKeyChangesTheMachine(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 120, 36)
		s.second()
		s.propose("fwd004")
		s.look()
		for _, page := range [][]string{{"1"}, {"1", "enter"}, {"4"}, {"4", "enter"}, {"1", "?"}, {"1", "@"},
			{"1", "p"}} {
			for k := 'a'; k <= 'z'; k++ {
				s.press("esc", "esc", "esc")
				s.press(page...)
				s.press("wait", string(k), "wait", string(k))
				for _, call := range s.wire.calls {
					if !strings.HasPrefix(call, "reject") {
						t.Fatalf("%q on %v asked for %q", k, page, call)
					}
				}
				s.press("esc")
			}
		}
	})
}

func TestALostServerIsSaidAndForgotten(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 120, 36)
		s.second()
		s.lose(true)
		s.look()
		s.sees("No connection since 12:04:31, trying again: fairwayd does not answer: connection refused",
			"LIVE 12:04:30")
		s.pass(11 * time.Second)
		s.sees("NO DATA since 12:04:30", "What is wrong is not known")
		if regexp.MustCompile(`\d MB/s \|`).MatchString(s.screen()) || strings.Contains(s.screen(), " of 20 GB/s") {
			t.Errorf("an old number is shown as if it were new:\n%s", s.screen())
		}
		s.lose(false)
		s.second()
		if strings.Contains(s.screen(), "No connection") {
			t.Errorf("the loss is still on screen:\n%s", s.screen())
		}
	})
}

// boxes is how many lines at the top have ages, which go on.
const boxes = 6

func TestPauseKeepsThePicture(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 120, 36)
		s.second()
		s.press("space")
		below := func() string { return strings.Join(strings.Split(s.screen(), "\n")[boxes:], "\n") }
		before := below()
		s.machine(func(m *simsite.Machine) { m.Typical *= 2 })
		s.second()
		s.sees("PAUSED at 12:04:30")
		if below() != before {
			t.Errorf("paused, but:\n%s", s.screen())
		}
		s.press("L")
		s.sees("LIVE 12:04:31")
		if below() == before {
			t.Error("live again shows the old second")
		}
	})
}

func TestCopiedAddressOpensTheSameScreen(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 120, 36)
		s.second()
		s.press("m", "g", ">", "/", "fwd003", "enter", "y")
		a, err := screen.ParseAddress("https://fairway.site" + s.copied)
		if err != nil {
			t.Fatal(err)
		}
		if want := (screen.Address{Page: "overview", Metric: "occ", View: "table", Sort: "read",
			Filter: "fwd003"}); a != want {
			t.Errorf("%s is %+v", s.copied, a)
		}
		s.press("enter", "y")
		if s.copied != "/forwarders/fwd003" {
			t.Errorf("copied %q", s.copied)
		}
		for _, c := range []struct {
			keys []string
			want string
		}{
			{[]string{"7", "w", "a"}, "/logs?all=1&op=read&sort=-bw"},
			{[]string{"7", "enter"}, "/jobs/9/why"},
			{[]string{"d", "m", "e", "servers=6 stripe_size=65536", "enter"},
				"/jobs/9/domains?servers=6&stripe_size=65536"},
			{[]string{"8", "m"}, "/whatif?policy=job-fair"},
			{[]string{"1", "enter", "8"}, "/whatif?forwarder=fwd003&policy=size-fair"},
		} {
			s.press(c.keys...)
			if s.press("y"); s.copied != c.want {
				t.Errorf("%q copied %q, want %q", c.keys, s.copied, c.want)
			}
			if a, err := screen.ParseAddress(c.want); err != nil || a.String() != c.want {
				t.Errorf("%s is read as %+v, %v", c.want, a, err)
			}
		}
		s.press("1", "H", "y")
		if s.copied != "/overview?at=2026-11-21T12%3A03%3A30Z&filter=fwd003&metric=occ&sort=read&view=table" {
			t.Errorf("a replay copied %q", s.copied)
		}
		s.press("L", "/")
		s.send(tea.KeyMsg{Type: tea.KeyCtrlU})
		if s.press("enter", "down", "y"); !strings.Contains(s.copied, "&sel=fwd") {
			t.Errorf("a cursor copied %q", s.copied)
		}
		for _, bad := range []string{"/overview?at=noon", "/jobs/9/domains?servers=-1", "/jobs/9/domains?file=x",
			"/jobs/9/else", "/nonsense", "/plans/a/b", "/forwarders", ":%"} {
			if _, err := screen.ParseAddress(bad); err == nil {
				t.Errorf("%q was taken for an address", bad)
			}
		}
	})
}

func TestGoBoxOpensTheFirstHit(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 120, 36)
		s.second()
		s.press(":", "fwd003", "enter")
		s.sees(" fwd003   BUSY 6 %", "CLIENT")
		s.press(":", "f2c", "esc")
		s.sees(" fwd003   BUSY 6 %")
		s.machine(func(m *simsite.Machine) { m.Silent["fwd005"] = true })
		s.seconds(12)
		s.press("n")
		s.sees(" fwd005   SILENT")
		s.press("q", "q")
		if s.quit {
			t.Fatal("q quits before the first screen")
		}
		if s.press("q"); !s.quit {
			t.Fatal("q does not quit on the first screen")
		}
	})
}

// A demo ends with its console, so q asks once there; i says where its browser is.
func TestADemosConsoleAsksBeforeItEnds(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 120, 36)
		console.OfDemo(s.model.(*console.Model), "browser: http://127.0.0.1:8080/ sign in as olga with pw")
		s.second()
		s.press("i")
		s.sees("sign in as olga with pw")
		s.press("q")
		s.sees("q again ends the demo")
		s.press("down", "q")
		if s.quit {
			t.Fatal("q after another key was taken for a yes")
		}
		if s.press("wait", "q"); !s.quit {
			t.Fatal("q does not end the demo when asked twice")
		}
	})
}

// The go box knows the actions of the page below it, and why one is refused.
func TestGoBoxActsAsKeysDo(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := atPlan(t)
		s.press("tab", "ctrl+u", "enter", ":", "approve")
		s.sees("refused: the reason has 0 of at least 10 letters")
		s.press("enter")
		s.sees("P-000001  PROPOSED", "refused: the reason has 0 of at least 10 letters")
		s.press("tab", "because it is slow", "enter", ":", "approve", "enter")
		s.asked()
		s.sees("Approve P-000001: 4 compute nodes change their forwarder. A again does it")
		s.press("wait", "A")
		s.asked("approve P-000001")
		s.press(":", "88200", "enter")
		s.sees(" job 88200")
	})
}

func TestExportIsATableAndOverwritesNothing(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		t.Chdir(t.TempDir())
		s := newScript(t, 8, 120, 36)
		s.second()
		s.machine(func(m *simsite.Machine) { m.Silent["fwd005"] = true })
		s.seconds(12)
		s.press("/", "silent", "enter", "E")
		const file = "fairway-overview-20261121T120442Z.csv"
		s.sees("wrote 1 row to " + file)
		b, err := os.ReadFile(file)
		if lines := strings.Split(string(b), "\n"); err != nil || len(lines) != 3 ||
			lines[1] != "fwd005,silent,silent,,,,,,,,,,,4," {
			t.Errorf("%v %q", err, b)
		}
		s.press("E")
		s.sees("not exported", "exists")
		s.press("4", "E")
		if strings.Contains(s.screen(), "wrote") {
			t.Error("a page without a table was exported")
		}
	})
}

func TestHelpIsSearched(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 120, 36)
		s.second()
		s.press("?", "/", "roll")
		if strings.Contains(s.screen(), "next metric") {
			t.Error("what does not match is still there")
		}
		s.press("esc")
		s.sees("next metric")
		s.press("/", "metric", "enter")
		s.sees("next metric")
		if strings.Contains(s.screen(), "propose another") {
			t.Error("what does not match is still there")
		}
	})
}
