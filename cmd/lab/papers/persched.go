package papers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"fairway/cmd/lab/testbed"
	"fairway/cmd/lab/testbed/workload"
	"fairway/remap/policy/periodic"
	"fairway/remap/window"
)

// periodicApps compute and then write, each on a node of its own; together they ask for more than the forwarder has
// while nobody waits.
var periodicApps = []struct {
	name    string
	compute time.Duration
	bytes   int64
}{
	{"turbulence", 8 * time.Second, 20 << 20},
	{"plasma", 7 * time.Second, 28 << 20},
	{"combustion", 9 * time.Second, 12 << 20},
	{"astro", 8 * time.Second, 20 << 20},
}

// spare is the part of the bandwidth that the pattern leaves free: late I/O still ends in its window.
const spare = 0.1

// starting is what a script's instance takes beside its computation and its I/O: the start of two programs.
const starting = 100 * time.Millisecond

// perschedResults runs the applications with and without the pattern's windows.
func perschedResults(ctx context.Context, l *Lab) (rows []Row, err error) {
	tb, err := l.newTestbed(ctx, testbed.Config{Forwarders: 1, ComputeNodes: len(periodicApps),
		LinkBytesPerSec: l.link()})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tb.Close()) }()
	set, err := l.periodicSet(ctx, tb)
	if err != nil {
		return nil, err
	}
	spared := set
	spared.Link, spared.Bandwidth, spared.TMin = set.Link*(1-spare), set.Bandwidth*(1-spare), 0
	if spared, err = periodic.Complete(spared); err != nil {
		return nil, err
	}
	pattern, err := periodic.Schedule(spared)
	if err != nil {
		return nil, err
	}
	if err := pattern.Check(spared); err != nil {
		return nil, err
	}
	greedy := periodic.Online(set, periodic.Fair, 600)
	l.say("predicted: SysEfficiency %.3f with windows (a pattern of %.1f s), %.3f greedy; dilation %.2f and %.2f",
		pattern.SysEfficiency, pattern.T, greedy.SysEfficiency, pattern.Dilation, greedy.Dilation)
	var with, without periodicRuns
	for range l.repeat(3) {
		if err := errors.Join(without.add(ctx, l, tb, set, nil), with.add(ctx, l, tb, set, &pattern)); err != nil {
			return nil, err
		}
		n := len(with.efficiency) - 1
		l.say("SysEfficiency %.3f with windows, %.3f greedy; dilation %.2f and %.2f", with.efficiency[n],
			without.efficiency[n], with.dilation[n], without.dilation[n])
	}
	off, gain := Row{Effect: "measured SysEfficiency with windows, of the predicted one",
		Paper: "within 3.8 % (Figure 5)", Unit: " %", Bar: "95 % to 105 %",
		Why: "programs start and sleep on a machine " +
			"of two processors"},
		Row{Effect: "SysEfficiency with windows over greedy", Paper: "7 % to 18 % more under congestion (section 4.4)",
			Unit: "x", Bar: "> 1", Why: "the paper's disks lose bandwidth under congestion; a capped link does not"}
	for i, e := range with.efficiency {
		off.Values = append(off.Values, 100*e/pattern.SysEfficiency)
		gain.Values = append(gain.Values, e/without.efficiency[i])
	}
	return []Row{off, gain,
		{Effect: fmt.Sprintf("dilation with windows (predicted %.2f)", pattern.Dilation),
			Paper: "9 % to 16 % less under congestion", Values: with.dilation},
		{Effect: fmt.Sprintf("dilation greedy (fair sharing without loss would be %.2f)", greedy.Dilation),
			Values: without.dilation}}, nil
}

// periodicSet measures what one application alone moves, and describes all of them by it.
func (l *Lab) periodicSet(ctx context.Context, tb *testbed.Testbed) (periodic.Set, error) {
	c := &contention{l, tb}
	alone := workload.Spec{Name: "alone", Mode: workload.FilePerProcess, BurstBytes: pick[int64](l, 24, 2) << 20}
	took, err := c.together(ctx, alone, nodes(0, 1))
	if err != nil {
		return periodic.Set{}, err
	}
	rate := float64(alone.BurstBytes) / took / 1e9
	l.say("an application alone writes %.2f MB/s", rate*1000)
	set := periodic.Set{Procs: float64(len(periodicApps)), Link: rate, Bandwidth: rate,
		KPrime: 4} // two patterns and more in a run
	for _, a := range periodicApps {
		set.Apps = append(set.Apps, periodic.App{Name: a.name,
			Work:   (a.compute/pick[time.Duration](l, 1, 4) + starting).Seconds(),
			Volume: float64(a.bytes/pick[int64](l, 1, 16)) / 1e9, Procs: 1})
	}
	return periodic.Complete(set)
}

// periodicRuns are the figures of some runs.
type periodicRuns struct{ efficiency, dilation []float64 }

// add runs the applications once, by a pattern or as they come.
func (r *periodicRuns) add(ctx context.Context, l *Lab, tb *testbed.Testbed, set periodic.Set,
	p *periodic.Pattern) error {
	span, begin := pick(l, time.Minute, 8*time.Second), time.Now().Add(time.Second)
	type ran struct {
		bursts []workload.Burst
		err    error
	}
	runs := make([]ran, len(periodicApps))
	var all sync.WaitGroup
	for i, a := range periodicApps {
		w := workload.Spec{Name: a.name, Mode: workload.FilePerProcess, BurstBytes: a.bytes / pick[int64](l, 1, 16),
			Bursts: 1}
		fillSpec(&w, 1)
		env := ""
		if p != nil {
			win, ok := window.Of(*p, a.name, begin)
			if !ok {
				return fmt.Errorf("the pattern has no window for %s", a.name)
			}
			env = win.String()
		}
		script := fmt.Sprintf(
			`end=$(($(date +%%s)+%d)); n=0; while [ $n -lt 3 ] || [ $(date +%%s) -lt $end ]; do sleep %g; `+
				`%s window wait || exit 1; %s --report || exit 1; n=$((n+1)); done`, int(span.Seconds()),
			(a.compute / pick[time.Duration](l, 1, 4)).Seconds(),
			l.program("fairway"), strings.Join(w.Argv(l.Self), " "))
		all.Go(func() {
			out, err := tb.Exec(ctx, nodes(i, 1)[0], "env", window.Env+"="+env, "sh", "-c", script)
			if runs[i].err = err; err == nil {
				runs[i].bursts, runs[i].err = burstsOf(a.name, out)
			}
		})
	}
	all.Wait()
	efficiency, dilation := 0.0, 0.0
	for i, run := range runs {
		n := len(run.bursts)
		if run.err != nil || n < 2 {
			return fmt.Errorf("%s did I/O %d times: %w", periodicApps[i].name, n, run.err)
		}
		// From the end of the first instance to that of the last one: the start of all together is not the pattern.
		each := run.bursts[n-1].End.Sub(run.bursts[0].End).Seconds() / float64(n-1)
		a := set.Apps[i]
		efficiency += a.Work / each / set.Procs
		dilation = max(dilation, each/(a.Work+a.Volume/set.Bandwidth))
	}
	r.efficiency, r.dilation = append(r.efficiency, efficiency), append(r.dilation, dilation)
	return nil
}
