package daemontest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/collector/wire"
	"fairway/remap/journal"
	"fairway/webui/api"
)

// aWhile is how long a test waits for what comes in seconds on an idle machine.
const aWhile = 2 * time.Minute

// site is three daemons that keep one journal, and their agents.
type site struct {
	t       *testing.T
	daemons []*realDaemon
	streams [][]*stream.Client // by agent, each daemon's
	agents  []*testAgent
	longest time.Duration // from a leader's death to the next
}

// newSite writes the configurations of three daemons, with more; reach says at which address daemon i reaches daemon j,
// and is given where j listens.
func newSite(t *testing.T, more string, reach func(i, j int, listens string) string) *site {
	t.Helper()
	s := &site{t: t}
	var listens [3]string
	for i := range listens {
		listens[i] = freePort(t)
	}
	var texts []string
	for i := range listens {
		secret := filepath.Join(t.TempDir(), "secret")
		write(t, secret, "a-secret-of-three-daemons-in-a-test\n")
		text := fmt.Sprintf("%s\n[cluster]\nname = \"d%d\"\nsecret_file = %q\n", more, i, secret)
		for j, at := range listens {
			if i != j && reach != nil {
				at = reach(i, j, at)
			}
			text += fmt.Sprintf("[[cluster.daemon]]\nname = \"d%d\"\naddr = %q\n", j, at)
		}
		texts = append(texts, text)
	}
	for _, text := range texts { // what listens for good has its ports by now
		s.daemons = append(s.daemons, configuredDaemon(t, "", text))
	}
	return s
}

// freePort is an address of this host that nobody listens at, below the ports that outgoing connections take: a daemon
// that is started again finds it free.
func freePort(t *testing.T) string {
	t.Helper()
	for range 1000 {
		addr := fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000))
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
	t.Fatal("no port is free")
	return ""
}

func (s *site) start() {
	for _, d := range s.daemons {
		d.start()
	}
}

// newAgent starts a node's streams to every daemon.
func (s *site) newAgent(n topology.NodeID, role topology.Role, at topology.ForwarderID) *testAgent {
	t := s.t
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	dir := filepath.Join(t.TempDir(), string(n))
	spool, err := stream.OpenSpool(dir, 0, quiet)
	if err != nil {
		t.Fatal(err)
	}
	var urls []string
	for _, d := range s.daemons {
		urls = append(urls, "ws://"+d.addr)
	}
	positions, err := stream.Positions(spool, urls)
	if err != nil {
		t.Fatal(err)
	}
	fence, err := stream.OpenFence(filepath.Join(dir, "term"), quiet)
	if err != nil {
		t.Fatal(err)
	}
	a := &testAgent{node: n, role: role, spool: spool, at: at}
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	var all []*stream.Client
	for i, url := range urls {
		c := &stream.Client{URL: url, Token: agentSecret, Node: n, Role: role, Spool: positions[i], Log: quiet,
			Fence: fence, Orders: map[string]stream.OrderHandler{wire.OrderRemap: a.remap}}
		all = append(all, c)
		wait.Go(func() {
			if err := c.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	a.client = all[0]
	s.agents, s.streams = append(s.agents, a), append(s.streams, all)
	t.Cleanup(func() {
		cancel()
		wait.Wait()
		spool.Close()
	})
	return a
}

// reads reads one value of a daemon's /metrics, if it answers.
func (d *realDaemon) reads(name string) (float64, error) {
	res, err := d.http.Get("http://unix/metrics")
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), name+" "); ok {
			return strconv.ParseFloat(v, 64)
		}
	}
	return 0, fmt.Errorf("no metric %s", name)
}

// leader waits for a daemon that leads.
func (s *site) leader() *realDaemon {
	s.t.Helper()
	for end := time.Now().Add(aWhile); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for _, d := range s.daemons {
			if d.cmd != nil {
				if v, err := d.reads("fairway_cluster_leads"); err == nil && v == 1 {
					return d
				}
			}
		}
	}
	s.t.Fatal("no daemon leads")
	return nil
}

