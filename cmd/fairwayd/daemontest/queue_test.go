package daemontest

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fairway/cmd/lab/testbed"
	"fairway/collector/p9"
	queuesource "fairway/collector/source/queue"
	"fairway/collector/topology"
	"fairway/remap/dispatch"
	"fairway/remap/queue"
)

// TestDaemonSharesAForwarder runs the daemon, an agent and a queue in front of a real diod, reports
// two jobs of four nodes and one, and wants the queue to serve them 4:1 under size-fair and 1:1
// under job-fair, the daemon to see the nodes behind the queue, and the policy to outlive the daemon for
// its lease. Nodes are addresses of this host, and are called so.
func TestDaemonSharesAForwarder(t *testing.T) {
	if os.Getenv("FAIRWAY_LONG") == "" {
		t.Skip("skipped: measures, which needs a quiet machine: make prove")
	}
	tb := realDiods(t, 1)
	for policy, want := range map[string]float64{"size-fair": 4, "job-fair": 1} {
		t.Run(policy, func(t *testing.T) { sharedForwarder(t, tb, policy, want) })
	}
}

func sharedForwarder(t *testing.T, tb *testbed.Testbed, policy string, want float64) {
	d := newRealDaemon(t, fmt.Sprintf("[queue]\npolicy = %q\n", policy)+fiveNodes())
	// A window of one: the next request is always chosen here and never by diod.
	q := startQueue(t, d, tb, "fwd000", fmt.Sprintf("[source.diod]\nenabled = true\naddr = %q\nuid = %d\n",
		tb.ForwarderAddr("fwd000"), os.Geteuid()), "--window", "1")

	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	t.Cleanup(func() { stop(); clients.Wait() })
	for i := range 5 {
		writers := 4
		if i == 4 {
			writers = 16 // the job of one node asks for as much as the other
		}
		clients.Go(func() { writeFrom(t, ctx, tb, q.listen, address(i), writers, fmt.Sprint(policy, i)) })
	}
	// What the daemon observes are the nodes, not the queue.
	var mapped struct {
		Observed map[string]string `json:"observed_mapping"`
	}
	wait(t, "the daemon sees the nodes behind the queue", func() bool {
		mapped.Observed = nil
		return d.ask("/api/v1/machine", "", nil, &mapped) == nil && len(mapped.Observed) == 5 &&
			mapped.Observed[address(4).String()] == "fwd000"
	})
	big := dispatch.Request{Job: "big", User: "a", App: "x"}
	for i := range 4 {
		big.Nodes = append(big.Nodes, nodeID(i))
	}
	for _, j := range []dispatch.Request{big,
		{Job: "small", User: "b", App: "x", Nodes: append(big.Nodes[:0:0], nodeID(4))}} {
		if err := d.ask("/api/v1/dispatch", string(j.Job), j, nil); err != nil {
			t.Fatal(err)
		}
	}
	wait(t, "the queue knows both jobs", func() bool {
		s := stats(q.socket)
		return s["big"].Connections == 4 &&
			s["small"].Connections == 1
	})
	ratio := func() float64 {
		const requests = 4000
		before, now := stats(q.socket), map[string]queue.Served{}
		done := func() int64 {
			now = stats(q.socket)
			return now["big"].Requests + now["small"].Requests - before["big"].Requests - before["small"].Requests
		}
		wait(t, "4000 requests", func() bool { return done() >= requests })
		return float64(now["big"].Bytes-before["big"].Bytes) / float64(now["small"].Bytes-before["small"].Bytes)
	}
	// A job has its share only while it asks for it, and a busy machine may leave a writer without a turn: then it is
	// measured again. Without the policy the two ask for the same, so that 4 to 1 never comes.
	wait(t, fmt.Sprintf("%g to 1", want), func() bool {
		got := ratio()
		t.Logf("%s: big to small %.3f", policy, got)
		return math.Abs(got/want-1) <= .15 // three and a half deviations of 4000 draws
	})
	// Without the daemon the policy holds until its lease ends, and then whoever asks is served.
	d.kill()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(time.Second) {
		text, _ := os.ReadFile(q.log)
		if strings.Contains(string(text), "no new table came within the lease") {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the lease of two minutes has not ended")
		}
	}
}

