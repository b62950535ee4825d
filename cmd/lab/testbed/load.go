package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"fairway/cmd/lab/testbed/workload"
	"fairway/collector/p9"
	"fairway/collector/topology"
)

// redialAfter is the wait before a lost forwarder is tried again.
const redialAfter = 200 * time.Millisecond

// Load runs one rank of a program against a compute node's default forwarder, as a 9P client of
// this process: the load of a testbed without mounts. It comes back after a forwarder was lost,
// and ends with the program's duration or with ctx, neither of which is an error.
func (tb *Testbed) Load(ctx context.Context, id topology.NodeID, s workload.Spec) error {
	f, ok := tb.cfg.Mapping[id]
	if !ok {
		return fmt.Errorf("load: testbed %s has no compute node %q", tb.inst.Name, id)
	}
	if err := s.Check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Duration)
	defer cancel()
	for {
		err := tb.loadOnce(ctx, f, s)
		lost := errors.As(err, new(*p9.TransportError)) || !errors.As(err, new(*p9.Error))
		switch {
		case err == nil || ctx.Err() != nil:
			return nil
		case !lost:
			return fmt.Errorf("load of %s on %s: %w", id, f, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(redialAfter):
		}
	}
}

// loadOnce is Load over one connection.
func (tb *Testbed) loadOnce(ctx context.Context, f topology.ForwarderID, s workload.Spec) error {
	c, err := p9.Dial(ctx, tb.ForwarderAddr(f), msize)
	if err != nil {
		return err
	}
	defer c.Close()
	root, err := c.Attach(ctx, tb.Attach(), uint32(os.Geteuid()))
	if err != nil {
		return err
	}
	return workload.Run(ctx, s, workload.Forwarder{Root: root})
}

// MPIRun runs an MPI program (MPICH), a rank on each of the compute nodes in order, and returns what it printed. What
// ranks say to each other stays on the machine and crosses no link of the testbed.
func (tb *Testbed) MPIRun(ctx context.Context, on []topology.NodeID, argv ...string) ([]byte, error) {
	// Without -launcher it looks for a batch system, and for ssh. Without UCX_TLS ranks open each network device of the
	// machine, and give up when one has gone meanwhile, as another testbed's do.
	run := []string{"mpiexec.hydra", "-launcher", "fork", "-genv", "UCX_TLS", "self,sm"}
	for i, id := range on {
		n, err := tb.find(id)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			run = append(run, ":")
		}
		run = append(run, "-n", "1")
		if n.root {
			// The libraries look their own process up in /proc, which is the node's; and processes of several nodes may
			// have the same number.
			run = append(run, "nsenter", "--target", strconv.Itoa(n.pid()), "--uts", "--mount", "unshare",
				"--mount", "sh", "-c", `mount -t proc proc /proc && exec "$0" "$@"`)
		}
		run = append(run, argv...)
	}
	return tb.local().exec(ctx, run...)
}

// TraceWrites has every write of a forwarder's file service printed into a file, as strace does, until stop is called.
func (tb *Testbed) TraceWrites(ctx context.Context, f topology.ForwarderID, path string) (stop func() error,
	err error) {
	n, err := tb.find(f.Node())
	if err != nil {
		return nil, err
	}
	p := tb.service(n.id)
	if p == nil {
		return nil, fmt.Errorf("forwarder %s serves nothing", f)
	}
	tracer, err := tb.trace(ctx, n, p, "-s", "0", "-o", path, "-e", "trace=pwrite64,pwritev")
	if err != nil {
		return nil, err
	}
	return tracer.Terminate, nil
}
