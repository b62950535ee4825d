package daemontest

import (
	"fmt"
	"testing"
	"time"

	"fairway/cmd/lab/testbed"
	"fairway/cmd/lab/testbed/workload"
	"fairway/collector/topology"
	"fairway/remap/dispatch"
	"fairway/webui/api"
)

// TestModesOfRealPrograms runs the testbed's programs on the real forwarding layer, each as a job of
// its own on two nodes, and wants the profile to know how they shared their files.
func TestModesOfRealPrograms(t *testing.T) {
	t.Parallel() // it mostly waits
	tb, d := newRealLayer(t, testbed.Config{})
	wantObserved(t, d, tb.Machine().Default)
	for i, c := range []struct {
		mode workload.Mode
		want topology.Mode
	}{{workload.FilePerProcess, topology.ModeNN}, {workload.SharedFile, topology.ModeN1},
		{workload.OneWriter, topology.Mode11}, {workload.MetadataStorm, ""}} {
		id := fmt.Sprint(1001 + i)
		nodes := []topology.NodeID{"cn000", "cn002"} // of different forwarders
		var a dispatch.Answer
		if err := d.ask("/api/v1/dispatch", "start"+id, dispatch.Request{Job: topology.JobID(id), User: "wei",
			App: string(c.mode), Nodes: nodes}, &a); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, len(nodes))
		for rank, n := range nodes {
			spec := workload.Spec{Mode: c.mode, Name: string(c.mode), BurstBytes: 8 << 20, BlockBytes: 256 << 10,
				BytesPerSec: 8 << 20,
				BurstFiles:  50, FilesPerSec: 50, Period: 2 * time.Second, Duration: 4 * time.Second}
			argv := append([]string{"env", "SLURM_JOB_ID=" + id, fmt.Sprint("SLURM_PROCID=", rank),
				fmt.Sprint("SLURM_NTASKS=", len(nodes))}, spec.Argv(binary(t, "fairway-demo"))...)
			go func() {
				out, err := tb.Exec(t.Context(), n, argv...)
				if err != nil {
					err = fmt.Errorf("%s on %s: %w: %s", c.mode, n, err, out)
				}
				done <- err
			}()
		}
		for range nodes {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		if err := d.ask("/api/v1/jobs/"+id+"/end", "end"+id, struct{}{}, nil); err != nil {
			t.Fatal(err)
		}
		var v api.ProfileView
		for end := time.Now().Add(aWhile); v.Profile == nil; time.Sleep(50 * time.Millisecond) {
			if err := d.ask("/api/v1/jobs/"+id+"/profile", "", nil, &v); err != nil || time.Now().After(end) {
				t.Fatalf("job %s has no profile: %+v, %v", id, v, err)
			}
		}
		t.Logf("%s: %+v", c.mode, v.Profile)
		if v.Profile.Mode != c.want {
			t.Errorf("%s is taken for %q, want %q: %+v", c.mode, v.Profile.Mode, c.want, v.Profile)
		}
	}
}
