package console_test

import (
	"fmt"
	"strings"
	"testing"

	"fairway/anomaly"
	"fairway/remap"
	"fairway/webui/api"
)

func TestOneThingIsNotSaidAsMany(t *testing.T) {
	for want, got := range map[string]string{
		"0 jobs": api.Counted(0, "job"), "1 job": api.Counted(1, "job"), "2 jobs": api.Counted(2, "job"),
		"1 process": api.Counted(int64(1), "process"), "512 processes": api.Counted(int64(512), "process"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, w := range []int{80, 120} {
		s := newScript(t, 1, w, 24)
		one := 1
		s.fake.Do(func(o *api.Overview) { o.Jobs, o.Forwarders[0].Clients = &one, 1 })
		s.fake.AddPlan(api.ManualRemap{Nodes: nodes(1), To: "fwd000", Reason: "fwd001 is slow today"}, "sam")
		s.second()
		if w == 80 {
			s.sees(" 1 plan ")
			s.lacks(" 1 plans")
		} else {
			s.sees(" 1 forwarder: ", "| 1 job |")
		}
		s.press("enter")
		s.sees("serves 1 compute node")
		s.lacks("1 compute nodes")
		s.press("4", "enter")
		s.sees("1 compute node changes its forwarder")
		s.press("tab", "because it is slow", "enter", "A")
		s.sees("Approve P-000001: 1 compute node changes its forwarder. A again")
	}
}

// A question as long as two lines is read to its end: which key does it.
func TestALongQuestionIsNotCut(t *testing.T) {
	s := newScript(t, 240, 80, 24)
	s.second()
	s.press("enter", "C")
	if text := strings.Join(strings.Fields(s.screen()), " "); !strings.Contains(text,
		"C again does it, any other key does not.") {
		t.Errorf("the end of the question is missing:\n%s", s.screen())
	}
}

// The reason of an approval is not that of the roll back after it.
func TestAReasonIsSaidOfOneStep(t *testing.T) {
	s := atPlan(t)
	s.press("tab", "because it is slow", "enter", "A", "wait", "A")
	s.sees("VERIFIED", "Reason (kept in the audit; tab): ____")
	s.press("B", "wait", "B")
	s.asked("approve P-000001", "roll back P-000001")
	s.sees("by olga at 12:04:31: because it is slow", "ENDED     by olga at 12:04:31: -")

	s = atPlan(t)
	s.press("tab", "because it is slow", "enter", "A", "wait", "A", "tab", "it got no faster", "enter")
	s.sees("Reason (kept in the audit; tab): it got no faster")
	s.press("B", "wait", "B")
	s.sees("ENDED     by olga at 12:04:31: it got no faster")
}

// Somebody else's approval changes the preview; that is not a change to read before an approval.
func TestAnApprovedPlanHasNotChanged(t *testing.T) {
	s := atPlan(t)
	s.fake.ChangePlan("P-000001", func(p *api.PlanView) { p.PreviewHash, p.Lines = "hash-2", p.Lines[1:] })
	s.second()
	s.press("down")
	s.sees("CHANGED   - c1  fwd001 -> fwd200")
	s.fake.ChangePlan("P-000001", func(p *api.PlanView) {
		p.State, p.PreviewHash, p.Lines = remap.Verified, "hash-3", p.Lines[1:]
	})
	s.second()
	s.sees("VERIFIED")
	s.lacks("CHANGED")
}

// Until a second has come, that no finding is open is not known.
func TestFindingsBeforeTheFirstSecond(t *testing.T) {
	s := newScript(t, 8, 80, 24)
	s.press("3")
	s.sees("Nothing is known yet")
	s.lacks("No finding is open")
}

// What does not fit of a finding is counted and reached.
func TestAFindingIsReadToItsEnd(t *testing.T) {
	s := newScript(t, 240, 80, 24)
	s.fake.Do(func(o *api.Overview) {
		for i := range 12 {
			o.Findings[0].Impact = append(o.Findings[0].Impact, anomaly.Impact{Job: "9" + o.Findings[0].Impact[0].Job,
				Share: 0.01 * float64(i+1)})
		}
	})
	s.second()
	s.press("3", "enter")
	s.sees("more lines; move down")
	s.lacks("write service  ")
	for range 9 {
		s.press("down")
	}
	s.sees("write service  ", "then 34 ms")
}

// The go box opens a plan that waits no more by its whole number, and keeps what it cannot find.
func TestTheGoBoxKnowsWhatHasEnded(t *testing.T) {
	s := atPlan(t)
	s.press("x")
	s.second()
	s.press("1", ":", "p-000001", "enter")
	s.sees("P-000001  REJECTED")
	s.press(":", "nosuch", "enter")
	s.sees("Nothing has these letters", ": nosuch")
}

// A long question of the console leaves room for what the server answered.
func TestTheRequestLogShowsTheAnswer(t *testing.T) {
	s := newScript(t, 8, 80, 24)
	s.second()
	s.press("8", "tab", "@")
	if !strings.Contains(s.screen(), "pattern of {") || !strings.Contains(s.screen(), "..: ok") {
		t.Errorf("the answer is missing:\n%s", s.screen())
	}
}

// Where the daemon is not, the whole of why and what to do stands on a small terminal.
func TestALostServerIsExplainedInFull(t *testing.T) {
	s := newScript(t, 8, 80, 24)
	s.fake.Lose(
		fmt.Errorf("%w: fairwayd does not answer: connect: no such file or directory (unix:/run/fairway/fairwayd.sock)",
			api.ErrUnreachable))
	s.second()
	s.sees("fairwayd.sock)", "FAIRWAY_ADDR")
	s.press("4")
	if n := strings.Count(s.screen(), "fairwayd.sock)"); n != 2 {
		t.Errorf("the socket is named %d times, want in the banner and on the page:\n%s", n, s.screen())
	}
}

// A server that refuses is there: what helps is another sign-in, not another address.
func TestARefusingServerIsNotALostOne(t *testing.T) {
	s := newScript(t, 8, 80, 24)
	s.fake.Lose(fmt.Errorf("%w: not signed in: the bearer token is not known here", api.ErrNotAllowed))
	s.second()
	s.sees("Refused since 12:04:31", "sign in with --token-file")
	s.lacks("Does fairwayd run", "No connection")
}

// A viewer without a name sees where clients could go, and is not asked why.
func TestAViewerIsNotAskedWhyToMove(t *testing.T) {
	s := newScript(t, 8, 80, 24)
	s.fake.Do(func(o *api.Overview) { o.User, o.Role = "", "viewer" })
	s.second()
	s.sees(" hpc1  viewer  ")
	s.press("p", "enter")
	s.sees("Choose where to", "refused: it needs the role operator; you are viewer")
}

// The line of what needs a person gives up how sure it is before what it is.
func TestTheNextLineSaysWhatItIs(t *testing.T) {
	s := newScript(t, 240, 80, 24)
	s.fake.Do(func(o *api.Overview) {
		f := &o.Findings[0]
		f.Class, f.State = "", anomaly.Confirmed
	})
	s.second()
	s.sees("next: F-0091 fwd003 slow for its load 4m confirmed (n to open, 1 more)")
}