// realDiods starts a testbed of so many forwarders; without its programs the test is skipped.
func realDiods(t *testing.T, forwarders int) *testbed.Testbed {
	t.Helper()
	cfg := testbed.Config{Forwarders: forwarders, ComputeNodes: 1, Loopback: true}
	if missing := testbed.Missing(cfg); len(missing) > 0 {
		t.Skipf("skipped: not installed: %s", strings.Join(missing, " "))
	}
	tb, err := testbed.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tb.Close() })
	return tb
}

// fiveNodes are settings of one forwarder with five compute nodes behind it.
func fiveNodes() string {
	nodes, mapping := "[[node]]\nid = \"fwd000\"\nrole = \"forwarder\"\n", "[default_mapping]\n"
	for i := range 5 {
		nodes += fmt.Sprintf("[[node]]\nid = \"%s\"\nrole = \"compute\"\n", address(i))
		mapping += fmt.Sprintf("%q = \"fwd000\"\n", address(i))
	}
	return nodes + mapping
}

// runningQueue is a queue before a forwarder: where it is asked, where clients connect, and its log.
type runningQueue struct{ socket, listen, log string }

// startQueue starts a queue before a forwarder, and the agent by which the daemon reaches it.
func startQueue(t *testing.T, d *realDaemon, tb *testbed.Testbed, name topology.ForwarderID, sources string,
	flags ...string) runningQueue {
	t.Helper()
	dir, err := os.MkdirTemp("", "queue") // short, for the socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	q := runningQueue{socket: filepath.Join(dir, "socket"), listen: freePort(t)}
	q.log = background(t, "fairway-queue", append(append([]string{"serve", "--control", q.socket}, flags...), q.listen,
		tb.ForwarderAddr(name))...)
	secret, conf := filepath.Join(dir, "token"), filepath.Join(dir, "agent.toml")
	write(t, secret, agentSecret)
	write(t, conf, fmt.Sprintf("node = %q\nrole = \"forwarder\"\n[daemon]\nurl = \"ws://%s\"\ntoken_file = %q\n"+
		"[spool]\ndir = %q\n[source.procfs]\nenabled = false\n[source.queue]\nenabled = true\ncontrol = %q\n", name,
		d.addr, secret, filepath.Join(dir, "spool"), q.socket)+sources)
	background(t, "fairway-agent", "--config", conf)
	wait(t, "the queue listens", func() bool { return stats(q.socket) != nil })
	return q
}

// background runs one of the programs until the test's end and returns the file of its log.
func background(t *testing.T, name string, args ...string) string {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary(t, name), args...)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("%s says:\n%s", name, text)
		}
		log.Close()
	})
	return log.Name()
}

// wait gives up after a while, so that a busy machine is not a failure.
func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(aWhile); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", aWhile, what)
		}
	}
}

// stats asks a queue what it did; nil while it does not answer.
func stats(socket string) (s map[string]queue.Served) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var r queue.Report
	if b, err := queuesource.Ask(ctx, socket, "GET", "/report", nil); err != nil || json.Unmarshal(b, &r) != nil {
		return nil
	}
	return r.Jobs
}

// attachFrom connects a client of an address to a queue.
func attachFrom(ctx context.Context, tb *testbed.Testbed, queue string, from netip.Addr) (*p9.Client, *p9.Fid, error) {
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
	conn, err := d.DialContext(ctx, "tcp", queue)
	if err != nil {
		return nil, nil, err
	}
	c, err := p9.NewClient(ctx, conn, queue, 65536)
	if err != nil {
		return nil, nil, err
	}
	root, err := c.Attach(ctx, tb.Attach(), uint32(os.Geteuid()))
	if err != nil {
		c.Close()
	}
	return c, root, err
}

// writeFrom keeps writers busy on one connection from an address until ctx ends.
func writeFrom(t *testing.T, ctx context.Context, tb *testbed.Testbed, queue string, from netip.Addr, writers int,
	name string) {
	c, root, err := attachFrom(ctx, tb, queue, from)
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	var all sync.WaitGroup
	defer all.Wait()
	for i := range writers {
		f, err := root.Walk(ctx)
		if err == nil {
			err = f.Create(ctx, fmt.Sprint(name, "-", i), uint32(os.O_RDWR), 0o600, uint32(os.Getegid()))
		}
		if err != nil {
			t.Error(err)
			return
		}
		all.Go(func() {
			data := make([]byte, 16<<10)
			for ctx.Err() == nil {
				f.WriteAt(ctx, data, 0)
			}
		})
	}
}

func nodeID(i int) topology.NodeID { return topology.NodeID(address(i).String()) }

func address(i int) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 77, byte(1 + i)}) }
