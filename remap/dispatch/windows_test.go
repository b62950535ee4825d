package dispatch

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/policy/cycles"
	"fairway/remap/policy/dfra"
	"fairway/remap/window"
	"fairway/tsdb/history"
)

// periodicRun is an ended run that wrote 10 GB every 100 s.
func periodicRun(app string, job int) history.Run {
	r := history.Run{Job: topology.JobID(fmt.Sprint(app, job)), User: "wei", App: app, Nodes: 2,
		Start: time.Now().Add(-time.Hour), End: time.Now().Add(-time.Minute),
		Profile: &history.Profile{Peaks: history.Peaks{PeakNodeBytesPerSec: 1e9}, WriteBytes: 1e11, IONodes: 2}}
	for i := range 10 {
		r.Profile.Phases = append(r.Profile.Phases, history.Phase{AtSeconds: 90 + 100*float64(i), Seconds: 10,
			WriteBytes: 1e10})
	}
	return r
}

// ran puts an ended run into the history.
func ran(t testing.TB, h *history.Store, r history.Run) {
	t.Helper()
	begin := r
	begin.End, begin.Profile = time.Time{}, nil
	if err := errors.Join(h.Begin(begin), h.End(r)); err != nil {
		t.Fatal(err)
	}
}

// windowed is a dispatcher that gives windows, of a machine of so many nodes, and what its jobs are known by.
func windowed(t testing.TB, nodes int, apps ...string) (*Dispatcher, *remap.Situation) {
	t.Helper()
	h, _, err := history.Open(t.TempDir() + "/history")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	for _, app := range apps {
		ran(t, h, periodicRun(app, 1))
	}
	m := newMachine(nodes, 2, nodes/4)
	return New(Config{History: h, Situation: m.situation, Windows: true,
		Limits: dfra.Config{FwdPeakBW: 5e8, CNPeakBW: 1e9}}), m.situation()
}

// begins starts a job with the pattern made anew, and returns it with the windows of the others.
func begins(d *Dispatcher, s *remap.Situation, app, id string, at time.Time) (*job, map[topology.JobID]string) {
	j := &job{run: history.Run{Job: topology.JobID(id), User: "wei", App: app, Nodes: 2}, answer: &Answer{}}
	others := d.windows.renew(d, s, j, at)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.add(j)
	return j, others
}

// meet says that two windows are open at once somewhere in a pattern.
func meet(a, b *window.Window) bool {
	for at := a.From; at.Before(a.From.Add(a.Every)); at = at.Add(100 * time.Millisecond) {
		if a.Wait(at) == 0 && b.Wait(at) == 0 {
			return true
		}
	}
	return false
}

// Every running job has a window of its own, also two of one application; all are of one pattern, which is made anew at
// each start and end; who is not periodic has none.
func TestRunningJobsGetWindowsOfTheirOwn(t *testing.T) {
	d, s := windowed(t, 8, "ocean", "wrf")
	now := time.Now()
	if j, _ := begins(d, s, "sort", "9", now); j.rhythm.window != nil {
		t.Errorf("an application that is not periodic got %+v", j.rhythm.given)
	}
	first, _ := begins(d, s, "ocean", "10", now)
	alone := first.rhythm.given
	second, others := begins(d, s, "ocean", "11", now.Add(time.Second))
	if len(others) != 2 || others["10"] == alone.Text || others["10"] != first.rhythm.given.Text {
		t.Fatalf("the first one's window became %v, was %q", others, alone.Text)
	}
	a, b := first.rhythm.window, second.rhythm.window
	if a == nil || b == nil || a.Every != b.Every || !a.From.Equal(b.From) || a.String() == b.String() {
		t.Fatalf("the windows of two jobs of one application are %v and %v", a, b)
	}
	if meet(a, b) {
		t.Errorf("both windows are open at once: %s and %s", a, b)
	}
	if g := second.rhythm.given; !strings.HasPrefix(g.Words, "I/O window ") || g.Dilation < 1 || g.StartInSeconds < 0 ||
		g.StartInSeconds > b.Every.Seconds() || g.Cycle.From != cycles.FromRuns || g.Cycle.PeriodSeconds != 100 {
		t.Errorf("%+v", g)
	}
	third, _ := begins(d, s, "wrf", "12", now.Add(2*time.Second))
	if third.rhythm.window == nil || meet(third.rhythm.window, first.rhythm.window) {
		t.Errorf("a third job beside them has %v", third.rhythm.window)
	}
	if v := d.Windows().Pattern(); !v.InForce || v.Pattern == nil || len(v.Set.Apps) != 3 || len(v.Jobs) != 4 ||
		v.Jobs[0].Window == nil || v.Jobs[3].Cycle != nil || v.Unplanned.Dilation < v.Pattern.Dilation {
		t.Errorf("the pattern in force is %+v", v)
	}
	d.mu.Lock()
	d.remove(second)
	d.mu.Unlock()
	after := d.windows.renew(d, s, nil, now.Add(time.Hour))
	if len(after) != 3 || after["9"] != "" || after["10"] == others["10"] || after["12"] == "" {
		t.Errorf("after an end the others have %v", after)
	}
	if got := d.Decided("10"); got.Window == nil || got.Window.Text != after["10"] {
		t.Errorf("its answer still says %+v", got.Window)
	}
	if got := d.Decided("9"); got.Window != nil {
		t.Errorf("an application that is not periodic has %+v", got.Window)
	}
}

