package testbed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/cmd/lab/programs"
	"fairway/cmd/lab/testbed/workload"
	"fairway/collector/p9"
	"fairway/collector/topology"
)

func TestMain(m *testing.M) { os.Exit(programs.Run(m.Run)) }

func nodeIDs(names ...string) (ids []topology.NodeID) {
	for _, n := range names {
		ids = append(ids, topology.NodeID(n))
	}
	return ids
}

// tpools returns what a diod says of its trees.
func tpools(t *testing.T, tb *Testbed, i int) string {
	t.Helper()
	c, err := p9.Dial(t.Context(), tb.ForwarderAddr(tb.cfg.forwarder(i)), msize)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	root, err := c.Attach(t.Context(), "ctl", uint32(os.Geteuid()))
	if err != nil {
		t.Fatal(err)
	}
	b, err := root.ReadFile(t.Context(), nil, 1<<20, "tpools")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// hold keeps an attach to a forwarder's file system: diod forgets a tree's counters with its last user.
func hold(t *testing.T, tb *Testbed, i int) {
	t.Helper()
	c, err := p9.Dial(t.Context(), tb.ForwarderAddr(tb.cfg.forwarder(i)), msize)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := c.Attach(t.Context(), tb.Attach(), uint32(os.Geteuid())); err != nil {
		t.Fatal(err)
	}
}

// written returns the wbytes of the file system's line of tpools.
func written(t *testing.T, tb *Testbed, i int) (bytes int64) {
	t.Helper()
	for line := range strings.Lines(tpools(t, tb, i)) {
		if f := strings.Fields(line); len(f) > 5 && f[0] == tb.Attach() {
			if _, err := fmt.Sscan(f[4], &bytes); err != nil {
				t.Fatalf("tpools line %q: %v", line, err)
			}
			return bytes
		}
	}
	return 0
}

// oneBurst has a period that no test sees the end of: bursts begin with the clock's periods, and a test that ran over a
// full minute had two.
func oneBurst(mode workload.Mode) workload.Spec {
	return workload.Spec{Mode: mode, Name: "app", Ranks: 1, BurstBytes: 4 << 20, BlockBytes: 256 << 10, BurstFiles: 20,
		Period: 10_000 * time.Hour, Duration: time.Second}
}

func TestLoopbackLoadPassesItsForwarder(t *testing.T) {
	tb := start(t, Config{Forwarders: 2, ComputeNodes: 4, Loopback: true})
	hold(t, tb, 0)
	hold(t, tb, 1)
	var wg sync.WaitGroup
	for r, id := range nodeIDs("cn002", "cn003") {
		s := oneBurst(workload.SharedFile)
		s.Rank, s.Ranks = r, 2
		wg.Go(func() {
			if err := tb.Load(t.Context(), id, s); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if a, b := written(t, tb, 0), written(t, tb, 1); a != 0 || b != 8<<20 {
		t.Errorf("fwd000 wrote %d bytes and fwd001 %d; the load of its two nodes is %d", a, b, 8<<20)
	}
}

// rankEnv makes this test binary one rank of a job of that mode.
const rankEnv = "FAIRWAY_TESTBED_RANK"

func TestHelperRank(t *testing.T) {
	mode := os.Getenv(rankEnv)
	if mode == "" {
		t.Skip("skipped: only a rank of TestSlurmJobGoesThroughTheMounts")
	}
	s := oneBurst(workload.Mode(mode))
	if _, err := fmt.Sscan(os.Getenv("SLURM_PROCID")+" "+os.Getenv("SLURM_NTASKS"), &s.Rank, &s.Ranks); err != nil {
		t.Fatal(err)
	}
	if err := workload.Run(context.Background(), s, workload.Dir(MountPoint)); err != nil {
		t.Fatal(err)
	}
}

func TestSlurmJobGoesThroughTheMounts(t *testing.T) {
	cfg := Config{Forwarders: 2, ComputeNodes: 4, Slurm: true}
	skipUnlessPossible(t, cfg)
	var err error
	if cfg.MountProgram, err = programs.Path("fairway-mount"); err != nil {
		t.Fatal(err)
	}
	tb := start(t, cfg)
	hold(t, tb, 0)
	hold(t, tb, 1)
	id, err := tb.Submit(t.Context(), Job{Name: "app", Nodes: 3, NodeList: nodeIDs("cn000", "cn002", "cn003"),
		Argv: []string{"env", rankEnv + "=" + string(workload.FilePerProcess), os.Args[0],
			"-test.run=^TestHelperRank$"}})
	if err != nil {
		t.Fatal(err)
	}
	state, err := tb.WaitJob(t.Context(), id)
	if err != nil || state != "COMPLETED" {
		text, _ := os.ReadFile(filepath.Join(tb.LogDir(), "job."+string(id)+".log"))
		t.Fatalf("job %s is %s, %v:\n%s", id, state, err, text)
	}
	// A signal may interrupt a write that the server has done already; the program then repeats it.
	const node, repeated = 4 << 20, 1 << 20
	a, b := written(t, tb, 0), written(t, tb, 1)
	if a < node || a > node+repeated || b < 2*node || b > 2*node+repeated {
		t.Errorf("fwd000 wrote %d bytes and fwd001 %d; want those of one and of two nodes, %d each", a, b, node)
	}
}
