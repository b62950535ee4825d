package endtoend

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// firstHour is a layer's first hour by docs/install.md: what a person gives to init, what the page says to add to the
// settings of a role's agents.
type firstHour struct {
	layer, forwarders string
	flags             []string
	add               map[string]func(node, root, settings string) string
}

// TestSettingsOfInitStart: daemon and agents start with the files that 'fairwayd init' wrote, over the files of a
// modelled site; every node reports, every source answers, the forwarder of every compute node is observed, and doctor
// names what is left. The nodes are folders of one host: their name, their root and their folders below /etc and /var
// are put in, nothing else.
func TestSettingsOfInitStart(t *testing.T) {
	prepare(t)
	nids := "rtr1=10.0.255.1@tcp,rtr2=10.0.255.2@tcp,rtr3=10.0.255.3@tcp,rtr4=10.0.255.4@tcp"
	for _, c := range []firstHour{
		{layer: "lnet", forwarders: nids, flags: []string{"--net", "o2ib", "--storage", "oss[1-2],mds1"}},
		{layer: "nfs", forwarders: "gw1=10.2.0.1,gw2=10.2.0.2,gw3=10.2.0.3,gw4=10.2.0.4"},
		{layer: "dvs", forwarders: "gw1=c0-0c0s0n1,gw2=c0-0c0s0n2,gw3=c0-0c0s0n3,gw4=c0-0c0s0n4"},
		{layer: "lwfs", forwarders: "gw[1-4]", add: map[string]func(node, root, settings string) string{
			"forwarder": func(_, root, text string) string {
				return strings.Replace(text, "enabled = false\ntrace = \"\"",
					"enabled = true\ntrace = \""+root+"/var/log/lwfs/trace\"", 1)
			},
			"compute": func(_, _, text string) string {
				text += "\n[routes]\nby = \"lwfs\"\nvolume = \"/etc/lwfs/lwfs.vol\"\n[routes.forwarders]\n"
				for i := range 4 {
					text += fmt.Sprintf("gw%d = \"lwfs_gw%d.vol\"\n", i+1, i+1)
				}
				return text
			}}},
	} {
		t.Run(c.layer, func(t *testing.T) { c.walk(t) })
	}
}

func (c *firstHour) walk(t *testing.T) {
	dir, err := os.MkdirTemp("", "fairway-init") // short, for the sockets
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running []*exec.Cmd
	t.Cleanup(func() {
		stop()
		for _, p := range running {
			_ = p.Wait()
		}
		os.RemoveAll(dir)
	})
	start := func(log string, name string, args ...string) {
		t.Helper()
		p := exec.CommandContext(ctx, filepath.Join(bin, name), args...)
		p.Cancel = func() error { return p.Process.Signal(os.Interrupt) }
		p.WaitDelay = patience
		out, err := os.Create(filepath.Join(dir, log+".log"))
		if err != nil {
			t.Fatal(err)
		}
		p.Stdout, p.Stderr = out, out
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		out.Close()
		running = append(running, p)
	}
	model, etc := filepath.Join(dir, "site"), filepath.Join(dir, "etc")
	start("site", "fairway-demo", "site", "--alone", "--dir", model, "--layer", c.layer)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(free.Addr().String())
	free.Close()
	args := append([]string{"init", "--dir", etc, "--state-dir", filepath.Join(dir, "state"), "--address", "127.0.0.1",
		"--port", port, "--layer", c.layer, "--compute", "cn[1-8]", "--forwarders", c.forwarders, "--peak", "1e9"},
		c.flags...)
	if out, err := exec.CommandContext(ctx, filepath.Join(bin, "fairwayd"), args...).CombinedOutput(); err != nil {
		t.Fatalf("fairwayd init: %v\n%s", err, out)
	}
	main, socket := filepath.Join(etc, "fairwayd.toml"), filepath.Join(dir, "s")
	rewrite(t, main, main, func(text string) string {
		return strings.Replace(text, "\n[listen]\n", "\n[listen]\nsocket = \""+socket+"\"\n", 1)
	})
	start("daemon", "fairwayd", "run", "-c", main)
	until := func(words ...string) string {
		t.Helper()
		for end := time.Now().Add(patience); ; time.Sleep(300 * time.Millisecond) {
			out, _ := exec.CommandContext(ctx, filepath.Join(bin, "fairway"), "--addr", "unix:"+socket,
				"doctor").CombinedOutput()
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(string(out), w) }) {
				return string(out)
			}
			if time.Now().After(end) {
				logs, _ := filepath.Glob(filepath.Join(dir, "*.log"))
				for _, name := range logs {
					log, _ := os.ReadFile(name)
					t.Logf("%s ends:\n%s", filepath.Base(name), log[max(0, len(log)-600):])
				}
				t.Fatalf("not in %s: %q; doctor says\n%s", patience, words, out)
			}
		}
	}
	until("ok      daemon ", "next: give the nodes their settings and start fairway-agent there")
	nodes := c.agents(t, dir, start)
	out := until(fmt.Sprintf("ok      agents      %d of %d nodes reported", nodes, nodes), "ok      sources ",
		"ok      mapping ", "ok      layer ")
	// What is left is a person's to decide: nobody may move nodes, and nobody is called.
	for _, left := range []string{"-> set driver.kind in fairwayd's configuration\n", "-> add [[alert.receiver]] to"} {
		if !strings.Contains(out, left) {
			t.Errorf("doctor does not say %q:\n%s", left, out)
		}
	}
}

// agents starts an agent for each node of the site, with the settings of its role, and says how many.
func (c *firstHour) agents(t *testing.T, dir string, start func(log, name string, args ...string)) (nodes int) {
	t.Helper()
	roles, err := os.ReadDir(filepath.Join(dir, "etc", "nodes"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "etc", "fairwayd.toml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range roles {
		from := filepath.Join(dir, "etc", "nodes", role.Name())
		for _, m := range regexp.MustCompile(`\{id = "(\w+)", role = "`+role.Name()+`"`).FindAllSubmatch(text, -1) {
			node := string(m[1])
			root, own := filepath.Join(dir, "site", "nodes", node), filepath.Join(dir, "node", node)
			if err := os.MkdirAll(own, 0o700); err != nil {
				t.Fatal(err)
			}
			conf := filepath.Join(own, "fairway-agent.toml")
			rewrite(t, filepath.Join(from, "fairway-agent.toml"), conf, func(text string) string {
				if add := c.add[role.Name()]; add != nil {
					text = add(node, root, text)
				}
				text = strings.NewReplacer("/etc/fairway/", from+"/", "/var/lib/fairway-agent/", own+"/").Replace(text)
				return strings.Replace(text, "\nrole = ", "\nnode = \""+node+"\"\nroot = \""+root+"\"\nrole = ", 1) +
					"\n[spool]\ndir = \"" + filepath.Join(own, "spool") + "\"\n"
			})
			start("agent-"+node, "fairway-agent", "-c", conf)
			nodes++
		}
	}
	return nodes
}

// rewrite writes a file's text with a change that must be one.
func rewrite(t *testing.T, from, to string, change func(string) string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	now := change(string(text))
	if now == string(text) {
		t.Fatalf("%s has no place for what is put in:\n%s", from, text)
	}
	if err := os.WriteFile(to, []byte(now), 0o600); err != nil {
		t.Fatal(err)
	}
}
