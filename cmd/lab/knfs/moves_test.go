package knfs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
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
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			out = exit.Stderr
		}
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

// movesDrawn is how many moves TestMovesKeepTheMount draws.
const movesDrawn = 20

// Of moves that are drawn, half leave a file open: mount options stay byte for byte, no client is without its mount for
// a moment, and a plan is verified if nothing stays behind, else partial until that is closed.
func TestMovesKeepTheMount(t *testing.T) {
	if os.Getenv("FAIRWAY_LONG") == "" {
		t.Skip("skipped: takes ten minutes: FAIRWAY_LONG=1")
	}
	s, f := live(t, 4, 3)
	clients := []string{"cn1", "cn2", "cn3", "cn4"}
	for _, node := range clients {
		s.inGuest(t, node, `echo held > %[1]s/held.%[3]s
			setsid sh -c 'while :; do grep -q " %[1]s nfs" /proc/self/mounts || date +%%s.%%N; sleep .1; done' \
			>%[2]s/without 2>&1 </dev/null &`, mountPoint, ownDir, node)
	}
	// What differs between two gateways' mounts: their addresses, and the port that each one's mountd has drawn.
	place := regexp.MustCompile(`10\.31\.0\.[0-9]+|mountport=[0-9]+`)
	random := rand.New(rand.NewPCG(31, 20))
	for i := range movesDrawn {
		node, held := clients[random.IntN(len(clients))], i%2 == 1
		was, err := s.Mounted(t.Context(), node)
		if err != nil {
			t.Fatal(err)
		}
		g := random.IntN(3)
		if strings.HasPrefix(was, s.gatewayAddr(g)+":") {
			g = (g + 1) % 3
		}
		gateway := fmt.Sprint("gw", g+1)
		if held {
			s.inGuest(t, node, `setsid sh -c 'exec 3<%s/held.%s; echo $$ >%s/holder; exec sleep 600' \
				>/dev/null 2>&1 </dev/null &`, mountPoint, node, ownDir)
			s.inGuest(t, node, "for i in 1 2 3 4 5 6 7 8 9; do [ -s %[1]s/holder ] && exit; sleep .1; done; exit 1",
				ownDir)
		}
		p, err := f.Move(t.Context(), node, gateway, held)
		if err != nil {
			t.Fatalf("move %d, %s: %v", i, node, err)
		}
		t.Logf("%d: move %d, load %s: %s -> %s, a file open: %t: %s %s", time.Now().UnixMilli(), i, machineLoad(),
			node, gateway, held, p.State, p.Error)
		want := remap.Verified
		if held {
			want = remap.Partial
			s.inGuest(t, node, "kill $(cat %[1]s/holder); rm %[1]s/holder", ownDir)
		}
		if p.State != want {
			t.Errorf("move %d, %s -> %s: %s (%s), want %s", i, node, gateway, p.State, p.Error, want)
		}
		for end := time.Now().Add(time.Minute); held && p.State == remap.Partial && time.Now().Before(end); {
			time.Sleep(time.Second)
			if p, err = f.Decide(t.Context(), p.ID, (*client.Client).Complete); err != nil {
				t.Fatal(err)
			}
		}
		if p.State != remap.Verified {
			t.Errorf("move %d, %s, completed: %s (%s)", i, node, p.State, p.Error)
		}
		is, err := s.Mounted(t.Context(), node)
		if err != nil || !strings.HasPrefix(is, s.gatewayAddr(g)+":") ||
			place.ReplaceAllString(is, "") != place.ReplaceAllString(was, "") {
			t.Errorf("move %d, %s: %v: mounted\n%swas\n%s", i, node, err, is, was)
		}
	}
	for _, node := range clients {
		without, err := os.ReadFile(filepath.Join(s.inst.Dir, node, "without"))
		if err != nil || len(without) > 0 {
			t.Errorf("%s was without its mount: %v %s", node, err, without)
		}
		log, _ := os.ReadFile(filepath.Join(s.inst.Dir, node, "load.log"))
		for line := range strings.Lines(string(log)) {
			if strings.Contains(line, ": ") {
				t.Errorf("%s: an operation of its load failed: %s", node, line)
			}
		}
	}
}

// inGuest runs a script on a guest.
func (s *Site) inGuest(t *testing.T, node, script string, args ...any) {
	t.Helper()
	g, err := s.find(node)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := g.post(t.Context(), "/run", fmt.Sprintf(script, args...)); err != nil {
		t.Fatalf("%s: %v: %s", node, err, out)
	}
}
