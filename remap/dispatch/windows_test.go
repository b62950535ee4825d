package dispatch

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"fairway/collector/topology"
	"fairway/remap/policy/dfra"
	"fairway/remap/window"
	"fairway/tsdb/history"
)

// periodicRun is an ended run that wrote 10 GB every 100 s.
func periodicRun(app string, job int) history.Run {
	r := history.Run{Job: topology.JobID(fmt.Sprint(app, job)), User: "wei", App: app, Nodes: 2,
		Start: time.Now().Add(-time.Hour), End: time.Now().Add(-time.Minute),
		Profile: &history.Profile{PeakNodeBytesPerSec: 1e9, WriteBytes: 1e11, IONodes: 2}}
	for i := range 10 {
		r.Profile.Phases = append(r.Profile.Phases, history.Phase{AtSeconds: 90 + 100*float64(i), Seconds: 10,
			WriteBytes: 1e10})
	}
	return r
}

// ran puts an ended run into the history.
func ran(t *testing.T, h *history.Store, r history.Run) {
	t.Helper()
	begin := r
	begin.End, begin.Profile = time.Time{}, nil
	if err := errors.Join(h.Begin(begin), h.End(r)); err != nil {
		t.Fatal(err)
	}
}

// TestPeriodicJobsGetWindows: jobs of periodic applications get windows that do not meet, others none; a pattern stays
// while one of its jobs runs.
func TestPeriodicJobsGetWindows(t *testing.T) {
	h, _, err := history.Open(t.TempDir() + "/history")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, app := range []string{"ocean", "wrf"} {
		r := periodicRun(app, 1)
		ran(t, h, r)
	}
	m := newMachine(8, 2, 2)
	s := m.situation()
	d := New(Config{History: h, Situation: m.situation, Limits: dfra.Config{FwdPeakBW: 5e8, CNPeakBW: 1e9}})
	now := time.Now()
	give := func(app string, id string, at time.Time) *IOWindow {
		j := &job{run: history.Run{Job: topology.JobID(id), User: "wei", App: app, Nodes: 2}, answer: &Answer{}}
		w, err := d.windows.give(d, s, j, at)
		if err != nil {
			t.Fatal(err)
		}
		d.jobs[j.run.Job] = j
		return w
	}
	if w := give("sort", "9", now); w != nil {
		t.Errorf("an application that is not periodic got %+v", w)
	}
	a, b := give("ocean", "10", now), give("wrf", "11", now.Add(time.Second))
	if a == nil || b == nil {
		t.Fatalf("the windows are %+v and %+v", a, b)
	}
	wa, err := window.Parse(a.Text)
	if err != nil {
		t.Fatal(err)
	}
	wb, err := window.Parse(b.Text)
	if err != nil || wa.Every != wb.Every || !wa.From.Equal(wb.From) {
		t.Fatalf("%v and %v are not of one pattern: %v", wa, wb, err)
	}
	if !strings.HasPrefix(a.Words, "I/O window ") || a.StartInSeconds < 0 || a.StartInSeconds > wa.Every.Seconds() ||
		a.Dilation < 1 {
		t.Errorf("%+v", a)
	}
	for at := wa.From; at.Before(wa.From.Add(wa.Every)); at = at.Add(100 * time.Millisecond) {
		if wa.Wait(at) == 0 && wb.Wait(at) == 0 {
			t.Errorf("both windows are open %s after the beginning: %s and %s", at.Sub(wa.From), a.Text, b.Text)
			break
		}
	}
	later := give("ocean", "12", now.Add(time.Hour))
	if later == nil || later.Text != a.Text {
		t.Errorf("while its jobs run the pattern is %+v, was %s", later, a.Text)
	}
	clear(d.jobs)
	if w := give("ocean", "13", now.Add(2*time.Hour)); w == nil || w.Text == a.Text {
		t.Errorf("without its jobs the pattern is still %+v", w)
	}
}

// TestNoWindowsBesideUnknownOnes: jobs that ran before the daemon's start may keep to a pattern that it does not know.
func TestNoWindowsBesideUnknownOnes(t *testing.T) {
	h, _, err := history.Open(t.TempDir() + "/history")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	r := periodicRun("ocean", 1)
	ran(t, h, r)
	if err := h.Begin(history.Run{Job: "5", App: "wrf", User: "wei", Nodes: 2,
		NodeList: []topology.NodeID{cn(0), cn(1)}, Start: time.Now().Add(-time.Minute)}); err != nil {
		t.Fatal(err)
	}
	m := newMachine(8, 2, 2)
	d := New(Config{History: h, Situation: m.situation, Limits: dfra.Config{FwdPeakBW: 5e8, CNPeakBW: 1e9}})
	j := &job{run: history.Run{Job: "6", User: "wei", App: "ocean", Nodes: 2}}
	if w, err := d.windows.give(d, m.situation(), j, time.Now()); w != nil || err != nil {
		t.Errorf("%+v, %v", w, err)
	}
	delete(d.jobs, "5")
	if w, err := d.windows.give(d, m.situation(), j, time.Now()); w == nil || err != nil {
		t.Errorf("after the unknown job's end: %+v, %v", w, err)
	}
}
