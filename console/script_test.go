package console_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"fairway/console"
	"fairway/console/chart"
	"fairway/console/consoletest"
	"fairway/console/screen"
	"fairway/remap"
	"fairway/webui/api"
)

// script is an operator at a terminal in front of a fake, with a clock of its own. Commands are
// run at once, so that a script needs no waiting.
type script struct {
	t      *testing.T
	fake   *consoletest.Fake
	model  tea.Model
	now    time.Time
	copied string
	quit   bool
}

func newScript(t *testing.T, forwarders, w, h int) *script {
	return newScriptColors(t, forwarders, w, h, chart.NoAttributes)
}

func newScriptColors(t *testing.T, forwarders, w, h int, c chart.Colors) *script {
	s := &script{t: t, now: noon, fake: consoletest.New(forwarders, 7, noon)}
	s.model = console.NewModel(t.Context(), s.fake, screen.Address{Page: "overview"}, chart.NewPalette(c),
		func() time.Time { return s.now }, func(text string) { s.copied = text })
	s.send(tea.WindowSizeMsg{Width: w, Height: h})
	return s
}

// send gives the model a message and everything that follows from it.
func (s *script) send(msg tea.Msg) {
	m, cmd := s.model.Update(msg)
	s.model = m
	s.run(cmd)
}

func (s *script) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.QuitMsg:
		s.quit = true
	case tea.BatchMsg:
		for _, c := range msg {
			s.run(c)
		}
	default:
		s.send(msg)
	}
}

// second shows what the server knows now.
func (s *script) second() {
	ctx, cancel := context.WithCancel(s.t.Context())
	s.fake.Watch(ctx, func(o api.Overview, err error) {
		s.send(console.OverviewMsg(o, err, s.now))
		cancel()
	})
}

// pass lets time go by without data.
func (s *script) pass(d time.Duration) {
	s.second()
	s.now = s.now.Add(d)
	s.send(tea.KeyMsg{Type: tea.KeyF20}) // no key of ours: the model looks at its clock
}

// press types keys by their names; "wait" lets a second go by, a word is typed letter by letter.
func (s *script) press(keys ...string) {
	named := map[string]tea.KeyType{"enter": tea.KeyEnter, "tab": tea.KeyTab, "esc": tea.KeyEsc,
		"backspace": tea.KeyBackspace, "up": tea.KeyUp,
		"down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight, "ctrl+c": tea.KeyCtrlC, "ctrl+u": tea.KeyCtrlU}
	for _, k := range keys {
		if k == "wait" {
			s.now = s.now.Add(time.Second)
			continue
		}
		if t, ok := named[k]; ok {
			s.send(tea.KeyMsg{Type: t})
			continue
		}
		if k == "space" {
			k = " "
		}
		for _, r := range k {
			s.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}})
		}
	}
}

func (s *script) view() string { return s.model.View() }

// screen is the view as a person copies it: without looks, without blanks at line ends.
func (s *script) screen() string {
	lines := strings.Split(ansi.Strip(s.view()), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func (s *script) sees(texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		if !strings.Contains(s.screen(), text) {
			s.t.Fatalf("the screen does not say %q:\n%s", text, s.screen())
		}
	}
}

func (s *script) asked(want ...string) {
	s.t.Helper()
	if got := s.fake.Asked(); !slices.Equal(got, want) {
		s.t.Fatalf("the server was asked %q, want %q\n%s", got, want, s.screen())
	}
}

// atPlan is an operator looking at somebody else's waiting plan.
func atPlan(t *testing.T) *script {
	s := newScript(t, 240, 120, 36)
	s.fake.AddPlan(api.ManualRemap{Nodes: nodes(6), To: "fwd200", Reason: "fwd001 is slow today"}, "sam")
	s.second()
	s.press("4", "enter")
	s.sees("P-000001  PROPOSED  proposed by sam", "[ Cancel ]")
	return s
}

func TestEnterNeverApproves(t *testing.T) {
	s := atPlan(t)
	s.press("tab", "because it is slow", "enter", "enter")
	s.sees("plans   1 waiting for a person") // Enter pressed Cancel
	s.asked()
}

func TestApproveAsksOnce(t *testing.T) {
	s := atPlan(t)
	s.press("tab", "because it is slow", "enter", "A")
	s.asked()
	s.sees("Approve P-000001: 6 compute nodes change their forwarder. A again does it")
	s.press("wait", "down", "A") // any other key takes the question back
	s.asked()
	s.press("wait", "A")
	s.asked("approve P-000001")
	s.sees("VERIFIED", "verified 6 of 6 at 12:04:3", "by olga at")
}

// Two A that arrive as one, typed ahead or pasted, do not answer the question between them.
func TestApproveIsNotAnsweredByHaste(t *testing.T) {
	s := atPlan(t)
	s.press("tab", "because it is slow", "enter")
	s.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("AA")})
	s.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("AAAA"), Paste: true})
	s.asked()
	s.sees("pasted text was ignored")
}

