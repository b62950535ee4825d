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
	"fairway/cmd/lab/testbed"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/webui/api"
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

	var plan api.PlanView
	d.until("a plan moves the job's nodes off "+bad, time.Minute, func() bool {
		var rows []api.PlanRow
		d.ask("/api/v1/plans", &rows)
		for _, r := range rows {
			d.ask("/api/v1/plans/"+r.ID+"/preview", &plan)
			if plan.State == remap.Proposed && string(plan.Job) == job && plan.Moves[0].From == bad {
				return true
			}
		}
		return false
	})
	time.Sleep(time.Minute) // the job stands still meanwhile
	d.ask("/api/v1/plans/"+plan.ID+"/preview", &plan)
	d.fairway("plan", "approve", plan.ID, "--preview", plan.PreviewHash, "--reason", "its service does not answer")
	moved := time.Now()
	helped := time.Duration(0)
	for at := range 12 * 60 / 5 {
		time.Sleep(5 * time.Second)
		since := time.Since(moved)
		if c := d.card(bad); since > 10*time.Second && c != nil && c.Action != nil &&
			slices.Contains([]remap.Action{remap.ActApprove, advise.ActPropose}, c.Action.Name) {
			t.Errorf("%s after the move its card asks for %s: %+v", since, c.Action.Name, c)
		}
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
	c := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", d.socket)
		}}}
	res, err := c.Get("http://demo" + path)
	if err != nil {
		d.t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(to); err != nil || res.StatusCode != http.StatusOK {
		d.t.Fatalf("GET %s: %s, %v", path, res.Status, err)
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

// brokenAt is when the demo broke its node, by its own log.
func (d *demo) brokenAt() time.Time {
	d.t.Helper()
	b, err := os.ReadFile(filepath.Join(filepath.Dir(d.socket), "demo.log"))
	if err != nil {
		d.t.Fatal(err)
	}
	found := regexp.MustCompile(`time=(\S+) .*one node is slow now`).FindSubmatch(b)
	if found == nil {
		d.t.Fatalf("the demo does not say that it broke a node:\n%s", b)
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
