package ganesha

import (
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairway/cmd/lab/testbed"
	"fairway/collector"
	"fairway/collector/p9"
	"fairway/collector/rootfs"
	"fairway/collector/topology"
)

// layer starts gateways in front of a back end; the test is skipped where it cannot.
func layer(t testing.TB) *testbed.Testbed {
	t.Helper()
	cfg := testbed.Config{Layer: testbed.NFS, Forwarders: 1, ComputeNodes: 1}
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
	return tb
}

// on is the source of a node's ganesha; its process has a number of its own there.
func on(tb *testbed.Testbed, id topology.NodeID) *Source {
	s := New(Options{Bus: tb.BusSocket(id), Node: id, Forwarder: id != "be000"})
	s.connections = func(int) ([]connection, error) { return nil, nil }
	s.cpuTime = func(int) (float64, error) { return 0, nil }
	return s
}

func TestRealGaneshaIsCounted(t *testing.T) {
	tb := layer(t)
	c, err := p9.Dial(t.Context(), tb.ForwarderAddr("fwd000"), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	root, err := c.Attach(t.Context(), tb.Attach(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := root.GetAttr(t.Context()); err != nil {
		t.Fatal(err)
	}
	f, err := root.Walk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Create(t.Context(), "data", syscall.O_RDWR, 0o644, 0); err != nil {
		t.Fatal(err)
	}
	gateway, server := on(tb, "fwd000"), on(tb, "be000")
	defer gateway.Close()
	defer server.Close()
	tick := func(s *Source) (map[string]float64, error) {
		r := collector.Reading{Now: time.Now()}
		err := s.Read(t.Context(), &r)
		out := map[string]float64{}
		for _, v := range r.Samples {
			out[v.Metric.String()] = v.Value
		}
		return out, err
	}
	const block, blocks = 32 << 10, 64
	buf := make([]byte, block)
	work := func() {
		for i := range blocks {
			if _, err := f.WriteAt(t.Context(), buf, int64(i*block)); err != nil {
				t.Fatal(err)
			}
			if _, err := f.ReadAt(t.Context(), buf, int64(i*block)); err != nil {
				t.Fatal(err)
			}
			if _, err := root.GetAttr(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	work() // the counters of an export begin with its first use
	var took, whole float64
	var atGateway, atServer map[string]float64
	// On a busy machine readings are too far apart for rates now and then.
	for tries := 0; tries == 0 || whole > 2 && tries < 10; tries++ {
		before := time.Now()
		for _, s := range []*Source{gateway, server} {
			if _, err := tick(s); err != nil {
				t.Fatal(err)
			}
		}
		begun := time.Now()
		work()
		took = time.Since(begun).Seconds()
		var err, also error
		atGateway, err = tick(gateway)
		atServer, also = tick(server)
		if err := errors.Join(err, also); err != nil {
			t.Fatal(err)
		}
		whole = time.Since(before).Seconds()
	}
	// The reading's interval is longer than the work's and shorter than the whole. Its own requests may be in it.
	near := func(where map[string]float64, name string, want float64) {
		if v, ok := where[name]; !ok || v*took > 1.1*want || v*whole < 0.9*want {
			t.Errorf("%s: %v in %.3f s (known: %v), want about %v", name, v*took, took, ok, want)
		}
	}
	for _, m := range []string{"read_ops", "write_ops", "meta_ops"} {
		near(atGateway, m, blocks)
	}
	for _, m := range []string{"read_ops", "write_ops"} {
		near(atServer, m, blocks)
	}
	for _, m := range []string{"read_bytes", "write_bytes"} {
		near(atGateway, m, 1.01*block*blocks)
		near(atServer, m, block*blocks)
	}
	if v, ok := atGateway["read_exec"]; ok {
		t.Errorf("the gateway has no clock for 9P and reports read_exec %v", v)
	}
	if v := atServer["read_exec"]; !(v > 0 && v < 1) || !(atServer["write_exec"] > 0) || !(atServer["meta_exec"] > 0) {
		t.Errorf("the server's times are not those of an operation: %v", atServer)
	}
	if v := atGateway["answer_time"]; !(v > 0 && v < 1) {
		t.Errorf("answer_time %v", v)
	}
}

func TestRealGaneshaThatIsGoneIsSaid(t *testing.T) {
	tb := layer(t)
	s := on(tb, "fwd000")
	defer s.Close()
	if err := s.Read(t.Context(), &collector.Reading{Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if err := tb.Inject(t.Context(), testbed.Fault{Kind: testbed.Kill, Node: "fwd000"}); err != nil {
		t.Fatal(err)
	}
	r := collector.Reading{Now: time.Now()}
	if err := s.Read(t.Context(), &r); err == nil || !strings.Contains(err.Error(), "not on the bus") ||
		len(r.Samples) > 0 {
		t.Errorf("a killed ganesha: %v, samples %v", err, r.Samples)
	}
	if err := tb.Clear(t.Context(), testbed.Fault{Kind: testbed.Kill, Node: "fwd000"}); err != nil {
		t.Fatal(err)
	}
	r = collector.Reading{Now: time.Now()}
	if err := s.Read(t.Context(), &r); err != nil || r.Resets != 1 {
		t.Errorf("after its restart: %v, %d resets; want 1", err, r.Resets)
	}
}

func TestMissingBusIsSaid(t *testing.T) {
	s := New(Options{Bus: t.TempDir() + "/bus", Node: "gw1"})
	defer s.Close()
	err := s.Read(t.Context(), &collector.Reading{Now: time.Now()})
	if err == nil || !strings.Contains(err.Error(), "is dbus-daemon running?") {
		t.Errorf("error %v does not say what is missing", err)
	}
}

func TestConnectionsAndCPUTimeOfAProcess(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	conns, err := readConnections("/proc", os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, k := range conns {
		found = found || k.local.String() == c.LocalAddr().String() && k.remote.String() == l.Addr().String()
	}
	if !found {
		t.Errorf("%v to %v is not among %d connections", c.LocalAddr(), l.Addr(), len(conns))
	}
	if v, err := rootfs.CPUTime(os.DirFS("/proc"), os.Getpid()); err != nil || v < 0 || v > 1e6 {
		t.Errorf("CPU time %v s, %v", v, err)
	}
}

// BenchmarkTick is one look at a gateway that has served 9P, and the CPU time of its ganesha.
func BenchmarkTick(b *testing.B) {
	tb := layer(b)
	c, err := p9.Dial(b.Context(), tb.ForwarderAddr("fwd000"), 0)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	root, err := c.Attach(b.Context(), tb.Attach(), 0)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := root.GetAttr(b.Context()); err != nil {
		b.Fatal(err)
	}
	s := on(tb, "fwd000")
	defer s.Close()
	usage := func() float64 {
		text, err := tb.Exec(b.Context(), "fwd000", "sh", "-c", "cat /proc/$(pidof ganesha.nfsd)/stat")
		f := strings.Fields(string(text))
		if err != nil || len(f) < 15 {
			b.Fatalf("%s, %v", text, err)
		}
		user, _ := strconv.ParseFloat(f[13], 64)
		system, _ := strconv.ParseFloat(f[14], 64)
		return (user + system) / 100
	}
	before := usage()
	for b.Loop() {
		if err := s.Read(b.Context(), &collector.Reading{Now: time.Now()}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(1e3*(usage()-before)/float64(b.N), "server-ms/op")
}
