package watch

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/failslow"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/window"
)

// diods are a layer that only its clients see: eight forwarders with a client each.
type diods struct {
	*Detectors
	t     *testing.T
	board *window.Board
	m     *Machine
	now   time.Time
	job   map[topology.NodeID]topology.JobID // what clients run
}

func newDiods(t *testing.T, now time.Time) *diods {
	e := &diods{t: t, board: window.NewBoard(0),
		m: &Machine{}, now: now}
	e.m.Mapping = topology.Mapping{}
	e.Detectors = NewDetectors(e.board, failslow.DefaultSettings())
	return e
}

// live lets seconds pass, in which writes through f1 take slow seconds and those of the others 4 ms, and
// returns after how many an alarm went off; 0 for none.
func (e *diods) live(seconds int, slow float64) int {
	e.t.Helper()
	for i := range seconds {
		e.now = e.now.Add(time.Second)
		at := e.now.Add(-time.Second).UnixMilli()
		for _, n := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
			took := 4e-3
			if n == "1" {
				took = slow
			}
			cn, fwd := topology.NodeID("cn"+n), topology.ForwarderID("f"+n)
			e.m.Mapping[cn] = fwd
			client := collector.Frame{Node: cn, Role: topology.Compute, TimeMillis: at,
				Samples: samples(collector.WriteOps, 40.0, collector.WriteBytes, 1e7, collector.ClientWrite, took)}
			if j := e.job[cn]; j != "" {
				client.Jobs = []collector.JobSamples{{Job: j, Samples: client.Samples}}
			}
			e.board.Take([]collector.Frame{client,
				{Node: fwd.Node(), Role: topology.Forwarder, TimeMillis: at,
					Samples: samples(collector.WriteOps, 40.0, collector.WriteBytes, 1e7)},
			}, e.now)
		}
		for _, v := range e.Verdicts(e.now, e.m) {
			if v.Level == anomaly.Alarm {
				if v.Node != "f1" {
					e.t.Errorf("accused is %s", v.Node)
				}
				return i + 1
			}
		}
	}
	return 0
}

// TestRestartKeepsTheEvidence: a daemon that is restarted during a fault accuses as soon as one
// that was not, and one that has lost its state does not.
func TestRestartKeepsTheEvidence(t *testing.T) {
	begun := time.Unix(1_800_000_000, 0)
	whole := newDiods(t, begun)
	whole.live(200, 4e-3)
	uncut := whole.live(200, 10e-3)

	cut := newDiods(t, begun)
	cut.live(200, 4e-3)
	if at := cut.live(uncut-3, 10e-3); uncut < 6 || at != 0 {
		t.Fatalf("alarms after %d and %d s", uncut, at)
	}
	saved, err := cut.State(cut.now)
	if err != nil {
		t.Fatal(err)
	}
	again := newDiods(t, cut.now.Add(20*time.Second)) // the restart takes that long
	if age, err := again.LoadState(bytes.NewReader(saved), again.now, time.Hour); err != nil || age != 20*time.Second {
		t.Fatal(age, err)
	}
	if at := again.live(200, 10e-3); at == 0 || at > 5 {
		t.Errorf("with its evidence the alarm came %d s after the restart, without one 3 s later", at)
	}
	if at := newDiods(t, cut.now.Add(20*time.Second)).live(5, 10e-3); at != 0 {
		t.Error("without its evidence it needs no longer: this test shows nothing")
	}
}

// TestWhoIsClearedIsAccusedByNewEvidence: after its finding ended by its canaries it takes as much as the first time.
func TestWhoIsClearedIsAccusedByNewEvidence(t *testing.T) {
	e := newDiods(t, time.Unix(1_800_000_000, 0))
	e.live(200, 4e-3)
	first := e.live(200, 10e-3)
	e.Forget("f1")
	if at := e.live(60, 4e-3); first < 6 || at != 0 {
		t.Errorf("accused after %d s, well and accused again after %d s", first, at)
	}
	if at := e.live(200, 10e-3); at < first-2 {
		t.Errorf("accused after %d s, the first time after %d s", at, first)
	}
}

// TestUnfitStateIsRefused: what is damaged, of another version, too old or of the future is not taken up, and
// the detectors are as they were.
func TestUnfitStateIsRefused(t *testing.T) {
	e := newDiods(t, time.Unix(1_800_000_000, 0))
	e.live(100, 4e-3)
	good, err := e.State(e.now)
	if err != nil {
		t.Fatal(err)
	}
	newer := bytes.Clone(good)
	newer[len(stateName)+1]++
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 1
	for _, tc := range []struct {
		name string
		file []byte
		age  time.Duration
		want error
	}{
		{"empty", []byte{}, 0, ErrStateDamaged},
		{"another file", []byte("a journal, perhaps\n"), 0, ErrStateDamaged},
		{"cut off", good[:len(good)-1], 0, ErrStateDamaged},
		{"longer", append(bytes.Clone(good), 0), 0, ErrStateDamaged},
		{"one bit", flipped, 0, ErrStateDamaged},
		{"newer", newer, 0, ErrStateNewer},
		{"old", good, time.Hour + time.Second, ErrStateOld},
		{"of the future", good, -time.Hour, ErrStateOld},
		{"good", good, time.Hour, nil},
	} {
		fresh := newDiods(t, e.now)
		_, err := fresh.LoadState(bytes.NewReader(tc.file), e.now.Add(tc.age), time.Hour)
		if !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
		if _, knows := fresh.slow.Ratio("f1"); knows != (tc.want == nil) {
			t.Errorf("%s: knows the nodes of the file: %t", tc.name, knows)
		}
	}
}

// TestOwnClockSetBack: seconds taken before the daemon's clock was set back do not hide the new ones.
func TestOwnClockSetBack(t *testing.T) {
	e := newDiods(t, time.Unix(1_800_000_000, 0))
	e.live(200, 4e-3)
	e.now = e.now.Add(-time.Hour)
	if at := e.live(60, 10e-3); at == 0 {
		t.Error("no alarm within a minute, an hour after the clock was set back by one")
	}
}

// The minutes that people look at outlive a restart, and the seconds of the restart are a gap.
func TestRestartKeepsTheTrend(t *testing.T) {
	before := newDiods(t, time.Unix(1_800_000_000, 0))
	before.live(120, 4e-3)
	saved, err := before.State(before.now)
	if err != nil {
		t.Fatal(err)
	}
	after := newDiods(t, before.now.Add(20*time.Second))
	if _, err := after.LoadState(bytes.NewReader(saved), after.now, time.Hour); err != nil {
		t.Fatal(err)
	}
	after.live(10, 4e-3)
	steps, _, end := after.Trend()
	was, _, wasEnd := before.Trend()
	known, gaps := 0, 0
	shift := int(end.Sub(wasEnd).Seconds()) / TrendStep
	for i := range steps {
		switch {
		case math.IsNaN(steps[i].Write) && i > len(steps)-8:
			gaps++
		case i+shift < len(was) && was[i+shift].Write > 0 && steps[i].Write != was[i+shift].Write:
			t.Errorf("step %d is %v, was %v", i, steps[i].Write, was[i+shift].Write)
		case steps[i].Write > 0:
			known++
		}
	}
	if known < 22 || gaps < 3 {
		t.Errorf("%d steps are known and %d are missing", known, gaps)
	}
	if w := after.Waits()["f2"]; len(w) != waitSeconds/TrendStep-1 || math.IsNaN(w[len(w)-12].Took) {
		t.Errorf("waits %v", w)
	}
}
