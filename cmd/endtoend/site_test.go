package endtoend

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/remap"
	"fairway/webui/api"
)

// site is a running site in files with the programs of a release on it.
type site struct {
	t       *testing.T
	dir     string
	browser string // where browsers reach it
}

// startSite starts the site, the daemon and an agent a node, and waits for the first second.
func startSite(t *testing.T, flags ...string) *site {
	t.Helper()
	prepare(t)
	dir, err := os.MkdirTemp("", "fairway-site") // short, for the sockets
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, dir: dir}
	c := exec.Command(filepath.Join(bin, "fairway-demo"), append([]string{"site", "--dir", dir, "--no-console",
		"--http", "127.0.0.1:0"}, flags...)...)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = c.Stdout
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			lines <- in.Text()
		}
	}()
	t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		for range lines { // it prints what it ends
		}
		if err := c.Wait(); err != nil {
			t.Errorf("the site ended with %v", err)
		}
		if t.Failed() {
			text, _ := os.ReadFile(filepath.Join(dir, "fairwayd.log"))
			lines := slices.DeleteFunc(strings.Split(string(text), "\n"), func(l string) bool {
				return strings.Contains(l, "level=INFO") // a page of agents that connected hides what failed
			})
			t.Logf("the daemon's log ends:\n%s", strings.Join(lines[max(0, len(lines)-20):], "\n"))
		}
		os.RemoveAll(dir)
	})
	var printed []string
	for line := range lines {
		if at, ok := strings.CutPrefix(line, "browser: "); ok {
			s.browser, _, _ = strings.Cut(at, " ")
		}
		if printed = append(printed, line); strings.HasPrefix(line, "first second shown") {
			go func() {
				for range lines { // so that it never waits for a reader
				}
			}()
			return s
		}
	}
	t.Fatalf("the site ended by itself:\n%s", strings.Join(printed, "\n"))
	return nil
}

// run runs one of the programs and returns what it printed.
func (s *site) run(program string, args ...string) []byte {
	s.t.Helper()
	out, err := s.try(patience, program, args...)
	if err != nil {
		s.t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return out
}

// try is run for what may end with a code of its own.
func (s *site) try(limit time.Duration, program string, args ...string) ([]byte, error) {
	ctx, stop := context.WithTimeout(s.t.Context(), limit)
	defer stop()
	return exec.CommandContext(ctx, filepath.Join(bin, program), args...).CombinedOutput()
}

func (s *site) socket() string { return "unix:" + filepath.Join(s.dir, "fairwayd.sock") }

func (s *site) fairway(args ...string) []byte {
	s.t.Helper()
	return s.run("fairway", append([]string{"--addr", s.socket()}, args...)...)
}

func (s *site) demo(verb string, args ...string) []byte {
	s.t.Helper()
	return s.run("fairway-demo", append([]string{"site", verb, s.dir}, args...)...)
}

// truth is what the model knows of its routers.
type truth struct {
	Seconds float64
	Dropped uint64
	Routers map[string]struct {
		Bytes    float64
		ByClient map[string]float64 `json:"bytes_by_client"`
	}
}

func (s *site) truth() (t truth) {
	s.t.Helper()
	if err := json.Unmarshal(s.demo("truth"), &t); err != nil {
		s.t.Fatal(err)
	}
	return t
}

// traffic is what crosses the routers in a few of the model's seconds: all bytes a second, right to about a tenth, and
// one router's share. How fast jobs are after a drain is tested without a clock, over more seconds.
func (s *site) traffic(router string) (perSecond, share float64) {
	s.t.Helper()
	const seconds = 5
	a := s.truth()
	b := a
	for b.Seconds < a.Seconds+seconds {
		time.Sleep(200 * time.Millisecond)
		b = s.truth()
	}
	var all, mine float64
	for r := range b.Routers {
		d := b.Routers[r].Bytes - a.Routers[r].Bytes
		all += d
		if r == router {
			mine = d
		}
	}
	return all / (b.Seconds - a.Seconds), mine / all
}

// tables are the routes of every node that has some, in an order of their own.
func (s *site) tables() string {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, "nodes", "*", "sys", "kernel", "debug", "lnet", "routes"))
	if err != nil || len(files) == 0 {
		s.t.Fatal(files, err)
	}
	var all strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			s.t.Fatal(err)
		}
		rows := strings.Split(string(text), "\n")
		slices.Sort(rows)
		fmt.Fprintf(&all, "%s\n%s\n", name, strings.Join(rows, "\n"))
	}
	return all.String()
}

