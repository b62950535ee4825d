package daemontest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"fairway/cmd/lab/testbed"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
)

// program is a job of two nodes: what each of them runs after it has printed the forwarder that its mount uses. It runs
// on until ended is called.
type program struct {
	name   string
	nodes  []topology.NodeID
	script string
}

// gate is the file that ends a job of a name.
func (s *slurmSite) gate(name string) string { return filepath.Join(s.tb.LogDir(), name+".may.end") }

// submit has Slurm start a program.
func (s *slurmSite) submit(p program) topology.JobID {
	s.Helper()
	if err := os.Remove(s.gate(p.name)); err != nil && !os.IsNotExist(err) {
		s.Fatal(err)
	}
	socket := strings.ReplaceAll(s.tb.MountSocket("cn000"), "cn000", "$(hostname)")
	script := fmt.Sprintf("%s status %s | grep '\"forwarder\"'; %s || exit 1; "+
		"until [ -e %s ]; do sleep 0.1; done", binary(s.T, "fairway-mount"), socket, p.script, s.gate(p.name))
	id, err := s.tb.Submit(s.Context(), testbed.Job{Name: p.name, Nodes: len(p.nodes), NodeList: p.nodes,
		Argv: []string{"sh", "-c", script}})
	if err != nil {
		s.Fatal(err)
	}
	return id
}

// ended has a job end, waits for it and returns what it printed.
func (s *slurmSite) ended(p program, id topology.JobID) string {
	s.Helper()
	write(s.T, s.gate(p.name), "")
	state, err := s.tb.WaitJob(s.Context(), id)
	out, _ := os.ReadFile(filepath.Join(s.tb.LogDir(), fmt.Sprintf("job.%s.log", id)))
	if err != nil || state != "COMPLETED" {
		s.Fatalf("job %s is %s, %v:\n%s", id, state, err, out)
	}
	return string(out)
}

// decided is what was decided on a running job: the action, the forwarders, the rules that did not pass with their
// words, and the neighbours that it would disturb or that would disturb it.
func (s *slurmSite) decided(id topology.JobID) string {
	s.Helper()
	var v api.JobView
	for end := time.Now().Add(aWhile); v.Decision == nil; time.Sleep(50 * time.Millisecond) {
		if err := s.d.ask("/api/v1/jobs/"+string(id), "", nil, &v); time.Now().After(end) {
			s.Fatalf("job %s: nothing was decided: %+v, %v", id, v, err)
		}
	}
	d := v.Decision.Decision
	text := fmt.Sprintf("%s %v", d.Action, d.Forwarders)
	for _, r := range d.Reasons {
		if !r.Passed {
			text += ", not " + r.Rule + ": " + r.Text
		}
	}
	for _, i := range d.Interference {
		text += fmt.Sprintf(", job %s: %s", i.Job, strings.Join(i.Why, " and "))
	}
	return text
}

// received are the bytes that a gateway's ganesha has received of a compute node, as its own counter has them.
func (s *slurmSite) received(gateway topology.ForwarderID, of topology.NodeID) (bytes uint64) {
	s.Helper()
	conn, err := dbus.Connect("unix:path=" + dbus.EscapeBusAddressValue(s.tb.BusSocket(gateway.Node())))
	if err != nil {
		s.Fatal(err)
	}
	defer conn.Close()
	addr, err := s.tb.Exec(s.Context(), of, "hostname", "-I")
	if err != nil {
		s.Fatal(err)
	}
	manager := conn.Object("org.ganesha.nfsd", "/org/ganesha/nfsd/ClientMgr")
	var call *dbus.Call
	// It serves before it is on its bus.
	wait(s.T, fmt.Sprintf("the ganesha of %s answers for %s", gateway, of), func() bool {
		call = manager.CallWithContext(s.Context(), "org.ganesha.nfsd.clientstats.Get9pTrans", 0,
			"::ffff:"+strings.TrimSpace(string(addr)))
		return call.Err == nil
	})
	if served, ok := call.Body[0].(bool); ok && !served {
		return 0 // it has never been a client
	}
	row, ok := call.Body[3].([]any)
	if !ok || len(row) < 6 {
		s.Fatalf("%s of %s: %v", gateway, of, call.Body)
	}
	return row[0].(uint64)
}

