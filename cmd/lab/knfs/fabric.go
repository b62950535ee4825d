package knfs

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"fairway/cmd/lab/leash"
)

// fabric joins the guests, in a network namespace that goes with the thread in it.
type fabric struct {
	inside *leash.Thread // in the namespace
	host   netip.Addr    // this machine's, as the guests reach it
	uplink string
}

func (f *fabric) close() error {
	err := leash.RemoveLink(f.uplink)
	if f.inside != nil {
		f.inside.Close()
	}
	return err
}

// tap is the name of a guest's interface on the machine's side.
func tap(name string, net int) string { return fmt.Sprintf("%s.%d", name, net) }

// join makes the networks: three bridges in a namespace, a tap for each guest on each, and this machine's way in.
func join(ctx context.Context, inst *leash.Instance, guests []*guest) (f *fabric, err error) {
	f = &fabric{uplink: leash.Uplink(inst.Name)}
	if f.inside, err = leash.NewThread(); err != nil {
		return f, err
	}
	tid := 0
	if err := f.inside.Do(func() error { tid = unix.Gettid(); return unix.Unshare(unix.CLONE_NEWNET) }); err != nil {
		return f, err
	}
	const hostBits = 6
	return f, leash.WithLock(StateDir, func() error {
		subnet, err := leash.ChooseSubnet(hostBits)
		if err != nil {
			return err
		}
		f.host = subnet.Addr().Next()
		up, addr := f.uplink, f.host
		if err := leash.IP(ctx, fmt.Sprintf("link add %s type veth peer name host netns %d\naddr add %s/%d dev %s\n"+
			"link set %s up\n", up, tid, f.host, subnet.Bits(), up, up), "-batch", "-"); err != nil {
			return err
		}
		var b strings.Builder
		b.WriteString("link set lo up\n")
		for net := range 3 {
			fmt.Fprintf(&b, "link add br%d type bridge\nlink set br%d up\n", net, net)
		}
		b.WriteString("link set host master br0 up\n")
		for _, g := range guests {
			addr = addr.Next()
			g.addrs[0] = fmt.Sprintf("%s/%d", addr, subnet.Bits())
			for net, on := range g.addrs {
				if on != "" {
					fmt.Fprintf(&b, "tuntap add dev %[1]s mode tap\nlink set %[1]s master br%[2]d up\n",
						tap(g.name, net), net)
				}
			}
		}
		cmd := exec.CommandContext(ctx, "ip", "-batch", "-")
		var out bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(b.String()), &out, &out
		if err := f.inside.Start(cmd); err != nil {
			return err
		}
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("ip: %w: %s", err, out.Bytes())
		}
		return nil
	})
}