// A job that nobody knows is watched: its period is found while it runs, and the pattern is then made with it. Its
// bandwidth is what the window gives while it is open, and the ledger says what it moved inside.
func TestPeriodIsLearnedFromWatching(t *testing.T) {
	d, s := windowed(t, 8)
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	j, _ := begins(d, s, "new", "20", now)
	second := func() bool {
		rate := 0.0
		if now.Unix()%20 < 2 { // two seconds of twenty
			rate = 4e8
		}
		now = now.Add(time.Second)
		return j.rhythm.note(rate, time.Second, now)
	}
	learned := 0
	for ; learned < 600 && !second(); learned++ {
	}
	c := j.rhythm.cycle
	if c == nil || c.From != cycles.FromWatching || c.PeriodSeconds < 19 || c.PeriodSeconds > 21 || learned > 200 {
		t.Fatalf("after %d s its cycle is %+v", learned, c)
	}
	if c.VolumeBytes < 7e8 || c.VolumeBytes > 9e8 || c.ComputeSeconds < 17 || c.ComputeSeconds > 19 {
		t.Errorf("its cycle is %+v", c)
	}
	if d.windows.renew(d, s, nil, now); j.rhythm.window == nil {
		t.Fatal("it has no window")
	}
	w := j.rhythm.window
	at := w.From.Add(w.Open[0].Start + time.Millisecond)
	if rate := d.Windows().Rates(at)["20"]; rate != w.Open[0].BytesPerSec || rate <= 0 {
		t.Errorf("in its window it gets %v bytes/s of %s", rate, w)
	}
	closed := w.From.Add(w.Open[0].End + 2*time.Second)
	if rate, has := d.Windows().Rates(closed)["20"]; rate != 0 || !has {
		t.Errorf("outside of its window it gets %v bytes/s", rate)
	}
	j.rhythm.note(3e8, time.Second, at)
	j.rhythm.note(1e8, time.Second, closed)
	want := history.KeptWindows{InsideBytes: 3e8, OutsideBytes: 1e8}
	if k := j.keptWindows(d); k == nil || *k != want || j.rhythm.given.Kept == nil || *j.rhythm.given.Kept != want {
		t.Errorf("the ledger says %+v, want %+v", k, want)
	}
}

// The pattern of 200 running jobs is made within 100 ms; of-100ms is the part of that which one takes, in processor
// time.
func BenchmarkRenew(b *testing.B) {
	for _, jobs := range []int{20, 200} {
		b.Run(fmt.Sprint(jobs), func(b *testing.B) {
			d, s := windowed(b, 512)
			r := rand.New(rand.NewPCG(34, uint64(jobs)))
			for i := range jobs {
				c := cycles.Live{ComputeSeconds: 10 * math.Exp(5*r.Float64()),
					VolumeBytes: 1e9 * math.Exp(2*r.Float64())}
				j := &job{run: history.Run{Job: topology.JobID(fmt.Sprint(i)), Nodes: 1 + r.IntN(2)}}
				j.rhythm.cycle = &c
				d.add(j)
			}
			from := cpuTime(b)
			for b.Loop() {
				if len(d.windows.renew(d, s, nil, time.Now())) != jobs {
					b.Fatal("a job has no window")
				}
			}
			b.ReportMetric((cpuTime(b)-from).Seconds()/float64(b.N)/0.1, "of-100ms")
		})
	}
}

// cpuTime is what this process has computed, on all cores.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
