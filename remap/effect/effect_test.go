package effect_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/effect"
	"fairway/tsdb/engine"
)

// moment is the instant of the first order.
var moment = time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)

// does is what one compute node does in a second.
type does struct {
	writes, took, bytes float64
	metas, metaTook     float64
}

// beside are nodes and forwarders that were not moved.
var beside = []topology.NodeID{"o1", "o2", "o3"}

// store holds two minutes of nodes c1 and c2, the second half after the move; 0 is not reported.
func store(t *testing.T, before, after does, role topology.Role, names ...topology.NodeID) *engine.DB {
	t.Helper()
	db, err := engine.Open(t.TempDir(), engine.Options{SyncInterval: time.Nanosecond,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	var frames []collector.Frame
	for s := -60; s < 70; s++ {
		for _, n := range append(names, beside...) {
			does := before
			if s >= 0 && !slices.Contains(beside, n) {
				does = after
			}
			f := collector.Frame{Node: n, Role: role,
				TimeMillis: moment.Add(time.Duration(s) * time.Second).UnixMilli()}
			add := func(m collector.Metric, v float64) {
				if v != 0 {
					f.Samples = append(f.Samples, collector.Sample{Metric: m, Value: v})
				}
			}
			add(collector.WriteOps, does.writes)
			add(collector.WriteBytes, does.bytes)
			add(collector.MetaOps, does.metas)
			if role == topology.Compute {
				add(collector.ClientWrite, does.took)
				add(collector.ClientMeta, does.metaTook)
			} else {
				add(collector.WriteWait, does.took/2)
				add(collector.WriteExec, does.took/2)
			}
			frames = append(frames, f)
		}
	}
	if err := db.Append(t.Context(), frames); err != nil {
		t.Fatal(err)
	}
	return db
}

func ask() effect.Ask {
	results := []remap.Result{{Node: "c1", OK: true, At: moment.Add(10 * time.Millisecond),
		Took: 10 * time.Millisecond}}
	return effect.Ask{Now: moment.Add(4 * time.Minute), JobNodes: []topology.NodeID{"c1", "c2"},
		Beside: func() effect.Beside {
			return effect.Beside{Layer: slices.Collect(slices.Chunk(beside, 1)), Forwarders: beside}
		},
		Plan: remap.Plan{ID: "P-1", Job: "5", State: remap.Verified, Changed: moment.Add(time.Second), Results: results,
			Moves: []remap.Move{{Node: "c1", From: "f1", To: "f2"}}}}
}

// others are those beside whom the moved nodes are seen.
const others = "other nodes behind 3 forwarders"

func TestEffectOfAMove(t *testing.T) {
	slow := does{writes: 100, took: 0.036, bytes: 4.5e6, metas: 500, metaTook: 0.001}
	for name, c := range map[string]struct {
		before, after does
		verdict       remap.Verdict
		text          string
	}{
		"it helped": {slow, does{writes: 300, took: 0.0041, bytes: 11e6, metas: 500, metaTook: 0.001}, remap.Helped,
			"helped: its nodes' write latency 36 -> 4.1 ms, 8.8x as fast beside " + others + "; job 5 9 -> 22 MB/s"},
		"it changed nothing": {slow, slow, remap.NoEffect,
			"no effect: its nodes' write latency 36 -> 36 ms; job 5 9 -> 9 MB/s"},
		"it did harm": {slow, does{writes: 50, took: 0.072, bytes: 2e6}, remap.Worse,
			"worse than before: its nodes' write latency 36 -> 72 ms; job 5 9 -> 4 MB/s"},
		"it stood still": {does{writes: 5, took: 2, bytes: 1e6}, does{writes: 50, took: 0.004, bytes: 2e6},
			remap.Helped,
			"helped: its nodes' write latency 2000 -> 4 ms, over 100x as fast beside " + others +
				"; job 5 2 -> 4 MB/s"},
		"more cheap requests are no help": {slow, does{writes: 100, took: 0.036, bytes: 4.5e6, metas: 90000,
			metaTook: 0.001}, remap.NoEffect, "no effect: its nodes' write latency 36 -> 36 ms; job 5 9 -> 9 MB/s"},
		"it did nothing afterwards": {slow, does{}, remap.EffectUnknown,
			"not known whether it helped: too little I/O before or after the move to compare"},
		"nobody times requests": {does{bytes: 5e6}, does{bytes: 10e6}, remap.EffectUnknown,
			"not known whether it helped: its requests are not timed"},
	} {
		t.Run(name, func(t *testing.T) {
			db := store(t, c.before, c.after, topology.Compute, "c1", "c2")
			e, err := effect.Measure(t.Context(), db, ask())
			if err != nil {
				t.Fatal(err)
			}
			if e.Verdict != c.verdict || e.Text() != c.text {
				t.Errorf("%s: %s", e.Verdict, e.Text())
			}
		})
	}
}

// Where compute nodes time nothing, the old and the new forwarder are compared.
func TestEffectByForwarders(t *testing.T) {
	db := store(t, does{writes: 10, took: 0.5}, does{writes: 10, took: 0.5}, topology.Forwarder, "f1")
	more := store(t, does{writes: 10, took: 0.05}, does{writes: 10, took: 0.05}, topology.Forwarder, "f2")
	for s := range 130 {
		at := moment.Add(time.Duration(s-60) * time.Second).UnixMilli()
		_ = more.Append(t.Context(), []collector.Frame{{Node: "f1", Role: topology.Forwarder, TimeMillis: at,
			Samples: []collector.Sample{{Metric: collector.WriteOps, Value: 10},
				{Metric: collector.WriteExec, Value: 0.5}}}})
	}
	for want, store := range map[string]effect.Selector{
		"not known whether it helped: too little I/O before or after the move to compare":     db,
		"helped: its forwarders' write latency 500 -> 50 ms, 10x as fast beside 3 forwarders": more,
	} {
		if e, err := effect.Measure(t.Context(), store, ask()); err != nil || e.Text() != want || e.ByClients {
			t.Errorf("%v, %v", e.Text(), err)
		}
	}
	// Nodes that could time their requests have sent none: what the forwarders' other clients wait says nothing.
	for s := range 130 {
		at := moment.Add(time.Duration(s-60) * time.Second).UnixMilli()
		_ = more.Append(t.Context(), []collector.Frame{{Node: "c1", Role: topology.Compute, TimeMillis: at,
			Samples: []collector.Sample{{Metric: collector.InFlight, Value: 0}}}})
	}
	const want = "not known whether it helped: too little I/O before or after the move to compare"
	if e, err := effect.Measure(t.Context(), more, ask()); err != nil || e.Text() != want {
		t.Errorf("of idle nodes: %v, %v", e.Text(), err)
	}
}

// Until the minute is over the figures are those of the seconds so far, and the beginning of the trouble bounds
// what counts as before.
func TestEffectGrows(t *testing.T) {
	db := store(t, does{writes: 100, took: 0.036, bytes: 1e6}, does{writes: 100, took: 0.004, bytes: 1e6},
		topology.Compute, "c1")
	a := ask()
	a.NotBefore = moment.Add(-20 * time.Second)
	for at, want := range map[time.Duration]string{
		0:                "measuring for 0 s",
		12 * time.Second: "measuring for 10 s: its nodes' write latency 36 -> 4 ms, 9x as fast; job 5 1 -> 1 MB/s",
		64 * time.Second: "measuring for 60 s: its nodes' write latency 36 -> 4 ms, 9x as fast; job 5 1 -> 1 MB/s",
		65 * time.Second: "helped: its nodes' write latency 36 -> 4 ms, 9x as fast beside " + others +
			"; job 5 1 -> 1 MB/s",
	} {
		a.Now = moment.Add(at)
		e, err := effect.Measure(t.Context(), db, a)
		if err != nil || e.Text() != want && at > 0 {
			t.Errorf("after %s: %s, %v", at, e.Text(), err)
		}
		if at == 0 && e.Verdict != remap.Measuring {
			t.Errorf("at once: %s", e.Verdict)
		}
		if got := e.BeforeTo.Sub(e.BeforeFrom); got != 20*time.Second {
			t.Errorf("before is %s long", got)
		}
	}
	// The job's end is the end of what there is to measure: soon after the move nothing is known.
	a.Now, a.Ended = moment.Add(18*time.Second), true
	if e, err := effect.Measure(t.Context(), db, a); err != nil || e.Verdict != remap.EffectUnknown {
		t.Errorf("%+v, %v", e, err)
	}
	a.Now, a.Ended = moment.Add(30*time.Second), true
	if e, err := effect.Measure(t.Context(), db, a); err != nil || e.Verdict != remap.Helped {
		t.Errorf("%+v, %v", e, err)
	}
}

// A plan of many nodes is judged by some of them, and its rate stands for all.
func TestEffectOfManyNodes(t *testing.T) {
	a := ask()
	a.Plan.Moves, a.JobNodes = nil, nil
	var nodes []topology.NodeID
	for i := range 1200 {
		n := topology.NodeID(fmt.Sprintf("c%04d", i))
		nodes = append(nodes, n)
		a.Plan.Moves = append(a.Plan.Moves, remap.Move{Node: n, From: "f1", To: "f2"})
	}
	db := store(t, does{writes: 1, took: 0.1, bytes: 1e5}, does{writes: 2, took: 0.05, bytes: 2e5}, topology.Compute,
		nodes...)
	e, err := effect.Measure(t.Context(), db, a)
	if err != nil {
		t.Fatal(err)
	}
	const want = "helped: its nodes' write latency 100 -> 50 ms, 2x as fast beside " + others +
		"; its nodes 120 -> 240 MB/s"
	if e.Text() != want {
		t.Errorf("%s", e.Text())
	}
}

// TestEffectOfAMoveOffAHungForwarder: what nothing ended before is the clearest help; not where those that stayed are
// answered again as well, nor where the nodes ask for nothing any more.
func TestEffectOfAMoveOffAHungForwarder(t *testing.T) {
	const freed = "helped: its nodes had waited 76 s without an answer"
	const clearest = freed + ", write latency now"
	for what, c := range map[string]struct {
		until     float64 // when the forwarder answers again
		everybody bool    // is moved
		alone     bool    // with nobody to compare with
		ended     float64 // how long after the move the job has ended; 0: it runs on
		want      string
	}{
		"hung":               {lasting + 10, false, false, 0, clearest},
		"all are moved":      {lasting + 10, true, false, 0, clearest},
		"nobody else":        {lasting + 10, true, true, 0, clearest},
		"its job ends":       {lasting + 10, false, false, 6, freed},
		"it ends at once":    {lasting + 10, true, true, 0.5, freed},
		"the only job ends":  {lasting + 10, true, true, 6, freed},
		"it came back":       {planAt + 1, false, false, 0, "not known whether it helped: "},
		"back, its job ends": {planAt + 1, false, false, 6, "not known whether it helped: "},
		"it was back before": {planAt - 30, true, false, 0, "not known whether it helped: "},
		"before, job ends":   {planAt - 30, true, false, 6, "not known whether it helped: "},
		"hung for moments":   {lasting + 10, false, false, 0, "helped: its nodes had waited 9 s without an answer"},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(5, 10, 3, 2, lasting)
			w.forwarders[0].hungFrom, w.forwarders[0].hungTo = planAt-77, c.until
			a := w.ask(planAt, c.everybody)
			if what == "hung for moments" {
				w.forwarders[0].hungFrom, a.NotBefore = planAt-10, start.Add((planAt-10)*time.Second)
			}
			w.moveAt = planAt
			for i, n := range w.nodes {
				if slices.ContainsFunc(a.Plan.Moves, func(m remap.Move) bool { return m.Node == name(i) }) {
					n.then = len(w.forwarders) - 1
				}
			}
			if c.alone {
				a.Beside = nil
			}
			if c.ended > 0 {
				a.Now, a.Ended = start.Add(time.Duration((planAt+c.ended)*float64(time.Second))), true
			}
			w.run()
			e := measured(t, w, a)
			if !strings.HasPrefix(e.Text(), c.want) {
				t.Errorf("%s (%+v)", e.Text(), e.Gain)
			}
		})
	}
}

// TestNodesThatStop: the reason of nodes that report, and ask for nothing after the move, is that.
func TestNodesThatStop(t *testing.T) {
	w := newWorld(5, 10, 3, 2, lasting)
	a := w.ask(planAt, true)
	for _, n := range w.nodes {
		if n.at == 0 {
			n.think = from(planAt-1, n.think(0), 1e6)
		}
	}
	w.run()
	const want = "not known whether it helped: its nodes have done no I/O since the move"
	if e := measured(t, w, a); e.Text() != want {
		t.Error(e.Text())
	}
}