// drain waits until the drain of the one excluded router is in a state, and returns it.
func (s *site) drain(want remap.DrainState) remap.Drain {
	s.t.Helper()
	var last []byte
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(300 * time.Millisecond) {
		var f remap.Feed
		last = s.fairway("--json", "exclusions")
		if err := json.Unmarshal(last, &f); err != nil {
			s.t.Fatal(err)
		}
		if len(f.Exclusions) == 1 && f.Exclusions[0].Drain != nil && f.Exclusions[0].Drain.State == want {
			return *f.Exclusions[0].Drain
		}
	}
	s.t.Fatalf("no drain is %s:\n%s", want, last)
	return remap.Drain{}
}

// restored waits until every table is as it was.
func (s *site) restored(was string) {
	s.t.Helper()
	got := ""
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(300 * time.Millisecond) {
		if got = s.tables(); got == was {
			return
		}
	}
	s.t.Errorf("after the return the tables are\n%s\nthey were\n%s", got, was)
}

// TestSlowRouterIsDrained: a router at a tenth of its speed is excluded, every node of both ends avoids it, its traffic
// goes to the others, the jobs are as fast as before, nothing is dropped, and on its return every table is as it was.
func TestSlowRouterIsDrained(t *testing.T) {
	t.Parallel() // it mostly waits
	s := startSite(t)
	was, dropped := s.tables(), s.truth().Dropped
	healthy, share := s.traffic("rtr2")
	if share < 0.15 {
		t.Fatalf("rtr2 has %.2f of the bytes of a healthy site", share)
	}
	s.demo("fault", "link", "rtr2", "0.1")
	s.fairway("exclude", "rtr2", "--reason", "it is slow on its link")
	d := s.drain(remap.Drained)
	if d.Nodes != 11 || d.Done != 11 {
		t.Errorf("%d of %d nodes avoid it, want 11 of 11", d.Done, d.Nodes)
	}
	again, share := s.traffic("rtr2")
	if share > 0.01 || again < 0.85*healthy {
		t.Errorf("%.3f of the bytes cross the drained router; %.0f MB/s in all, %.0f before", share, again/1e6,
			healthy/1e6)
	}
	if now := s.truth().Dropped; now != dropped {
		t.Errorf("%d messages were dropped", now-dropped)
	}
	s.demo("mend", "rtr2")
	s.fairway("return", "rtr2", "--reason", "its link is well again")
	s.restored(was)
	if _, share := s.traffic("rtr2"); share < 0.15 {
		t.Errorf("rtr2 has %.2f of the bytes after its return", share)
	}
}

// TestLyingLnetctlIsNotBelieved: where one server's lnetctl lies, every node reports that it avoids the router, and its
// traffic shows that it does not.
func TestLyingLnetctlIsNotBelieved(t *testing.T) {
	t.Parallel() // it mostly waits
	s := startSite(t)
	was := s.tables()
	s.demo("trick", "oss1", "lie", "route")
	s.fairway("exclude", "rtr3", "--reason", "to be looked at")
	d := s.drain(remap.DrainFailed)
	if d.Done != d.Nodes || d.Share == nil || *d.Share < 0.01 {
		t.Errorf("%+v: want all nodes done, and a share", d)
	}
	if !strings.Contains(string(s.fairway("exclusions")), "of the routers' bytes cross it") {
		t.Errorf("the command prints\n%s", s.fairway("exclusions"))
	}
	s.demo("trick")
	s.demo("trick", "mds1", "busy", "route")
	s.fairway("return", "rtr3", "--reason", "it was looked at")
	time.Sleep(2 * time.Second) // the node that refuses is asked again
	s.demo("trick")
	s.restored(was)
}

