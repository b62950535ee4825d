package endtoend

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/remap"
)

// addresses are the floating addresses of the protocol nodes, as their kernels have them.
func (s *site) addresses() string { return s.mounts("proc/net/fib_trie", "gw*") }

// on says whether all clients of gw2's address are where it is known that they are.
func (s *site) on(gw string) func() bool {
	return func() bool {
		n := s.nodes("compute")
		return string(n["cn2"].Forwarder) == gw && string(n["cn6"].Forwarder) == gw
	}
}

// TestSlowProtocolNodeIsLeft: GPFS protocol nodes with floating addresses on the modelled site. The one with a tenth of
// its speed is named by its clients' times and no other; its address moves with all its clients or not at all; a mmces
// that is busy, that does nothing or that lies never makes a plan verified, nor the mapping false; the moved clients'
// data crosses the new node alone, and a roll back gives every address back.
func TestSlowProtocolNodeIsLeft(t *testing.T) {
	if os.Getenv("FAIRWAY_LONG") == "" {
		t.Skip("skipped: takes two minutes: make prove")
	}
	t.Parallel() // it mostly waits
	s := startSite(t, "--layer", "gpfs")
	s.until("every client is where its address is", func() bool {
		known := 0
		for name, n := range s.nodes("compute") {
			if want := fmt.Sprintf("gw%d", (name[2]-'1')%4+1); string(n.Forwarder) == want {
				known++
			}
		}
		return known == 8
	})
	was := s.addresses()
	// Clients' times are held against those of before, of half a minute at least.
	s.until("the detector has seen the site healthy", func() bool { return s.truth().Seconds > 45 })
	s.demo("fault", "link", "gw2", "0.1")
	s.until("gw2 is found", func() bool {
		all := s.accused()
		for _, f := range all {
			if f.Node != "gw2" {
				t.Errorf("accused is %s: %s", f.Node, f.Sentence)
			}
			t.Log(f.Sentence)
		}
		return len(all) > 0
	})

	// One of two clients of an address.
	s.fairway("remap", "cn2", "--to", "gw3", "--reason", "gw2 is slow")
	if text := s.preview("P-000001"); !strings.Contains(text, "10.2.3.2 is the address of cn6, too") {
		t.Errorf("the preview of a part of an address's clients is\n%s", text)
	}
	s.fairway("plan", "reject", "P-000001", "--reason", "its address has another client")
	for i, trick := range []struct{ mode, says string }{{"busy", "locked by another command"},
		{"ignore", "mmces reported that 10.2.3.2 has moved to gw3, and lists it at"},
		{"lie", "mmces reports that 10.2.3.2 is at gw3, whose kernel does not have it; gw2 has it"}} {
		s.demo("trick", "", trick.mode, "address move")
		plan := fmt.Sprintf("P-%06d", i+2)
		if text, err := s.move(plan); err == nil || !strings.Contains(text, trick.says) {
			t.Errorf("%s: %v\n%s", trick.mode, err, text)
		}
		if now := s.addresses(); now != was {
			t.Errorf("%s: the addresses are\n%s\nthey were\n%s", trick.mode, now, was)
		}
		if !s.on("gw2")() {
			t.Errorf("%s: cn2 and cn6 are shown elsewhere", trick.mode)
		}
		s.demo("trick")
	}
	s.fairway("remap", "cn2,cn6", "--to", "gw3", "--reason", "looked at alone")
	text := s.preview("P-000005")
	for _, want := range []string{"10.2.3.2 moves from gw2 to gw3 with all its clients: cn2, cn6",
		"gw2 has no address left, and is suspended (mmces node suspend)",
		"with NFSv4, I/O stops for up to 90 s", "policy is even-coverage: the system may move the address back"} {
		if !strings.Contains(text, want) {
			t.Errorf("the preview does not say %q:\n%s", want, text)
		}
	}
	s.fairway("plan", "reject", "P-000005", "--reason", "looked at")
	if text, err := s.move("P-000006"); err != nil || !strings.Contains(text, "verified 2") {
		t.Errorf("the plan ended with %v\n%s", err, text)
	}
	if got := s.suspended(); got != "gw2" {
		t.Errorf("suspended is %q, want gw2", got)
	}
	a := s.truth()
	s.until("the data of the moved nodes crosses gw3", func() bool {
		b := s.truth()
		return b.Routers["gw3"].ByClient["cn2"] > a.Routers["gw3"].ByClient["cn2"] &&
			b.Routers["gw3"].ByClient["cn6"] > a.Routers["gw3"].ByClient["cn6"]
	})
	if now := s.truth().Routers["gw2"].ByClient["cn2"]; now != a.Routers["gw2"].ByClient["cn2"] {
		t.Errorf("data of cn2 still crosses gw2: %g bytes, %g when the plan was verified", now,
			a.Routers["gw2"].ByClient["cn2"])
	}
	s.until("the figures of gw2 and gw3 say so", func() bool {
		at := s.nodes("forwarder")
		return bytesOf(at["gw2"]) == 0 && bytesOf(at["gw3"]) > bytesOf(at["gw4"])
	})

	s.isWellAgain("gw2")
	s.fairway("plan", "rollback", "P-000006", "--reason", "its link is well again")
	s.planned("P-000006", remap.RolledBack)
	if now := s.addresses(); now != was || s.suspended() != "" {
		t.Errorf("after the roll back %q is suspended, and the addresses are\n%s\nthey were\n%s", s.suspended(), now,
			was)
	}
	s.until("gw2 moves data again", func() bool { return bytesOf(s.nodes("forwarder")["gw2"]) > 0 })
	s.demo("tool", "gw1", "mmces", "node", "suspend", "-N", "gw2.model")
	s.until("cn2 is seen where the system has moved its address", func() bool {
		f := s.nodes("compute")["cn2"].Forwarder
		return f != "gw2" && f != ""
	})
}

