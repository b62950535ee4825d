package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fairway/cmd/lab/testbed"
	"fairway/cmd/lab/testbed/workload"
	"fairway/collector/topology"
)

const (
	// demoDir holds the daemon's files, in the testbed's directory.
	demoDir = "demo"
	// demoLinkBytesPerSec is a forwarder's peak in the demo, low enough that two processors carry the
	// whole machine and the daemon, the agents and the console beside it.
	demoLinkBytesPerSec = 25e6
	// demoNodeBytesPerSec is what a node of the greediest job of them writes.
	demoNodeBytesPerSec = 11e6
	// demoJobTime is how long a job without a batch system runs: longer than anybody watches.
	demoJobTime = 24 * time.Hour
)

// demoJobs are the programs of the demo, the share of the compute nodes each gets, and how long it runs under
// Slurm before it is submitted again, with a run to judge it by then.
var demoJobs = []struct {
	share float64
	run   time.Duration
	spec  workload.Spec
}{
	{0.375, 2 * time.Minute, workload.Spec{Name: "climate", Mode: workload.FilePerProcess, BurstBytes: 33 << 20,
		BytesPerSec: demoNodeBytesPerSec, Period: 12 * time.Second}},
	{0.25, 4 * time.Minute, workload.Spec{Name: "particles", Mode: workload.SharedFile, BurstBytes: 24 << 20,
		BytesPerSec: 6e6, ReadBack: true, Period: 20 * time.Second}},
	{0.1875, 3 * time.Minute, workload.Spec{Name: "genome", Mode: workload.MetadataStorm, BurstFiles: 300,
		FilesPerSec: 60, Period: 8 * time.Second}},
	{0.125, 5 * time.Minute, workload.Spec{Name: "post", Mode: workload.OneWriter, BurstBytes: 64 << 20,
		BytesPerSec: 16e6, Period: 15 * time.Second}},
}

// startTestbed starts the real forwarding layer; without root, or asked to, the one on loopback.
func (d *demo) startTestbed(ctx context.Context) (what string, err error) {
	swept, err := testbed.Sweep("")
	if err != nil {
		return "", err
	}
	cfg := testbed.Config{Layer: testbed.Layer(d.layer), Forwarders: d.forwarders, ComputeNodes: d.computeNodes,
		Loopback: d.loopback, Mapping: demoMapping(d.forwarders, d.computeNodes)}
	if os.Geteuid() == 0 && !d.loopback {
		cfg.LinkBytesPerSec, cfg.MountProgram, cfg.Slurm = demoLinkBytesPerSec, d.program("fairway-mount"), true
		cfg.Hooks = testbed.Hooks(d.program("fairway"), demoDir)
		if cfg.Queued = queuedForwarders(&cfg); len(cfg.Queued) > 0 {
			cfg.QueueProgram = d.program("fairway-queue")
		}
	}
	scheduler := ""
	if missing := testbed.Missing(cfg); len(missing) > 0 {
		cfg.Slurm = false
		scheduler = fmt.Sprintf(" without a batch system (not installed: %s)", strings.Join(missing, " "))
	} else if cfg.Slurm {
		scheduler = " under Slurm"
	}
	tb, err := testbed.Start(ctx, cfg)
	if err != nil {
		return "", err
	}
	d.tb = tb
	d.atEnd(tb.Close)
	m := tb.Machine()
	if d.fault == "" {
		d.fault = d.ownFault(tb)
	}
	if _, err := parseFault(d.fault, m); err != nil {
		return "", err
	}
	// Beside the nodes' folders: it goes with the testbed.
	dir := filepath.Join(filepath.Dir(tb.LogDir()), demoDir)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	if err := d.prepare(dir); err != nil {
		return "", err
	}
	d.conf["name"], d.conf["node"], d.conf["default_mapping"] = "demo", m.Nodes, m.Default
	limits := d.conf.Table("dispatch") // a job of the demo is a large one there
	d.conf.Table("forwarder")["peak_bytes_per_sec"], limits["cn_peak_bw"] = demoLinkBytesPerSec, demoNodeBytesPerSec
	limits["v_min_bytes"], limits["n_min"] = 200e6, 2
	d.conf.Table("probe")["export"], d.conf.Table("probe")["uid"] = tb.Attach(), os.Geteuid()
	agents := testbed.Agents{Program: d.program("fairway-agent"), TokenFile: filepath.Join(dir, "agents.token")}
	if err := os.WriteFile(agents.TokenFile, []byte(d.token+"\n"), 0o600); err != nil {
		return "", err
	}
	if tb.Root() {
		d.conf.Table("driver")["kind"] = "agents"
		if len(cfg.Queued) > 0 {
			d.conf.Table("queue")["policy"], d.conf.Table("queue")["forwarders"] = "size-fair", cfg.Queued
		}
		d.conf.Table("slurm")["jobs"] = tb.SlurmArgv("squeue", "--json")
		addr := net.JoinHostPort(tb.HostAddr().String(), "7118")
		d.conf.Table("listen")["agents"] = addr
		d.conf.Table("listen")["clear_text"] = true // the bridge is the demo's own
		agents.DaemonURL = "ws://" + addr
		what = fmt.Sprintf("%d forwarders and %d compute nodes run%s", d.forwarders, d.computeNodes, scheduler)
		if servers, _ := tb.BackEnds(); len(servers) > 0 {
			what = fmt.Sprintf("%d nfs-ganesha gateways in front of %d back ends, and %d compute nodes run%s",
				d.forwarders, len(servers), d.computeNodes, scheduler)
		}
	} else {
		agents.DaemonURL = "unix://" + d.socket
		what = fmt.Sprintf("%d forwarders run on loopback (as root there are compute nodes, mounts and Slurm too)",
			d.forwarders)
	}
	if swept > 0 {
		what = fmt.Sprintf("removed what %d killed demos or tests had left; %s", swept, what)
	}
	d.senses = []func(context.Context) error{
		func(ctx context.Context) error { return tb.StartAgents(ctx, agents) },
		func(ctx context.Context) error { return d.startJobs(ctx, tb) },
		func(ctx context.Context) error { d.slowOne(ctx, tb); return nil },
	}
	return what, nil
}

