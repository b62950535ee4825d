package endtoend

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/cmd/lab/daemon"
	"fairway/cmd/lab/testbed"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/webui/api"
	"fairway/webui/incident"
)

// TestADeadForwarderToItsEnd follows one incident on the real demo: a forwarder's service dies, its job stands still
// and shows what it loses, a person approves what is proposed, and the effect shows that it helped. What the job
// lost is held against the log of its own calls.
func TestADeadForwarderToItsEnd(t *testing.T) {
	if os.Getenv("FAIRWAY_LONG") == "" {
		t.Skip("skipped: takes eight minutes: FAIRWAY_LONG=1")
	}
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root for namespaces, mounts and Slurm")
	}
	need(t, append(testbed.Missing(testbed.Config{Slurm: true}), missingTools("tmux")...)...)
	const bad, job = "fwd001", "1"
	d := startDemo(t, "--no-console", "--slow-after", "1m", "--fault", "kill@"+bad)
	var card *advise.Card
	d.until("a card says that "+bad+" is dead or hung", 4*time.Minute, func() bool {
		card = d.card(bad)
		return card != nil && (card.Stage == advise.Dead || card.Stage == advise.Hung)
	})
	broken := d.brokenAt()
	var incident, finding, stands any
	d.ask("/api/v1/findings/"+card.Finding, &finding)
	d.ask("/api/v1/findings/"+card.Finding+"/incident", &incident)
	d.ask("/api/v1/jobs/"+job, &stands)

	plan := d.planAgainst(bad, job)
	time.Sleep(time.Minute) // the job stands still meanwhile
	d.ask("/api/v1/plans/"+plan.ID+"/preview", &plan)
	d.fairway("plan", "approve", plan.ID, "--preview", plan.PreviewHash, "--reason", "its service does not answer")
	moved := time.Now()
	helped := time.Duration(0)
	for at := range 12 * 60 / 5 {
		time.Sleep(5 * time.Second)
		since := time.Since(moved)
		d.wantDone(bad, since)
		if p := d.plan(plan.ID); helped == 0 && p.Effect != nil && p.Effect.Verdict == remap.Helped {
			helped = since
			t.Logf("%s after the move: %s", since.Round(time.Second), p.Effect.Text())
		}
		if at%6 == 0 {
			d.noPlanBack(bad, plan.ID)
		}
		if helped > 0 && since > 3*time.Minute {
			break
		}
	}
	if helped == 0 || helped > 4*time.Minute {
		t.Errorf("that it helped is known after %s, want 4 m at most: %+v", helped, d.plan(plan.ID).Effect)
	}

	var f anomaly.Finding
	d.ask("/api/v1/findings/"+card.Finding, &f)
	i := slices.IndexFunc(f.Impact, func(i anomaly.Impact) bool { return string(i.Job) == job })
	if i < 0 {
		t.Fatalf("%s lists no job %s: %+v", f.ID, job, f.Impact)
	}
	lost, truth := f.Impact[i].CostSeconds, d.lostByLog(job, []int{2, 3}, broken)
	t.Logf("job %s lost %.0f s on each node behind %s, %.0f s by its log", job, lost, bad, truth)
	if math.Abs(lost-truth) > 0.1*truth {
		t.Errorf("job %s lost %.0f s, by its own log %.0f s; want 10 %%", job, lost, truth)
	}
}

