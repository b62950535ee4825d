package daemontest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/testbed"
	"fairway/collector/source/mount"
	"fairway/collector/topology"
	"fairway/remap/journal"
)

// supervised is a program that is started again when it is killed, as its unit has it; its newest process is in a file
// for each node.
func supervised(t *testing.T, dir, name string) (path string) {
	t.Helper()
	path = filepath.Join(dir, name)
	write(t, path, fmt.Sprintf("#!/bin/sh\ntrap 'kill $child; wait $child; exit' TERM INT\nwhile :; do\n%q \"$@\" &\n"+
		"child=$!\necho $child > %s.$(hostname)\nwait $child\nsleep 0.1\ndone\n", binary(t, name), path))
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestProgramsKilledAmidPlans kills agents, mounts and queues with kill -9 while plans move nodes to and fro and a job
// appends lines. Each comes back by its unit alone: no line is lost or there twice, no node is moved twice, and every
// plan ends. FAIRWAY_KILLS=200 for the long run.
func TestProgramsKilledAmidPlans(t *testing.T) {
	t.Parallel() // it mostly waits
	dir := t.TempDir()
	cfg := testbed.Config{Forwarders: 2, ComputeNodes: 2, MountProgram: supervised(t, dir, "fairway-mount"),
		QueueProgram: supervised(t, dir, "fairway-queue"),
		Mapping:      topology.Mapping{"cn000": "fwd000", "cn001": "fwd000"}}
	tb, d := newSiteOf(t, cfg, "self_approval = true\ntwo_persons = false\nverify_within = \"8s\"\n",
		supervised(t, dir, "fairway-agent"))
	wantObserved(t, d, topology.Mapping{"cn000": "fwd000", "cn001": "fwd000"})
	wantReporting(t, d, "fwd000", "fwd001")
	r := rand.New(rand.NewPCG(3, 5))
	for _, c := range []struct {
		program string
		on      []string
		mayFail bool // programs that have files open through it see its end
	}{
		{"fairway-agent", []string{"cn000", "cn001", "fwd000"}, false},
		{"fairway-queue", []string{"q-fwd000", "q-fwd001"}, false},
		{"fairway-mount", []string{"cn000", "cn001"}, true},
	} {
		t.Run(c.program, func(t *testing.T) {
			p := &planner{ask: d.ask, nodes: []topology.NodeID{"cn000", "cn001"}, from: "fwd000", to: "fwd001"}
			was := map[topology.NodeID]uint64{}
			for _, n := range p.nodes {
				was[n] = mountReport(t, tb, n).Generation
			}
			log := appendLines(t, tb, "/pfs/"+c.program)
			kills := kills(t, 2)
			for k := range kills {
				p.drive(k, time.Now().Add(time.Duration(r.IntN(1000))*time.Millisecond))
				p.killed()
				node := c.on[k%len(c.on)]
				killOn(t, tb, node, filepath.Join(dir, c.program))
				log.goesOn(t)
			}
			p.settle(t)
			moved := log.end(t, c.mayFail)
			for _, n := range p.nodes {
				m := mountReport(t, tb, n)
				if m.Forwarder != p.from || m.Generation > was[n]+uint64(2*p.made) && !c.mayFail {
					t.Errorf("%s is on %s after %d changes of %d plans", n, m.Forwarder, m.Generation-was[n], p.made)
				}
			}
			t.Logf("%d kills, %d of them while a plan moved nodes, %d plans, %s", kills, p.amid, p.made, moved)
		})
	}
	if _, err := journal.Verify(filepath.Join(filepath.Dir(d.conf), "state", "journal")); err != nil {
		t.Error(err)
	}
}

// mountReport is what a node's mount says of itself.
func mountReport(t *testing.T, tb *testbed.Testbed, n topology.NodeID) mount.Report {
	t.Helper()
	answer, err := mount.Ask(t.Context(), tb.MountSocket(n), mount.Request{Op: "stats"})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Report
}

// killOn kills the newest process of a supervised program on a node.
func killOn(t *testing.T, tb *testbed.Testbed, node, program string) {
	t.Helper()
	was, err := os.ReadFile(program + "." + node)
	if err != nil {
		t.Fatal(err)
	}
	pid := strings.TrimSpace(string(was))
	if out, err := tb.Exec(t.Context(), topology.NodeID(node), "kill", "-9", pid); err != nil {
		t.Fatalf("kill %s on %s: %v: %s", program, node, err, out)
	}
	waitFor(t, program+" is started again on "+node, func() bool {
		now, err := os.ReadFile(program + "." + node)
		return err == nil && len(now) > 1 && string(now) != string(was)
	})
}

// lines is a job on cn000 that appends numbered lines to a file, each by a process of its own, synced.
type lines struct {
	tb     *testbed.Testbed
	file   string
	wrote  chan int // each line that was acknowledged
	stop   context.CancelFunc
	ended  chan struct{}
	acked  map[int]bool
	failed int
	why    error
}

func appendLines(t *testing.T, tb *testbed.Testbed, file string) *lines {
	ctx, stop := context.WithCancel(context.Background())
	l := &lines{tb: tb, file: file, stop: stop, wrote: make(chan int, 1<<16), ended: make(chan struct{}),
		acked: map[int]bool{}}
	t.Cleanup(func() { stop(); <-l.ended })
	go func() {
		defer close(l.ended)
		for i := 1; ctx.Err() == nil; i++ {
			out, err := tb.Exec(context.Background(), "cn000", "sh", "-c",
				fmt.Sprintf("echo line %d >> %s && sync %s", i, file, file))
			if err != nil {
				l.failed++
				l.why = fmt.Errorf("line %d: %w: %s", i, err, out)
				continue
			}
			l.acked[i] = true
			l.wrote <- i
		}
	}()
	return l
}

// goesOn waits for two more lines: what is under way at a kill, and one that began after it.
func (l *lines) goesOn(t *testing.T) {
	t.Helper()
	for len(l.wrote) > 0 {
		<-l.wrote
	}
	for range 2 {
		select {
		case <-l.wrote:
		case <-time.After(aWhile):
			t.Fatalf("nothing is appended to %s any more", l.file)
		}
	}
}

// end wants every acknowledged line in the file, and none twice.
func (l *lines) end(t *testing.T, mayFail bool) string {
	t.Helper()
	l.stop()
	<-l.ended
	text, err := l.tb.Exec(t.Context(), "cn001", "cat", l.file)
	for end := time.Now().Add(aWhile); err != nil && mayFail && time.Now().Before(end); { // its mount comes back
		time.Sleep(100 * time.Millisecond)
		text, err = l.tb.Exec(t.Context(), "cn001", "cat", l.file)
	}
	if err != nil {
		t.Fatal(err)
	}
	have := map[int]int{}
	for line := range strings.Lines(string(text)) {
		n, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(line), "line "))
		if err != nil {
			t.Errorf("a line that nobody wrote: %q", line)
		}
		have[n]++
	}
	lost, twice := 0, 0
	for n := range l.acked {
		if have[n] == 0 {
			lost++
		}
	}
	for _, times := range have {
		twice += times - 1
	}
	if lost > 0 || twice > 0 || l.failed > 0 && !mayFail {
		t.Errorf("of %d lines %d are lost, %d there twice; %d failed: %v", len(l.acked), lost, twice, l.failed, l.why)
	}
	return fmt.Sprintf("%d lines acknowledged, %d lost, %d twice, %d failed", len(l.acked), lost, twice, l.failed)
}
