package endtoend

import (
	"os"
	"strings"
	"testing"

	"fairway/remap"
)

// reason is the text of a rule that was tried for a job.
func (s *site) reason(j batchJob, rule string) string {
	s.t.Helper()
	for _, r := range s.job(j).Decision.Decision.Reasons {
		if r.Rule == rule {
			return r.Text
		}
	}
	return ""
}

// runs has a job that nothing is known of run until the model has moved so many bytes of one of its nodes, and waits
// until what it did is known.
func (s *site) runs(j batchJob, node string, bytes float64) {
	s.t.Helper()
	s.begin(j)
	if got := s.decided(j); !strings.HasPrefix(got, "default ") || !strings.HasSuffix(got, ", not history") {
		s.t.Errorf("first run: %s", got)
	}
	s.until("job "+j.id+" has done its I/O", func() bool {
		moved, now := 0.0, s.truth()
		for _, b := range now.crosses(node) {
			moved += b
		}
		return moved > bytes
	})
	s.end(j)
	s.until("job "+j.id+" has ended", func() bool { v := s.job(j); return !v.End.IsZero() && !v.Pending })
}

// Compute nodes with NFS or DVS mounts of four gateways, of which two serve nobody. The second run of a large job has
// its nodes mount these two before it begins, its data crosses them alone, and at its end every node has its mount
// back. A small job keeps its gateway. How many metadata operations waited is known from the clients to a factor of
// two; DVS's servers count it.
func TestJobsOnNFSAreDispatched(t *testing.T) { dispatchBehindGateways(t, "nfs", "proc/1/mounts", 2) }

func TestJobsOnDVSAreDispatched(t *testing.T) {
	if os.Getenv("FAIRWAY_LONG") == "" {
		t.Skip("skipped: takes half a minute, as on NFS: make prove")
	}
	dispatchBehindGateways(t, "dvs", "sys/kernel/debug/dvs/mounts/0/mount", 0)
}

func dispatchBehindGateways(t *testing.T, layer, mounts string, metaWithin float64) {
	t.Parallel() // it mostly waits
	s := startSite(t, "--layer", layer, "--spares", "2", "--named-jobs")
	s.until("every node's gateway is known", func() bool {
		known := 0
		for _, n := range s.nodes("compute") {
			if n.Forwarder == "gw1" || n.Forwarder == "gw2" {
				known++
			}
		}
		return known == 8
	})
	was := s.mounts(mounts)
	large := batchJob{"1", "GRAPES", "cn1,cn3", "N-N", "0.8"}
	small := batchJob{"2", "POST", "cn2,cn4", "N-N", "0.05"}
	s.begin(small)
	const enough = 1e9 // bytes of one of two nodes; dispatch.v_min_bytes is less than both
	s.runs(large, "cn1", enough)
	s.end(small)
	for _, j := range []batchJob{large, small} {
		s.until("job "+j.id+" has a profile", func() bool { return s.job(j).Profile != nil })
		if p := s.job(j).Profile; p.MetaQueue == nil || p.MetaQueueWithin != metaWithin || p.IONodes != 2 {
			t.Errorf("job %s: %+v", j.id, p)
		}
	}

	large.id, small.id = "11", "12"
	s.begin(large)
	if got := s.decided(large); got != "upgrade [gw3 gw4]" {
		t.Errorf("the second run of a large job: %s", got)
	}
	if s.begin(small); s.decided(small) != "default [gw2], not volume" {
		t.Errorf("the second run of a small job: %s", s.decided(small))
	}
	s.planned("P-000001", remap.Verified)
	now := s.truth()
	s.onlyOver("cn1", "gw3", now)
	s.onlyOver("cn3", "gw4", now)
	for _, f := range []string{"gw3", "gw4"} {
		if st := s.nodes("forwarder")[f].State; st != "dedicated" {
			t.Errorf("%s is %s while the job has it", f, st)
		}
	}
	s.end(large)
	s.planned("P-000001", remap.Restored)
	s.until("every mount is as it was", func() bool { return s.mounts(mounts) == was })
	s.end(small)
}

// TestJobsOnLWFSKeepTheirServers: compute nodes with LWFS report no bytes, so that nothing is known of a run, and the
// next one like it is refused with that reason.
func TestJobsOnLWFSKeepTheirServers(t *testing.T) {
	t.Parallel() // it mostly waits
	s := startSite(t, "--layer", "lwfs", "--spares", "2", "--named-jobs")
	s.until("the server of cn1 is known", func() bool { return s.nodes("compute")["cn1"].Forwarder == "gw1" })
	large := batchJob{"1", "GRAPES", "cn1,cn3", "N-N", "0.8"}
	s.runs(large, "cn1", 0.5e9)
	if p := s.job(large).Profile; p != nil {
		t.Errorf("a profile of what nobody reported: %+v", p)
	}
	large.id = "11"
	s.begin(large)
	if got := s.decided(large); got != "default [gw1], not history" {
		t.Errorf("the second run: %s", got)
	}
	if why := s.reason(large, "history"); !strings.Contains(why,
		"of 1 further run nothing reported what the compute nodes moved") {
		t.Errorf("the reason is %q", why)
	}
	s.end(large)
}

// TestTheMetadataQueueOfOldClientsIsTheirRequests: before Lustre 2.14 no client times its metadata operations, and what
// is under way to its metadata targets is the queue that a large job is granted routers by. There servers have no rules
// for clients yet, and the plan ends as failed: the job's data does not follow.
func TestTheMetadataQueueOfOldClientsIsTheirRequests(t *testing.T) {
	if os.Getenv("FAIRWAY_LONG") == "" {
		t.Skip("skipped: takes a minute: make prove")
	}
	t.Parallel() // it mostly waits
	s := startSite(t, "--release", "2.12", "--spares", "2", "--named-jobs", "--unknown-metadata", "light")
	large := batchJob{"2", "GRAPES", "cn3,cn4", "N-N", "0.8"}
	s.runs(large, "10.0.0.3@tcp", 0.8e9) // of one of two nodes; dispatch.v_min_bytes is less than both
	if p := s.job(large).Profile; p == nil || p.MetaQueue == nil {
		t.Errorf("%+v", p)
	}
	large.id = "12"
	s.begin(large)
	if got := s.decided(large); got != "upgrade [rtr3 rtr4]" {
		t.Errorf("the second run: %s", got)
	}
	const want = "metadata operations waited on average (fewer than 32 needed)"
	if why := s.reason(large, "metadata"); !strings.Contains(why, want) {
		t.Errorf("the reason is %q, want %q", why, want)
	}
	s.planned("P-000001", remap.Failed)
	s.end(large)
}
