package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"fairway/anomaly/failslow"
	"fairway/anomaly/watch"
	"fairway/cmd/lab/simmachine"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/engine"
	"fairway/tsdb/history"
	"fairway/tsdb/window"
)

// livePast lets a machine work until now and leaves in a daemon's folder what a daemon would have that has watched it:
// the runs that ended, the forwarders' last minutes in the store, and what the detectors have learnt.
func livePast(ctx context.Context, m *simmachine.Machine, stateDir string) (err error) {
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return err
	}
	store, err := engine.Open(filepath.Join(stateDir, "store"), engine.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	now := time.Now().Truncate(time.Second)
	for t := now.Add(-simPast); t.Before(now.Add(-simSeen)) && ctx.Err() == nil; t = t.Add(time.Second) {
		m.Pass(t)
	}
	past := newPast(m)
	var keep []collector.Frame // for some seconds: each time that they are written waits for the disk
	for t := now.Add(-simSeen); t.Before(time.Now().Add(-time.Second)) && ctx.Err() == nil; t = t.Add(time.Second) {
		if keep = append(keep, past.second(t)...); len(keep) > 1<<15 {
			if err := store.Append(ctx, keep); err != nil {
				return err
			}
			keep = keep[:0]
		}
	}
	if err := store.Append(ctx, keep); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	state, err := past.detectors.State(past.at)
	if err == nil {
		err = os.WriteFile(filepath.Join(stateDir, "detectors"), state, 0o600)
	}
	return errors.Join(err, importPast(stateDir, m.Ended()))
}

// past shows a machine's seconds to the detectors.
type past struct {
	m         *simmachine.Machine
	board     *window.Board
	detectors *watch.Detectors
	watched   *watch.Machine
	at        time.Time
	busy      []collector.Frame // of the newest second
}

func newPast(m *simmachine.Machine) *past {
	p := &past{m: m, board: window.NewBoard(0)}
	p.detectors = watch.NewDetectors(p.board, failslow.DefaultSettings())
	p.watched = &watch.Machine{Mapping: m.Machine().Default}
	for _, n := range m.Machine().ByRole(topology.Forwarder) {
		p.watched.Forwarders = append(p.watched.Forwarders, topology.ForwarderID(n.ID))
	}
	p.watched.Healthy = len(p.watched.Forwarders)
	return p
}

// oneOf is how many compute nodes one stands for that the detectors are shown: what they learn of its forwarder is the
// same, and the demo starts sooner.
const oneOf = 8

// second lives through the second that ends at t and returns the frames of all but the compute nodes. Those that do no
// I/O then have nothing to show to a detector.
func (p *past) second(t time.Time) []collector.Frame {
	frames := p.m.Step(t)
	first := slices.IndexFunc(frames, func(f collector.Frame) bool { return f.Role == topology.Compute })
	last := first + slices.IndexFunc(frames[first:], func(f collector.Frame) bool { return f.Role != topology.Compute })
	p.busy = append(p.busy[:0], frames[:first]...)
	for i := first; i < last; i += oneOf {
		if len(frames[i].Jobs) > 0 {
			p.busy = append(p.busy, frames[i])
		}
	}
	p.board.Take(append(p.busy, frames[last:]...), t)
	p.watched.Jobs = p.watched.Jobs[:0]
	for _, j := range p.m.Jobs() {
		p.watched.Jobs = append(p.watched.Jobs, watch.Job{ID: j.ID, Nodes: j.Nodes})
	}
	p.detectors.Verdicts(t, p.watched)
	p.at = t
	keep := slices.Concat(frames[:first], frames[last:])
	for i := range keep { // the machine uses its memory again
		keep[i].Samples, keep[i].Jobs = slices.Clone(keep[i].Samples), nil
	}
	return keep
}

// slowOnes makes a forwarder slow some time after the runner's start, and further ones as time goes on: each is that
// whose one job has the most I/O left, so that somebody suffers from it.
func slowOnes(after time.Duration, log *slog.Logger) func(*simmachine.Machine, time.Time) {
	var next time.Time
	var slow []topology.ForwarderID
	return func(m *simmachine.Machine, now time.Time) {
		if next.IsZero() {
			next = now.Add(after)
		}
		if len(slow) == simSlowMost || now.Before(next) {
			return
		}
		busiest, ok := m.Busiest()
		if !ok || slices.Contains(slow, busiest) {
			return // nobody else would notice: the next second
		}
		slow, next = append(slow, busiest), now.Add(simSlowEvery)
		if err := m.Slow(busiest, now); err != nil {
			panic(fmt.Sprintf("BUG: %v", err))
		}
		log.Info(slowNow, "node", busiest)
	}
}

// importPast writes runs that have ended into the daemon's folder, before the daemon starts.
func importPast(stateDir string, past []simmachine.PastRun) (err error) {
	h, _, err := history.Open(filepath.Join(stateDir, "history"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	sum, err := h.Import(context.Background(), func(yield func(history.Run, error) bool) {
		for i := range past {
			if !yield(simRun(&past[i]), nil) {
				return
			}
		}
	})
	if err == nil && sum.Refused > 0 {
		err = fmt.Errorf("BUG: %d simulated runs were refused: %w", sum.Refused, sum.Errors[0])
	}
	return err
}

func simRun(p *simmachine.PastRun) history.Run {
	mode := p.Mode
	if p.Mode == simmachine.MetaStorm { // how its processes share files is not known
		mode = ""
	}
	return history.Run{Job: p.ID, User: p.User, App: p.App, Nodes: len(p.Nodes), Start: p.Start, End: p.End,
		Profile: &history.Profile{
			ReadBytes: p.ReadBytes, WriteBytes: p.WriteBytes, Mode: mode, IONodes: p.IONodes,
			Peaks: history.Peaks{PeakBytesPerSec: p.PeakBytesPerSec, PeakNodeBytesPerSec: p.PeakNodeBytesPerSec,
				PeakOpsPerSec: p.PeakOpsPerSec},
			MetaOps: p.MetaOps, MetaQueue: &p.MetaQueue,
			IOSeconds: p.IOSeconds, StepSeconds: 1, Coverage: 1, From: "simulation",
		}}
}