// TestASlowForwarderToItsEnd follows one incident of the demo's default fault. The headline stays within 30 % of the
// ratio that the clients' own clocks have; nothing goes back onto the accused forwarder for half an hour; when the
// fault is mended every surface says that it is over, and the nodes go home.
func TestASlowForwarderToItsEnd(t *testing.T) {
	if os.Getenv("FAIRWAY_LONG") == "" {
		t.Skip("skipped: takes fifty minutes: FAIRWAY_LONG=1")
	}
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root for namespaces, mounts and Slurm")
	}
	need(t, append(testbed.Missing(testbed.Config{Slurm: true}), missingTools("tmux", "strace")...)...)
	d := startDemo(t, "--no-console", "--slow-after", "1m", "--slow-for", "0")
	bad := ""
	d.until("the demo makes a forwarder slow", 3*time.Minute, func() bool {
		if found := slowNow.FindSubmatch(d.demoLog()); found != nil {
			bad = string(found[2])
		}
		return bad != ""
	})
	plan := d.planAgainst(bad, "")
	card := d.card(bad)
	if card == nil {
		t.Fatalf("%s takes nodes off %s, of which no card is", plan.ID, bad)
	}
	d.fairway("plan", "approve", plan.ID, "--preview", plan.PreviewHash, "--reason", "it is slow")
	moved := time.Now()
	time.Sleep(10 * time.Second)
	truth := d.clientsWaited(&plan, d.brokenAt(), moved)
	t.Logf("confirmed as %gx; its clients: %+v, %.1fx", card.Factor, truth, truth.Ratio())
	headlines, helped := []float64{card.Factor}, false
	for time.Since(moved) < 30*time.Minute {
		var f anomaly.Finding
		d.ask("/api/v1/findings/"+card.Finding, &f)
		if f.Factor != headlines[len(headlines)-1] {
			headlines = append(headlines, f.Factor)
		}
		d.wantDone(bad, time.Since(moved))
		d.noPlanBack(bad, plan.ID)
		p := d.plan(plan.ID)
		e := p.Effect
		if short := e != nil && strings.Contains(e.Why, "ended too soon"); short && !helped && e.Later != nil {
			helped = true // what the job's end left open the next runs say
			t.Logf("%s after the move: %s", time.Since(moved).Round(time.Second), e.Text())
			if e.Later.Faster < e.Later.Runs {
				t.Errorf("%d of %d later runs are faster", e.Later.Faster, e.Later.Runs)
			}
		} else if !short && !helped && e != nil && e.Verdict != remap.Measuring {
			helped = true
			t.Logf("%s after the move: %s", time.Since(moved).Round(time.Second), e.Text())
			if e.Verdict != remap.Helped || time.Since(moved) > 4*time.Minute ||
				truth.Others > 0 && math.Abs(math.Log(truth.Ratio()/f.Factor)) > math.Log(1.3) {
				t.Errorf("%s after the move: %s (%+v); the headline is %gx, by its clients %.1fx", time.Since(moved),
					e.Text(), e.Gain, f.Factor, truth.Ratio())
			}
		}
		if p.State != remap.Verified || !f.Open() {
			t.Errorf("%s after the move the plan is %s, the finding %s", time.Since(moved), p.State, f.State)
			break
		}
		time.Sleep(15 * time.Second)
	}
	t.Logf("the headlines of half an hour: %v", headlines)
	if !helped {
		t.Error("nothing says whether it helped")
	}
	if len(headlines) > 3 { // at most four changes an hour
		t.Errorf("the headline changed %d times in half an hour: %v", len(headlines)-1, headlines)
	}

	d.mend()
	mended := time.Now()
	var over *advise.Card
	d.until("its card says that it is over", 10*time.Minute, func() bool {
		over = d.card(bad)
		return over == nil || over.Over() || strings.Contains(over.Second, "among its peers again")
	})
	t.Logf("%s after the fault was mended its card is %+v", time.Since(mended).Round(time.Second), over)
	d.wantOver(card.Finding, bad)
	d.until("its nodes go home", 10*time.Minute, func() bool { return d.plan(plan.ID).State == remap.Restored })
	t.Logf("%s after the fault was mended the nodes are home", time.Since(mended).Round(time.Second))
	d.wantOver(card.Finding, bad)
}

// planAgainst waits for a plan that takes nodes of a job, any if empty, off a forwarder.
func (d *demo) planAgainst(bad, job string) (plan api.PlanView) {
	d.t.Helper()
	d.until("a plan moves a job's nodes off "+bad, 4*time.Minute, func() bool {
		var rows []api.PlanRow
		d.ask("/api/v1/plans", &rows)
		for _, r := range rows {
			d.ask("/api/v1/plans/"+r.ID+"/preview", &plan)
			if plan.State == remap.Proposed && string(plan.Moves[0].From) == bad &&
				(job == "" || string(plan.Job) == job) {
				return true
			}
		}
		return false
	})
	return plan
}

