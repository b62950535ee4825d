// Package knfs is a real site of kernel NFS on one machine: clients of NFSv3 and NFSv4.2, gateways that export again
// what they have mounted, and one back end. Each node is a guest of user-mode-linux with a kernel of its own; its root
// is the machine's, read-only. A network namespace of the site's own holds the bridges that join them.
//
// Everything dies with the process that started it; what is left in one folder is removed by the next Sweep.
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
	"sync"
	"time"

	"fairway/cmd/lab/leash"
)

// StateDir holds the folders of running sites.
const StateDir = "/run/fairway-knfs"

// Config is what a site is made of.
type Config struct {
	// Guest is the program that runs in each guest with the arguments of Inside.
	Guest []string
	// Programs is the folder of fairway, fairwayd and fairway-agent.
	Programs string
	// Clients and Gateways are how many there are of each.
	Clients, Gateways int
}

// Site is one running site.
type Site struct {
	cfg    Config
	inst   *leash.Instance
	net    *fabric
	shim   string
	guests []*guest
	// Started is how long the start took.
	Started time.Duration

	mu     sync.Mutex // guards everything that follows
	mends  map[string]func(context.Context) error
	behind map[string]time.Duration // clocks that are off
	stop   context.CancelFunc
	daemon *Fairway // nil without
	tasks  sync.WaitGroup
}

// Missing lists what this machine lacks for a site.
func Missing() (missing []string) {
	if os.Geteuid() != 0 {
		missing = append(missing, "root")
	}
	for _, program := range []string{"linux.uml", "cc", "ip", "modprobe", "setpriv", "rpc.nfsd", "rpcbind",
		"mount.nfs"} {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, program)
		}
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		missing = append(missing, "/dev/net/tun")
	}
	return missing
}

// Sweep removes what sites left that were killed, and says how many there were.
func Sweep() (int, error) { return leash.Sweep(StateDir) }

// Start starts a site and returns when every client has its mount. On an error nothing is left. The caller must Close.
func Start(ctx context.Context, cfg Config) (*Site, error) {
	begun := time.Now()
	inst, err := leash.NewInstance(StateDir)
	if err != nil {
		return nil, err
	}
	run, stop := context.WithCancel(context.Background())
	s := &Site{cfg: cfg, inst: inst, mends: map[string]func(context.Context) error{}, stop: stop,
		behind: map[string]time.Duration{}}
	s.draw()
	err = s.up(ctx)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.tasks.Go(func() { s.keepTime(run) })
	s.Started = time.Since(begun)
	return s, nil
}

// draw names the guests and says what each mounts: clients take turns at the gateways, NFSv4.2 and NFSv3.
func (s *Site) draw() {
	s.guests = append(s.guests, &guest{name: "be1", role: backEnd, addrs: [3]string{2: backNet + "1/24"}})
	for i := range s.cfg.Gateways {
		s.guests = append(s.guests, &guest{name: fmt.Sprintf("gw%d", i+1), role: gateway,
			addrs: [3]string{1: fmt.Sprintf("%s%d/24", frontNet, 11+i), 2: fmt.Sprintf("%s%d/24", backNet, 11+i)}})
	}
	for i := range s.cfg.Clients {
		g := &guest{name: fmt.Sprintf("cn%d", i+1), role: compute,
			addrs: [3]string{1: fmt.Sprintf("%s%d/24", frontNet, 101+i)}}
		at := s.gatewayAddr(i % max(1, s.cfg.Gateways-1)) // the last has nobody
		g.source, g.options = at+":/", "vers=4.2,rsize=32768,wsize=32768,noatime"
		if i%2 == 1 {
			g.source = at + ":" + exportDir
			g.options = "vers=3,rsize=32768,wsize=32768,nolock,proto=tcp,nconnect=2,actimeo=5"
		}
		s.guests = append(s.guests, g)
	}
	for _, g := range s.guests {
		g.dir = filepath.Join(s.inst.Dir, g.name)
	}
}