// suspended are the protocol nodes that mmces lists as suspended.
func (s *site) suspended() string {
	s.t.Helper()
	var names []string
	for line := range strings.Lines(string(s.demo("tool", "gw1", "mmces", "node", "list"))) {
		if f := strings.Fields(line); len(f) > 2 && f[len(f)-1] == "Suspended" {
			names = append(names, strings.TrimSuffix(f[1], ".model"))
		}
	}
	return strings.Join(names, " ")
}

// preview is what a plan's preview and its checks say.
func (s *site) preview(plan string) string {
	s.t.Helper()
	var shown struct {
		Lines  []string
		Checks []remap.Check
	}
	if err := json.Unmarshal(s.fairway("--json", "plan", "show", plan), &shown); err != nil {
		s.t.Fatal(err)
	}
	text := strings.Join(shown.Lines, "\n")
	for _, c := range shown.Checks {
		text += fmt.Sprintf("\n%v %s: %s", c.Level, c.Name, c.Text)
	}
	return text
}

// TestJobsOnGPFSAreDispatched: protocol nodes with an address for each of cn3 to cn6, and two that cn1 and cn7, cn2
// and cn8 share. The second run of a large job whose nodes have addresses of their own has these moved to the two nodes
// that nobody uses, its data crosses them alone, and at its end every address is back. For a job on shared addresses
// the same is planned, and nobody can approve it: others would move, too.
func TestJobsOnGPFSAreDispatched(t *testing.T) {
	t.Parallel() // it mostly waits
	s := startSite(t, "--layer", "gpfs", "--spares", "2", "--named-jobs")
	s.until("every node's protocol node is known", func() bool {
		known := 0
		for _, n := range s.nodes("compute") {
			if n.Forwarder == "gw1" || n.Forwarder == "gw2" {
				known++
			}
		}
		return known == 8
	})
	was := s.addresses()
	own := batchJob{"1", "GRAPES", "cn3,cn5", "N-N", "0.8"}
	shared := batchJob{"2", "WRF", "cn1,cn5", "N-N", "0.8"}
	const enough = 1e9 // bytes of one of two nodes; dispatch.v_min_bytes is less than both
	s.runs(own, "cn3", enough)
	s.runs(shared, "cn1", enough)
	for _, j := range []batchJob{own, shared} {
		s.until("job "+j.id+" has a profile", func() bool { return s.job(j).Profile != nil })
	}

	shared.id = "12"
	s.begin(shared)
	if got := s.decided(shared); got != "upgrade [gw3 gw4]" {
		t.Errorf("the second run on shared addresses: %s", got)
	}
	if text := s.preview("P-000001"); !strings.Contains(text, "is the address of cn7, too") {
		t.Errorf("the preview is\n%s", text)
	}
	s.planned("P-000001", remap.Proposed)
	s.end(shared)
	s.planned("P-000001", remap.Withdrawn)
	if now := s.addresses(); now != was {
		t.Errorf("the addresses are\n%s\nthey were\n%s", now, was)
	}

	own.id = "11"
	s.begin(own)
	if got := s.decided(own); got != "upgrade [gw3 gw4]" {
		t.Errorf("the second run: %s", got)
	}
	s.planned("P-000002", remap.Verified)
	now := s.truth()
	s.onlyOver("cn3", "gw3", now)
	s.onlyOver("cn5", "gw4", now)
	s.end(own)
	s.planned("P-000002", remap.Restored)
	if now := s.addresses(); now != was {
		t.Errorf("the addresses are\n%s\nthey were\n%s", now, was)
	}
}

