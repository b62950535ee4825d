package queue

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/cmd/lab/programs"
	"fairway/cmd/lab/testbed"
	"fairway/collector/topology"
)

func TestMain(m *testing.M) { os.Exit(programs.Run(m.Run)) }

// layer is a real forwarder with five compute nodes whose mounts go through a queue: four nodes are of
// the job "big", one is of the job "small".
type layer struct {
	tb    *testbed.Testbed
	queue *Queue
	jobs  Table
}

func newLayer(t testing.TB, linkBytesPerSec float64, gather time.Duration) *layer {
	t.Helper()
	cfg := testbed.Config{Forwarders: 1, ComputeNodes: 5, LinkBytesPerSec: linkBytesPerSec}
	if os.Geteuid() != 0 {
		t.Skip("skipped: namespaces need root")
	}
	missing := testbed.Missing(cfg)
	if _, err := exec.LookPath("fio"); err != nil {
		missing = append(missing, "fio")
	}
	if len(missing) > 0 {
		t.Skipf("skipped: not installed: %s", strings.Join(missing, " "))
	}
	var err error
	if cfg.MountProgram, err = programs.Path("fairway-mount"); err != nil {
		t.Fatal(err)
	}
	tb, err := testbed.Start(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tb.Close(); err != nil {
			t.Error(err)
		}
	})
	l := &layer{tb: tb, queue: New(Config{Gather: gather, Dial: func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", tb.ForwarderAddr("fwd000"))
	}})}
	l.serve(t, cfg.MountProgram)
	return l
}

// serve starts the queue beside the nodes and moves every mount from the forwarder to it.
func (l *layer) serve(t testing.TB, mount string) {
	listener, err := net.Listen("tcp", netip.AddrPortFrom(l.tb.HostAddr(), 0).String())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.queue.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	l.jobs = twoJobs("")
	l.jobs.Jobs[0].Clients, l.jobs.Jobs[1].Clients = nil, nil
	for i := range 5 {
		node := topology.NodeID(fmt.Sprintf("cn%03d", i))
		moveMount(t, mount, l.tb.MountSocket(node), listener.Addr().String())
		out, err := l.tb.Exec(context.Background(), node, "ip", "-4", "-o", "addr", "show", "dev", "eth0")
		if err != nil {
			t.Fatal(err)
		}
		addr := netip.MustParsePrefix(strings.Fields(string(out))[3]).Addr()
		job := &l.jobs.Jobs[i/4]
		job.Clients = append(job.Clients, addr)
	}
	if err := l.queue.Share(l.jobs); err != nil {
		t.Fatal(err)
	}
}

// moveMount sends a mount to the queue; a mount that has just begun opens its socket a moment later.
func moveMount(t testing.TB, mount, socket, queue string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		out, err := exec.Command(mount, "remap", socket, queue, "fwd000").CombinedOutput()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("move the mount at %s to the queue: %v\n%s", socket, err, out)
		}
	}
}

// load writes on some nodes with fio, so many writers on each, until the returned function is called.
func (l *layer) load(t testing.TB, writers map[string]int) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for node, n := range writers {
		all.Go(func() {
			out, err := l.tb.Exec(ctx, topology.NodeID(node), "fio", "--name="+node, "--directory=/pfs", "--rw=write",
				"--bs=256k", "--size=16m",
				"--ioengine=psync", "--thread", "--numjobs", fmt.Sprint(n), "--time_based", "--runtime=600",
				"--fallocate=none")
			if ctx.Err() == nil {
				t.Errorf("fio on %s: %v\n%s", node, err, out)
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

// awaitQueue waits until each of the jobs has requests waiting, three looks in a row.
func (l *layer) awaitQueue(t testing.TB, jobs ...string) {
	t.Helper()
	for end, seen := time.Now().Add(30*time.Second), 0; seen < 3; time.Sleep(200 * time.Millisecond) {
		stats, busy := l.queue.Stats(), true
		for _, j := range jobs {
			busy = busy && stats[j].Waiting > 0
		}
		if seen++; !busy {
			seen = 0
		}
		if time.Now().After(end) {
			t.Fatalf("%v do not ask for more than the forwarder gives: %+v", jobs, stats)
		}
	}
}

// measure says what each job moved in d, bytes/s, under a policy.
func (l *layer) measure(t testing.TB, policy string, d time.Duration) (big, small float64) {
	l.jobs.Policy = policy
	if err := l.queue.Share(l.jobs); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond) // what is in flight belongs to the policy before
	before, from := l.queue.Stats(), time.Now()
	time.Sleep(d)
	after, took := l.queue.Stats(), time.Since(from).Seconds()
	return float64(after["big"].Bytes-before["big"].Bytes) / took,
		float64(after["small"].Bytes-before["small"].Bytes) / took
}

// Both jobs ask for as much: what they get is the policy's doing.
var evenLoad = map[string]int{"cn000": 2, "cn001": 2, "cn002": 2, "cn003": 2, "cn004": 8}

func TestRatiosOnTheRealLayer(t *testing.T) {
	l := newLayer(t, 40e6, 0) // slow enough that the processor is not what they share
	stop := l.load(t, evenLoad)
	l.awaitQueue(t, "big", "small")
	// How near the ratios come to the policy is a measurement (BenchmarkRealLayer); here the policy must be seen to
	// matter, in either order, on a machine that may be busy with other things.
	ratio := map[string]float64{}
	for _, policy := range []string{"size-fair", "job-fair"} {
		big, small := l.measure(t, policy, 4*time.Second)
		ratio[policy] = big / small
		t.Logf("%s: %.1f and %.1f MB/s, %.3f to 1", policy, big/1e6, small/1e6, big/small)
	}
	if ratio["size-fair"] < 1.2*ratio["job-fair"] {
		t.Errorf("size-fair gives %.3f to 1, job-fair %.3f: want about 4 and 1", ratio["size-fair"], ratio["job-fair"])
	}
	stop()
	stop = l.load(t, map[string]int{"cn004": 8})
	l.awaitQueue(t, "small")
	big, small := l.measure(t, "size-fair", 2*time.Second)
	t.Logf("small alone: %.1f MB/s", small/1e6)
	if big != 0 || small == 0 {
		t.Errorf("the small job is alone and gets %.1f MB/s, the other %.1f", small/1e6, big/1e6)
	}
	stop()
}

// The bars: ratios within 5 % of the policy over 30 s, a total within 3 % of serving in the order of
// arrival. The policies take turns of 3 s each, so that a change of the machine meets all of them.
func BenchmarkRealLayer(b *testing.B) {
	for _, link := range []float64{100e6, 0} {
		b.Run(fmt.Sprintf("link%gMB", link/1e6), func(b *testing.B) {
			l := newLayer(b, link, 0)
			stop := l.load(b, evenLoad)
			time.Sleep(2 * time.Second)
			policies := []string{"", "size-fair", "job-fair"}
			sum := map[string][2]float64{}
			b.ResetTimer()
			for range b.N {
				for range 10 {
					for _, p := range policies {
						big, small := l.measure(b, p, 3*time.Second)
						sum[p] = [2]float64{sum[p][0] + big, sum[p][1] + small}
					}
				}
			}
			stop()
			total := func(p string) float64 { return sum[p][0] + sum[p][1] }
			for _, p := range policies {
				b.ReportMetric(sum[p][0]/sum[p][1], "ratio-"+p)
				b.ReportMetric(total(p)/1e7/float64(b.N), "MB/s-"+p)
				b.ReportMetric(total(p)/total(""), "of-fifo-"+p)
			}
		})
	}
}