// startJobs submits the jobs, or without a batch system loads the forwarders from this process.
func (d *demo) startJobs(ctx context.Context, tb *testbed.Testbed) error {
	first := 0
	for _, j := range demoJobs {
		nodes := max(1, int(j.share*float64(d.computeNodes)))
		if first+nodes > d.computeNodes {
			break
		}
		s := j.spec
		if d.layer == string(testbed.NFS) { // every request crosses two servers, on the same processors
			s.BytesPerSec /= 2
			s.BurstFiles, s.FilesPerSec = s.BurstFiles/5, s.FilesPerSec/5
		}
		s.BurstBytes, s.BurstFiles = cmp.Or(s.BurstBytes, 1), cmp.Or(s.BurstFiles, 1)
		s.Ranks, s.BlockBytes, s.Duration = nodes, 256<<10, demoJobTime
		if tb.HasSlurm() {
			s.Duration = j.run
		}
		var ids []topology.NodeID
		for i := range nodes {
			ids = append(ids, topology.NodeID(fmt.Sprintf("cn%03d", first+i)))
		}
		first += nodes
		argv := s.Argv(d.self)
		if tb.HasSlurm() {
			argv = append(argv, "--profile", d.logs())
		}
		if err := d.startJob(ctx, tb, s, testbed.Job{Name: s.Name, Nodes: nodes, NodeList: ids,
			Argv: argv}); err != nil {
			return err
		}
	}
	return nil
}

// startJob starts one job in the best way that the testbed has.
func (d *demo) startJob(ctx context.Context, tb *testbed.Testbed, s workload.Spec, j testbed.Job) error {
	switch {
	case tb.HasSlurm():
		id, err := tb.Submit(ctx, j)
		if err == nil {
			d.tasks.Go(func() { d.submitAgain(ctx, tb, id, s.Duration, j) })
		}
		return err
	case tb.Root():
		return tb.Spread(j)
	}
	for r, id := range j.NodeList {
		s.Rank = r
		d.tasks.Go(func() {
			if err := tb.Load(ctx, id, s); err != nil {
				d.log.Error("load", "node", id, "err", err)
			}
		})
	}
	return nil
}