// clientsWaited is what requests took the nodes of a plan beside the others of their job, by their own clocks; nothing
// of a job that has no others.
func (d *demo) clientsWaited(p *api.PlanView, from, to time.Time) daemon.Waited {
	d.t.Helper()
	var job api.JobView
	d.ask("/api/v1/jobs/"+string(p.Job), &job)
	var moved []topology.NodeID
	for _, m := range p.Moves {
		moved = append(moved, m.Node)
	}
	others := slices.DeleteFunc(slices.Clone(job.Nodes), func(n topology.NodeID) bool {
		return slices.Contains(moved, n)
	})
	if len(others) == 0 {
		return daemon.Waited{}
	}
	waited, err := daemon.ClientsWaited(func(path string, into any) error {
		d.ask(path, into)
		return nil
	}, moved, others, from, to)
	if err != nil {
		d.t.Fatal(err)
	}
	return waited
}

// wantDone wants that nobody is asked for what was done.
func (d *demo) wantDone(bad string, since time.Duration) {
	d.t.Helper()
	if c := d.card(bad); since > 10*time.Second && c != nil && c.Action != nil &&
		slices.Contains([]remap.Action{remap.ActApprove, advise.ActPropose}, c.Action.Name) {
		d.t.Errorf("%s after the move its card asks for %s: %+v", since, c.Action.Name, c)
	}
}

// mend ends what makes the demo's node slow.
func (d *demo) mend() {
	d.t.Helper()
	for _, pid := range d.processes() {
		if name, _ := os.ReadFile(filepath.Join("/proc", pid, "comm")); strings.TrimSpace(string(name)) == "strace" {
			if out, err := exec.CommandContext(d.t.Context(), "kill", pid).CombinedOutput(); err != nil {
				d.t.Fatalf("kill %s: %v\n%s", pid, err, out)
			}
			return
		}
	}
	d.t.Fatal("no strace is seen that makes a node slow")
}

// wantOver wants that every surface calls a finding over, in the past and with nothing to press that moves nodes.
func (d *demo) wantOver(id, bad string) {
	d.t.Helper()
	var v api.FindingView
	var inc incident.Incident
	var at api.ForwarderDetail
	d.ask("/api/v1/findings/"+id, &v)
	d.ask("/api/v1/findings/"+id+"/incident", &inc)
	d.ask("/api/v1/forwarders/"+bad, &at)
	if v.Open() || !at.State.Healthy() || inc.Sentence != v.Card.Sentence {
		d.t.Errorf("%s is %s, its page says %q, the incident %q; %s is %s", id, v.State, v.Card.Sentence, inc.Sentence,
			bad, at.State)
	}
	if c := d.card(bad); c != nil && (c.Accuses() || c.Action != nil && c.Action.Filled) {
		d.t.Errorf("the first screen still says %s: %s; %+v", c.Stage, c.Sentence, c.Action)
	}
	if out := string(d.fairway("findings")); strings.Contains(out, id) && !strings.Contains(out, "no finding is open") {
		d.t.Errorf("fairway findings lists %s:\n%s", id, out)
	}
}

// until waits for something of the running demo.
func (d *demo) until(what string, patience time.Duration, is func() bool) {
	d.t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(time.Second) {
		if time.Now().After(end) {
			d.t.Fatalf("not in %s: %s; findings are\n%s", patience, what, d.fairway("--json", "findings"))
		}
	}
}

// ask reads a JSON answer of the demo's daemon.
func (d *demo) ask(path string, to any) {
	d.t.Helper()
	askAt(d.t, d.socket, path, to)
}

// askAt reads a JSON answer of the daemon at a socket.
func askAt(t *testing.T, socket, path string, to any) {
	t.Helper()
	c := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}}}
	res, err := c.Get("http://demo" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(to); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v", path, res.Status, err)
	}
}

