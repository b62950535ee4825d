package daemontest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairway/cmd/lab/testbed"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
)

// slurmSite is a real little cluster with Slurm whose controller runs fairway's hooks.
type slurmSite struct {
	*testing.T
	tb *testbed.Testbed
	d  *realDaemon
}

// newSlurmSite starts a forwarding layer with four compute nodes; dispatch is that section of the configuration.
func newSlurmSite(t *testing.T, cfg testbed.Config, dispatch string) *slurmSite {
	t.Helper()
	dir := t.TempDir()
	cfg.ComputeNodes, cfg.Slurm = 4, true
	if missing := testbed.Missing(cfg); len(missing) > 0 {
		t.Skipf("skipped: not installed: %s", strings.Join(missing, " "))
	}
	if os.Geteuid() != 0 {
		t.Skip("skipped: namespaces need root")
	}
	cfg.MountProgram = binary(t, "fairway-mount")
	cfg.Hooks = map[string][]string{}
	for key, verb := range map[string]string{"PrologSlurmctld": "dispatch", "EpilogSlurmctld": "end"} {
		cfg.Hooks[key] = []string{"sh", "-c",
			`read socket < "$1"/socket; exec "$0" hook "$2" --system slurm --addr "unix:$socket"`,
			binary(t, "fairway"), dir, verb}
	}
	tb, err := testbed.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(filepath.Join(tb.LogDir(), "hooks.log"))
			t.Logf("the hooks printed:\n%s", text)
		}
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
	conf.WriteString("[desk]\nmode = \"auto\"\nplans_per_minute = 100\n[driver]\nkind = \"agents\"\n" +
		fmt.Sprintf("[slurm]\njobs = [\"%s\"]\nevery = \"10s\"\n", strings.Join(tb.SlurmArgv("squeue", "--json"),
			`", "`)) +
		"[dispatch]\n" + dispatch)
	for _, n := range tb.Machine().Nodes {
		fmt.Fprintf(&conf, "[[node]]\nid = %q\nrole = %q\naddr = %q\n", n.ID, n.Role, n.Addr)
	}
	conf.WriteString("[default_mapping]\n")
	for n, f := range cfg.Mapping {
		fmt.Fprintf(&conf, "%s = %q\n", n, f)
	}
	d := newRealDaemonAt(t, agents, conf.String())
	write(t, filepath.Join(dir, "socket"), d.socket+"\n")
	secret := filepath.Join(t.TempDir(), "token")
	write(t, secret, agentSecret)
	err = tb.StartAgents(t.Context(), testbed.Agents{Program: binary(t, "fairway-agent"), DaemonURL: "ws://" + agents,
		TokenFile: secret})
	if err != nil {
		t.Fatal(err)
	}
	wantObserved(t, d, cfg.Mapping)
	return &slurmSite{t, tb, d}
}

// run submits a job that first says which forwarder its mount uses and then writes so often; it returns the
// job and what it printed, and waits for its end.
func (s *slurmSite) run(name string, writes int) (id topology.JobID, printed string) {
	s.Helper()
	socket := strings.ReplaceAll(s.tb.MountSocket("cn000"), "cn000", "$(hostname)")
	script := fmt.Sprintf(
		"%s status %s | grep '\"forwarder\"'; for i in $(seq %d); do dd if=/dev/zero "+
			"of=/pfs/%s.$(hostname).$i bs=256k count=80 2>/dev/null || exit 1; sleep 1; done",
		binary(s.T, "fairway-mount"), socket, writes, name)
	id, err := s.tb.Submit(s.Context(), testbed.Job{Name: name, Nodes: 2, NodeList: []topology.NodeID{"cn000", "cn001"},
		Argv: []string{"sh", "-c", script}})
	if err != nil {
		s.Fatal(err)
	}
	state, err := s.tb.WaitJob(s.Context(), id)
	out, _ := os.ReadFile(filepath.Join(s.tb.LogDir(), fmt.Sprintf("job.%s.log", id)))
	if err != nil || state != "COMPLETED" {
		s.Fatalf("job %s (%s) is %s, %v:\n%s", id, name, state, err, out)
	}
	return id, string(out)
}

// profile waits for a job's profile.
func (s *slurmSite) profile(id topology.JobID) (v api.ProfileView) {
	s.Helper()
	for end := time.Now().Add(aWhile); v.Profile == nil; time.Sleep(50 * time.Millisecond) {
		if err := s.d.ask("/api/v1/jobs/"+string(id)+"/profile", "", nil, &v); err != nil || time.Now().After(end) {
			s.Fatalf("job %s has no profile: %+v, %v", id, v, err)
		}
	}
	return v
}