// demoMapping lets consecutive compute nodes share a forwarder and keeps the last forwarder in reserve, to take
// the place of one that becomes slow; nil, for the testbed's own mapping, where there are too few.
func demoMapping(forwarders, computeNodes int) topology.Mapping {
	if forwarders < 4 {
		return nil
	}
	m := topology.Mapping{}
	for i := range computeNodes {
		m[topology.NodeID(fmt.Sprintf("cn%03d", i))] = topology.ForwarderID(fmt.Sprintf("fwd%03d",
			min(i*forwarders/computeNodes, forwarders-2)))
	}
	return m
}

// queuedForwarders have a fairness queue: the last ones in service, on which a program of the demo has one for itself
// and shares the other. There are none where the testbed is too small or has gateways.
func queuedForwarders(c *testbed.Config) []topology.ForwarderID {
	if c.Mapping == nil || c.Layer == testbed.NFS {
		return nil
	}
	return []topology.ForwarderID{
		topology.ForwarderID(fmt.Sprintf("fwd%03d", c.Forwarders-3)),
		topology.ForwarderID(fmt.Sprintf("fwd%03d", c.Forwarders-2))}
}

// tryAgain is how long after a call that the batch system did not answer the next is made.
const tryAgain = 5 * time.Second

// submitAgain submits a job again whenever it has ended, until ctx ends. A batch system on a machine with other work
// sometimes answers too late: the load must not end with that, for nobody would wait for the slow forwarder any more.
func (d *demo) submitAgain(ctx context.Context, tb *testbed.Testbed, id topology.JobID, run time.Duration,
	j testbed.Job) {
	wait := run
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		_, err := tb.WaitJob(ctx, id)
		ended := id
		if err == nil {
			id, err = tb.Submit(ctx, j)
		}
		if wait = run; err != nil {
			if ctx.Err() == nil {
				d.log.Warn("a job is not submitted again yet", "job", j.Name, "err", err)
			}
			wait, id = tryAgain, ended
			continue
		}
		if e := d.keepLog(ctx, ended, j); e != nil && ctx.Err() == nil {
			d.log.Error("the Darshan log of a job was not kept", "job", ended, "err", e)
		}
	}
}

// ownFault is what becomes slow without --fault: a forwarder of the first job. One with the file system has
// slow data calls, as by a sick disk array; a gateway is slow to send, and its back end is well.
func (d *demo) ownFault(tb *testbed.Testbed) string {
	third := topology.NodeID(fmt.Sprintf("cn%03d", min(2, d.computeNodes-1))) // a node of the first job
	kind := testbed.SlowData
	if d.layer == string(testbed.NFS) {
		kind = testbed.SlowSend
	}
	return fmt.Sprintf("%s@%s", kind, tb.Machine().Default[third])
}

// parseFault reads KIND@NODE.
func parseFault(text string, m topology.Machine) (testbed.Fault, error) {
	kind, node, _ := strings.Cut(text, "@")
	n, ok := m.Node(topology.NodeID(node))
	if !slices.Contains(testbed.FaultKinds(), testbed.FaultKind(kind)) || !ok || n.Role == topology.Compute {
		return testbed.Fault{}, fmt.Errorf("fault %q: want KIND@NODE with a kind of %v and a forwarder or back end",
			text, testbed.FaultKinds())
	}
	return testbed.Fault{Kind: testbed.FaultKind(kind), Node: n.ID}, nil
}

// slowNow is what the demo's log says when it has made a node slow: tests compare what the faces say with it.
const slowNow = "one node is slow now"

// slowOne makes one node slow after a while; where the machine cannot do it in that way, by stopping it now and then.
func (d *demo) slowOne(ctx context.Context, tb *testbed.Testbed) {
	if d.slowAfter == 0 {
		return
	}
	f, err := parseFault(d.fault, tb.Machine())
	if err != nil {
		return // startTestbed has refused it
	}
	d.tasks.Go(func() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(d.slowAfter):
		}
		err := tb.Inject(ctx, f)
		if errors.Is(err, errors.ErrUnsupported) {
			d.log.Warn("the slowness is made by stopping the file service", "err", err)
			f.Kind = testbed.StopGo
			err = tb.Inject(ctx, f)
		}
		if err != nil && ctx.Err() == nil {
			d.log.Error("nothing was made slow", "err", err)
			return
		}
		d.log.Info(slowNow, "node", f.Node, "how", f.Kind)
		if d.slowFor == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(d.slowFor):
		}
		if err := tb.Clear(ctx, f); err != nil && ctx.Err() == nil {
			d.log.Error("what was made slow is not well again", "err", err)
		}
	})
}