func TestApproveNeedsAReason(t *testing.T) {
	s := atPlan(t)
	s.press("tab", "too short", "enter", "A", "wait", "A")
	s.asked()
	s.sees("refused: the reason has 9 of at least 10 letters")
}

func TestTheProposerMayNotApprove(t *testing.T) {
	s := newScript(t, 240, 120, 36)
	s.second()
	s.press("right", "p", "enter", "fwd001 is slow now", "enter")
	s.sees("P-000001  PROPOSED  proposed by olga", "not by you: you proposed it")
	s.press("tab", "because it is slow", "enter", "A", "wait", "A")
	s.asked("propose fwd000")
	s.sees("refused: you proposed it")
}

func TestAChangedPlanIsNotApplied(t *testing.T) {
	s := atPlan(t)
	s.press("tab", "because it is slow", "enter", "A")
	s.fake.ChangePlan("P-000001", func(p *api.PlanView) {
		p.PreviewHash = "hash-2"
		p.Lines[0] = "c1  fwd009 -> fwd200"
	})
	s.press("wait", "A")
	s.sees("PROPOSED", "nothing was applied: the plan changed under you", "- c1  fwd001 -> fwd200",
		"+ c1  fwd009 -> fwd200")
	s.press("A", "wait", "A") // read again, approved again
	s.sees("VERIFIED")
}

// A change that arrives while the question is on screen takes the question back.
func TestAChangeTakesTheQuestionBack(t *testing.T) {
	s := atPlan(t)
	s.press("tab", "because it is slow", "enter", "A")
	s.fake.ChangePlan("P-000001", func(p *api.PlanView) { p.PreviewHash = "hash-2" })
	s.second()
	s.press("wait", "A")
	s.asked()
}

func TestOldDataApprovesNothing(t *testing.T) {
	s := atPlan(t)
	s.press("tab", "because it is slow", "enter")
	s.fake.Lose(fmt.Errorf("%w: connection refused", api.ErrUnreachable))
	s.pass(12 * time.Second)
	s.press("A", "wait", "A")
	s.asked()
	s.sees("NO DATA since 12:04:30", "refused: the data on screen is too old")
	s.fake.Lose(nil)
	s.fake.Do(func(o *api.Overview) { o.At, o.SentAt = s.now.Add(-time.Second), s.now })
	s.second()
	s.sees("LIVE 12:04:43")
	s.press("A", "wait", "A")
	s.asked("approve P-000001")
}

func TestRejectMovesNothing(t *testing.T) {
	s := atPlan(t)
	s.press("x")
	s.asked("reject P-000001")
	s.sees("REJECTED")
	s.press("A", "wait", "A", "B", "wait", "B")
	s.asked("reject P-000001")
	s.sees("refused: it is rejected")
}

func TestRollBackWorksDuringApply(t *testing.T) {
	s := atPlan(t)
	s.fake.Verify = remap.Applying
	s.press("tab", "because it is slow", "enter", "A", "wait", "A")
	s.sees("APPLYING", "applying 3/6  ok 3  retry 0  failed 0", "B roll back", "s stop after this batch")
	s.press("B")
	s.asked("approve P-000001")
	s.press("wait", "B")
	s.asked("approve P-000001", "roll back P-000001")
	s.sees("ROLLED BACK", "rolled back 6/6  ok 6")
}

// A plan that is still rolling back has not ended: the screen names who asked for it, not an end.
func TestARollBackUnderWayHasNotEnded(t *testing.T) {
	s := atPlan(t)
	s.press("tab", "because it is slow", "enter", "A", "wait", "A")
	s.fake.Verify = remap.RollingBack
	s.press("B", "wait", "B")
	s.sees("ROLLING BACK", "ROLL BACK by olga at 12:04:3", "rolling back 3/6  ok 3")
	s.lacks("ENDED")
}

// Each screen says where to look for what is missing; nothing but a node is part of the machine.
func TestWhatIsNotKnownIsNotCalledANode(t *testing.T) {
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
}

func TestStopNeedsNoQuestion(t *testing.T) {
	s := atPlan(t)
	s.press("s")
	s.asked()
	s.sees("refused: it is proposed, not being applied")
	s.fake.Verify = remap.Applying
	s.press("tab", "because it is slow", "enter", "A", "wait", "A", "s")
	s.asked("approve P-000001", "stop P-000001")
}

func TestAFailureIsNamed(t *testing.T) {
	s := atPlan(t)
	s.fake.Verify = remap.Partial
	s.press("tab", "because it is slow", "enter", "A", "wait", "A")
	s.sees("PARTIAL", "failed 1", "c1 failed after 3 tries: mount does not answer")
}

