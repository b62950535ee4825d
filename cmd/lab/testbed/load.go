package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
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
