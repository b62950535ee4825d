package watch

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// TestWhatANodeAskedElsewhereAccusesNobody: two nodes are moved off a forwarder that hangs, and wait on for what they
// had asked of it, however short a time ago. Who hangs as well is accused by what it is asked itself.
func TestWhatANodeAskedElsewhereAccusesNobody(t *testing.T) {
	for name, c := range map[string]struct {
		asked float64 // the second in which they asked
		want  string  // who hangs, by their waiting alone
	}{
		"long before the move":             {-1, "f0"},
		"at the second before it":          {7, ""},
		"half a second before that":        {6.5, ""},
		"in the second of the move, of f3": {7.9, "f3"},
		"after it":                         {8.5, "f3"},
	} {
		t.Run(name, func(t *testing.T) { playMove(t, c.asked, c.want) })
	}
}

// playMove moves two nodes from f0 to f3 before the eighth second; from second 20 on they wait for something new.
func playMove(t *testing.T, asked float64, want string) {
	board, now := window.NewBoard(0), time.Unix(1_800_000_000, 0)
	d := NewDetectors(board, failslow.DefaultSettings())
	m := &Machine{Mapping: topology.Mapping{"cn0": "f0", "cn1": "f0", "cn2": "f1", "cn3": "f2"}}
	for second := range 30 {
		now = now.Add(time.Second)
		age := max(0, float64(second)-asked)
		if second == 8 { // after its confirmation
			m.Mapping["cn0"], m.Mapping["cn1"] = "f3", "f3"
		}
		if second >= 20 {
			age = float64(second - 18) // which f3 does not answer either
		}
		var frames []collector.Frame
		for n, age := range map[topology.NodeID]float64{"cn0": age, "cn1": age, "cn2": 0.1, "cn3": 0.1} {
			ended := 100.0
			if n == "cn0" || n == "cn1" {
				ended = 0
			}
			frames = append(frames, collector.Frame{Node: n, Role: topology.Compute,
				TimeMillis: now.Add(-time.Second).UnixMilli(),
				Samples:    samples(collector.RequestAge, age, collector.MetaOps, ended)})
		}
		if second == 12 { // a restart
			saved, err := d.State(now)
			if err != nil {
				t.Fatal(err)
			}
			d = NewDetectors(board, failslow.DefaultSettings())
			if _, err := d.LoadState(bytes.NewReader(saved), now, time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		board.Take(frames, now)
		found := ""
		for _, v := range d.Verdicts(now, m) {
			if v.Kind == anomaly.FailSlow && v.Level == anomaly.Alarm {
				found += string(v.Node)
			}
		}
		who := ""
		switch {
		case second >= 22:
			who = "f3"
		case second < 20 && age >= hangAge && (want == "f3" || second < 8):
			who = want
		}
		if found != who {
			t.Errorf("second %d: found %q, want %q", second, found, who)
		}
	}
}

// TestWhatWasAskedWhileTheDaemonWasDown: a node that was seen at f0 up to second 5 is seen at f3 from second 60 on.
// What it asked meanwhile may have been asked of f3; what it asked before was asked of f0. Who is gone is forgotten.
func TestWhatWasAskedWhileTheDaemonWasDown(t *testing.T) {
	for asksAt, elsewhere := range map[float64]bool{2: true, 4.5: true, 5: true, 30: false, 59.5: false} {
		a := asked{}
		for _, at := range []int64{1, 2, 3, 4, 5, 60, 61, 62} {
			by := topology.ForwarderID("f0")
			if at >= 60 {
				by = "f3"
			}
			f := collector.Frame{Node: "cn0", Role: topology.Compute, TimeMillis: 1000 * at,
				Samples: samples(collector.RequestAge, max(0, float64(at)-asksAt))}
			if got, want := a.elsewhere(&f, by), elsewhere && at >= 60; got != want {
				t.Errorf("asked at %g: in second %d elsewhere %v, want %v", asksAt, at, got, want)
			}
		}
		if a.forget(time.Unix(3600, 0)); len(a) != 1 {
			t.Error("forgotten within the hour")
		}
		if a.forget(time.Unix(3700, 0)); len(a) != 0 {
			t.Error("never forgotten")
		}
	}
}

// TestHungForwarder: a forwarder whose compute nodes wait for 4 s and end nothing is named at once; not one whose nodes
// end something, not for one node, and none where all hang, which is what is behind them.
func TestHungForwarder(t *testing.T) {
	const mute = "one node, and its agent is silent"
	for name, c := range map[string]struct {
		ages  [3][2]float64 // of the oldest request, of two nodes of three forwarders
		ended float64       // a second, at the nodes of the first
		want  string
		third []float64 // operations of further nodes of the first, which list no requests
	}{
		"hung":             {[3][2]float64{{4.1, 5}, {0.1, 0}, {0, 0.2}}, 0, "f0", nil},
		"not yet":          {[3][2]float64{{3.9, 3.9}, {0.1, 0}, {0, 0.2}}, 0, "", nil},
		"one file is held": {[3][2]float64{{4.1, 5}, {0.1, 0}, {0, 0.2}}, 3, "", nil},
		"one node":         {[3][2]float64{{0, 5}, {0.1, 0}, {0, 0.2}}, 0, "", nil},
		"all":              {[3][2]float64{{4.1, 5}, {5, 5}, {5, 5}}, 0, "", nil},
		"for years":        {[3][2]float64{{1e30, 1e30}, {0.1, 0}, {0, 0.2}}, 0, "f0", nil},
		"others are answered": {[3][2]float64{{4.1, 5}, {0.1, 0}, {0, 0.2}}, 0, "",
			[]float64{100, -1e30}},
		mute:   {[3][2]float64{{0, 5}, {0.1, 0}, {5, 5}}, 0, "f0", nil},
		"most": {[3][2]float64{{4.1, 5}, {5, 5}, {0.1, 0.1}}, 0, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			board, now := window.NewBoard(0), time.Unix(1_800_000_000, 0)
			d := NewDetectors(board, failslow.DefaultSettings())
			m := &Machine{Mapping: topology.Mapping{}}
			var frames []collector.Frame
			for f, ages := range c.ages {
				for n, age := range ages {
					id := topology.NodeID(fmt.Sprintf("cn%d%d", f, n))
					m.Mapping[id] = topology.ForwarderID(fmt.Sprint("f", f))
					ended := 100.0
					if f == 0 || age >= hangAge {
						ended = c.ended
					}
					frames = append(frames, collector.Frame{Node: id, Role: topology.Compute,
						TimeMillis: now.Add(-time.Second).UnixMilli(),
						Samples:    samples(collector.RequestAge, age, collector.MetaOps, ended)})
				}
			}
			for n, ended := range c.third {
				id := topology.NodeID(fmt.Sprint("other", n))
				m.Mapping[id] = "f0"
				frames = append(frames, collector.Frame{Node: id, Role: topology.Compute,
					TimeMillis: now.Add(-time.Second).UnixMilli(), Samples: samples(collector.MetaOps, ended)})
			}
			if name == mute {
				d.silence.agents["f0"] = agentSays{at: now.Unix() - hangAge, role: topology.Forwarder}
			}
			board.Take(frames, now)
			found := ""
			for _, v := range d.Verdicts(now, m) {
				if v.Kind == anomaly.FailSlow && v.Level == anomaly.Alarm {
					found += string(v.Node)
					if now.Sub(v.Since) > hangSince {
						t.Errorf("since %s", v.Since)
					}
					want := "f0 answers nothing: 2 compute nodes wait 4 s and longer for it, while 2 other " +
						"forwarders answer"
					if name == mute {
						want = "f0 answers nothing: 1 compute node waits 4 s and longer for it, while 1 other " +
							"forwarder answers"
					}
					if !strings.Contains(v.Sentence, want) {
						t.Error(v.Sentence)
					}
				}
			}
			if found != c.want {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}
