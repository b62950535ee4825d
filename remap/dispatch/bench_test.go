package dispatch

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/desk"
	"fairway/remap/policy/dfra"
	"fairway/tsdb/history"
)

// BenchmarkDecision decides for jobs of 512 nodes on a machine of 240 forwarders, 40,960 compute nodes
// and 80 running jobs, with a history of a million runs. It reports the 99th percentile of the thread's
// CPU time, which neighbours on the machine disturb least.
func BenchmarkDecision(b *testing.B) {
	m := newMachine(40960, 80, 160)
	dir := b.TempDir()
	h, _, err := history.Open(filepath.Join(dir, "history"))
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	_, err = h.Import(b.Context(), func(yield func(history.Run, error) bool) {
		queue := 1.0
		for i := range 1_000_000 {
			end := time.Unix(1700000000+int64(i), 0)
			if !yield(history.Run{Job: topology.JobID(fmt.Sprint(i)), User: fmt.Sprint("u", i%500),
				App: fmt.Sprint("app", i%20000), Nodes: 512, Start: end.Add(-time.Hour), End: end,
				Profile: &history.Profile{WriteBytes: 1e12, IONodes: 256 * (i % 2), MetaQueue: &queue,
					Mode: topology.ModeN1, Coverage: 1, From: "test"}}, nil) {
				return
			}
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	desk, _, err := desk.Open(desk.Config{Settings: desk.DefaultSettings(), Path: filepath.Join(dir, "journal"),
		Driver: m, Situation: m.situation})
	if err != nil {
		b.Fatal(err)
	}
	defer desk.Close()
	s := m.situation()
	d := New(Config{Desk: desk, History: h, Situation: func() *remap.Situation { return s }, Frames: m.show, Seconds: m,
		Name: "dfra", Policy: dfra.Decide})
	job := func(i, from int) *job {
		j := &job{run: history.Run{Job: topology.JobID(fmt.Sprint("j", i)), User: fmt.Sprint("u", i%500),
			App: fmt.Sprint("app", i%20000), Nodes: 512, NodeList: cns(from, from+512)}}
		j.on = s.Forwarders(j.run.NodeList)
		return j
	}
	for i := range 79 {
		d.jobs[topology.JobID(fmt.Sprint("r", i))] = job(1_000_000+i, i*512)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	took := make([]time.Duration, 0, b.N)
	for i := range b.N {
		j := job(i, 79*512)
		begun := cpu(b)
		j.on = s.Forwarders(j.run.NodeList)
		p, ok := h.Predict(j.run.Key())
		if !ok {
			b.Fatal("no prediction")
		}
		j.past = Past(&p.Run)
		decision := d.cfg.Policy(d.caseOf(s, j, &p))
		moves := assign(s, j.run.NodeList, &decision, desk.Claims(), j.run.Job)
		took = append(took, cpu(b)-begun)
		if (len(moves) > 0) != decision.Remap {
			b.Fatalf("%+v", decision)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
}

func cpu(b *testing.B) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}
