// Package cluster keeps one journal among several daemons, by Raft (github.com/hashicorp/raft). One daemon leads: its
// desk decides and acts, the others show. What the leader records is acknowledged once most daemons have it on disk;
// each of them writes the same lines to its own journal, and the chain of hashes shows that they are equal.
//
// The journal is the state machine's state and its durable form in one: a snapshot is its lines, and an entry that
// comes again after a restart is found in it. The Raft term fences orders: an agent refuses an older one.
package cluster

import (
	"cmp"
	"fmt"
	"net"

	"github.com/hashicorp/raft"
)

// Settings are the daemons that keep one journal; without a name this daemon is alone.
type Settings struct {
	Name       string   `toml:"name" help:"This daemon's name in the list; empty: it is alone."`
	SecretFile string   `toml:"secret_file" help:"File (0600) with the secret that the daemons share; fairwayd token."`
	Daemons    []Daemon `toml:"daemon" help:"All daemons, the same in each file. The first one's journal begins."`
}

// Daemon is one of the daemons of a cluster.
type Daemon struct {
	Name string `toml:"name" help:"Its name; a name belongs to one journal and is not given anew."`
	Addr string `toml:"addr" help:"HOST:PORT at which the other daemons reach it."`
}

// On says whether there is more than this daemon.
func (s *Settings) On() bool { return s.Name != "" }

// maxDaemons bounds a cluster: each record waits for most of its disks.
const maxDaemons = 7

// Validate says what is wrong with the settings.
func (s *Settings) Validate() error {
	if !s.On() {
		if len(s.Daemons) > 0 {
			return fmt.Errorf("cluster.name is empty and %d daemons are listed: want this daemon's name",
				len(s.Daemons))
		}
		return nil
	}
	names, addrs := map[string]bool{}, map[string]bool{}
	for i, d := range s.Daemons {
		_, _, err := net.SplitHostPort(d.Addr)
		switch {
		case d.Name == "" || len(d.Name) > 64:
			return fmt.Errorf("[[cluster.daemon]] number %d: name is %q: want 1 to 64 letters", i+1, d.Name)
		case err != nil:
			return fmt.Errorf("[[cluster.daemon]] %s: addr = %q: want HOST:PORT (%w)", d.Name, d.Addr, err)
		case names[d.Name] || addrs[d.Addr]:
			return fmt.Errorf("[[cluster.daemon]] %s at %s: a name or an address is listed twice", d.Name, d.Addr)
		}
		names[d.Name], addrs[d.Addr] = true, true
	}
	switch n := len(s.Daemons); {
	case !names[s.Name]:
		return fmt.Errorf("cluster.name = %q is not in the list of daemons", s.Name)
	case n < 3 || n%2 == 0 || n > maxDaemons:
		return fmt.Errorf("%d [[cluster.daemon]]: want 3, 5 or 7, so that most of them remain when one is away", n)
	case s.SecretFile == "":
		return fmt.Errorf("cluster.secret_file is empty: without a secret anybody could be a daemon")
	}
	return nil
}

// Addr is where this daemon listens for the others; empty where it is alone.
func (s *Settings) Addr() string { return s.of(s.Name).Addr }

func (s *Settings) of(name string) (d Daemon) {
	for _, one := range s.Daemons {
		if one.Name == name {
			d = cmp.Or(d, one)
		}
	}
	return d
}

// nameAt is the daemon that is listed at an address.
func (s *Settings) nameAt(address string) string {
	for _, one := range s.Daemons {
		if one.Addr == address {
			return one.Name
		}
	}
	return ""
}

// founder says whether this daemon's journal is what the cluster's begins with.
func (s *Settings) founder() bool { return s.Daemons[0].Name == s.Name }

func (s *Settings) servers() (c raft.Configuration) {
	for _, d := range s.Daemons {
		c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(d.Name), Address: raft.ServerAddress(d.Addr)})
	}
	return c
}