func (d *demo) fairway(args ...string) []byte {
	d.t.Helper()
	out, err := exec.CommandContext(d.t.Context(), filepath.Join(bin, "fairway"),
		append([]string{"--addr", "unix:" + d.socket}, args...)...).CombinedOutput()
	if err != nil {
		d.t.Fatalf("fairway %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// card is what the first screen says of a node, or of a plan that has left it; nil: nothing.
func (d *demo) card(node string) *advise.Card {
	d.t.Helper()
	var o api.Overview
	d.ask("/api/v1/overview", &o)
	for i := range o.Needs {
		if string(o.Needs[i].Node) == node {
			return &o.Needs[i]
		}
	}
	return nil
}

func (d *demo) plan(id string) (p api.PlanView) {
	d.t.Helper()
	d.ask("/api/v1/plans/"+id, &p)
	return p
}

// noPlanBack wants that no plan but one has nodes go where they are, or onto the accused forwarder.
func (d *demo) noPlanBack(bad, but string) {
	d.t.Helper()
	var rows []api.PlanRow
	d.ask("/api/v1/plans", &rows)
	var m api.MachineView
	d.ask("/api/v1/machine", &m)
	for _, r := range rows {
		p := d.plan(r.ID)
		for _, move := range p.Moves {
			at := m.Observed[move.Node]
			if r.ID != but && p.State == remap.Proposed && (move.To == at || string(move.To) == bad) {
				d.t.Errorf("%s would move %s from %s to %s: %s", p.ID, move.Node, at, move.To, p.Reason)
			}
		}
	}
}

// slowNow is the line of the demo's log that says when it broke which node.
var slowNow = regexp.MustCompile(`time=(\S+) .*one node is slow now.* node=(\S+)`)

func (d *demo) demoLog() []byte {
	d.t.Helper()
	log, err := os.ReadFile(filepath.Join(filepath.Dir(d.socket), "demo.log"))
	if err != nil {
		d.t.Fatal(err)
	}
	return log
}

// brokenAt is when the demo broke its node, by its own log.
func (d *demo) brokenAt() time.Time {
	d.t.Helper()
	log := d.demoLog()
	found := slowNow.FindSubmatch(log)
	if found == nil {
		d.t.Fatalf("the demo does not say that it broke a node:\n%s", log)
	}
	at, err := time.Parse(time.RFC3339Nano, string(found[1]))
	if err != nil {
		d.t.Fatal(err)
	}
	return at
}

// lostByLog is what the calls of those ranks of a job took, on average, beyond what they would have: before the fault
// as long as the other ranks' of the run, by its Darshan log.
func (d *demo) lostByLog(job string, ranks []int, broken time.Time) float64 {
	d.t.Helper()
	logs, err := filepath.Glob(filepath.Join(filepath.Dir(d.socket), "darshan", fmt.Sprintf("*_id%s-*.darshan", job)))
	if err != nil || len(logs) != 1 {
		d.t.Fatalf("job %s has the logs %v (%v), want one", job, logs, err)
	}
	var log struct {
		Job   struct{ Start time.Time }
		Files []struct {
			Name  string
			POSIX struct {
				Read  float64 `json:"read_seconds"`
				Write float64 `json:"write_seconds"`
				Meta  float64 `json:"meta_seconds"`
				Close struct{ End float64 }
			}
		}
	}
	if err := json.Unmarshal(d.fairway("darshan", logs[0], "--json"), &log); err != nil {
		d.t.Fatal(err)
	}
	var took, usual []float64
	for _, f := range log.Files {
		var rank int
		if _, err := fmt.Sscanf(filepath.Ext(f.Name), ".%d", &rank); err != nil {
			d.t.Fatalf("%s: %v", f.Name, err)
		}
		seconds := f.POSIX.Read + f.POSIX.Write + f.POSIX.Meta
		if slices.Contains(ranks, rank) {
			took = append(took, seconds)
			continue
		}
		usual = append(usual, seconds/f.POSIX.Close.End) // in each second of the run
	}
	if len(took) != len(ranks) || len(usual) == 0 {
		d.t.Fatalf("the log has %d files, of the ranks %v %d", len(log.Files), ranks, len(took))
	}
	before := broken.Sub(log.Job.Start).Seconds() * anomaly.Median(usual)
	sum := 0.0
	for _, s := range took {
		sum += s
	}
	return sum/float64(len(took)) - before
}
