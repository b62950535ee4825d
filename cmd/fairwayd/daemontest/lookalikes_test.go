package daemontest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"fairway/cmd/lab/testbed"
	"fairway/cmd/lab/testbed/workload"
	"fairway/collector/topology"
)

// lookAlike draws what slows jobs down without a fault of one forwarder, and wants that no rule acts.
func (e *evacuation) lookAlike() {
	e.t.Helper()
	before := len(e.acts())
	kinds := map[string]func() (stop func()){
		"slow back end":    e.slowBackEnd,
		"busy neighbour":   e.busyNeighbour,
		"slow client":      e.slowClient,
		"a job that stops": func() func() { e.end("1001"); return func() { e.start("1001") } },
	}
	name := e.draw("look-alike", slices.Sorted(maps.Keys(kinds)))
	stop := kinds[name]()
	time.Sleep(lookAlikeFor)
	acted := e.acts()
	stop()
	if len(acted) > before {
		e.t.Errorf("%s: acted: %+v", name, acted[0])
	}
	e.wantNoErrors()
	e.t.Logf("%s: %d acts; accused %d", name, len(acted)-before, len(e.findings()))
}

// slowBackEnd slows what lies behind all forwarders alike.
func (e *evacuation) slowBackEnd() func() {
	var on []testbed.Fault
	machine := e.tb.Machine()
	behind := topology.Forwarder // they have the file system themselves
	if len(machine.ByRole(topology.Storage)) > 0 {
		behind = topology.Storage
	}
	for _, n := range machine.Nodes {
		if n.Role == behind {
			on = append(on, testbed.Fault{Kind: testbed.SlowData, Node: n.ID, Amount: 0.03})
		}
	}
	return e.inject(on...)
}

// slowClient slows the link of one compute node to a part of what its job asks for.
func (e *evacuation) slowClient() func() {
	return e.inject(testbed.Fault{Kind: testbed.SlowLink, Node: e.client(), Amount: 3e5})
}

// client draws a compute node.
func (e *evacuation) client() topology.NodeID {
	return topology.NodeID(fmt.Sprintf("cn%03d", e.rand.IntN(8)))
}

// inject switches faults on at once, so that no node is the only one for a while; stop switches them off.
func (e *evacuation) inject(on ...testbed.Fault) (stop func()) {
	e.t.Helper()
	errs := make([]error, len(on))
	var wait sync.WaitGroup
	for i := range on {
		wait.Go(func() { errs[i] = e.tb.Inject(e.t.Context(), on[i]) })
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		e.t.Fatal(err)
	}
	return func() {
		for _, f := range on {
			if err := e.tb.Clear(e.t.Context(), f); err != nil {
				e.t.Fatal(err)
			}
		}
	}
}

// busyNeighbour writes through one forwarder as fast as it goes, from one node.
func (e *evacuation) busyNeighbour() func() {
	ctx, stop := context.WithCancel(context.Background())
	spec := workload.Spec{Mode: workload.FilePerProcess, Name: "neighbour", BurstBytes: 64 << 20, BlockBytes: 1 << 20,
		BurstFiles: 50, Period: 5 * time.Second, Duration: time.Hour}
	e.run(ctx, e.client(), append([]string{"env", "SLURM_PROCID=0", "SLURM_NTASKS=1"},
		spec.Argv(binary(e.t, "fairway-demo"))...))
	return stop
}
