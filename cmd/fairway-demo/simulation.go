package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"fairway/cmd/fairway-demo/simmachine"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/collector/wire"
)

const (
	// simSpoolBytes holds some seconds of the whole machine.
	simSpoolBytes = 256 << 20
	// simWarmUp is lived through before anybody looks: every job starts by computing.
	simWarmUp = 3 * time.Minute
)

// startSimulation makes a machine of TaihuLight's published size. It speaks to the daemon as an
// agent does, for all its nodes over one stream.
func (d *demo) startSimulation(context.Context) (what string, err error) {
	size := simmachine.TaihuLight(1)
	size.RepeatSizes = true
	m, err := simmachine.New(size)
	if err != nil {
		return "", err
	}
	now := time.Now().Truncate(time.Second)
	for t := now.Add(-simWarmUp); t.Before(now); t = t.Add(time.Second) {
		m.Step(t)
	}
	dir, err := os.MkdirTemp("", "fairway-demo")
	if err != nil {
		return "", err
	}
	d.atEnd(func() error { return os.RemoveAll(dir) })
	if err := d.prepare(dir); err != nil {
		return "", err
	}
	topo := m.Machine()
	d.forwarders = len(topo.ByRole(topology.Forwarder))
	d.conf["name"], d.conf["node"], d.conf["default_mapping"], d.conf["simulated"] = topo.Name, topo.Nodes,
		topo.Default,
		true
	d.conf.Table("driver")["kind"] = "agents"
	limits := d.conf.Table("dispatch")
	limits["fwd_peak_bw"], limits["cn_peak_bw"] = size.ForwarderBytesPerSec, size.ComputeBytesPerSec
	d.conf.Table("slurm")["jobs"] = []string{"cat", filepath.Join(dir, jobsFile)}
	if err := importPast(filepath.Join(dir, "state"), m.Past(now, simPastRuns)); err != nil {
		return "", err
	}
	d.senses = []func(context.Context) error{func(ctx context.Context) error { return d.simulate(ctx, m, dir) }}
	return fmt.Sprintf("a SIMULATED machine of %d nodes runs", len(topo.Nodes)), nil
}

// simulate lets the machine live until ctx ends.
func (d *demo) simulate(ctx context.Context, m *simmachine.Machine, dir string) error {
	spool, err := stream.OpenSpool(filepath.Join(dir, "spool"), simSpoolBytes, d.log)
	if err != nil {
		return err
	}
	runner := simmachine.NewRunner(m, spool.Append)
	runner.Log = d.log
	if d.slowAfter > 0 {
		slow := topology.ForwarderID(m.Machine().ByRole(topology.Forwarder)[1].ID) // one that is in service
		start := time.Now().Add(d.slowAfter)
		if err := m.Inject(simmachine.Fault{Kind: simmachine.Hard, Forwarder: slow, Start: start}); err != nil {
			return err
		}
	}
	agent := stream.Client{
		URL: "unix://" + d.socket, Token: d.token, Node: "simulator", Role: topology.Compute, Spool: spool,
		Log:    d.log,
		Orders: map[string]stream.OrderHandler{wire.OrderRemap: runner.Remap, wire.OrderRoute: runner.Route},
	}
	d.tasks.Go(func() { d.runBatch(ctx, runner) })
	d.tasks.Go(func() {
		if err := runner.Run(ctx); err != nil {
			d.log.Error("the simulated machine stopped", "err", err)
		}
	})
	d.tasks.Go(func() {
		if err := agent.Run(ctx); err != nil {
			d.log.Error("the simulated machine's stream stopped", "err", err)
		}
		if err := spool.Close(); err != nil {
			d.log.Error("close the spool", "err", err)
		}
	})
	return nil
}
