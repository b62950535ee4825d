package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"fairway/cmd/lab/simmachine"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/collector/wire"
)

const (
	// simSpoolBytes holds some seconds of the whole machine.
	simSpoolBytes = 256 << 20
	// simPast is how long the machine has worked before anybody looks, with nothing kept but the jobs that ended;
	// simSeen what the store and the detectors have of it.
	simPast = 24 * time.Hour
	simSeen = 15 * time.Minute
	// simSlowAfter is when a forwarder becomes slow: the detectors know the machine already.
	simSlowAfter = 10 * time.Second
	// simSlowEvery is how long after one forwarder the next becomes slow, simSlowMost how many do: nobody has looked
	// after a machine on which that many are.
	simSlowEvery = 20 * time.Minute
	simSlowMost  = 3
)

// startSimulation makes a machine of TaihuLight's published size. It speaks to the daemon as an
// agent does, for all its nodes over one stream.
func (d *demo) startSimulation(ctx context.Context) (what string, err error) {
	size := simmachine.WorkingDay(1)
	m, err := simmachine.New(size)
	if err != nil {
		return "", err
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
	d.conf.Table("forwarder")["peak_bytes_per_sec"] = size.ForwarderBytesPerSec
	limits["cn_peak_bw"] = size.ComputeBytesPerSec
	d.conf.Table("slurm")["jobs"] = []string{"cat", filepath.Join(dir, jobsFile)}
	if err := livePast(ctx, m, filepath.Join(dir, "state")); err != nil {
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
		runner.Before = slowOnes(d.slowAfter, d.log)
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
