package endtoend

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/webui/api"
)

// Kernel NFS, Cray DVS and LWFS on the modelled site: a gateway at a tenth of its speed is named and no other, nodes
// that have files open are not moved unless forced, the moved ones' data goes over the new gateway, as the model and
// the daemon's own figures have it, and after the roll back every node has the mount that it had.
func TestSlowNFSGatewayIsLeft(t *testing.T) { leaveSlowGateway(t, "nfs", "proc/1/mounts") }

func TestSlowDVSServerIsLeft(t *testing.T) {
	if os.Getenv("FAIRWAY_LONG") == "" {
		t.Skip("skipped: takes a minute, as on NFS: make prove")
	}
	leaveSlowGateway(t, "dvs", "sys/kernel/debug/dvs/mounts/0/mount")
}

func TestSlowLWFSServerIsLeft(t *testing.T) { leaveSlowGateway(t, "lwfs", "etc/lwfs/lwfs.vol") }

// A gateway whose processors are throttled, which makes it slow, is named with that cause; one that is throttled less,
// and is not slow, is not accused.
func TestThrottledGatewayIsNamedWithItsCause(t *testing.T) {
	if os.Getenv("FAIRWAY_LONG") == "" {
		t.Skip("skipped: takes a minute and a half: make prove")
	}
	t.Parallel() // it mostly waits
	s := startSite(t, "--layer", "nfs")
	s.until("the detector has seen the site healthy", func() bool { return s.truth().Seconds > 40 })
	s.demo("fault", "throttle", "gw3", "0.6")
	s.demo("fault", "throttle", "gw2", "0.03")
	s.until("gw2 is found", func() bool {
		all := s.accused()
		for _, f := range all {
			if f.Node != "gw2" || !strings.Contains(f.Sentence+f.Cause, "its processors were throttled for") ||
				f.Evidence["throttled_ratio"] < 0.5 {
				t.Errorf("accused is %s: %s; %s (%v)", f.Node, f.Sentence, f.Cause, f.Evidence)
			}
		}
		return len(all) > 0
	})
	if text := string(s.fairway("doctor")); !strings.Contains(text, "throttling of processors 4") {
		t.Errorf("the doctor says\n%s", text)
	}
}

// accused are the confirmed findings of slow forwarders.
func (s *site) accused() (confirmed []anomaly.Finding) {
	s.t.Helper()
	var all []anomaly.Finding
	if err := json.Unmarshal(s.fairway("--json", "findings"), &all); err != nil {
		s.t.Fatal(err)
	}
	for _, f := range all {
		if f.Kind == anomaly.FailSlow && f.State == anomaly.Confirmed {
			confirmed = append(confirmed, f)
		}
	}
	return confirmed
}

// until waits for something of the running site; what says what it is.
func (s *site) until(what string, is func() bool) {
	s.t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(300 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("not in %s: %s; nodes are\n%s\nfindings are\n%s", patience, what, s.fairway("nodes"),
				s.fairway("--json", "findings"))
		}
	}
}

// mounts are what all compute nodes have mounted: the texts of a file, or where a link leads; nodes are of another
// layer where they are named.
func (s *site) mounts(file string, nodes ...string) string {
	s.t.Helper()
	names, err := filepath.Glob(filepath.Join(s.dir, "nodes", append(nodes, "cn*")[0], filepath.FromSlash(file)))
	if err != nil || len(names) == 0 {
		s.t.Fatal(names, err)
	}
	var all strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		if info, e := os.Lstat(name); e == nil && info.Mode()&fs.ModeSymlink != 0 {
			to, e := os.Readlink(name)
			text, err = []byte(to), e
		}
		if err != nil {
			s.t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s\n%s\n", name, text)
	}
	return all.String()
}

// nodes are those of a role as the daemon shows them.
func (s *site) nodes(role string) map[string]api.NodeRow {
	s.t.Helper()
	var rows []api.NodeRow
	if err := json.Unmarshal(s.fairway("--json", "nodes", "--role", role), &rows); err != nil {
		s.t.Fatal(err)
	}
	out := map[string]api.NodeRow{}
	for _, r := range rows {
		out[string(r.ID)] = r
	}
	return out
}

// move moves the clients of gw2 to gw3 and returns how the plan ended.
func (s *site) move(plan string, flags ...string) (string, error) {
	s.t.Helper()
	s.fairway(append([]string{"remap", "cn2,cn6", "--to", "gw3", "--reason", "gw2 is slow on its link"}, flags...)...)
	var shown struct {
		PreviewHash string `json:"preview_hash"`
	}
	if err := json.Unmarshal(s.fairway("--json", "plan", "show", plan), &shown); err != nil {
		s.t.Fatal(err)
	}
	text, err := s.try(patience, "fairway", "--addr", s.socket(), "plan", "approve", plan, "--preview",
		shown.PreviewHash, "--wait", "3m", "--reason", "agreed with its users")
	return string(text), err
}

func leaveSlowGateway(t *testing.T, layer, mount string) {
	t.Parallel() // it mostly waits
	s := startSite(t, "--layer", layer)
	s.until("every client has the gateway that it has mounted", func() bool {
		known := 0
		for name, n := range s.nodes("compute") {
			if want := fmt.Sprintf("gw%d", (name[2]-'1')%4+1); string(n.Forwarder) == want {
				known++
			}
		}
		return known == 8
	})
	was := s.mounts(mount)
	s.traffic("gw2") // the detector has seen the site healthy
	s.demo("fault", "link", "gw2", "0.1")
	s.until("gw2 is found", func() bool {
		all := s.accused()
		for _, f := range all {
			if f.Node != "gw2" {
				t.Errorf("accused is %s: %s", f.Node, f.Sentence)
			}
		}
		return len(all) > 0
	})

	if text, err := s.move("P-000001"); err == nil || !strings.Contains(text, "target is busy") {
		t.Errorf("nodes with open files: %v\n%s", err, text)
	}
	if now := s.mounts(mount); now != was {
		t.Errorf("a plan that was refused leaves\n%s\nit was\n%s", now, was)
	}
	if text, err := s.move("P-000002", "--force"); err != nil || !strings.Contains(text, "verified 2") {
		t.Errorf("the forced plan ended with %v\n%s", err, text)
	}
	a := s.truth()
	s.until("what was under way has ended", func() bool { return s.truth().Seconds > a.Seconds+1 })
	a = s.truth()
	s.until("the data of the moved nodes crosses gw3", func() bool {
		b := s.truth()
		return b.Routers["gw3"].ByClient["cn2"] > a.Routers["gw3"].ByClient["cn2"]
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
	s.fairway("plan", "rollback", "P-000002", "--reason", "its link is well again")
	s.until("every mount is as it was", func() bool { return s.mounts(mount) == was })
	s.until("gw2 moves data again", func() bool { return bytesOf(s.nodes("forwarder")["gw2"]) > 0 })
}

func bytesOf(n api.NodeRow) float64 { return n.Values["read_bytes"] + n.Values["write_bytes"] }

// isWellAgain mends a node and says so: nothing goes back onto a forwarder while a finding accuses it.
func (s *site) isWellAgain(node string) {
	s.t.Helper()
	s.demo("mend", node)
	if text, err := s.try(patience, "fairway", "--addr", s.socket(), "findings", "dismiss", "F-0001", "--reason",
		"it was mended"); err != nil {
		s.t.Logf("nothing accuses %s: %v %s", node, err, text)
	}
}
