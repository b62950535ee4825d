package daemontest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fairway/cmd/lab/testbed"
	"fairway/collector/topology"
	"fairway/remap/dispatch"
	"fairway/webui/api"
)

// The variables of a process of callers on a compute node: how many, and for how long they call.
const (
	callersVar = "FAIRWAY_CALLERS"
	callForVar = "FAIRWAY_CALL_FOR"
)

// TestHelperProcess are callers, each of which always waits for one stat of a file of its own.
func TestHelperProcess(t *testing.T) {
	callers, _ := strconv.Atoi(os.Getenv(callersVar))
	if callers == 0 {
		t.Skip("a process of another test")
	}
	runFor, err := time.ParseDuration(os.Getenv(callForVar))
	if err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(runFor)
	var calls, nanos atomic.Int64
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			name := fmt.Sprintf("/pfs/stat.%d", i)
			for begun := time.Now(); begun.Before(end); begun = time.Now() {
				if _, err := os.Stat(name); err != nil {
					t.Error(err)
				}
				nanos.Add(time.Since(begun).Nanoseconds())
				calls.Add(1)
			}
		})
	}
	all.Wait()
	fmt.Println(calls.Load(), time.Duration(nanos.Load()).Seconds())
}

// call has callers at work on a node and returns how long a call took on average.
func call(t *testing.T, tb *testbed.Testbed, node topology.NodeID, callers int, runFor time.Duration) (mean float64) {
	self, err := os.Executable()
	if err != nil {
		t.Error(err)
		return 0
	}
	out, err := tb.Exec(t.Context(), node, "env", fmt.Sprint(callersVar, "=", callers),
		fmt.Sprint(callForVar, "=", runFor), self, "-test.run=^TestHelperProcess$")
	var calls, seconds float64
	if _, e := fmt.Sscan(string(out), &calls, &seconds); e != nil || err != nil || calls == 0 {
		t.Errorf("%d callers on %s: %v, %v: %s", callers, node, err, e, out)
		return 0
	}
	return seconds / calls
}

const mostCallers = 48

// load is how a job is made to wait: by the delay of each system call for metadata at the back ends, in seconds, and by
// so many callers on each node; factor is to which the estimate has to be right.
type load struct {
	delay   float64
	callers int
	factor  float64
}

// TestMetadataQueueOfGatewaysIsTheCallers: how many metadata operations of a job wait at nfs-ganesha gateways, by what
// mounts and back ends count, is what a known number of callers says. Each has one call under way, and as many of them
// do not wait as would be needed if every call took what a call takes alone.
func TestMetadataQueueOfGatewaysIsTheCallers(t *testing.T) {
	if os.Getenv("FAIRWAY_LONG") == "" {
		t.Skip("takes five minutes: FAIRWAY_LONG=1")
	}
	tb, d := newRealLayer(t, testbed.Config{Layer: testbed.NFS})
	wantObserved(t, d, tb.Machine().Default)
	for i := range mostCallers { // not through the mounts: the kernel lets one process create at a time
		write(t, filepath.Join(tb.Dir(), fmt.Sprintf("stat.%d", i)), "")
	}
	for i, l := range []load{{0.003, 16, 1.25}, {0.003, 4, 1.5}, {0.003, mostCallers, 1.25}, {0.001, 16, 1.25},
		{0, 16, 1.25}, {0, 4, 2}} {
		got, want := metaQueue(t, tb, d, topology.JobID(fmt.Sprint(2001+i)), l)
		t.Logf("%+v: %.2f metadata operations wait at a gateway, by the callers %.2f", l, got, want)
		if got < want/l.factor || got > want*l.factor {
			t.Errorf("%+v: %.2f metadata operations wait at a gateway, by the callers %.2f", l, got, want)
		}
	}
}

// metaQueue is how many metadata operations of a job wait at a gateway, as its profile has it and as its callers say.
func metaQueue(t *testing.T, tb *testbed.Testbed, d *realDaemon, id topology.JobID, l load) (got, want float64) {
	t.Helper()
	nodes := []topology.NodeID{"cn000", "cn002"} // of different gateways and back ends
	for _, server := range []topology.NodeID{"be000", "be001"} {
		f := testbed.Fault{Kind: testbed.SlowMeta, Node: server, Amount: l.delay}
		if l.delay == 0 {
			continue
		}
		if err := tb.Inject(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		defer tb.Clear(t.Context(), f)
	}
	each := func(callers int, runFor time.Duration) (mean [2]float64) {
		var all sync.WaitGroup
		for k, n := range nodes {
			all.Go(func() { mean[k] = call(t, tb, n, callers, runFor) })
		}
		all.Wait()
		return mean
	}
	before := each(1, 4*time.Second)
	var a dispatch.Answer
	if err := d.ask("/api/v1/dispatch", "start"+string(id), dispatch.Request{Job: id, User: "wei",
		App: "stats" + string(id), Nodes: nodes}, &a); err != nil {
		t.Fatal(err)
	}
	together := each(l.callers, 20*time.Second)
	if err := d.ask("/api/v1/jobs/"+string(id)+"/end", "end"+string(id), struct{}{}, nil); err != nil {
		t.Fatal(err)
	}
	after := each(1, 4*time.Second)
	var v api.ProfileView
	for end := time.Now().Add(aWhile); v.Profile == nil; time.Sleep(50 * time.Millisecond) {
		if err := d.ask("/api/v1/jobs/"+string(id)+"/profile", "", nil, &v); err != nil || time.Now().After(end) {
			t.Fatalf("job %s has no profile: %+v, %v", id, v, err)
		}
	}
	if v.Profile.MetaQueue == nil {
		t.Fatalf("%+v: the queue is not known: %+v", l, v.Profile)
	}
	for k := range nodes {
		alone := min(before[k], after[k]) // the less disturbed by what else runs here
		want += float64(l.callers) * (1 - alone/together[k]) / float64(len(nodes))
	}
	t.Logf("%+v: a call takes %.4f s before, %.4f together, %.4f after", l, before, together, after)
	return *v.Profile.MetaQueue, want
}