// TestSuspendedProtocolNode: mmdiag hangs on one protocol node, prints something else on another and is not there on a
// third, which costs nothing else of them; the slow fourth is named with what it waits for. A suspend that does nothing
// or is refused leaves no plan verified, and the plan can be completed. What somebody else has suspended takes no
// address, and stays suspended after the roll back.
func TestSuspendedProtocolNode(t *testing.T) {
	if os.Getenv("FAIRWAY_LONG") == "" {
		t.Skip("skipped: takes four minutes: make prove")
	}
	t.Parallel() // it mostly waits
	s := startSite(t, "--layer", "gpfs")
	s.demo("trick", "gw1", "hang", "mmdiag")
	s.demo("trick", "gw3", "lie", "mmdiag")
	if err := os.Remove(filepath.Join(s.dir, "bin", "gw4", "mmdiag")); err != nil {
		t.Fatal(err)
	}
	s.until("every client is where its address is", s.on("gw2"))
	s.until("the detector has seen the site healthy", func() bool { return s.truth().Seconds > 45 })
	s.demo("fault", "link", "gw2", "0.003") // requests take 1.4 s: a waiter is named from 1 s on
	s.until("gw2 is found, with what it waits for", func() bool {
		for _, f := range s.accused() {
			if f.Node != "gw2" {
				t.Errorf("accused is %s: %s", f.Node, f.Sentence)
			}
			if strings.Contains(f.Cause, "its longest waiter in GPFS waits ") &&
				strings.Contains(f.Cause, "'for I/O completion on disk dm-1', which is for the disks behind it") {
				return true
			}
		}
		return false
	})
	for name, n := range s.nodes("forwarder") {
		if name != "gw2" && bytesOf(n) == 0 {
			t.Errorf("beside its mmdiag the bytes of %s are missing", name)
		}
	}
	s.demo("trick")
	s.demo("tool", "gw1", "mmces", "node", "suspend", "-N", "gw4.model") // somebody else
	s.until("10.2.3.4 has moved", func() bool { return s.nodes("compute")["cn4"].Forwarder != "gw4" })
	was := s.addresses()
	s.fairway("remap", "cn2,cn6", "--to", "gw4", "--reason", "looked at alone")
	if text := s.preview("P-000001"); !strings.Contains(text, "gw4 is suspended and takes no addresses") {
		t.Errorf("the preview is\n%s", text)
	}
	s.fairway("plan", "reject", "P-000001", "--reason", "looked at")

	s.demo("trick", "", "ignore", "node suspend")
	if text, err := s.move("P-000002"); err == nil || !strings.Contains(text, "may move it back: gw2: ") ||
		!strings.Contains(text, "mmces node suspend reported success, and mmces node list has gw2 with the flags") {
		t.Errorf("a suspend that does nothing: %v\n%s", err, text)
	}
	s.demo("trick")
	if now := s.suspended(); now != "gw4" {
		t.Errorf("suspended are %q", now)
	}
	s.isWellAgain("gw2")
	s.fairway("plan", "rollback", "P-000002", "--reason", "once more")
	s.planned("P-000002", remap.RolledBack)
	if now := s.addresses(); now != was {
		t.Errorf("after the first roll back the addresses are\n%s\nthey were\n%s", now, was)
	}
	if text, err := s.move("P-000003"); err != nil || s.suspended() != "gw2 gw4" {
		t.Errorf("suspended are %q: %v\n%s", s.suspended(), err, text)
	}
	s.demo("trick", "", "busy", "node resume")
	s.fairway("plan", "rollback", "P-000003", "--reason", "looked at alone")
	s.planned("P-000003", remap.Partial)
	if text := string(s.fairway("plan", "show", "P-000003")); !strings.Contains(text, "locked by another command") {
		t.Errorf("the roll back does not say what keeps it:\n%s", text)
	}
	s.demo("trick")
	s.fairway("plan", "rollback", "P-000003", "--reason", "once more")
	s.planned("P-000003", remap.RolledBack)
	if now := s.addresses(); now != was || s.suspended() != "gw4" {
		t.Errorf("after the roll back %q is suspended, and the addresses are\n%s\nthey were\n%s", s.suspended(), now,
			was)
	}
}
