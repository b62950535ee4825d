package config

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"fairway/collector/topology"
)

// Listen says where the daemon can be reached.
type Listen struct {
	Socket string   `toml:"socket" help:"Unix socket of the console and of local commands; empty: no socket."`
	HTTP   string   `toml:"http" help:"HOST:PORT for browsers, terminals and agents; beyond this host behind TLS."`
	Agents string   `toml:"agents" help:"HOST:PORT of a further listener, for agents alone; empty: no such listener."`
	Hosts  []string `toml:"hosts" help:"Further host names of listen.http; requests under other names are refused."`

	ClearText bool `toml:"clear_text" help:"Whether listeners beyond this host may do without TLS."`
	TLS       TLS  `toml:"tls"`
}

// TLS says how listen.http and listen.agents are encrypted. The files are read anew when they change.
type TLS struct {
	Certificate string `toml:"certificate" help:"Certificates (PEM), the server's first; empty: clear text."`
	Key         string `toml:"key" help:"File (0600) of the certificate's key (PEM)."`
	ClientCA    string `toml:"client_ca" help:"Certificates (PEM) that sign the nodes' own; empty: agents have tokens."`
}

func (t *TLS) validate() error {
	if (t.Certificate == "") != (t.Key == "") {
		return errors.New("listen.tls: certificate and key belong together")
	}
	if t.ClientCA != "" && t.Certificate == "" {
		return errors.New("listen.tls.client_ca needs a certificate")
	}
	return nil
}

// Local says whether an address is of this host alone.
func Local(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && topology.Loopback(host)
}

// Clear lists the addresses beyond this host that are not encrypted.
func (l *Listen) Clear() (addrs []string) {
	for _, a := range []string{l.HTTP, l.Agents} {
		if a != "" && l.TLS.Certificate == "" && !Local(a) {
			addrs = append(addrs, a)
		}
	}
	return addrs
}

// Validate refuses what cannot be listened on, and clear text beyond this host that nobody asked for.
func (l *Listen) Validate() error {
	if err := l.TLS.validate(); err != nil {
		return err
	}
	for key, addr := range map[string]string{"http": l.HTTP, "agents": l.Agents} {
		if _, _, err := net.SplitHostPort(addr); addr != "" && err != nil {
			return fmt.Errorf("listen.%s = %q: want HOST:PORT, such as 127.0.0.1:7117", key, addr)
		}
	}
	if c := l.Clear(); len(c) > 0 && !l.ClearText {
		return fmt.Errorf(
			"listen: %s can be reached beyond this host, where tokens and passwords would cross the network in "+
				"clear text; set [listen.tls], or listen.clear_text = true (behind a TLS proxy, or on a network that "+
				"is trusted)",
			strings.Join(c, " and "))
	}
	return nil
}
