package topology

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Loopback says whether a host is this one, by its name or address.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Allowed are the addresses of forwarders that an order may name; without an entry none.
type Allowed struct {
	networks []netip.Prefix
	hosts    []string
}

// ParseAllowed reads networks such as 10.1.0.0/16, addresses and host names.
func ParseAllowed(list []string) (a Allowed, err error) {
	for _, text := range list {
		if p, err := netip.ParsePrefix(text); err == nil {
			a.networks = append(a.networks, p.Masked())
		} else if ip, err := netip.ParseAddr(text); err == nil {
			a.networks = append(a.networks, netip.PrefixFrom(ip, ip.BitLen()))
		} else if text == "" || strings.ContainsAny(text, "/: \t") {
			return a, fmt.Errorf("%q: want a network such as 10.1.0.0/16, an address or a host name", text)
		} else {
			a.hosts = append(a.hosts, text)
		}
	}
	return a, nil
}

// Names says whether a host name is among them.
func (a Allowed) Names() bool { return len(a.hosts) > 0 }

// Check returns why a forwarder's HOST:PORT may not be gone to; nil when it may. A name is compared, not looked up.
func (a Allowed) Check(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		ip = ip.Unmap()
		if slices.ContainsFunc(a.networks, func(p netip.Prefix) bool { return p.Contains(ip) }) {
			return nil
		}
	} else if slices.ContainsFunc(a.hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
		return nil
	}
	return fmt.Errorf("%s is not among the forwarders that this node may use (orders.allow, or --allow of the mount)",
		addr)
}
