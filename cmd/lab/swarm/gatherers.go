package swarm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"fairway/collector/stream"
	"fairway/collector/topology"
	"fairway/webui/access"
)

// gatherers are fairway-agent processes with [gather].
type gatherers struct {
	dir  string
	cmds []*exec.Cmd
	urls []string
}

// gathererPort is the first one's; each has a port of its own, below those of outgoing connections.
const gathererPort = 20000

// startGatherers starts processes of the shipped agent, which read nothing but the clock.
func (o *Options) startGatherers(ctx context.Context) (g *gatherers, err error) {
	g = &gatherers{}
	if o.Gatherers == 0 {
		return g, nil
	}
	if o.Secret == "" {
		return g, errors.New("--gatherers need the secret behind nodes' own tokens (--secret-file)")
	}
	if o.Inside {
		return g, nil
	}
	if g.dir, err = os.MkdirTemp("", "fairway-gatherers"); err != nil {
		return g, err
	}
	e := access.Enrolment{Secrets: func() ([]string, error) { return []string{o.Secret}, nil }}
	for i := range o.Gatherers {
		name := fmt.Sprintf("gather%03d", i)
		token, err := e.NodeToken(topology.NodeID(name), time.Now().Add(-time.Minute))
		if err != nil {
			return g, err
		}
		dir := filepath.Join(g.dir, name)
		addr := fmt.Sprintf("127.0.0.1:%d", gathererPort+i)
		conf := fmt.Sprintf("node = %q\nlog_level = \"warn\"\n[daemon]\nurl = %q\ntoken_file = %q\n[spool]\ndir = %q\n"+
			"[gather]\nlisten = %q\nmax_nodes = 4096\n[source.procfs]\nenabled = false\n", name, o.URL,
			filepath.Join(dir, "token"), filepath.Join(dir, "spool"), addr)
		if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "token"), []byte(token), 0o600),
			os.WriteFile(filepath.Join(dir, "agent.toml"), []byte(conf), 0o600)); err != nil {
			return g, err
		}
		cmd := exec.CommandContext(ctx, o.Agent, "--config", filepath.Join(dir, "agent.toml"))
		cmd.Stderr = os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			return g, err
		}
		g.cmds, g.urls = append(g.cmds, cmd), append(g.urls, "ws://"+addr)
	}
	return g, g.ready(ctx)
}

// ready waits until every gatherer has its daemon.
func (g *gatherers) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	for _, at := range g.urls {
		for {
			q, err := http.NewRequestWithContext(ctx, http.MethodGet,
				"http"+strings.TrimPrefix(at, "ws")+stream.GatherPath, nil)
			if err != nil {
				return err
			}
			res, err := http.DefaultClient.Do(q)
			if err == nil {
				res.Body.Close()
				if res.StatusCode == http.StatusBadRequest { // it wants a WebSocket, and has its daemon
					break
				}
			}
			if err := pause(ctx, 100*time.Millisecond); err != nil {
				return fmt.Errorf("gatherer %s: %w", at, err)
			}
		}
	}
	return nil
}

// usage is the sum of the processes', the largest resident memory and the largest share of a core among them.
func (g *gatherers) usage() (all []usage, err error) {
	for _, c := range g.cmds {
		u, err := usageOf(c.Process.Pid)
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}

func (g *gatherers) close() error {
	for _, c := range g.cmds {
		_ = c.Process.Kill()
	}
	for _, c := range g.cmds {
		_ = c.Wait()
	}
	if g.dir == "" {
		return nil
	}
	return os.RemoveAll(g.dir)
}

// summary are the gatherers' figures between two looks.
func summary(first, last []usage, agents int) string {
	if len(first) == 0 || len(first) != len(last) {
		return ""
	}
	cpu, most, resident, peak := 0.0, 0.0, int64(0), int64(0)
	for i := range first {
		share := (last[i].cpu - first[i].cpu) / last[i].at.Sub(first[i].at).Seconds()
		cpu += share
		most = max(most, share)
		resident += last[i].resident
		peak = max(peak, last[i].peak)
	}
	n := float64(len(first))
	return fmt.Sprintf("gatherers  %d of %d nodes each: %.2f %% of a core in the mean, at most %.2f %%; %.0f MB "+
		"resident in the mean, at most %d MB\n", len(first), agents/len(first), 100*cpu/n, 100*most,
		float64(resident)/n/(1<<20), peak>>20)
}