// ask asks the daemons one after the other, as a client with a list does.
func (s *site) ask(path, key string, body, into any) error {
	var errs []error
	for _, d := range s.daemons {
		err := d.ask(path, key, body, into)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// connected waits until every agent streams to every daemon.
func (s *site) connected() {
	s.t.Helper()
	for i, all := range s.streams {
		for j, c := range all {
			for end := time.Now().Add(aWhile); !c.State().Connected; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(end) {
					s.t.Fatalf("%s does not find daemon %d: %+v", s.agents[i].node, j, c.State())
				}
			}
		}
	}
}

// agree waits until the three journals end alike, and compares and verifies them.
func (s *site) agree() journal.Summary {
	t := s.t
	t.Helper()
	var counts [3]float64
	for end := time.Now().Add(aWhile); ; time.Sleep(50 * time.Millisecond) {
		for i, d := range s.daemons {
			counts[i], _ = d.reads("fairway_journal_records")
		}
		if counts[0] > 0 && counts[0] == counts[1] && counts[1] == counts[2] {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the journals have %v records", counts)
		}
	}
	for _, d := range s.daemons {
		d.kill()
	}
	var first journal.Summary
	var text string
	for i, d := range s.daemons {
		path := filepath.Join(filepath.Dir(d.conf), "state", "journal")
		sum, err := journal.Verify(path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first, text = sum, string(b)
		}
		if string(b) != text {
			t.Errorf("daemon %d has another journal: %+v and %+v", i, sum, first)
		}
	}
	return first
}

// selfApproved lets one person propose and approve, and gives the machine two forwarders.
const selfApproved = `[desk]
self_approval = true
two_persons = false
verify_within = "8s"
[driver]
kind = "agents"
timeout = "1s"
[[node]]
id = "fwd1"
role = "forwarder"
addr = "127.0.0.1:1"
[[node]]
id = "fwd2"
role = "forwarder"
addr = "127.0.0.1:2"
`

// kills is how many daemons a test kills: FAIRWAY_KILLS, or few.
func kills(t *testing.T, few int) int {
	t.Helper()
	text := os.Getenv("FAIRWAY_KILLS")
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("FAIRWAY_KILLS: %v", err)
	}
	return n
}

// TestLeadersKilledAtRandomPointsOfPlans kills the daemon that leads with kill -9 at random instants of plans: another
// one goes on with the plan, no move is made twice, no second is missing anywhere, and the three journals are one.
// FAIRWAY_KILLS=200 for the long run.
func TestLeadersKilledAtRandomPointsOfPlans(t *testing.T) {
	t.Parallel() // it mostly waits
	kills := kills(t, 3)
	s := newSite(t, selfApproved, nil)
	s.start()
	p := &planner{ask: s.ask, to: "fwd2", from: "fwd1"}
	var cns []*testAgent
	for i := range 4 {
		cns = append(cns, s.newAgent(topology.NodeID(fmt.Sprintf("cn%d", i)), topology.Compute, "fwd1"))
		p.nodes = append(p.nodes, cns[i].node)
	}
	for _, f := range []topology.NodeID{"fwd1", "fwd2"} {
		s.newAgent(f, topology.Forwarder, "")
	}
	stopFrames := sync.OnceFunc(everySecond(t, s.agents))
	defer stopFrames()
	begun := time.Now().Truncate(time.Second)
	r := rand.New(rand.NewPCG(1, 2))
	for k := range kills {
		s.connected()
		leads := s.leader()
		p.drive(k, time.Now())
		after := time.Duration(r.IntN(1500)) * time.Millisecond
		if p.state.Moving() {
			after /= 20
		}
		process := leads.cmd.Process
		killed := time.AfterFunc(after, func() { process.Kill() })
		for end := time.Now().Add(after); time.Now().Before(end); {
			p.step(k)
		}
		killed.Stop()
		p.killed()
		leads.kill()
		dead := time.Now()
		s.leader()
		s.longest = max(s.longest, time.Since(dead))
		p.step(k) // with two daemons
		leads.start()
	}
	p.settle(t)
	checkAgents(t, p, cns)
	ended := time.Now().Truncate(time.Second).Add(-2 * time.Second)
	stopFrames()
	s.nothingIsMissing(begun.Add(time.Second), ended)
	sum := s.agree()
	t.Logf("%d kills, %d of them while a plan moved nodes, %d plans, %d records; longest wait for a leader %s", kills,
		p.amid, p.made, sum.Records, s.longest.Round(time.Millisecond))
}

