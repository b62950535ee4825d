package knfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"fairway/cmd/lab/daemon"
	"fairway/cmd/lab/leash"
)

// Fairway is the daemon of a site, with an agent on every node.
type Fairway struct {
	site   *Site
	daemon *leash.Process
}

// Socket is the daemon's, on this machine.
func (f *Fairway) Socket() string { return filepath.Join(f.site.inst.Dir, "s") }

// capabilities are those of an agent, as the file that init wrote for its unit has them; none without one.
func capabilities(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "capabilities.conf"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	out := "-all"
	_, words, _ := strings.Cut(string(text), "CapabilityBoundingSet=")
	for word := range strings.FieldsSeq(words) {
		out += ",+" + strings.ToLower(strings.TrimPrefix(word, "CAP_"))
	}
	return out, nil
}

// StartFairway starts the daemon here and an agent on every guest with exactly the files that 'fairwayd init' writes
// when it is asked on a compute node; of the daemon's only the socket's place is another. It returns when all report.
func (s *Site) StartFairway(ctx context.Context) (*Fairway, error) {
	f := &Fairway{site: s}
	if err := f.writeSettings(ctx); err != nil {
		return f, err
	}
	var err error
	if f.daemon, err = daemon.Run(ctx, exec.Command(filepath.Join(s.cfg.Programs, "fairwayd"), "run", "-c",
		filepath.Join(s.inst.Dir, "etc", "fairwayd.toml")), f.Socket(),
		filepath.Join(s.inst.Dir, "log", "fairwayd.log")); err != nil {
		return f, err
	}
	s.daemon = f
	for _, g := range s.guests {
		if err := f.startAgent(ctx, g); err != nil {
			return f, err
		}
	}
	return f, f.allReport(ctx)
}

// operatorsGroup is the group whose people may propose.
const operatorsGroup = "nogroup"

// writeSettings has init write them, from what a client shows.
func (f *Fairway) writeSettings(ctx context.Context) error {
	s := f.site
	var nodes []string
	root := filepath.Join(s.inst.Dir, "asked")
	for _, g := range s.guests {
		if g.role != compute {
			continue
		}
		if nodes = append(nodes, g.name); len(nodes) > 1 {
			continue
		}
		mounts, err := g.post(ctx, "/run", "cat /proc/self/mounts")
		if err != nil {
			return err
		}
		if err := errors.Join(os.MkdirAll(filepath.Join(root, "proc", "self"), 0o755),
			os.WriteFile(filepath.Join(root, "proc", "self", "mounts"), []byte(mounts), 0o644)); err != nil {
			return err
		}
	}
	free, err := leash.FreeAddr(s.net.host.String())
	if err != nil {
		return err
	}
	_, port, _ := strings.Cut(free, ":")
	etc := filepath.Join(s.inst.Dir, "etc")
	out, err := exec.CommandContext(ctx, filepath.Join(s.cfg.Programs, "fairwayd"), "init", "--dir", etc,
		"--state-dir", filepath.Join(s.inst.Dir, "state"), "--address", s.net.host.String(), "--port", port,
		"--name", "knfs", "--layer", "nfs", "--compute", strings.Join(nodes, ","), "--storage", "be1",
		"--forwarders", strings.Join(s.Gateways(), ","), "--peak", "2e7", "--operators", operatorsGroup,
		"--orders", "--root", root).CombinedOutput()
	if err != nil {
		return fmt.Errorf("fairwayd init: %w: %s", err, out)
	}
	file := filepath.Join(etc, "fairwayd.toml")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	own := strings.Replace(string(text), "\n[listen]\n", "\n[listen]\nsocket = \""+f.Socket()+"\"\n", 1)
	return os.WriteFile(file, []byte(own), 0o644)
}

// startAgent gives a guest its role's files and starts its agent.
func (f *Fairway) startAgent(ctx context.Context, g *guest) error {
	s := f.site
	from := filepath.Join(s.inst.Dir, "etc", "nodes", []string{"compute", "forwarder", "storage"}[g.role])
	if err := os.RemoveAll(filepath.Join(g.dir, "fairway")); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(g.dir, "fairway"), os.DirFS(from)); err != nil {
		return err
	}
	rights, err := capabilities(from)
	if err != nil {
		return err
	}
	_, err = g.post(ctx, "/run", fmt.Sprintf("set -e; mkdir -p /etc/fairway /var/lib/fairway-agent; "+
		"cp %[1]s/fairway/* /etc/fairway/; chmod 600 /etc/fairway/join.token\n"+
		"setsid setpriv --no-new-privs --inh-caps=-all --bounding-set=%[2]s %[3]s/fairway-agent "+
		"-c /etc/fairway/fairway-agent.toml >>%[1]s/agent.log 2>&1 </dev/null & echo $! >/run/agent.pid",
		ownDir, rights, s.cfg.Programs))
	return err
}

// reportWithin bounds how long nodes may take to report.
const reportWithin = time.Minute

// allReport waits until every node has reported.
func (f *Fairway) allReport(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reportWithin)
	defer cancel()
	want := fmt.Sprintf("%d of %d nodes reported", len(f.site.guests), len(f.site.guests))
	for {
		out, err := f.Run(ctx, "doctor")
		if strings.Contains(out, want) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s: doctor (%w) says no %q:\n%s\n%s", reportWithin, err, want, out,
				f.daemon.Tail())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Run runs the command fairway on this machine and returns what it printed.
func (f *Fairway) Run(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(f.site.cfg.Programs, "fairway"),
		append([]string{"--addr", "unix:" + f.Socket()}, args...)...).CombinedOutput()
	return string(out), err
}
