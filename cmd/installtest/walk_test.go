package installtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/testbed"
	"fairway/collector/topology"
)

// step is what must be so after a command of the page, before the next one.
type step struct {
	begins string // of the command
	// doctor is what 'fairway doctor' names as the next step before it; "" where doctor is not there yet.
	doctor string
	after  func(s *site, out string)
	// reads marks a command that only reads: it is repeated while it fails, as when a busy node misses its second.
	reads bool
}

// walk are the commands of docs/install.md, all of them, in its order.
var walk = []step{
	{begins: "dpkg -i"},
	{begins: "fairwayd init", doctor: "next: fairwayd init", after: func(s *site, out string) {
		if !strings.Contains(out, "next: systemctl enable --now fairwayd") {
			s.t.Errorf("init does not say what comes next:\n%s", out)
		}
	}},
	{begins: "systemctl enable --now fairwayd", doctor: "next: systemctl enable --now fairwayd",
		after: func(s *site, _ string) { s.until(head, "fairway doctor", "daemon      answers at") }},
	{begins: "for n in forwarder/fwd0", doctor: "next: give the nodes their settings and start fairway-agent",
		after: func(s *site, _ string) {
			// The first second: forwarders and all four compute nodes report, and back ends where there are some.
			n := len(s.tb.Machine().Nodes) - 1
			s.until(head, "fairway doctor", fmt.Sprintf("%d of %d nodes reported", n, n))
		}},
	{begins: "fairway doctor", reads: true, after: func(s *site, _ string) {
		for _, part := range []string{"sources", "layer", "mapping", "driver"} {
			s.until(head, "fairway doctor", "ok      "+part)
		}
	}},
	{begins: "ssh fwd1", after: func(s *site, _ string) {
		s.until(head, "fairway findings", "fwd1")
		s.until(head, "get http://127.0.0.1:9093/api/v2/alerts", `"fairway_silent"`)
		s.until(head, "cat $"+walkEnv+"/mail", "fwd1")
	}},
	{begins: "fairway findings", after: func(s *site, out string) {
		if !strings.Contains(out, "silent") {
			s.t.Errorf("no silent forwarder among:\n%s", out)
		}
	}},
	{begins: "fairway remap", after: func(s *site, out string) {
		if !strings.Contains(s.on(head, "fairway plans"), "fwd0") {
			s.t.Errorf("no plan after:\n%s", out)
		}
		// Another person of the operators' group approves it with the command that is printed.
		printed := regexp.MustCompile(`fairway plan approve (P-\d+) \(a script: (--preview [0-9a-f]+)`)
		how := printed.FindStringSubmatch(out)
		if how == nil {
			s.t.Fatalf("it does not say how to approve:\n%s", out)
		}
		group := s.on(head, `sed -n 's/^\(sudo\|wheel\) *=.*/\1/p' /etc/fairway/fairwayd.toml`)
		s.on(head, "useradd -G "+strings.TrimSpace(group)+" erika && setpriv --reuid=erika --regid=erika "+
			"--init-groups fairway plan approve "+how[1]+" "+how[2]+" --reason 'agreed with its users' --wait 2m")
		for _, node := range []topology.NodeID{"cn2", "cn3"} {
			if on := s.on(node, "fairway-mount status /run/fairway-mount/control"); !strings.Contains(on, "fwd0") {
				s.t.Errorf("%s was not moved:\n%s", node, on)
			}
		}
	}},
	{begins: "fairway report", after: func(s *site, _ string) {
		if page := s.on(head, "cat /tmp/report.html; rm /tmp/report.html"); !strings.Contains(page, "fwd1") {
			s.t.Errorf("the report does not name fwd1:\n%.2000s", page)
		}
	}},
}

// TestWalkOfTheInstallationPage runs the commands of docs/install.md as they are written, in systems that have nothing
// of fairway's, on the testbed's nodes; for gateways of nfs-ganesha with what the page's table of layers says of them.
func TestWalkOfTheInstallationPage(t *testing.T) {
	t.Run("diod", func(t *testing.T) { walkPage(t, testbed.Diod, strings.NewReplacer()) })
	t.Run("ganesha", func(t *testing.T) {
		walkPage(t, testbed.NFS, strings.NewReplacer("--layer diod", "--layer ganesha --storage 'be00[0-1]'",
			"--mail-to oncall@fairway.site", "--mail-to oncall@fairway.site && sed -i 's/^# addr/addr/; "+
				"s/^# export = \"TAG\"/export = \"pfs\"/' /etc/fairway/nodes/forwarder/fairway-agent.toml",
			" compute/cn0 ", " storage/be000 storage/be001 compute/cn0 "))
	})
}

func walkPage(t *testing.T, layer testbed.Layer, ofLayer *strings.Replacer) {
	need(t, "dpkg", "make")
	tool(t, "prometheus-alertmanager")
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)\n```").FindAllStringSubmatch(string(page), -1) {
		commands = append(commands, block[1])
	}
	if len(commands) != len(walk) || len(commands) >= 10 {
		t.Fatalf("the page has %d commands, want fewer than 10, and the %d of this test", len(commands), len(walk))
	}
	packages(t, "deb")
	s := startSite(t, layer)
	begun := time.Now()
	for i, command := range commands {
		if !strings.HasPrefix(command, walk[i].begins) {
			t.Fatalf("command %d of the page is %q, want one that begins with %q", i+1, command, walk[i].begins)
		}
		if next := walk[i].doctor; next != "" {
			s.until(head, "fairway doctor 2>&1 || true", next)
		}
		command = "cd " + filepath.Join(made, "packages") + " && " + ofLayer.Replace(command)
		if walk[i].reads {
			s.until(head, command+" && echo done", "done")
		}
		out := s.on(head, command)
		t.Logf("%s: # %s\n%s", time.Since(begun).Round(100*time.Millisecond), command, out)
		if walk[i].after != nil {
			walk[i].after(s, out)
		}
	}
	t.Logf("the walk took %s", time.Since(begun).Round(time.Second))
}
