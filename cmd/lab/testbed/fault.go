package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"fairway/cmd/lab/leash"
	"fairway/collector/topology"
)

// FaultKind is one way of making a forwarder or back end slow or dead, or any node's link bad.
type FaultKind string

// The faults, and what Fault.Amount means for each.
const (
	// SlowLink caps the node's link in both directions. Amount: bytes/s; 20e6 if 0.
	SlowLink FaultKind = "slow-link"
	// PacketLoss drops packets that reach the node. Amount: share 0..1; 0.02 if 0.
	PacketLoss FaultKind = "packet-loss"
	// StarvedCPU leaves the file service a part of one processor. Amount: share 0..1; 0.05 if 0.
	StarvedCPU FaultKind = "starved-cpu"
	// StopGo stops the file service for a part of every 100 ms. Amount: share 0..1; 0.9 if 0.
	StopGo FaultKind = "stop-go"
	// SlowData delays every pread and pwrite, of a node that has the file system. Amount: seconds; 0.02 if 0.
	SlowData FaultKind = "slow-data"
	// SlowMeta delays every open, stat, unlink, mkdir and rmdir, of such a node. Amount: seconds; 0.005 if 0.
	SlowMeta FaultKind = "slow-meta"
	// SlowSend delays every message that the file service sends. Amount: seconds; 0.002 if 0.
	SlowSend FaultKind = "slow-send"
	// Kill kills the file service; clearing it starts another. A back end is not killed: its gateways would fail
	// every request from then on, until they are restarted too.
	Kill FaultKind = "kill"
	// Hang stops the file service without ending it.
	Hang FaultKind = "hang"
)

// Fault is one fault of one node.
type Fault struct {
	Kind   FaultKind
	Node   topology.NodeID
	Amount float64 // how bad, in the kind's unit; 0 is the kind's default
}

// faultKinds says how each kind is switched on. A starter returns what switches the fault off.
var faultKinds = map[FaultKind]struct {
	amount, least, most float64 // default and bounds
	start               func(*Testbed, context.Context, *node, *leash.Process, float64) (undo, error)
}{
	SlowLink:   {20e6, 1e4, 1e11, (*Testbed).slowLink},
	PacketLoss: {0.02, 0.001, 0.9, (*Testbed).loseLink},
	StarvedCPU: {0.05, 0.01, 1, (*Testbed).starve},
	StopGo:     {0.9, 0.01, 0.99, (*Testbed).stopGo},
	SlowData:   {0.02, 1e-5, 10, (*Testbed).slowData},
	SlowMeta:   {0.005, 1e-5, 10, (*Testbed).slowMeta},
	SlowSend:   {0.002, 1e-5, 10, (*Testbed).slowSend},
	Kill:       {0, 0, 0, (*Testbed).killService},
	Hang:       {0, 0, 0, (*Testbed).hang},
}

