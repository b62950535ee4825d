package knfs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"fairway/cmd/lab/leash"
)

// shell is a fault that a command inside the guest makes, and one that ends it.
type shell struct{ on, off string }

// netem is a fault of what a node sends through an interface: eth1 leads a gateway to its clients, eth2 the back end to
// its gateways.
func netem(dev, how string) shell {
	return shell{"tc qdisc add dev " + dev + " root netem " + how, "tc qdisc del dev " + dev + " root"}
}

// shells are the faults by command.
var shells = map[string]shell{
	"delay":      netem("eth1", "delay 300ms"),
	"rate":       netem("eth1", "rate 400kbit limit 100"),
	"loss":       netem("eth1", "loss 20%"),
	"one-thread": {"rpc.nfsd 1", fmt.Sprintf("rpc.nfsd %d", threads)},
	"back-delay": netem("eth2", "delay 200ms"),
	"agent-mute": {"pkill -STOP fairway-agent", "pkill -CONT fairway-agent"},
}

// Faults lists the kinds of fault: those of shells, and cpu, frozen, dead, clock.
func Faults() []string {
	return append(slices.Sorted(maps.Keys(shells)), "clock", "cpu", "dead", "frozen")
}

// starvedShare is the part of a processor that the fault "cpu" leaves; clockBehind how late the clock of "clock" is.
const (
	starvedShare = 0.05
	clockBehind  = 2 * time.Second
)

// Break makes one node faulty.
func (s *Site) Break(ctx context.Context, kind, node string) error {
	g, err := s.find(node)
	if err != nil {
		return err
	}
	var mend func(context.Context) error
	switch sh, ok := shells[kind]; {
	case ok:
		_, err = g.post(ctx, "/run", sh.on)
		mend = func(ctx context.Context) error { _, err := g.post(ctx, "/run", sh.off); return err }
	case kind == "cpu":
		var off func() error
		off, err = leash.Starve(s.inst.Name, node, starvedShare, g.pids()...)
		mend = func(context.Context) error { return off() }
	case kind == "frozen":
		err = g.kernel.Signal(unix.SIGSTOP)
		mend = func(context.Context) error { return g.kernel.Signal(unix.SIGCONT) }
	case kind == "clock":
		s.late(node, clockBehind)
		mend = func(context.Context) error { s.late(node, 0); return nil }
	case kind == "dead":
		g.kill()
		mend = func(ctx context.Context) error { return s.reboot(ctx, g) }
	default:
		return fmt.Errorf("fault %q: want one of %v", kind, Faults())
	}
	if err != nil {
		return fmt.Errorf("make %s %s: %w", node, kind, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mends[node] = mend
	return nil
}

func (s *Site) late(node string, by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind[node] = by
}

// reboot starts a guest again that was killed, and its agent.
func (s *Site) reboot(ctx context.Context, g *guest) error {
	if err := s.startGuest(g); err != nil {
		return err
	}
	if err := g.await(ctx); err != nil {
		return err
	}
	s.setClock(ctx, g)
	if s.daemon == nil {
		return nil
	}
	return s.daemon.startAgent(ctx, g)
}