// A lower-case key never changes the machine.
func TestNoLowerCaseKeyChangesTheMachine(t *testing.T) {
	s := newScript(t, 240, 120, 36)
	s.fake.AddPlan(api.ManualRemap{Nodes: nodes(6), To: "fwd200", Reason: "fwd001 is slow today"}, "sam")
	s.second()
	for _, page := range [][]string{{"1"}, {"1", "enter"}, {"4"}, {"4", "enter"}, {"1", "?"}, {"1", "@"}, {"1", "p"}} {
		for k := 'a'; k <= 'z'; k++ {
			s.press("esc", "esc", "esc")
			s.press(page...)
			s.press("wait", string(k), "wait", string(k))
			for _, call := range s.fake.Asked() {
				if !strings.HasPrefix(call, "reject") {
					t.Fatalf("%q on %v asked for %q", k, page, call)
				}
			}
			s.press("esc")
		}
	}
}

func TestALostServerIsSaidAndForgotten(t *testing.T) {
	s := newScript(t, 8, 120, 36)
	s.second()
	s.fake.Lose(fmt.Errorf("%w: connection refused", api.ErrUnreachable))
	s.second()
	s.sees("No connection since 12:04:31, trying again: unreachable: connection refused", "LIVE 12:04:30")
	s.pass(11 * time.Second)
	s.sees("NO DATA since 12:04:30", "nothing newer is known")
	if strings.Contains(s.screen(), "MB/s |") || strings.Contains(s.screen(), " of 20 GB/s") {
		t.Errorf("an old number is shown as if it were new:\n%s", s.screen())
	}
	s.fake.Lose(nil)
	s.fake.Do(func(o *api.Overview) { o.At, o.SentAt = s.now.Add(-time.Second), s.now })
	s.second()
	if strings.Contains(s.screen(), "No connection") {
		t.Errorf("the loss is still on screen:\n%s", s.screen())
	}
}

func TestPauseKeepsThePicture(t *testing.T) {
	s := newScript(t, 8, 120, 36)
	s.second()
	s.press("space")
	before := s.screen()
	s.fake.Step(s.now, false)
	s.second()
	if s.screen() != before || !strings.Contains(before, "PAUSED at 12:04:30") {
		t.Errorf("paused, but:\n%s", s.screen())
	}
	s.press("L")
	s.sees("LIVE 12:04:30")
	if s.screen() == before {
		t.Error("live again shows the old second")
	}
}

func TestCopiedAddressOpensTheSameScreen(t *testing.T) {
	s := newScript(t, 240, 120, 36)
	s.second()
	s.press("m", "g", ">", "/", "suspect", "enter", "y")
	a, err := screen.ParseAddress("https://fairway.site" + s.copied)
	if err != nil {
		t.Fatal(err)
	}
	if want := (screen.Address{Page: "overview", Metric: "bw", View: "table", Sort: "read",
		Filter: "suspect"}); a != want {
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
		{[]string{"7", "enter"}, "/jobs/88231/why"},
		{[]string{"d", "m", "e", "servers=6 stripe_size=65536", "enter"},
			"/jobs/88231/domains?file=1&servers=6&stripe_size=65536"},
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
	if s.copied != "/overview?at=2026-11-21T12%3A03%3A30Z&filter=suspect&metric=bw&sort=read&view=table" {
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
}

func TestGoBoxOpensTheFirstHit(t *testing.T) {
	s := newScript(t, 240, 120, 36)
	s.second()
	s.press(":", "fwd113", "enter")
	s.sees(" fwd113   BUSY 53 %", "CLIENT")
	s.press(":", "f2c", "esc")
	s.sees(" fwd113   BUSY 53 %")
	s.press("n")
	s.sees(" fwd049   STALE") // after the finding comes, here, the silent forwarder
	s.press("q", "q")
	if s.quit {
		t.Fatal("q quits before the first screen")
	}
	if s.press("q"); !s.quit {
		t.Fatal("q does not quit on the first screen")
	}
}

// The go box knows the actions of the page below it, and why one is refused.
func TestGoBoxActsAsKeysDo(t *testing.T) {
	s := atPlan(t)
	s.press(":", "approve")
	s.sees("refused: the reason has 0 of at least 10 letters")
	s.press("enter")
	s.sees("P-000001  PROPOSED", "refused: the reason has 0 of at least 10 letters")
	s.press("tab", "because it is slow", "enter", ":", "approve", "enter")
	s.asked()
	s.sees("Approve P-000001: 6 compute nodes change their forwarder. A again does it")
	s.press("wait", "A")
	s.asked("approve P-000001")
	s.press(":", "88001", "enter")
	s.sees(" job 88001")
}

func TestExportIsATableAndOverwritesNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	s := newScript(t, 240, 120, 36)
	s.second()
	s.press("/", "stale", "enter", "E")
	const file = "fairway-overview-20261121T120430Z.csv"
	s.sees("wrote 4 rows to " + file)
	b, err := os.ReadFile(file)
	if lines := strings.Split(string(b), "\n"); err != nil || len(lines) != 6 ||
		lines[1] != "fwd049,stale,,,,,,,,,16," {
		t.Errorf("%v %q", err, b)
	}
	s.press("E")
	s.sees("not exported", "exists")
	s.press("4", "E")
	if strings.Contains(s.screen(), "wrote") {
		t.Error("a page without a table was exported")
	}
}

func TestHelpIsSearched(t *testing.T) {
	s := newScript(t, 240, 120, 36)
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
}
