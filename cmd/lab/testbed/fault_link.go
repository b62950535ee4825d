package testbed

import (
	"context"
	"errors"
	"fmt"
	"math"

	"fairway/collector/topology"
)

// slowLink replaces the base speed of a node's link, and puts it back.
func (tb *Testbed) slowLink(ctx context.Context, n *node, _ *process, bytesPerSec float64) (func(context.Context) error,
	error) {
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
func (tb *Testbed) loseLink(ctx context.Context, n *node, _ *process, share float64) (func(context.Context) error,
	error) {
	if !n.root {
		return nil, fmt.Errorf("%w: the loopback testbed has no links", errors.ErrUnsupported)
	}
	if _, err := lookProgram("nft"); err != nil {
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
