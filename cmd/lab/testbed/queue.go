package testbed

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"

	"fairway/collector/topology"
)

// queueNode is the node with a forwarder's queue.
func queueNode(f topology.ForwarderID) topology.NodeID { return topology.NodeID("q-" + string(f)) }

// QueueSocket is the control socket of a forwarder's queue.
func (tb *Testbed) QueueSocket(f topology.ForwarderID) string {
	return filepath.Join(tb.NodeDir(queueNode(f)), "queue.sock")
}

// entryAddr is where compute nodes reach a forwarder: at its queue, if it has one.
func (tb *Testbed) entryAddr(f topology.ForwarderID) string {
	if n, err := tb.find(queueNode(f)); err == nil {
		return netip.AddrPortFrom(n.addr, diodPort).String()
	}
	return tb.ForwarderAddr(f)
}

// startQueues starts the queues in front of forwarders.
func (tb *Testbed) startQueues(ctx context.Context) error {
	for _, f := range tb.cfg.queued() {
		n, err := tb.find(queueNode(f))
		if err != nil {
			return err
		}
		p, err := tb.launch(n, "fairway-queue", tb.cfg.QueueProgram, "serve", "--control", tb.QueueSocket(f),
			"--window", fmt.Sprint(tb.cfg.Threads), tb.entryAddr(f), tb.ForwarderAddr(f))
		if err != nil {
			return err
		}
		if err := p.awaitReady(ctx, func(ctx context.Context) error {
			return answers(ctx, tb.entryAddr(f), tb.Attach())
		}); err != nil {
			return err
		}
	}
	return nil
}