// TestSlurmJobIsRemappedBeforeItsFirstIO runs the same job twice under a real Slurm. The first run
// makes its history; the second is given a forwarder of its own before it does any I/O, and at its
// end everything is as before. A third and a fourth run find the daemon hung and dead.
func TestSlurmJobIsRemappedBeforeItsFirstIO(t *testing.T) {
	t.Parallel() // it mostly waits
	// Two forwarders for the compute nodes, and a spare one.
	s := newSlurmSite(t, testbed.Config{Forwarders: 3, Mapping: topology.Mapping{"cn000": "fwd000", "cn001": "fwd000",
		"cn002": "fwd001", "cn003": "fwd001"}}, "v_min_bytes = 2e7\nn_min = 1.0\nf = 1.0\n")
	defaults := s.tb.Machine().Default

	first, out := s.run("writer", 2)
	if strings.Count(out, `"fwd000"`) != 2 {
		t.Errorf("the first run was not on its default forwarder: %s", out)
	}
	v := s.profile(first)
	if v.User != "root" || v.App != "writer" || v.Profile.IONodes != 2 || v.Profile.MetaQueue == nil ||
		v.Profile.WriteBytes < 0.8*80*(1<<20) || v.Profile.WriteBytes > 1.1*80*(1<<20) {
		t.Fatalf("the profile of 2 nodes that wrote 40 MiB each: %+v %+v", v, v.Profile)
	}

	// It wants two of its own: the spare one, and the one whose compute nodes have no job.
	second, out := s.run("writer", 2)
	if strings.Count(out, `"fwd001"`) != 1 || strings.Count(out, `"fwd002"`) != 1 {
		t.Errorf("the second run began on: %s", out)
	}
	var plans []api.PlanRow
	if err := s.d.ask("/api/v1/plans", "", nil, &plans); err != nil || len(plans) != 1 {
		t.Fatalf("plans %+v, %v", plans, err)
	}
	wantPlan(t, s.d, plans[0].ID, remap.Restored)
	wantObserved(t, s.d, defaults)
	if v := s.profile(second); fmt.Sprint(v.Served) != "[fwd002 fwd001]" || v.Profile.WriteBytes < 0.8*80*(1<<20) {
		t.Errorf("the profile of the second run: %+v", v)
	}
	var plan api.PlanView
	for end := time.Now().Add(aWhile); plan.Ledger == nil ||
		plan.Ledger.Measured == nil; time.Sleep(50 * time.Millisecond) {
		if err := s.d.ask("/api/v1/plans/"+plans[0].ID, "", nil, &plan); err != nil || time.Now().After(end) {
			t.Fatalf("the ledger has no measurement: %+v, %v", plan.Ledger, err)
		}
	}
	for _, r := range plan.Results {
		if !r.OK || !r.Verified {
			t.Errorf("a move was not observed: %+v", r)
		}
	}
	if l := plan.Ledger; l.Predicted.IONodes != 2 || l.Measured.IONodes != 2 || l.Action != "upgrade" {
		t.Errorf("ledger %+v", l)
	}

	for _, how := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
		if err := s.d.cmd.Process.Signal(how); err != nil {
			t.Fatal(err)
		}
		if _, out := s.run("writer", 0); strings.Count(out, `"fwd000"`) != 2 {
			t.Errorf("under a daemon after %v the job began on: %s", how, out)
		}
	}
	s.awayAtStartAndEnd()
}

// awayAtStartAndEnd has a job begin while the daemon is dead and end while it is dead again: the daemon
// finds both in squeue.
func (s *slurmSite) awayAtStartAndEnd() {
	s.Helper()
	id, err := s.tb.Submit(s.Context(), testbed.Job{Name: "sleeper", Nodes: 2,
		NodeList: []topology.NodeID{"cn002", "cn003"}, Argv: []string{"sleep", "1000"},
		Options: []string{"--comment=app=LONG"}})
	if err != nil {
		s.Fatal(err)
	}
	known := func(running bool) {
		s.Helper()
		for end := time.Now().Add(aWhile); ; time.Sleep(100 * time.Millisecond) {
			var v api.JobView
			err := s.d.ask("/api/v1/jobs/"+string(id), "", nil, &v)
			if err == nil && v.End.IsZero() == running && v.App == "LONG" && v.NodeCount == 2 {
				return
			}
			if time.Now().After(end) {
				s.Fatalf("job %s, wanted running: %v: %+v %v", id, running, v, err)
			}
		}
	}
	for state := ""; state != "RUNNING"; {
		if state, err = s.tb.JobState(s.Context(), id); err != nil {
			s.Fatal(err)
		}
	}
	s.d.start()
	known(true)
	s.d.kill()
	if _, err := s.tb.Slurm(s.Context(), "scancel", string(id)); err != nil {
		s.Fatal(err)
	}
	if state, err := s.tb.WaitJob(s.Context(), id); err != nil || state != "CANCELLED" {
		s.Fatal(state, err)
	}
	s.d.start()
	known(false)
}