// TestSlowRouterIsFoundByItself: a router at a tenth of its speed is found, excluded and drained without a person; a
// person returns it when it has been mended.
func TestSlowRouterIsFoundByItself(t *testing.T) {
	if os.Getenv("FAIRWAY_LONG") == "" {
		t.Skip("skipped: takes a minute and a half: make prove")
	}
	t.Parallel() // it mostly waits
	s := startSite(t, "--auto")
	was := s.tables()
	s.traffic("rtr2") // the detector has seen the site healthy
	s.demo("fault", "link", "rtr2", "0.1")
	d := s.drain(remap.Drained)
	if d.Done != 11 {
		t.Errorf("%d nodes avoid it, want 11", d.Done)
	}
	var f remap.Feed
	if err := json.Unmarshal(s.fairway("--json", "exclusions"), &f); err != nil {
		t.Fatal(err)
	}
	if e := f.Exclusions[0]; e.Forwarder != "rtr2" || !strings.Contains(e.Reason, "messages take") {
		t.Errorf("excluded is %s: %s", e.Forwarder, e.Reason)
	}
	s.demo("mend", "rtr2")
	s.fairway("return", "rtr2", "--reason", "its link is well again")
	s.restored(was)
}

// TestMappingNeedsNoRightToMove: agents without orders report that every client spreads over all routers, and measure
// by which of them its messages go.
func TestMappingNeedsNoRightToMove(t *testing.T) {
	t.Parallel() // it mostly waits
	s := startSite(t, "--orders=false")
	var rows []api.NodeRow
	complete := func() bool {
		rows = nil
		if err := json.Unmarshal(s.fairway("--json", "nodes", "--role", "compute"), &rows); err != nil {
			t.Fatal(err)
		}
		measured := 0
		for _, r := range rows {
			sum := 0.0
			for _, one := range r.Shares {
				sum += one.Part
			}
			if len(r.Shares) != 4 || sum < 0.99 || sum > 1.01 {
				return false
			}
			if !r.SharesAssumed {
				measured++
			}
		}
		return len(rows) == 8 && measured > 0
	}
	for end := time.Now().Add(patience); !complete(); time.Sleep(300 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("want 8 clients, each over 4 routers, measured where it does I/O: %+v", rows)
		}
	}
}

// TestJobIsSteered: a person moves a job's nodes to one router; the servers prefer it for their data, the plan is
// verified by the messages that cross it, and the roll back gives every node the routers that it had. Every node drops
// what comes over a router that it has no route over: the plan takes no route away, a drain drops nothing either.
func TestJobIsSteered(t *testing.T) {
	t.Parallel() // it mostly waits
	s := startSite(t)
	for _, n := range []string{"cn1", "cn2", "cn3", "cn4", "cn5", "cn6", "cn7", "cn8", "oss1", "oss2", "mds1"} {
		s.demo("tool", n, "lnetctl", "set", "drop_asym_route", "1")
	}
	was, dropped := s.tables(), s.truth().Dropped
	s.fairway("remap", "cn1,cn2", "--to", "rtr3", "--reason", "the job gets a router of its own")
	if text := string(s.fairway("plan", "show", "P-000001")); !strings.Contains(text, "3 of 3 servers get a rule") {
		t.Errorf("the preview is\n%s", text)
	}
	var shown struct {
		PreviewHash string `json:"preview_hash"`
	}
	if err := json.Unmarshal(s.fairway("--json", "plan", "show", "P-000001"), &shown); err != nil {
		t.Fatal(err)
	}
	text, err := s.try(patience, "fairway", "--addr", s.socket(), "plan", "approve", "P-000001", "--preview",
		shown.PreviewHash, "--wait", "3m", "--reason", "agreed with its user")
	// On a machine so busy that the site stands still nearly, too few messages cross in time: the plan says so.
	if quiet := strings.Contains(string(text), "quiet: its table is right"); !quiet &&
		(err != nil || !strings.Contains(string(text), "verified")) {
		t.Errorf("the plan ended with %v:\n%s", err, text)
	}
	if rules := string(s.demo("tool", "cn1", "lnetctl", "udsp", "show")); !strings.Contains(rules, "10.0.255.3@tcp") {
		t.Errorf("cn1 does not prefer rtr3; its rules are\n%s", rules)
	}
	if now := s.tables(); now != was {
		t.Errorf("routes were replaced where that drops messages:\n%s\nthey were\n%s", now, was)
	}
	if text, err := s.try(patience, "fairway", "--addr", s.socket(), "plan", "rollback", "P-000001", "--reason",
		"the job has ended"); err != nil {
		t.Errorf("the roll back ended with %v:\n%s", err, text)
	}
	for _, n := range []string{"cn1", "cn2", "oss1", "oss2", "mds1"} {
		s.until("the roll back takes the rules of "+n+" away", func() bool {
			return !strings.Contains(string(s.demo("tool", n, "lnetctl", "udsp", "show")), "rte:")
		})
	}

	// A drain replaces routes: each node accepts what comes over any router meanwhile, and drops again afterwards.
	s.fairway("exclude", "rtr2", "--reason", "to be looked at")
	if d := s.drain(remap.Drained); d.Done != 11 {
		t.Errorf("%d of %d nodes avoid it, want 11 of 11", d.Done, d.Nodes)
	}
	s.fairway("return", "rtr2", "--reason", "it was looked at")
	s.restored(was)
	for _, n := range []string{"cn1", "oss1"} {
		text := string(s.demo("tool", n, "lnetctl", "global", "show"))
		if !strings.Contains(text, "drop_asym_route: 1") {
			t.Errorf("%s accepts everything now:\n%s", n, text)
		}
	}
	if now := s.truth().Dropped; now != dropped {
		t.Errorf("%d messages were dropped", now-dropped)
	}
}

