// Package knfs is a real site of kernel NFS on one machine: clients of NFSv3 and NFSv4.2, gateways that export again what
// they have mounted, and one back end. Each node is a guest of user-mode-linux with a kernel of its own; its root is the
// machine's, read-only. A network namespace of the site's own holds the bridges that join them.
//
// Everything dies with the process that started it; what is left in one folder is removed by the next Sweep.
package knfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

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
	net    *leash.Thread // in the site's network namespace
	base   *leash.Thread // on this machine's own network
	shim   string
	host   netip.Addr // this machine's address on the guests' network
	guests []*guest
	// Started is how long the start took.
	Started time.Duration

	mu     sync.Mutex // guards everything that follows
	mends  map[string]func(context.Context) error
	behind map[string]time.Duration // clocks that are off
	stop   context.CancelFunc
	tasks  sync.WaitGroup
	daemon *exec.Cmd
}

// Missing lists what this machine lacks for a site.
func Missing() (missing []string) {
	if os.Geteuid() != 0 {
		missing = append(missing, "root")
	}
	for _, program := range []string{"linux.uml", "cc", "ip", "modprobe", "setpriv", "rpc.nfsd", "rpcbind", "mount.nfs"} {
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
	text := fmt.Sprintf("127.0.0.1 localhost\n%s fairway-host\n", s.host)
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
	if err := s.join(ctx); err != nil {
		return fmt.Errorf("join the site's networks: %w", err)
	}
	for _, g := range s.guests {
		if err := s.startGuest(g); err != nil {
			return err
		}
	}
	const upWithin = 2 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, upWithin)
	defer cancel()
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
	if err := os.WriteFile(source, []byte(shim), 0o644); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "cc", "-O2", "-shared", "-fPIC", "-o", s.shim, source).CombinedOutput(); err !=
		nil {
		return fmt.Errorf("compile the shim of user-mode-linux: %w: %s", err, out)
	}
	return nil
}

// tap is the name of a guest's interface on the machine's side.
func tap(name string, net int) string { return fmt.Sprintf("%s.%d", name, net) }

// join makes the networks: three bridges in a namespace, a tap for each guest on each, and this machine's way in.
func (s *Site) join(ctx context.Context) error {
	var err error
	if s.net, err = leash.NewThread(); err != nil {
		return err
	}
	if s.base, err = leash.NewThread(); err != nil {
		return err
	}
	tid := 0
	if err := s.net.Do(func() error { tid = unix.Gettid(); return unix.Unshare(unix.CLONE_NEWNET) }); err != nil {
		return err
	}
	const hostBits = 6
	return leash.WithLock(StateDir, func() error {
		subnet, err := leash.ChooseSubnet(netip.Prefix{}, hostBits)
		if err != nil {
			return err
		}
		s.host = subnet.Addr().Next()
		up, addr := leash.Uplink(s.inst.Name), s.host
		if err := leash.IP(ctx, fmt.Sprintf("link add %s type veth peer name host netns %d\naddr add %s/%d dev %s\n"+
			"link set %s up\n", up, tid, s.host, subnet.Bits(), up, up), "-batch", "-"); err != nil {
			return err
		}
		var b strings.Builder
		b.WriteString("link set lo up\n")
		for net := range 3 {
			fmt.Fprintf(&b, "link add br%d type bridge\nlink set br%d up\n", net, net)
		}
		b.WriteString("link set host master br0 up\n")
		for _, g := range s.guests {
			addr = addr.Next()
			g.addrs[0] = fmt.Sprintf("%s/%d", addr, subnet.Bits())
			for net, on := range g.addrs {
				if on != "" {
					fmt.Fprintf(&b, "tuntap add dev %[1]s mode tap\nlink set %[1]s master br%[2]d up\n", tap(g.name, net), net)
				}
			}
		}
		cmd := exec.CommandContext(ctx, "ip", "-batch", "-")
		cmd.Stdin = strings.NewReader(b.String())
		out, err := os.CreateTemp(s.inst.Dir, "ip")
		if err != nil {
			return err
		}
		defer out.Close()
		cmd.Stdout, cmd.Stderr = out, out
		if err := s.net.Start(cmd); err != nil {
			return err
		}
		if err := cmd.Wait(); err != nil {
			text, _ := os.ReadFile(out.Name())
			return fmt.Errorf("ip: %w: %s", err, text)
		}
		return nil
	})
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

// Dir is the site's folder; it goes with the site.
func (s *Site) Dir() string { return s.inst.Dir }

// Host is this machine's address, as the guests reach it.
func (s *Site) Host() netip.Addr { return s.host }

// Close ends the site and removes all that belongs to it.
func (s *Site) Close() error {
	s.stop()
	s.tasks.Wait()
	if s.daemon != nil {
		_ = s.daemon.Process.Signal(unix.SIGTERM)
		_ = s.daemon.Wait()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, g := range s.guests {
		g.kill()
	}
	errs = append(errs, leash.RemoveLink(leash.Uplink(s.inst.Name)))
	for _, t := range []*leash.Thread{s.net, s.base} {
		if t != nil {
			t.Close()
		}
	}
	errs = append(errs, leash.RemoveGroups(s.inst.Name), leash.WithLock(StateDir, s.inst.Remove))
	err := errors.Join(errs...)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err
}
