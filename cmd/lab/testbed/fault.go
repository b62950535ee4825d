package testbed

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// faultKinds says how each kind is switched on. A starter returns how to switch the fault off.
var faultKinds = map[FaultKind]struct {
	amount, least, most float64 // default and bounds
	start               func(*Testbed, context.Context, *node, *process, float64) (func(context.Context) error, error)
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
	off func(context.Context) error
}

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
func (tb *Testbed) service(id topology.NodeID) *process {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	return tb.services[id]
}

func (tb *Testbed) killService(_ context.Context, n *node, p *process, _ float64) (func(context.Context) error,
	error) {
	if tb.isBackEnd(n.id) {
		return nil, fmt.Errorf("%w: the gateways of a killed back end do not recover (hang it instead)",
			errors.ErrUnsupported)
	}
	p.kill()
	return func(ctx context.Context) error { return tb.startForwarder(ctx, n) }, nil
}

func (tb *Testbed) hang(_ context.Context, _ *node, p *process, _ float64) (func(context.Context) error, error) {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return nil, err
	}
	return func(context.Context) error { return p.signal(syscall.SIGCONT) }, nil
}

// stopGoCycle is the period of StopGo.
const stopGoCycle = 100 * time.Millisecond

func (tb *Testbed) stopGo(_ context.Context, _ *node, p *process, share float64) (func(context.Context) error,
	error) {
	stopped := time.Duration(share * float64(stopGoCycle))
	end, ended := make(chan struct{}), make(chan struct{})
	go func() { // ended by the returned function
		defer close(ended)
		for {
			for _, phase := range []struct {
				sig  syscall.Signal
				hold time.Duration
			}{{syscall.SIGSTOP, stopped}, {syscall.SIGCONT, stopGoCycle - stopped}} {
				if p.signal(phase.sig) != nil {
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
		return p.signal(syscall.SIGCONT)
	}, nil
}

// starve puts a file service into a control group with a quota, and back.
func (tb *Testbed) starve(_ context.Context, n *node, p *process, share float64) (func(context.Context) error, error) {
	off, err := leash.Starve(tb.inst.Name, string(n.id), share, p.pid())
	if err != nil {
		return nil, err
	}
	return func(context.Context) error { return off() }, nil
}