// nothingIsMissing wants every second of every node at every daemon, once the spools are empty.
func (s *site) nothingIsMissing(from, to time.Time) {
	t := s.t
	t.Helper()
	for _, a := range s.agents {
		for end := time.Now().Add(aWhile); a.spool.Pending() > 0; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s has %d messages that a daemon does not take", a.node, a.spool.Pending())
			}
		}
		for i, d := range s.daemons {
			var out api.SeriesAnswer
			path := fmt.Sprintf("/api/v1/series?node=%s&metric=%s&from=%s&to=%s", a.node, collector.ReadBytes,
				from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339))
			if err := d.ask(path, "", nil, &out); err != nil {
				t.Fatal(err)
			}
			have := map[int64]bool{}
			for _, one := range out.Series {
				for _, at := range one.Points {
					have[at.TimeMillis/1000] = at.Value != nil
				}
			}
			missing := 0
			for second := range a.seconds {
				if second >= from.Unix() && second < to.Unix() && !have[second] {
					missing++
				}
			}
			if missing > 0 || len(have) == 0 {
				t.Errorf("daemon %d lacks %d seconds of %s and has %d", i, missing, a.node, len(have))
			}
		}
	}
}

// on drives plans until the node is on a forwarder.
func (a *testAgent) on(t *testing.T, f topology.ForwarderID, drive func(string, func() bool)) {
	t.Helper()
	drive(fmt.Sprintf("%s does not come to %s", a.node, f), func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.at == f
	})
}

func waitFor(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(aWhile); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not so: " + what)
		}
	}
}

// TestTheHookAnswersWhileLeadersDie: the real hook, with the list of the daemons, answers or lets the job go on within
// its limit, and always exits with 0; a job that it reported is known to whoever leads next. FAIRWAY_KILLS=200 for the
// long run.
func TestTheHookAnswersWhileLeadersDie(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t, selfApproved, nil)
	s.start()
	for _, f := range []topology.NodeID{"fwd1", "fwd2"} {
		s.newAgent(f, topology.Forwarder, "")
	}
	s.newAgent("cn1", topology.Compute, "fwd1")
	defer everySecond(t, s.agents)()
	s.connected()
	var addrs []string
	for _, d := range s.daemons {
		addrs = append(addrs, "unix:"+d.socket)
	}
	hook := binary(t, "fairway")
	var longest time.Duration
	report := func(job int) (answer string) {
		t.Helper()
		begun := time.Now()
		cmd := exec.Command(hook, "--addr", strings.Join(addrs, ","), "hook", "dispatch", "--within", "10s", "--job",
			strconv.Itoa(job), "--user", "u", "--name", "n", "--nodes", "cn1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("job %d: the hook ends with %v: %s", job, err, out)
		}
		took := time.Since(begun)
		longest = max(longest, took)
		t.Logf("job %d after %s: %s", job, took.Round(time.Millisecond), out)
		return string(out)
	}
	waitFor(t, "the nodes are known", func() bool { return strings.Contains(report(1), "keeps its default") })
	killed, letGo := kills(t, 2), 0
	for job := 2; job < 2+killed; job++ {
		s.connected()
		leads := s.leader()
		leads.kill()
		known := strings.Contains(report(job), "keeps its default")
		s.leader()
		leads.start()
		if !known {
			letGo++ // and the hook printed so
			continue
		}
		for i, d := range s.daemons {
			waitFor(t, fmt.Sprintf("daemon %d knows job %d", i, job), func() bool {
				return d.ask(fmt.Sprintf("/api/v1/jobs/%d", job), "", nil, nil) == nil
			})
		}
	}
	t.Logf("%d kills: the longest answer took %s, %d jobs were let go on without one", killed,
		longest.Round(time.Millisecond), letGo)
}
