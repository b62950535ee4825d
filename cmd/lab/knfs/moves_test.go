package knfs

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"fairway/remap"
	"fairway/webui/api"
	"fairway/webui/client"
)

// nobody is the person who proposes, of operatorsGroup; root approves: a plan wants two.
const nobody = 65534

// settledWithin bounds how long a plan may take until it is verified, partial, failed or back.
const settledWithin = 90 * time.Second

// Client is a client of the daemon, as root. The caller closes it.
func (f *Fairway) Client() (*client.Client, error) { return client.New("unix:"+f.Socket(), "") }

// Move proposes to move a node, approves it and waits until the plan has come to something.
func (f *Fairway) Move(ctx context.Context, node, to string, force bool) (api.PlanView, error) {
	args := []string{"--addr", "unix:" + f.Socket(), "--json", "remap", node, "--to", to, "--reason",
		"a move of this site's test"}
	if force {
		args = append(args, "--force")
	}
	propose := exec.CommandContext(ctx, filepath.Join(f.site.cfg.Programs, "fairway"), args...)
	propose.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := propose.Output()
	if err != nil {
		return api.PlanView{}, fmt.Errorf("propose: %w: %s", err, out)
	}
	var p api.PlanView
	if err := json.Unmarshal(out, &p); err != nil {
		return p, fmt.Errorf("propose: %w: %s", err, out)
	}
	c, err := f.Client()
	if err != nil {
		return p, err
	}
	defer c.Close()
	if p, err = c.Plan(ctx, p.ID); err != nil {
		return p, err
	}
	if _, err = c.Approve(ctx, p.ID, p.PreviewHash, "a move of this site's test"); err != nil {
		return p, fmt.Errorf("%w; the preview says %s", err, strings.Join(p.Lines, "; "))
	}
	return f.settled(ctx, c, p.ID)
}

// Decide does something with a plan, such as (*client.Client).RollBack, and waits until it has come to something.
func (f *Fairway) Decide(ctx context.Context, id string,
	do func(*client.Client, context.Context, string, string) (api.PlanView, error)) (api.PlanView, error) {
	c, err := f.Client()
	if err != nil {
		return api.PlanView{}, err
	}
	defer c.Close()
	if p, err := do(c, ctx, id, "as this site's test says"); err != nil {
		return p, err
	}
	return f.settled(ctx, c, id)
}

func (f *Fairway) settled(ctx context.Context, c *client.Client, id string) (p api.PlanView, err error) {
	ctx, cancel := context.WithTimeout(ctx, settledWithin)
	defer cancel()
	for {
		if p, err = c.Plan(ctx, id); err != nil {
			return p, err
		}
		switch p.State {
		case remap.Verified, remap.Partial, remap.Failed, remap.RolledBack, remap.Restored:
			return p, nil
		}
		select {
		case <-ctx.Done():
			return p, fmt.Errorf("plan %s is still %s: %w", id, p.State, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Mounted is what a client has mounted: the kernel's line of it.
func (s *Site) Mounted(ctx context.Context, node string) (string, error) {
	g, err := s.find(node)
	if err != nil {
		return "", err
	}
	return g.post(ctx, "/run", "grep ' "+mountPoint+" nfs' /proc/self/mounts")
}
