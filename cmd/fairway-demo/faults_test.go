package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/cmd/lab/testbed"
	"fairway/collector/topology"
	"fairway/webui/client"
)

// realFault is injected into a node of the demo. The node and the class must be named rightly; a fault of the whole
// node may show in any class that its jobs use.
type realFault struct {
	name  string
	fault testbed.Fault
	class string // the only right one; empty: any
	kind  anomaly.Kind
}

// realFaults are those of forwarders that have the file system.
var realFaults = []realFault{
	{"slow-link-10", testbed.Fault{Kind: testbed.SlowLink, Node: "fwd000", Amount: demoLinkBytesPerSec / 10}, "",
		anomaly.FailSlow},
	{"slow-link-50", testbed.Fault{Kind: testbed.SlowLink, Node: "fwd000", Amount: demoLinkBytesPerSec / 2}, "",
		anomaly.FailSlow},
	{"packet-loss", testbed.Fault{Kind: testbed.PacketLoss, Node: "fwd000", Amount: 0.05}, "", anomaly.FailSlow},
	{"starved-cpu", testbed.Fault{Kind: testbed.StarvedCPU, Node: "fwd000", Amount: 0.02}, "", anomaly.FailSlow},
	{"stop-go-10", testbed.Fault{Kind: testbed.StopGo, Node: "fwd000", Amount: 0.9}, "", anomaly.FailSlow},
	{"stop-go-50", testbed.Fault{Kind: testbed.StopGo, Node: "fwd000", Amount: 0.5}, "", anomaly.FailSlow},
	{"slow-data", testbed.Fault{Kind: testbed.SlowData, Node: "fwd001", Amount: 0.02}, "", anomaly.FailSlow},
	{"slow-meta", testbed.Fault{Kind: testbed.SlowMeta, Node: "fwd002", Amount: 0.01}, "meta", anomaly.FailSlow},
	{"kill", testbed.Fault{Kind: testbed.Kill, Node: "fwd000"}, "", anomaly.ForwarderSilent},
	{"hang", testbed.Fault{Kind: testbed.Hang, Node: "fwd000"}, "", anomaly.ForwarderSilent},
}

// gatewayFaults are those of gateways and of a back end, which must not be taken for each other's.
var gatewayFaults = []realFault{
	{"gateway-slow-link-10", testbed.Fault{Kind: testbed.SlowLink, Node: "fwd000", Amount: demoLinkBytesPerSec / 10},
		"",
		anomaly.FailSlow},
	{"gateway-starved-cpu", testbed.Fault{Kind: testbed.StarvedCPU, Node: "fwd000", Amount: 0.02}, "",
		anomaly.FailSlow},
	{"gateway-stop-go", testbed.Fault{Kind: testbed.StopGo, Node: "fwd000", Amount: 0.9}, "", anomaly.FailSlow},
	{"gateway-slow-send", testbed.Fault{Kind: testbed.SlowSend, Node: "fwd001", Amount: 0.002}, "", anomaly.FailSlow},
	{"gateway-kill", testbed.Fault{Kind: testbed.Kill, Node: "fwd000"}, "", anomaly.ForwarderSilent},
	{"gateway-hang", testbed.Fault{Kind: testbed.Hang, Node: "fwd000"}, "", anomaly.ForwarderSilent},
	{"backend-slow-data", testbed.Fault{Kind: testbed.SlowData, Node: "be000", Amount: 0.02}, "", anomaly.TargetSlow},
	{"backend-slow-meta", testbed.Fault{Kind: testbed.SlowMeta, Node: "be000", Amount: 0.01}, "meta",
		anomaly.TargetSlow},
	{"backend-stop-go", testbed.Fault{Kind: testbed.StopGo, Node: "be000", Amount: 0.8}, "", anomaly.TargetSlow},
	{"backend-slow-link", testbed.Fault{Kind: testbed.SlowLink, Node: "be000", Amount: demoLinkBytesPerSec / 10}, "",
		anomaly.TargetSlow},
}

const (
	faultWarmUp  = 75 * time.Second  // the detectors learn what is usual
	learntWarmUp = 20 * time.Second  // they know it already
	faultWithin  = 180 * time.Second // to be confirmed
	returnWithin = 5 * time.Minute   // to be returned once the fault is over
)

// TestRealFaultsAreFound injects every kind of fault of the testbed under the demo's jobs, through real
// agents and mounts, and wants the right forwarder confirmed, nobody else accused, and the forwarder
// returned after the fault; -short does not wait for that. -run TestRealFaultsAreFound/slow-data chooses one.
// FAIRWAY_LEARNT names a saved state of the detectors, of an earlier run, from which they go on.
func TestRealFaultsAreFound(t *testing.T) { findFaults(t, testbed.Diod, realFaults) }

