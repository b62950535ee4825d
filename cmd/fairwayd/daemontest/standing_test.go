package daemontest

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/dispatch"
	"fairway/tsdb/history"
)

// TestStandingApproval gives and revokes a standing approval with the command, on the real daemon: a
// job's plan is approved at once under it, on record, and waits for a person without it.
func TestStandingApproval(t *testing.T) {
	t.Parallel() // it mostly waits
	conf := "[driver]\nkind = \"agents\"\n[dispatch]\nf = 1.0\nn_min = 1.0\n[default_mapping]\n"
	for i := range 6 {
		conf += fmt.Sprintf("cn%d = \"fwd1\"\n", i)
	}
	for i := range 7 {
		conf += fmt.Sprintf("[[node]]\nid = \"fwd%d\"\nrole = \"forwarder\"\naddr = \"127.0.0.1:%d\"\n", i+1, i+1)
	}
	d := newRealDaemon(t, conf)
	d.kill()
	rememberRun(t, filepath.Join(filepath.Dir(d.conf), "state", "history"))
	d.start()
	var all []*testAgent
	for i := range 6 {
		all = append(all, newAgent(t, d, topology.NodeID(fmt.Sprint("cn", i)), topology.Compute, "fwd1"))
	}
	for i := range 7 {
		all = append(all, newAgent(t, d, topology.NodeID(fmt.Sprint("fwd", i+1)), topology.Forwarder, ""))
	}
	defer everySecond(t, all)()
	mapping := topology.Mapping{}
	for _, a := range all[:6] {
		mapping[a.node] = "fwd1"
	}
	wantObserved(t, d, mapping)
	wantReporting(t, d, "fwd1", "fwd2", "fwd3", "fwd4", "fwd5", "fwd6", "fwd7")

	before := d.dispatch("1", "cn0", "cn1")
	if before.State != remap.Proposed {
		t.Fatalf("without a standing approval: %+v", before)
	}
	d.fairway(0, "no standing approval yet", "APPLICATION", "standing")
	d.fairway(2, "without an application", "needs --app", "standing", "allow", "--reason",
		"agreed with the users")
	d.fairway(2, "for a second", "1m", "standing", "allow", "--app", "ROMS", "--for", "1s", "--reason",
		"agreed with the users")
	d.fairway(5, "one that was not given", "S-0009", "standing", "revoke", "S-0009")
	d.fairway(0, "allow", "S-0001: plans for ROMS of user wei", "standing", "allow", "--app", "ROMS", "--user", "wei",
		"--reason", "agreed with the users")
	var given []remap.Standing
	if err := json.Unmarshal([]byte(d.fairway(0, "list", "S-0001", "standing", "--json")), &given); err != nil ||
		len(given) != 1 || given[0].User != "wei" || time.Until(given[0].Until) < 29*24*time.Hour {
		t.Errorf("given: %+v, %v", given, err)
	}

	covered := d.dispatch("2", "cn2", "cn3")
	if covered.Plan == "" || covered.State == remap.Proposed { // it may be further than approved by now
		t.Errorf("under a standing approval: %+v", covered)
	}
	says := "standing approval S-0001: agreed with the users"
	d.fairway(0, "the plan", "approved by "+given[0].By, "plan", "show", covered.Plan)
	d.fairway(0, "the plan", says, "plan", "show", covered.Plan)
	d.fairway(0, "the audit", says, "audit")
	wantPlan(t, d, covered.Plan, remap.Verified)

	d.fairway(0, "another", "S-0002", "standing", "allow", "--app", "WRF", "--reason", "agreed with the users")
	d.fairway(0, "revoke", "1 standing approval is left", "standing", "revoke", "S-0002", "--reason", "never used")
	d.fairway(0, "revoke", "0 standing approvals are left", "standing", "revoke", "S-0001", "--reason", "they left")
	if after := d.dispatch("3", "cn4", "cn5"); after.State != remap.Proposed {
		t.Errorf("after the revocation: %+v", after)
	}
	if out := d.fairway(0, "the audit", "revoke", "audit"); !strings.Contains(out, "they left") {
		t.Errorf("the audit has no reason of the revocation:\n%s", out)
	}
}

// rememberRun writes a history in which ROMS of wei moved enough on two nodes for more forwarders.
func rememberRun(t *testing.T, path string) {
	t.Helper()
	h, _, err := history.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	queue, end := 1.0, time.Now().Add(-time.Hour)
	err = h.End(history.Run{Job: "0", User: "wei", App: "ROMS", Nodes: 2, Start: end.Add(-time.Hour), End: end,
		Profile: &history.Profile{WriteBytes: 1e12, IONodes: 2, MetaQueue: &queue, Coverage: 1, From: "test"}})
	if err != nil {
		t.Fatal(err)
	}
}

// dispatch reports to the daemon that a job of ROMS of wei is about to start.
func (d *realDaemon) dispatch(job topology.JobID, nodes ...topology.NodeID) (a dispatch.Answer) {
	d.t.Helper()
	if err := d.ask("/api/v1/dispatch", "start"+string(job), dispatch.Request{Job: job, User: "wei", App: "ROMS",
		Nodes: nodes}, &a); err != nil {
		d.t.Fatal(err)
	}
	return a
}

// fairway runs a command on the daemon and wants its exit code and a word in what it prints.
func (d *realDaemon) fairway(code int, what, says string, args ...string) string {
	d.t.Helper()
	cmd := exec.Command(binary(d.t, "fairway"), append([]string{"--addr", "unix:" + d.socket}, args...)...)
	out, _ := cmd.CombinedOutput() // the exit code says it
	if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(string(out), says) {
		d.t.Errorf("%s: fairway %s: exit code %d, want %d, and %q in\n%s", what, strings.Join(args, " "), got, code,
			says, out)
	}
	return string(out)
}