// TestSlurmJobsAreGrantedGateways: nfs-ganesha gateways under a real Slurm, two for the compute nodes and two that
// nobody uses, on two back ends. Of first runs nothing is known, and nothing is granted. The second run of a large
// job is granted the two that nobody uses before it begins; what it writes crosses them alone, by ganesha's own
// counters, and at its end everything is as before. The second run of a small one keeps its gateways, and the reason
// says why. A job of one file that starts beside another is isolated, for the mounts report how it shared its file.
func TestSlurmJobsAreGrantedGateways(t *testing.T) {
	t.Parallel() // it mostly waits
	const mib = 1 << 20
	s := newSlurmSite(t, testbed.Config{Layer: testbed.NFS, Forwarders: 4, Mapping: topology.Mapping{
		"cn000": "fwd000", "cn001": "fwd001", "cn002": "fwd000", "cn003": "fwd001"}},
		"v_min_bytes = 2e7\nn_min = 1.0\nf = 0.5\n")
	defaults := s.tb.Machine().Default
	one, other := []topology.NodeID{"cn000", "cn001"}, []topology.NodeID{"cn002", "cn003"}
	large := program{"large", one, "for i in 1 2; do dd if=/dev/zero of=/pfs/large.$(hostname).$i bs=256k count=80 " +
		"2>/dev/null || exit 1; sleep 1; done"}
	small := program{"small", other, "dd if=/dev/zero of=/pfs/small.$(hostname) bs=256k count=16 2>/dev/null"}
	shared := program{"shared", one, "dd if=/dev/zero of=/pfs/shared bs=256k count=16 conv=notrunc " +
		"seek=$((SLURM_PROCID * 16)) 2>/dev/null; sleep 1"} // so that a second reports the file as open

	for _, first := range []struct {
		program
		mode topology.Mode
	}{{large, topology.ModeNN}, {small, topology.ModeNN}, {shared, topology.ModeN1}} {
		id := s.submit(first.program)
		if got := s.decided(id); !strings.HasPrefix(got, "default [fwd000 fwd001], not history: runs known") {
			t.Errorf("first run of %s: %s", first.name, got)
		}
		s.ended(first.program, id)
		if p := s.profile(id).Profile; p.Mode != first.mode || p.IONodes != 2 || p.MetaQueue == nil {
			t.Errorf("the profile of %s, %s: %+v", first.name, first.mode, p)
		}
	}

	gateways := []topology.ForwarderID{"fwd000", "fwd001", "fwd002", "fwd003"}
	before := map[string]uint64{}
	for _, g := range gateways {
		for _, n := range one {
			before[string(g)+" of "+string(n)] = s.received(g, n)
		}
	}
	second := s.submit(large)
	if got := s.decided(second); !strings.HasPrefix(got, "upgrade [fwd002 fwd003]") {
		t.Errorf("the second run of the large job: %s", got)
	}
	if out := s.ended(large, second); strings.Count(out, `"fwd002"`) != 1 || strings.Count(out, `"fwd003"`) != 1 {
		t.Errorf("the second run of the large job began on: %s", out)
	}
	wantPlan(t, s.d, "P-000001", remap.Restored)
	wantObserved(t, s.d, defaults)
	granted := map[topology.NodeID]topology.ForwarderID{"cn000": "fwd002", "cn001": "fwd003"}
	for _, g := range gateways {
		for _, n := range one {
			// A mount's leaving and coming back are a few hundred bytes.
			const written, some = 40 * mib, mib / 16
			switch got := s.received(g, n) - before[string(g)+" of "+string(n)]; {
			case granted[n] == g && got < written:
				t.Errorf("%s received %d bytes of %s, which wrote %d", g, got, n, written)
			case granted[n] != g && got > some:
				t.Errorf("%s received %d bytes of %s, which was given %s", g, got, n, granted[n])
			}
		}
	}

	s.idle("fwd002", "fwd003")
	neighbour := s.submit(small)
	if got := s.decided(neighbour); got != "default [fwd000 fwd001], not volume: last run moved 8.39 MB (more than "+
		"20 MB needed)" {
		t.Errorf("the second run of a small job: %s", got)
	}
	isolated := s.submit(shared)
	if got, want := s.decided(isolated), fmt.Sprintf("isolate [fwd002 fwd003], not volume: last run moved 8.39 MB "+
		"(more than 20 MB needed), not interference: interference likely with 1 of 1 neighbours on the default "+
		"forwarders, job %s: this job is N-1", neighbour); got != want {
		t.Errorf("a job of one file beside another: %s, want %s", got, want)
	}
	if out := s.ended(shared, isolated); strings.Count(out, `"fwd002"`) != 1 || strings.Count(out, `"fwd003"`) != 1 {
		t.Errorf("the isolated job began on: %s", out)
	}
	wantPlan(t, s.d, "P-000002", remap.Restored)
	wantObserved(t, s.d, defaults)
	s.ended(small, neighbour)
}

// idle waits until forwarders are seen to carry nothing.
func (s *slurmSite) idle(forwarders ...topology.NodeID) {
	s.Helper()
	for _, f := range forwarders {
		wantNode(s.T, s.d, string(f), func(n api.NodeView) bool { return n.State == remap.ForwarderIdle })
	}
}