// FaultKinds returns every kind, sorted.
func FaultKinds() []FaultKind {
	var out []FaultKind
	for k := range faultKinds {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// activeFault is a fault that is on.
type activeFault struct {
	Fault
	off undo
}

// undo switches a fault off.
type undo func(context.Context) error

// Inject switches a fault on and returns when it works. The error wraps errors.ErrUnsupported
// where this machine, or a testbed without root, cannot do it.
func (tb *Testbed) Inject(ctx context.Context, f Fault) error {
	kind, ok := faultKinds[f.Kind]
	if !ok {
		return fmt.Errorf("inject: no fault is called %q (there are %v)", f.Kind, FaultKinds())
	}
	if f.Amount == 0 {
		f.Amount = kind.amount
	}
	if f.Amount < kind.least || f.Amount > kind.most {
		return fmt.Errorf("inject %s: amount %g is not within %g to %g", f.Kind, f.Amount, kind.least, kind.most)
	}
	n, err := tb.find(f.Node)
	if err != nil {
		return fmt.Errorf("inject %s: %w", f.Kind, err)
	}
	p := tb.service(f.Node)
	if p == nil && f.Kind != SlowLink && f.Kind != PacketLoss {
		return fmt.Errorf("inject %s: %s is not a forwarder or back end", f.Kind, f.Node)
	}
	tb.faultMu.Lock()
	on := tb.faultOn(f.Node, f.Kind)
	if on < 0 {
		tb.faults = append(tb.faults, activeFault{Fault: f})
	}
	tb.faultMu.Unlock()
	if on >= 0 {
		return fmt.Errorf("inject: %s already has %s", f.Node, f.Kind)
	}
	off, err := kind.start(tb, ctx, n, p, f.Amount) // several nodes' at once
	tb.faultMu.Lock()
	defer tb.faultMu.Unlock()
	i := tb.faultOn(f.Node, f.Kind)
	if err != nil {
		tb.faults = slices.Delete(tb.faults, i, i+1)
		return fmt.Errorf("inject %s into %s: %w", f.Kind, f.Node, err)
	}
	tb.faults[i].off = off
	return nil
}

// Clear switches a fault off (its Amount does not matter) and returns when the node is as it
// was. A fault that is not on is not an error.
func (tb *Testbed) Clear(ctx context.Context, f Fault) error {
	tb.faultMu.Lock()
	defer tb.faultMu.Unlock()
	i := tb.faultOn(f.Node, f.Kind)
	if i < 0 || tb.faults[i].off == nil {
		return nil
	}
	off := tb.faults[i].off
	tb.faults = slices.Delete(tb.faults, i, i+1)
	if err := off(ctx); err != nil {
		return fmt.Errorf("clear %s of %s: %w", f.Kind, f.Node, err)
	}
	return nil
}

// Faults returns the faults that are on, in the order in which they came.
func (tb *Testbed) Faults() []Fault {
	tb.faultMu.Lock()
	defer tb.faultMu.Unlock()
	out := make([]Fault, len(tb.faults))
	for i, f := range tb.faults {
		out[i] = f.Fault
	}
	return out
}

// clearFaults switches off what would outlive the nodes or keep them from ending; what was killed stays dead.
func (tb *Testbed) clearFaults(ctx context.Context) error {
	var errs []error
	for _, f := range tb.Faults() {
		if f.Kind != Kill {
			errs = append(errs, tb.Clear(ctx, f))
		}
	}
	return errors.Join(errs...)
}

// faultOn returns the place of a fault that is on, or -1.
func (tb *Testbed) faultOn(id topology.NodeID, kind FaultKind) int {
	return slices.IndexFunc(tb.faults, func(a activeFault) bool { return a.Node == id && a.Kind == kind })
}

// service returns the running or last file service of a forwarder or back end, nil for another name.
func (tb *Testbed) service(id topology.NodeID) *leash.Process {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	return tb.services[id]
}

func (tb *Testbed) killService(_ context.Context, n *node, p *leash.Process, _ float64) (undo, error) {
	if tb.isBackEnd(n.id) {
		return nil, fmt.Errorf("%w: the gateways of a killed back end do not recover (hang it instead)",
			errors.ErrUnsupported)
	}
	p.Kill()
	return func(ctx context.Context) error { return tb.startForwarder(ctx, n) }, nil
}

func (tb *Testbed) hang(_ context.Context, _ *node, p *leash.Process, _ float64) (undo, error) {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return nil, err
	}
	return func(context.Context) error { return p.Signal(syscall.SIGCONT) }, nil
}

// stopGoCycle is the period of StopGo.
const stopGoCycle = 100 * time.Millisecond

func (tb *Testbed) stopGo(_ context.Context, _ *node, p *leash.Process, share float64) (undo, error) {
	stopped := time.Duration(share * float64(stopGoCycle))
	end, ended := make(chan struct{}), make(chan struct{})
	go func() { // ended by the returned function
		defer close(ended)
		for {
			for _, phase := range []struct {
				sig  syscall.Signal
				hold time.Duration
			}{{syscall.SIGSTOP, stopped}, {syscall.SIGCONT, stopGoCycle - stopped}} {
				if p.Signal(phase.sig) != nil {
					return
				}
				select {
				case <-end:
					return
				case <-time.After(phase.hold):
				}
			}
		}
	}()
	return func(context.Context) error {
		close(end)
		<-ended
		return p.Signal(syscall.SIGCONT)
	}, nil
}

// starve puts a file service into a control group with a quota, and back.
func (tb *Testbed) starve(_ context.Context, n *node, p *leash.Process, share float64) (undo, error) {
	off, err := leash.Starve(tb.inst.Name, string(n.id), share, p.PID())
	if err != nil {
		return nil, err
	}
	return func(context.Context) error { return off() }, nil
}

func (tb *Testbed) slowData(ctx context.Context, n *node, p *leash.Process, seconds float64) (undo, error) {
	if !tb.cfg.hasFiles(n.id) {
		return nil, errNoFiles
	}
	return tb.slowCalls(ctx, n, p, "pread64,pwrite64,preadv,pwritev", seconds)
}

func (tb *Testbed) slowMeta(ctx context.Context, n *node, p *leash.Process, seconds float64) (undo, error) {
	if !tb.cfg.hasFiles(n.id) {
		return nil, errNoFiles
	}
	calls := "openat,lstat,newfstatat,unlink,mkdir,rmdir"
	if tb.cfg.Layer == NFS { // by file handle, and relative to directories
		calls += ",open_by_handle_at,unlinkat,mkdirat,fstat,statx"
	}
	return tb.slowCalls(ctx, n, p, calls, seconds)
}

var errNoFiles = fmt.Errorf("%w: a gateway has no file system (slow its back end, or what it sends)",
	errors.ErrUnsupported)

func (tb *Testbed) slowSend(ctx context.Context, n *node, p *leash.Process, seconds float64) (undo, error) {
	return tb.slowCalls(ctx, n, p, "sendmsg,sendto,write,writev", seconds)
}

// slowCalls delays the named system calls of a file service: strace stops each at its entry. Nothing else
// of the program changes, and the end of strace ends it.
func (tb *Testbed) slowCalls(ctx context.Context, n *node, p *leash.Process, calls string,
	seconds float64) (undo, error) {
	tracer, err := tb.trace(ctx, n, p, "-o", "/dev/null", "-e", "trace="+calls,
		"-e", fmt.Sprintf("inject=%s:delay_enter=%.0f", calls, seconds*1e6))
	if err != nil {
		return nil, err
	}
	return func(context.Context) error { return tracer.Terminate() }, nil
}

// trace attaches strace with some arguments to every thread of a file service.
func (tb *Testbed) trace(ctx context.Context, n *node, p *leash.Process, argv ...string) (*leash.Process, error) {
	by, err := traced(p.PID())
	if err != nil {
		return nil, err
	}
	if by != 0 {
		return nil, fmt.Errorf("process %d is traced by %d already: clear its other fault of system calls first",
			p.PID(), by)
	}
	if _, err := leash.Look("strace"); err != nil {
		return nil, fmt.Errorf("%w: %w (apt-get install strace)", errors.ErrUnsupported, err)
	}
	argv = append([]string{"strace", "-f", "-q", "-p", strconv.Itoa(p.PID())}, argv...)
	tracer, err := tb.launch(tb.local(), "strace."+string(n.id), argv...)
	if err != nil {
		return nil, err
	}
	err = tracer.AwaitReady(ctx, readyWithin, func(context.Context) error {
		by, err := traced(p.PID())
		if err == nil && by == 0 {
			err = errors.New("not every thread is traced yet")
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", errors.ErrUnsupported, err), tracer.Terminate())
	}
	return tracer, nil
}

// traced returns the process that traces every thread of pid, 0 if one thread is not traced.
func traced(pid int) (int, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("process %d has no threads: %w", pid, errors.Join(err, syscall.ESRCH))
	}
	tracer := 0
	for _, f := range files {
		b, err := os.ReadFile(f)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the thread has ended
		}
		if err != nil {
			return 0, err
		}
		_, after, _ := bytes.Cut(b, []byte("TracerPid:"))
		line, _, _ := strings.Cut(string(after), "\n")
		if tracer, err = strconv.Atoi(strings.TrimSpace(line)); err != nil || tracer == 0 {
			return 0, err
		}
	}
	return tracer, nil
}

// slowLink replaces the base speed of a node's link, and puts it back.
func (tb *Testbed) slowLink(ctx context.Context, n *node, _ *leash.Process, bytesPerSec float64) (undo, error) {
	if !n.root {
		return nil, fmt.Errorf("%w: the loopback testbed has no links", errors.ErrUnsupported)
	}
	base := 0.0
	if _, forwards := tb.forwarderIndex(topology.ForwarderID(n.id)); forwards {
		base = tb.cfg.LinkBytesPerSec
	}
	if err := tb.shape(ctx, n, bytesPerSec); err != nil {
		return nil, errors.Join(err, tb.shape(ctx, n, base))
	}
	return func(ctx context.Context) error { return tb.shape(ctx, n, base) }, nil
}

// shape caps both directions of a node's link by a token bucket; 0: without a cap.
func (tb *Testbed) shape(ctx context.Context, n *node, bytesPerSec float64) error {
	// The bucket holds 5 ms of the rate, and always some of the 64 KiB packets that a veth carries.
	burst := max(256<<10, int(bytesPerSec/200))
	args := []string{"root", "tbf", "rate", fmt.Sprintf("%.0fbit", math.Ceil(8*bytesPerSec)),
		"burst", fmt.Sprint(burst), "latency", "200ms"}
	verb := "replace"
	if bytesPerSec == 0 {
		verb, args = "del", []string{"root"}
	}
	var errs []error
	for _, end := range []struct {
		at  *node
		dev string
	}{{n, "eth0"}, {tb.net.node, string(n.id)}} { // what it sends; what it is sent
		argv := append([]string{"tc", "qdisc", verb, "dev", end.dev}, args...)
		_, err := end.at.exec(ctx, argv...)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// loseLink drops a share of the packets that arrive at a node.
func (tb *Testbed) loseLink(ctx context.Context, n *node, _ *leash.Process, share float64) (undo, error) {
	if !n.root {
		return nil, fmt.Errorf("%w: the loopback testbed has no links", errors.ErrUnsupported)
	}
	if _, err := leash.Look("nft"); err != nil {
		return nil, fmt.Errorf("%w: %w (apt-get install nftables)", errors.ErrUnsupported, err)
	}
	const outOf = 1000
	rules := fmt.Sprintf("table inet fairway {\nchain in {\ntype filter hook input priority 0\n"+
		"meta iifname \"eth0\" numgen random mod %d < %.0f counter drop\n}\n}\n", outOf, math.Ceil(share*outOf))
	if _, err := n.execInput(ctx, rules, "nft", "-f", "-"); err != nil {
		return nil, fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return func(ctx context.Context) error {
		_, err := n.exec(ctx, "nft", "delete", "table", "inet", "fairway")
		return err
	}, nil
}
