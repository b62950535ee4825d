package overview

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/webui/api"

	"github.com/charmbracelet/x/ansi"
)

// console is one without screens, whose keys are all n.
type console struct {
	screen.Host
	height int
}

func (console) Key(screen.Action) string { return "n" }
func (c console) Height() int            { return c.height }

func TestAgesInAReplayAreOfItsSecond(t *testing.T) {
	then := time.Unix(10000, 0)
	s := &screen.State{Now: then.Add(time.Hour), Past: then, Palette: chart.NewPalette(chart.NoAttributes, false),
		Host: console{}}
	s.Shown.Needs = []advise.Card{
		{Finding: "F-0001", Node: "fwd001", Stage: advise.Slow, Since: then.Add(-4 * time.Minute)},
		{Plan: "P-000001", Stage: advise.Waits, Since: then.Add(-time.Minute)},
		{Finding: "F-0002", Node: "fwd002", Stage: advise.Cleared, Since: then.Add(-5 * time.Minute)}}
	for i, want := range []string{"for 4m", "waits 1m", "over for 5m"} {
		if got := needOn(s, i).tail; got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// Of three slow forwarders of a large machine the first screen says who suffers and what helps, at the desk and in the
// smallest terminal, and the list still begins with them; what does not fit is counted.
func TestTheFirstScreenHasPlaceForThreeSlowOnes(t *testing.T) {
	now := time.Unix(10000, 0)
	for _, size := range [][2]int{{120, 36}, {80, 24}} {
		w, h := size[0], size[1]
		s := &screen.State{Now: now, Received: now, Palette: chart.NewPalette(chart.NoAttributes, false),
			Host: console{height: h}}
		s.Shown.At = now
		for i := range 240 {
			s.Shown.Forwarders = append(s.Shown.Forwarders, api.ForwarderRow{
				ID: topology.ForwarderID(fmt.Sprintf("fwd%03d", i)), State: remap.ForwarderIdle})
		}
		for i := range 5 {
			slow := &s.Shown.Forwarders[10*i]
			v := advise.Victim{Job: topology.JobID(fmt.Sprint(88000 + i)), App: "MACDRP", User: "gao", Nodes: 1024,
				Waiting: 512, Share: 0.9, CostSeconds: 340}
			v.Write()
			n := advise.Card{Node: slow.ID.Node(), Stage: advise.Waits, Sentence: "a plan",
				Plan: fmt.Sprint("P-", i), Since: now}
			if i < 3 {
				slow.State = remap.ForwarderSlow
				n = advise.Card{Finding: fmt.Sprint("F-", i), Node: n.Node, Stage: advise.Slow, Since: now,
					Sentence: string(slow.ID) + " is 9.8x slow at reading and 4.4x at writing, for its load",
					Victims:  []advise.Victim{v, v},
					Action:   &advise.Action{Name: remap.ActApprove, Text: "move 1024 nodes to 12 forwarders"}}
			}
			s.Shown.Needs = append(s.Shown.Needs, n)
		}
		lines := New(screen.Address{}).Body(s, w, h-2)
		if len(lines) > h-2 {
			t.Errorf("%d lines at %dx%d", len(lines), w, h)
		}
		text := strings.Join(lines, "\n")
		needs, list, _ := strings.Cut(text, "NODE")
		for i := range 3 {
			for _, want := range []string{fmt.Sprintf("! fwd%03d is 9.8x slow", 10*i), fmt.Sprintf("%d", 88000+i)} {
				if !strings.Contains(needs, want) {
					t.Errorf("%q is not seen at %dx%d", want, w, h)
				}
			}
			if !strings.Contains(list, fmt.Sprintf("!fwd%03d", 10*i)) {
				t.Errorf("the list of %dx%d has no fwd%03d", w, h, 10*i)
			}
		}
		if n := strings.Count(needs, "waits 90 %") + strings.Count(needs, "wait 90 %"); n != 3 {
			t.Errorf("%d victims at %dx%d", n, w, h)
		}
		if n := strings.Count(needs, "move 1024 nodes to 12 forwarders: n"); n != 3 {
			t.Errorf("%d remedies at %dx%d", n, w, h)
		}
		if w == 120 && !strings.Contains(needs, "NEEDS YOU, 3 of 5") {
			t.Error("what is not shown is not counted")
		}
		if t.Failed() {
			t.Fatal("\n" + text)
		}
	}
}

// Where few forwarders leave lines free, the one under the cursor is drawn beside its peers in them: since when it is
// slow, on the scale of every page.
func TestFreeLinesShowSinceWhen(t *testing.T) {
	now := time.Unix(10000, 0)
	for _, size := range [][2]int{{160, 48}, {120, 36}, {80, 24}} {
		w, h := size[0], size[1]-2
		s := &screen.State{Now: now, Received: now, Palette: chart.NewPalette(chart.NoAttributes, false),
			Host: console{height: size[1]}}
		s.Shown.At = now
		for i := range 8 {
			s.Shown.Forwarders = append(s.Shown.Forwarders, api.ForwarderRow{
				ID: topology.ForwarderID(fmt.Sprintf("fwd%03d", i)), State: remap.ForwarderIdle})
		}
		s.Shown.Forwarders[3].State = remap.ForwarderSlow
		lines := New(screen.Address{}).Body(s, w, h)
		text := strings.Join(lines, "\n")
		if len(lines) != h || strings.TrimSpace(lines[h-1]) == "" {
			t.Errorf("%d lines of %d at %dx%d, the last %q", len(lines), h, w, size[1], lines[len(lines)-1])
		}
		for _, want := range []string{"fwd003 beside its peers, 5 min", "\n| 50x", "\n| 10x", "\n|  1x"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not seen at %dx%d", want, w, size[1])
			}
		}
		if t.Failed() {
			t.Fatal("\n" + text)
		}
		s.Past = now
		if text := strings.Join(New(screen.Address{}).Body(s, w, h), "\n"); strings.Contains(text, "beside its peers") {
			t.Error("the minutes before now are shown in a replay")
		}
	}
}

// A confirmed back end is in the layer's health, beside its forwarders or alone.
func TestHealthHasTheBackEnds(t *testing.T) {
	for want, finds := range map[string][]anomaly.Finding{
		"healthy": {{Kind: anomaly.TargetSlow, State: anomaly.Suspect}, {Kind: anomaly.TargetSlow, State: "returned"}},
		"2 back ends slow": {{Kind: anomaly.TargetSlow, State: anomaly.Confirmed},
			{Kind: anomaly.TargetSlow, State: anomaly.Confirmed}},
	} {
		s := &screen.State{Palette: chart.NewPalette(chart.NoAttributes, false), Host: console{}}
		s.Shown.Findings = finds
		if got, _ := state(s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestHealthIsInTheWordsOfTheLayer: what a forwarder does is called the same in the header as on its card.
func TestHealthIsInTheWordsOfTheLayer(t *testing.T) {
	pal := chart.NewPalette(chart.Colors256, false)
	for want, states := range map[string][]remap.ForwarderState{
		"healthy":                          {remap.ForwarderOK, remap.ForwarderIdle, remap.ForwarderExcluded},
		"1 forwarder dead":                 {remap.ForwarderOK, remap.ForwarderDead},
		"1 forwarder hung, 2 slow":         {remap.ForwarderSlow, remap.ForwarderHung, remap.ForwarderSlow},
		"2 forwarders suspect":             {remap.ForwarderTrial, remap.ForwarderSuspect},
		"1 forwarder dead, 1 hung, 1 slow": {remap.ForwarderSlow, remap.ForwarderHung, remap.ForwarderDead},
	} {
		now := time.Unix(1.8e9, 0)
		s := &screen.State{Now: now, Received: now, Palette: pal, Host: console{}}
		s.Shown.At = now
		for _, state := range states {
			s.Shown.Forwarders = append(s.Shown.Forwarders, api.ForwarderRow{ID: "fwd001", State: state})
		}
		got, look := state(s)
		alarm := strings.Contains(want, "dead") || strings.Contains(want, "hung")
		if got != want || (look == pal.Slow) != alarm {
			t.Errorf("%v: %q, in alarm's colour %v; want %q", states, got, look == pal.Slow, want)
		}
	}
}

// TestASmallCardSaysNothingTwice: where nobody suffers, what stands behind its sentence has the next line alone.
func TestASmallCardSaysNothingTwice(t *testing.T) {
	s := &screen.State{Palette: chart.NewPalette(chart.NoAttributes, false), Host: console{}}
	c := &advise.Card{Stage: advise.Cleared, Sentence: "fwd001 was slow", Second: "it lasted 9m"}
	if text := strings.Join(cardLines(s, c, 76, smallCard), "\n"); strings.Count(text, c.Second) != 1 {
		t.Errorf("the card says\n%s", text)
	}
}

// What stands at one place of a frame is whole at every size: the title before the time, the legend, and the words
// of the node under the cursor.
func TestNothingIsCut(t *testing.T) {
	now := time.Unix(10000, 0)
	for _, w := range []int{160, 120, 80} {
		for _, simulated := range []bool{false, true} {
			s := &screen.State{Now: now, Received: now, Palette: chart.NewPalette(chart.NoAttributes, false),
				Host: console{height: 36}}
			o := &s.Shown
			o.At, o.Simulated, o.Machine, o.User, o.Role = now, simulated, "taihulight-sim", "root", "admin"
			o.Waiting = make([]api.PlanRow, 1)
			o.Forwarders = []api.ForwarderRow{{ID: "fwd054", State: remap.ForwarderSlow,
				ClientCounts: api.ClientCounts{Clients: 512}, Slowness: api.Slowness{Slow: new(123.0)}}}
			o.Findings = []anomaly.Finding{{ID: "F-0001", Node: "fwd054", Kind: anomaly.FailSlow,
				State: anomaly.Confirmed, Since: now.Add(-47 * time.Second), Sentence: "fwd054 is 50x slow"}}
			title := New(screen.Address{}).Title(s, w)
			if simulated {
				title = " SIMULATED" + title
			}
			if got := ansi.StringWidth(title + "  LIVE 12:00:00 UTC late 3s"); got > w ||
				!strings.Contains(title, "1 forwarder slow") || !strings.Contains(title, "1 plan waits") {
				t.Errorf("%d columns: the title needs %d: %q", w, got, title)
			}
			text := legend(s, metrics[0].full, &o.Forwarders[0], w)
			if w >= 120 { // the list takes the rest
				text += "\n" + strings.Join(New(screen.Address{}).detail(s, &o.Forwarders[0], w-76, 12), "\n")
			}
			if strings.Contains(text, "..") {
				t.Errorf("%d columns: %s", w, text)
			}
		}
	}
}

// TestACardNamesItsNodeOnce: where its sentence has not. The back end has no node's name.
func TestACardNamesItsNodeOnce(t *testing.T) {
	now := time.Unix(10000, 0)
	for want, c := range map[string]advise.Card{
		"F-2 fwd001": {Finding: "F-2", Node: "fwd001", Stage: advise.Slow, Sentence: "2 nodes were moved"},
		"F-3":        {Finding: "F-3", Node: "fwd001", Stage: advise.Slow, Sentence: "fwd001 is 7x slow"},
		"F-4":        {Finding: "F-4", Node: anomaly.Everywhere, Stage: advise.BackEnd, Sentence: "It is 3x slow"},
	} {
		s := &screen.State{Now: now, Received: now, Palette: chart.NewPalette(chart.NoAttributes, false),
			Host: console{height: 24}}
		s.Shown.At, s.Shown.Needs = now, []advise.Card{c}
		head := storyCard(s, 78, smallCard, -1)[0]
		if !strings.Contains(head, want) || strings.Contains(head, "*") ||
			want == c.Finding && strings.Contains(head, string(c.Node)) {
			t.Errorf("its frame says %q, want %q", head, want)
		}
	}
}