// TestRealGatewayFaultsAreFound does so on nfs-ganesha gateways and their back ends: a sick back end must be named
// itself, none of its gateways be accused, and no plan lead from one of them to another.
func TestRealGatewayFaultsAreFound(t *testing.T) { findFaults(t, testbed.NFS, gatewayFaults) }

func findFaults(t *testing.T, layer testbed.Layer, faults []realFault) {
	t.Helper()
	if why := cannotBuildNodes(layer); why != "" {
		t.Skipf("skipped: needs %s", why)
	}
	if os.Getenv("FAIRWAY_LONG") != "1" {
		t.Skip("skipped: takes five minutes a fault; set FAIRWAY_LONG=1")
	}
	table := []string{
		"fault          | suspect | confirmed | of load | class | innocent: suspected | confirmed | returned | what " +
			"it says"}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			d := newFaultDemo(t, layer)
			d.watch(d.warmUp, func() bool { return false })
			if len(d.convicted) > 0 {
				t.Errorf("accused before any fault: %v", d.convicted)
			}
			if err := d.tb.Inject(t.Context(), f.fault); errors.Is(err, errors.ErrUnsupported) {
				t.Skipf("skipped: %v", err)
			} else if err != nil {
				t.Fatal(err)
			}
			d.begin(f.fault.Node, f.kind)
			d.watch(faultWithin, func() bool { return !d.confirmed.IsZero() })
			if d.confirmed.IsZero() {
				t.Error("it was not confirmed")
			} else if f.class != "" && d.newest.Class != f.class {
				t.Errorf("class %q, want %q", d.newest.Class, f.class)
			} else {
				d.checkShown()
			}
			d.checkPlans()
			if err := d.tb.Clear(t.Context(), f.fault); err != nil {
				t.Fatal(err)
			}
			returned := "-"
			if !testing.Short() && f.kind != anomaly.TargetSlow {
				returned = d.awaitReturn()
			}
			if len(d.convicted) > 0 {
				t.Errorf("innocent ones accused: %v", d.convicted)
			}
			row := fmt.Sprintf("%-14s | %7s | %9s | %5d s | %-5s | %9d | %9d | %8s | %s", f.name, d.since(d.suspect),
				d.since(d.confirmed), d.loadAtConfirm,
				d.newest.Class, len(d.accused), len(d.convicted), returned, d.words)
			t.Log(row)
			table = append(table, row)
		})
	}
	load, _ := os.ReadFile("/proc/loadavg")
	t.Logf("machine's load %s\n%s", strings.TrimSpace(string(load)), strings.Join(table, "\n"))
}

