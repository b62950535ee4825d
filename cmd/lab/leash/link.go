package leash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"time"
)

// testNetworks is set aside for network tests (RFC 2544); no site routes it.
var testNetworks = netip.MustParsePrefix("198.18.0.0/15")

// removeWithin bounds the removal of a link.
const removeWithin = 10 * time.Second

// Uplink is the name of the machine's end of the link to an instance's network.
func Uplink(instance string) string { return instance + ".up" }

// ChooseSubnet returns the first subnet of so many host bits that no address of this machine is in.
func ChooseSubnet(bits int) (netip.Prefix, error) {
	taken, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Prefix{}, err
	}
	free := func(p netip.Prefix) bool {
		for _, a := range taken {
			if q, err := netip.ParsePrefix(a.String()); err == nil && p.Overlaps(q.Masked()) {
				return false
			}
		}
		return true
	}
	for p := netip.PrefixFrom(testNetworks.Addr(), 32-bits); testNetworks.Contains(p.Addr()); p = nextPrefix(p) {
		if free(p) {
			return p, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("no free /%d in %s: close other testbeds", 32-bits, testNetworks)
}

// nextPrefix returns the IPv4 prefix after p.
func nextPrefix(p netip.Prefix) netip.Prefix {
	b := p.Addr().As4()
	n := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	n += 1 << (32 - p.Bits())
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}), p.Bits())
}

// IP runs ip on this machine itself.
func IP(ctx context.Context, input string, args ...string) error {
	ip, err := Look("ip")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, ip, args...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// RemoveLink removes a link of this machine, unless it is gone with the namespace at its other end.
func RemoveLink(name string) error {
	if _, err := net.InterfaceByName(name); err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeWithin)
	defer cancel()
	err := IP(ctx, "", "link", "del", name)
	if _, gone := net.InterfaceByName(name); gone != nil {
		err = nil
	}
	return errors.Join(err)
}