// TestBusyIsNotSlow: how busy a router is reads the same in the API, in both faces, in a plan's evidence and in the
// journal; one without its source is unknown, and null in the evidence; and a storage target at a tenth of its speed
// accuses no router.
func TestBusyIsNotSlow(t *testing.T) {
	if os.Getenv("FAIRWAY_LONG") == "" {
		t.Skip("skipped: takes four minutes: make prove")
	}
	t.Parallel() // it mostly waits
	need(t, missingTools("tmux", "chromium")...)
	s := startSite(t, "--blind", "rtr4")
	s.traffic("rtr2")
	s.until("rtr3 is ok and rtr4 unknown", func() bool {
		at := s.nodes("forwarder")
		return at["rtr3"].State == "ok" && at["rtr4"].State == "unknown"
	})
	s.fairway("remap", "cn1", "--to", "rtr3", "--reason", "to have its load kept")
	s.fairway("remap", "cn2", "--to", "rtr4", "--reason", "to have it kept that its load is not known")
	type kept struct {
		State remap.ForwarderState
		Busy  *float64
		Load  struct {
			Routed *float64 `json:"routed_bytes_per_sec"`
		}
	}
	frozen := func(plan, router string) kept {
		var p struct {
			Frozen struct{ Forwarders map[string]kept }
		}
		if err := json.Unmarshal(s.fairway("--json", "plan", "show", plan), &p); err != nil {
			t.Fatal(err)
		}
		return p.Frozen.Forwarders[router]
	}
	const peak = 300e6 // of each of the model's routers, bytes/s
	rtr3 := frozen("P-000001", "rtr3")
	if rtr3.State != remap.ForwarderOK || rtr3.Busy == nil || rtr3.Load.Routed == nil ||
		math.Abs(*rtr3.Busy-*rtr3.Load.Routed/peak) > 1e-6 || *rtr3.Busy < 0.05 {
		t.Fatalf("kept of rtr3: %+v", rtr3)
	}
	if rtr4 := frozen("P-000002", "rtr4"); rtr4.State != remap.ForwarderUnknown || rtr4.Busy != nil ||
		rtr4.Load.Routed != nil {
		t.Errorf("kept of rtr4, whose agent has no source: %+v", rtr4)
	}
	busy := rtr3.State.Text(rtr3.Busy) // busy 67 %
	x := openTerminal(t)
	x.run(filepath.Join(bin, "fairway") + " --addr " + s.socket() + " top")
	x.shows("rtr3", "rtr4")
	x.keys("4")
	x.shows("P-000001")
	x.types(":P-000001")
	x.keys("Enter")
	x.shows("to have its load kept")
	x.keys("e") // what was known when it was proposed
	x.shows("rtr3", busy)
	p := openBrowser(t, s.browser+"plans/P-000001")
	p.says("rtr3", busy)
	p.open(s.browser + "forwarders/rtr4")
	p.says("rtr4", "unknown", "not known")

	s.demo("fault", "disk", "oss1", "0.1")
	from := s.truth().Seconds
	const watched = 60
	s.until("a minute of the site has passed", func() bool { return s.truth().Seconds > from+watched })
	for _, f := range s.accused() {
		t.Errorf("a slow target, and %s is accused: %s", f.Node, f.Sentence)
	}
	s.demo("mend", "oss1")
}