// TestRealLayerWithoutFaultsIsNotAccused runs the demo's mixed load without any fault for FAIRWAY_CALM
// (such as 1h).
func TestRealLayerWithoutFaultsIsNotAccused(t *testing.T) {
	layer := testbed.Layer(cmp.Or(os.Getenv("FAIRWAY_LAYER"), string(testbed.Diod)))
	if why := cannotBuildNodes(layer); why != "" {
		t.Skipf("skipped: needs %s", why)
	}
	long, err := time.ParseDuration(os.Getenv("FAIRWAY_CALM"))
	if err != nil {
		t.Skip("skipped: takes long; set FAIRWAY_CALM=1h")
	}
	d := newFaultDemo(t, layer)
	d.watch(long, func() bool { return false })
	t.Logf("%s under mixed load: %d suspected, %d confirmed", long, len(d.accused), len(d.convicted))
	if len(d.convicted) > 0 {
		t.Errorf("healthy forwarders were accused: %v", d.convicted)
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.0f s", d.Seconds()) }

// faultDemo is the demo and what its findings have reported.
type faultDemo struct {
	*demo
	t         *testing.T
	api       *client.Client
	accused   []string // findings of everybody but the faulty forwarder, suspects too
	convicted []string // of these the confirmed
	slow      topology.NodeID
	kind      anomaly.Kind
	begun     time.Time
	suspect   time.Time
	confirmed time.Time
	// load counts the seconds in which the faulty forwarder was at work since the fault began.
	load, loadAtConfirm int
	newest              anomaly.Finding
	warmUp              time.Duration
	words               string // as it was confirmed
}

func newFaultDemo(t *testing.T, layer testbed.Layer) *faultDemo {
	program := built(t, "fairway-demo")
	d, err := newDemo(options{layer: string(layer), forwarders: 4, computeNodes: 8, noConsole: true,
		http:     "127.0.0.1:0",
		programs: filepath.Dir(program)})
	if err != nil {
		t.Fatal(err)
	}
	d.self = program
	d.conf.Table("findings")["trial"] = "1m" // else the return takes ten
	keep := os.Getenv("FAIRWAY_KEEP")        // a folder in which the store and the journal remain
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(func() {
		stop()
		if err := d.close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := d.startTestbed(ctx); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(d.dir, "state")
	if keep != "" {
		state = filepath.Join(keep, filepath.Base(t.Name()))
		d.conf["state_dir"] = state
	}
	warmUp := faultWarmUp
	if learnt := os.Getenv("FAIRWAY_LEARNT"); learnt != "" {
		text, err := os.ReadFile(learnt)
		if err == nil {
			err = errors.Join(os.MkdirAll(state, 0o700), os.WriteFile(filepath.Join(state, "detectors"), text, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
		warmUp = learntWarmUp
	}
	if err := d.startDaemon(ctx); err != nil {
		t.Fatal(err)
	}
	for _, begin := range d.senses {
		if err := begin(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.awaitFirstSecond(ctx); err != nil {
		t.Fatal(err)
	}
	c, err := client.New("unix:"+d.socket, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &faultDemo{demo: d, t: t, api: c, warmUp: warmUp}
}

// checkShown wants the confirmed finding in what the operator's command prints.
func (d *faultDemo) checkShown() {
	text, err := exec.CommandContext(d.t.Context(), built(d.t, "fairway"), "--addr", "unix:"+d.socket,
		"--json", "findings").Output()
	var list []anomaly.Finding
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if !slices.ContainsFunc(list, func(f anomaly.Finding) bool { return f.ID == d.newest.ID && f.Node == d.slow }) {
		d.t.Errorf("fairway findings does not show %s of %s (%v):\n%s", d.newest.ID, d.slow, err, text)
	}
}

// checkPlans wants no plan that moves a node to a forwarder behind the faulty back end.
func (d *faultDemo) checkPlans() {
	_, of := d.tb.BackEnds()
	plans, err := d.api.Plans(d.t.Context())
	if err != nil {
		d.t.Error(err)
	}
	for _, row := range plans {
		p, err := d.api.Plan(d.t.Context(), row.ID)
		if err != nil {
			d.t.Error(err)
		}
		for _, m := range p.Moves {
			if p.Created.After(d.begun) && of[m.To] == d.slow {
				d.t.Errorf("plan %s moves %s to %s, which is in front of the slow %s", p.ID, m.Node, m.To, d.slow)
			}
		}
	}
}

// awaitReturn waits until the fault's finding is closed, and says how long that took.
func (d *faultDemo) awaitReturn() string {
	over := time.Now()
	d.watch(returnWithin, func() bool { return !d.newest.Open() })
	if d.newest.ID != "" && !d.newest.Open() {
		return seconds(time.Since(over))
	}
	d.t.Errorf("it was not returned in %s: %s, %s", returnWithin, d.newest.State, d.newest.Why)
	return "-"
}

// begin says that a forwarder is faulty from now on.
func (d *faultDemo) begin(slow topology.NodeID, kind anomaly.Kind) {
	d.slow, d.kind, d.begun = slow, kind, time.Now()
}

func (d *faultDemo) since(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return seconds(at.Sub(d.begun))
}

// watch looks at the findings once a second until done, or for that long.
func (d *faultDemo) watch(within time.Duration, done func() bool) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for end := time.Now().Add(within); time.Now().Before(end) && !done(); {
		select {
		case <-d.t.Context().Done():
			return
		case now := <-tick.C:
			d.look(now)
		}
	}
}

func (d *faultDemo) look(now time.Time) {
	if d.slow != "" {
		n, err := d.api.Node(d.t.Context(), d.slow)
		most := max(n.Values["read_ops"], n.Values["write_ops"], n.Values["meta_ops"])
		if err == nil && most >= 2 && now.Sub(n.LastSeen) < 3*time.Second {
			d.load++
		}
	}
	findings, err := d.api.Findings(d.t.Context())
	if err != nil {
		d.t.Logf("the findings are not known at %s: %v", now.Format("15:04:05"), err)
	}
	for _, f := range findings {
		switch {
		case !f.Kind.Accuses() && f.Kind != anomaly.TargetSlow:
		case f.Node == d.slow && f.Changed.After(d.begun) && (f.Kind == d.kind || d.newest.ID == ""):
			d.newest = f
			if d.suspect.IsZero() {
				d.suspect = now
			}
			if f.State == anomaly.Confirmed && d.confirmed.IsZero() && f.Kind == d.kind {
				d.confirmed, d.loadAtConfirm, d.words = now, d.load, f.Sentence
			}
		case f.Node != d.slow || d.begun.IsZero():
			what := fmt.Sprintf("%s %s %s: %s", f.Node, f.Kind, f.ID, f.Sentence)
			lists := []*[]string{&d.accused}
			if f.State == anomaly.Confirmed || f.State == anomaly.Excluded || f.State == anomaly.Probation {
				lists = append(lists, &d.convicted)
			}
			for _, list := range lists {
				if slices.ContainsFunc(*list, func(s string) bool { return strings.Contains(s, f.ID) }) {
					continue
				}
				*list = append(*list, what)
				d.t.Logf("%s at %s: %s", f.State, now.Format("15:04:05"), what)
			}
		}
	}
}