func (s *Site) gatewayAddr(i int) string { return fmt.Sprintf("%s%d", frontNet, 11+i) }

// Gateways are the gateways with their addresses, NAME=ADDRESS.
func (s *Site) Gateways() (out []string) {
	for _, g := range s.guests {
		if g.role == gateway {
			addr, _, _ := strings.Cut(g.addrs[1], "/")
			out = append(out, g.name+"="+addr)
		}
	}
	return out
}

func (s *Site) find(name string) (*guest, error) {
	for _, g := range s.guests {
		if g.name == name {
			return g, nil
		}
	}
	return nil, fmt.Errorf("the site has no node %q", name)
}

// hosts is every guest's /etc/hosts.
func (s *Site) hosts() string {
	text := fmt.Sprintf("127.0.0.1 localhost\n%s fairway-host\n", s.net.host)
	for _, g := range s.guests {
		for _, net := range []int{1, 2} {
			if addr, _, ok := strings.Cut(g.addrs[net], "/"); ok {
				text += addr + " " + g.name + "\n"
				break
			}
		}
	}
	return text
}

func (s *Site) up(ctx context.Context) error {
	if err := s.makeShim(ctx); err != nil {
		return err
	}
	var err error
	if s.net, err = join(ctx, s.inst, s.guests); err != nil {
		return fmt.Errorf("join the site's networks: %w", err)
	}
	for _, g := range s.guests {
		if err := s.startGuest(g); err != nil {
			return err
		}
	}
	for _, g := range s.guests {
		if err := g.await(ctx); err != nil {
			return err
		}
	}
	return nil
}

// makeShim compiles what user-mode-linux needs on newer processors.
func (s *Site) makeShim(ctx context.Context) error {
	source := filepath.Join(s.inst.Dir, "shim.c")
	s.shim = filepath.Join(s.inst.Dir, "shim.so")
	if err := os.WriteFile(source, shim, 0o644); err != nil {
		return err
	}
	cc := exec.CommandContext(ctx, "cc", "-O2", "-shared", "-fPIC", "-o", s.shim, source)
	if out, err := cc.CombinedOutput(); err != nil {
		return fmt.Errorf("compile the shim of user-mode-linux: %w: %s", err, out)
	}
	return nil
}

// keepTime sets the guests' clocks, which run away from the machine's.
func (s *Site) keepTime(ctx context.Context) {
	const every = 10 * time.Second
	for tick := time.NewTicker(every); ; {
		for _, g := range s.guests {
			s.setClock(ctx, g)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// setClock sets a guest's clock; one that does not answer is left alone.
func (s *Site) setClock(ctx context.Context, g *guest) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	s.mu.Lock()
	behind := s.behind[g.name]
	s.mu.Unlock()
	_, _ = g.post(ctx, "/clock", fmt.Sprint(time.Now().Add(-behind).UnixNano()))
}

// Close ends the site and removes all that belongs to it.
func (s *Site) Close() error {
	s.stop()
	s.tasks.Wait()
	var errs []error
	if s.daemon != nil {
		errs = append(errs, s.daemon.daemon.Terminate())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.guests {
		g.kill()
	}
	if s.net != nil {
		errs = append(errs, s.net.close())
	}
	errs = append(errs, leash.RemoveGroups(s.inst.Name), leash.WithLock(StateDir, s.inst.Remove))
	err := errors.Join(errs...)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err
}

// StartLoad starts I/O on every client, with gap between two operations of a process; its log, which is the
// truth, is the file load.log of its folder.
func (s *Site) StartLoad(ctx context.Context, gap time.Duration) error {
	for _, g := range s.guests {
		if g.role != compute {
			continue
		}
		if _, err := g.post(ctx, "/run", fmt.Sprintf("setsid %s load %s %s %s >>%s/load.log 2>&1 </dev/null &",
			strings.Join(s.cfg.Guest, " "), mountPoint, g.name, gap, ownDir)); err != nil {
			return err
		}
	}
	return nil
}
