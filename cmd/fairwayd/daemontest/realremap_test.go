package daemontest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/testbed"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
)

// TestRemapOnTheRealForwardingLayer moves two compute nodes of a real little cluster to another
// forwarder while they write, through the API, the daemon, the agents and the mounts; kills the
// daemon; and takes the move back. Nobody's word counts but what the collectors observe.
func TestRemapOnTheRealForwardingLayer(t *testing.T) {
	t.Parallel() // it mostly waits
	remapOn(t, testbed.Config{})
}

// TestRemapBetweenGateways is the same on nfs-ganesha gateways, from one in front of a back end to one in front of
// another.
func TestRemapBetweenGateways(t *testing.T) {
	t.Parallel()
	remapOn(t, testbed.Config{Layer: testbed.NFS})
}

func remapOn(t *testing.T, cfg testbed.Config) {
	t.Helper()
	tb, d := newRealLayer(t, cfg)
	wantObserved(t, d, topology.Mapping{"cn000": "fwd000", "cn001": "fwd000", "cn002": "fwd001", "cn003": "fwd001"})
	wantReporting(t, d, "fwd000", "fwd001")
	ctx, stop := context.WithTimeout(t.Context(), 60*time.Second)
	defer stop()
	written := make(chan error, 1)
	go func() {
		out, err := tb.Exec(ctx, "cn000", "sh", "-c",
			"for i in 1 2 3 4 5 6 7 8; do dd if=/dev/urandom of=/pfs/part$i bs=256k count=40 2>&1 || exit 1; sleep "+
				"0.5; done; cat /pfs/part* | wc -c")
		if err == nil && !strings.Contains(string(out), fmt.Sprint(8*40*256*1024)) {
			err = errors.New("not all was read back")
		}
		if err != nil {
			err = fmt.Errorf("%w; the program printed %.2000s", err, out)
		}
		written <- err
	}()
	v := decide(t, d, "", api.ManualRemap{Nodes: []topology.NodeID{"cn000", "cn001"}, To: "fwd001",
		Reason: "proof on the real layer"})
	if v.MayApprove != "" {
		t.Fatalf("the plan cannot be approved: %s; checks %+v", v.MayApprove, v.Checks)
	}
	decide(t, d, v.ID+"/approve", api.Decision{PreviewHash: v.PreviewHash, Reason: "proof on the real layer"})
	wantPlan(t, d, v.ID, remap.Verified)
	wantObserved(t, d, topology.Mapping{"cn000": "fwd001", "cn001": "fwd001", "cn002": "fwd001", "cn003": "fwd001"})

	d.kill()
	d.start()
	wantObserved(t, d, topology.Mapping{"cn000": "fwd001", "cn001": "fwd001", "cn002": "fwd001", "cn003": "fwd001"})
	decide(t, d, v.ID+"/rollback", api.Decision{Reason: "the proof is done now"})
	wantPlan(t, d, v.ID, remap.RolledBack)
	wantObserved(t, d, topology.Mapping{"cn000": "fwd000", "cn001": "fwd000", "cn002": "fwd001", "cn003": "fwd001"})
	if err := <-written; err != nil {
		t.Errorf("the job on cn000: %v", err)
	}
}

// newRealLayer starts a testbed of two forwarders and four nodes with mounts and agents, and a daemon that they report
// to.
func newRealLayer(t *testing.T, cfg testbed.Config) (*testbed.Testbed, *realDaemon) {
	t.Helper()
	cfg.Forwarders, cfg.ComputeNodes = 2, 4
	return newRealSite(t, cfg, "self_approval = true\ntwo_persons = false\n")
}

// newRealSite is newRealLayer of any size. desk is what the daemon's settings have in that table, and after it; ATTACH
// there is the file system's attach name.
func newRealSite(t *testing.T, cfg testbed.Config, desk string) (*testbed.Testbed, *realDaemon) {
	t.Helper()
	cfg.MountProgram = binary(t, "fairway-mount")
	return newSiteOf(t, cfg, desk, binary(t, "fairway-agent"))
}

// newSiteOf is newRealSite with programs of the caller's.
func newSiteOf(t *testing.T, cfg testbed.Config, desk, agent string) (*testbed.Testbed, *realDaemon) {
	t.Helper()
	if missing := testbed.Missing(cfg); len(missing) > 0 {
		t.Skipf("skipped: not installed: %s", strings.Join(missing, " "))
	}
	if os.Geteuid() != 0 {
		t.Skip("skipped: namespaces need root")
	}
	tb, err := testbed.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tb.Close(); err != nil {
			t.Error(err)
		}
	})
	l, err := net.Listen("tcp", net.JoinHostPort(tb.HostAddr().String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	agents := l.Addr().String()
	l.Close()
	var conf strings.Builder
	conf.WriteString("[desk]\n" + strings.ReplaceAll(desk, "ATTACH", tb.Attach()) + "[driver]\nkind = \"agents\"\n")
	for _, n := range tb.Machine().Nodes {
		fmt.Fprintf(&conf, "[[node]]\nid = %q\nrole = %q\naddr = %q\n", n.ID, n.Role, n.Addr)
	}
	d := newRealDaemonAt(t, agents, conf.String())
	secret := filepath.Join(t.TempDir(), "token")
	write(t, secret, agentSecret)
	err = tb.StartAgents(t.Context(), testbed.Agents{Program: agent, DaemonURL: "ws://" + agents,
		TokenFile: secret})
	if err != nil {
		t.Fatal(err)
	}
	return tb, d
}

// decide sends one write about plans and returns the plan.
func decide(t *testing.T, d *realDaemon, path string, body any) (v api.PlanView) {
	t.Helper()
	path = strings.TrimSuffix("/api/v1/plans/"+path, "/")
	if err := d.ask(path, path, body, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func wantPlan(t *testing.T, d *realDaemon, id string, want remap.PlanState) {
	t.Helper()
	var v api.PlanView
	for end := time.Now().Add(aWhile); v.State != want; time.Sleep(50 * time.Millisecond) {
		if err := d.ask("/api/v1/plans/"+id, "", nil, &v); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(end) || slices.Contains([]remap.PlanState{remap.Partial, remap.Failed}, v.State) {
			t.Fatalf("plan %s is %s (%s), want %s; results %+v", id, v.State, v.Error, want, v.Results)
		}
	}
}

// wantReporting waits until it is known what those forwarders move: without that nobody may move nodes to them.
func wantReporting(t *testing.T, d *realDaemon, forwarders ...topology.NodeID) {
	t.Helper()
	for _, f := range forwarders {
		wantNode(t, d, string(f), func(n api.NodeView) bool {
			return n.State != remap.ForwarderStale && n.State != remap.ForwarderUnknown && !n.LastSeen.IsZero()
		})
	}
}

func wantObserved(t *testing.T, d *realDaemon, want topology.Mapping) {
	t.Helper()
	var m api.MachineView
	for end := time.Now().Add(aWhile); fmt.Sprint(m.Observed) != fmt.Sprint(want); time.Sleep(50 * time.Millisecond) {
		if err := d.ask("/api/v1/machine", "", nil, &m); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(end) {
			t.Fatalf("observed mapping is %v, want %v", m.Observed, want)
		}
	}
}
