package console_test

import (
	"strings"
	"testing"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap/dispatch"

	"fairway/cmd/lab/simsite"
	"fairway/remap"
	"fairway/webui/client"
)

func TestOneThingIsNotSaidAsMany(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		for want, got := range map[string]string{
			"0 jobs": anomaly.Counted(0, "job"), "1 job": anomaly.Counted(1, "job"),
			"2 jobs":    anomaly.Counted(2, "job"),
			"1 process": anomaly.Counted(int64(1), "process"), "512 processes": anomaly.Counted(int64(512), "process"),
		} {
			if got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
		for _, w := range []int{80, 120} {
			s := layout{Options: simsite.Options{Forwarders: 2, Compute: 2}, w: w, h: 24}.start(t)
			s.second()
			s.propose("fwd000")
			s.second()
			if w == 80 {
				s.sees(" 1 plan")
				s.lacks(" 1 plans")
			}
			s.press("enter")
			s.sees("serves 1 compute node")
			s.lacks("1 compute nodes")
			s.press("4", "enter")
			s.sees("1 compute node changes its forwarder")
			s.press("tab", "because it is slow", "enter", "A")
			s.sees("Approve P-000001: 1 compute node changes its forwarder. A again")
		}
	})
}

// A question as long as two lines is read to its end: which key does it.
func TestALongQuestionIsNotCut(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 80, 24)
		s.second()
		s.press("enter", "C")
		if text := strings.Join(strings.Fields(s.screen()), " "); !strings.Contains(text,
			"C again does it, any other key does not.") {
			t.Errorf("the end of the question is missing:\n%s", s.screen())
		}
	})
}

// The reason of an approval is not that of the roll back after it.
func TestAReasonIsSaidOfOneStep(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := atPlan(t)
		s.approve()
		s.sees("VERIFIED", "Reason (kept in the audit; tab): ____")
		s.press("B", "wait", "B")
		s.asked("approve P-000001", "roll back P-000001")
		s.seconds(4)
		s.sees("by olga at 12:04:33: because it is slow", "ROLL BACK by olga at 12:04:38: -")

		s = atPlan(t)
		s.approve()
		s.press("tab", "it got no faster", "enter")
		s.sees("Reason (kept in the audit; tab): it got no faster")
		s.press("B", "wait", "B")
		s.seconds(4)
		s.sees(": it got no faster")
	})
}

// Somebody else's approval changes the preview; that is not a change to read before an approval.
func TestAnApprovedPlanHasNotChanged(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := atPlan(t)
		s.reroutes()
		s.look()
		s.press("down")
		s.sees("CHANGED   - c[00004-00007]")
		s.answers("P-000001", map[string]any{"state": remap.Verified, "preview_hash": "another"})
		s.sees("VERIFIED")
		s.lacks("CHANGED")
	})
}

// Until a second has come, that no finding is open is not known.
func TestFindingsBeforeTheFirstSecond(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 80, 24)
		s.press("3")
		s.sees("Nothing is known yet")
		s.lacks("No finding is open")
	})
}

// What does not fit of a finding is counted and reached.
func TestAFindingIsReadToItsEnd(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := layout{slow: true, w: 80, h: 14}.start(t)
		s.seconds(3)
		s.press("3", "enter")
		s.sees("more lines; move down")
		before := s.screen()
		for range 30 {
			s.press("down")
		}
		s.lacks("more lines; move down")
		if s.screen() == before {
			t.Error("nothing moved")
		}
	})
}

// The go box opens a plan that waits no more by its whole number, and keeps what it cannot find.
func TestTheGoBoxKnowsWhatHasEnded(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := atPlan(t)
		s.press("x")
		s.second()
		s.press("1", ":", "p-000001", "enter")
		s.sees("P-000001  REJECTED")
		s.press(":", "nosuch", "enter")
		s.sees(`Nothing called "nosuch". Try a job, user`, ": nosuch")
	})
}

// A long question of the console leaves room for what the server answered.
func TestTheRequestLogShowsTheAnswer(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 80, 24)
		s.second()
		s.press("8", "tab", "@")
		if !strings.Contains(s.screen(), "pattern of {") || !strings.Contains(s.screen(), "..: ok") {
			t.Errorf("the answer is missing:\n%s", s.screen())
		}
	})
}

// Where the daemon is not, the whole of why and what to do stands on a small terminal.
func TestALostServerIsExplainedInFull(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 80, 24)
		s.lose(true)
		s.look()
		s.sees("connection refused", "FAIRWAY_ADDR")
		s.press("4")
		if n := strings.Count(s.screen(), "(in this process)"); n != 2 {
			t.Errorf("the socket is named %d times, want in the banner and on the page:\n%s", n, s.screen())
		}
	})
}

// A server that refuses is there: what helps is another sign-in, not another address.
func TestARefusingServerIsNotALostOne(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 80, 24)
		s.server = client.Over(s.wire.Dial, "nobody's token")
		s.show(layout{w: 80, h: 24})
		s.look()
		s.sees("Refused since 12:04:30", "sign in with --token-file")
		s.lacks("Does fairwayd run", "No connection")
	})
}

// A viewer without a name sees where clients could go, and is not asked why.
func TestAViewerIsNotAskedWhyToMove(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := asViewer(t, 80, 24)
		s.press("p", "enter")
		s.sees("Nothing moves yet", "refused: it needs the role operator; you are viewer")
	})
}

// Findings are filtered by what their lines and sentences say, of what is shown now.
func TestFindingsAreFiltered(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 120, 36)
		s.site.AccuseInThePast()
		s.second()
		s.press("3")
		s.sees("F-0001")
		s.press("/", "fwd001", "enter")
		s.sees(`with "fwd001" (esc clears)`, "F-0001")
		s.press("/", "ctrl+u", "fwd002", "enter")
		s.sees("No finding has that")
		s.lacks("F-0001")
		s.press("esc")
		s.sees("F-0001")
	})
}

// Jobs are filtered by any of their words, and escape shows all again before it goes back.
func TestAListIsFiltered(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 8, 120, 36)
		for job, user := range map[topology.JobID]string{"8": "wei", "9": "ann"} {
			if _, err := s.site.Jobs.Dispatch(t.Context(), dispatch.Request{Job: job, User: user,
				App: map[string]string{"wei": "ROMS", "ann": "WRF"}[user], Nodes: []topology.NodeID{"c0000" +
					topology.NodeID(job)}}); err != nil {
				t.Fatal(err)
			}
		}
		s.second()
		s.press("2")
		s.sees("ROMS", "WRF")
		s.press("/", "an", "enter")
		s.sees(`with "an" (esc clears)`, "WRF")
		s.lacks("ROMS")
		s.press("esc")
		s.sees("ROMS", "WRF", "jobs   2 running")
		s.press("/", "nobody", "enter")
		s.sees("None of 2 jobs has that")
		s.press("esc", "esc")
		s.sees("Nothing is known to be slow")
		s.press(":", "ann", "enter")
		s.sees(`with "ann"`, "WRF")
		s.lacks("ROMS")
		s.press("enter", "Y")
		s.sees("copied Job 9 ")
		if !strings.HasPrefix(s.copied, "Job 9 ") {
			t.Errorf("copied %q", s.copied)
		}
	})
}
