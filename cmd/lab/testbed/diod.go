package testbed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"fairway/cmd/lab/leash"
	"fairway/collector/p9"
	"fairway/collector/topology"
)

// diodPort is the registered port of 9P.
const diodPort = 564

// diodWorkers is how many workers a diod has for each exported tree.
const diodWorkers = 8

// msize is the largest message that diod 1.0 accepts, bytes.
const msize = 65536

// startForwarders starts the file service of every forwarder and waits until all of them speak.
func (tb *Testbed) startForwarders(ctx context.Context) error {
	var forwarders []*node
	first := loopbackBlock()
	for i := range tb.cfg.Forwarders {
		n, err := tb.find(tb.cfg.forwarder(i).Node())
		if err != nil {
			return err
		}
		n.port = diodPort
		if !tb.cfg.Root {
			n.addr, n.port = first, loopbackPort
			first = first.Next()
		}
		forwarders = append(forwarders, n)
	}
	return eachNode(forwarders, func(n *node) error { return tb.startForwarder(ctx, n) })
}

// startForwarder starts one forwarder's file service, with its link as configured, and waits until it answers.
func (tb *Testbed) startForwarder(ctx context.Context, n *node) error {
	if tb.cfg.LinkBytesPerSec > 0 {
		if err := tb.shape(ctx, n, tb.cfg.LinkBytesPerSec); err != nil {
			return err
		}
	}
	if tb.cfg.Layer == NFS {
		return tb.startGateway(ctx, n)
	}
	return tb.startDiod(ctx, n)
}

// startDiod starts the diod of one forwarder and waits until it answers a 9P version request.
func (tb *Testbed) startDiod(ctx context.Context, n *node) error {
	f := topology.ForwarderID(n.id)
	addr := tb.ForwarderAddr(f)
	diod, err := leash.Look("diod")
	if err != nil {
		return err
	}
	// SIGPIPE must be ignored: diod dies of it when a client goes with replies pending. "ctl" must
	// be exported by name. -w cannot be used for the number of workers (it is two options at once).
	p, err := tb.launch(n, "diod", "env", "--ignore-signal=PIPE", diod, "-f", "-c", "/dev/null", "-n", "-N",
		"--nwthreads", strconv.Itoa(diodWorkers), "-l", addr, "-e", tb.Attach(), "-e", "ctl", "-L", "stderr")
	if err != nil {
		return err
	}
	tb.setService(n, p)
	if err := p.AwaitReady(ctx, readyWithin, func(ctx context.Context) error {
		return answers(ctx, addr,
			tb.Attach())
	}); err != nil {
		return err
	}
	return tb.writePIDFile(n, p)
}

// setService makes a process the file service of its node.
func (tb *Testbed) setService(n *node, p *leash.Process) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.services[n.id] = p
}

// answers checks that a 9P server lets a client attach to its file system and look at it.
func answers(ctx context.Context, addr, attach string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	c, err := p9.Dial(ctx, addr, msize)
	if err != nil {
		return err
	}
	defer c.Close()
	root, err := c.Attach(ctx, attach, uint32(os.Geteuid()))
	if err != nil {
		return err
	}
	_, err = root.GetAttr(ctx)
	return err
}

// loopbackPort is where the forwarders of a testbed without root listen.
const loopbackPort = 5640

// loopbackBlock is the first of some thousand addresses of this machine's loopback network, drawn by lot: a port
// found free on 127.0.0.1 may be anybody's a moment later, and whoever asks does not know whose forwarder answers.
func loopbackBlock() netip.Addr {
	block := 1 + rand.Uint32N(1<<12-2)
	return netip.AddrFrom4([4]byte{127, byte(block >> 4), byte(block << 4), 1})
}

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
			"--window", fmt.Sprint(diodWorkers), tb.entryAddr(f), tb.ForwarderAddr(f))
		if err != nil {
			return err
		}
		if err := p.AwaitReady(ctx, readyWithin, func(ctx context.Context) error {
			return answers(ctx, tb.entryAddr(f), tb.Attach())
		}); err != nil {
			return err
		}
	}
	return nil
}
