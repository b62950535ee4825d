// Package topology names the parts of a machine: compute nodes, forwarding nodes, storage
// targets, metadata servers and jobs, and which compute node uses which forwarder.
//
// It holds identifiers and look-ups only; every other package may import it.
package topology

import (
	"maps"
	"slices"
	"strings"
)

// NodeID is the host name of any node of the machine, without domain.
type NodeID string

// ForwarderID is the host name of a forwarding node. Every ForwarderID is also a NodeID.
type ForwarderID string

// TargetID names a storage target (OST) or metadata target, or by its NID a peer on Lustre's network.
type TargetID string

// IsNID says that the target is a peer on Lustre's network, such as 10.1.0.4@o2ib.
func (t TargetID) IsNID() bool { return strings.Contains(string(t), "@") }

// JobID is the batch system's identifier of a job, as text ("88231", "88231_4").
type JobID string

// Node returns the forwarder's name as a node of the machine.
func (f ForwarderID) Node() NodeID { return NodeID(f) }

// Role is the layer of the I/O path a node belongs to.
type Role uint8

// The four layers of a machine with I/O forwarding, in the order in which a request passes them.
const (
	RoleUnknown Role = iota
	Compute
	Forwarder
	Storage
	Metadata
)

var roleNames = [...]string{"unknown", "compute", "forwarder", "storage", "metadata"}

// String returns the role's name as used in files, URLs and the API.
func (r Role) String() string {
	if int(r) < len(roleNames) {
		return roleNames[r]
	}
	return roleNames[RoleUnknown]
}

// ParseRole is the inverse of String; ok is false for any other word.
func ParseRole(name string) (r Role, ok bool) {
	i := slices.Index(roleNames[:], name)
	if i < 0 {
		return RoleUnknown, false
	}
	return Role(i), true
}

// MarshalText writes the role's name.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a role's name; an unknown word becomes RoleUnknown.
func (r *Role) UnmarshalText(b []byte) error {
	*r, _ = ParseRole(string(b))
	return nil
}

// Node is one machine of the site.
type Node struct {
	ID   NodeID `json:"id" toml:"id" help:"Its name."`
	Role Role   `json:"role" toml:"role" help:"compute, forwarder, storage or metadata."`
	Rack string `json:"rack,omitempty" toml:"rack" help:"Where it stands."`
	Addr string `json:"addr,omitempty" toml:"addr" help:"HOST:PORT of a forwarder's file service."`
	// In one direction.
	PeakBytesPerSec float64 `json:"peak_bytes_per_sec,omitempty" toml:"peak_bytes_per_sec" help:"Bytes/s; 0: unknown."`
}

// Mapping says which forwarder each compute node uses. A node that is absent has no known forwarder.
type Mapping map[NodeID]ForwarderID

// Clone returns an independent copy.
func (m Mapping) Clone() Mapping { return maps.Clone(m) }

// Clients returns the compute nodes of one forwarder, sorted.
func (m Mapping) Clients(f ForwarderID) []NodeID {
	var out []NodeID
	for n, g := range m {
		if g == f {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// Share is one forwarder's part of a compute node's traffic, above 0 and at most 1.
type Share struct {
	Forwarder ForwarderID `json:"forwarder"`
	Part      float64     `json:"part"`
}

// OneFrom is the part from which a node counts as using that forwarder and no other.
const OneFrom = 0.9

// Machine is the static description of a site: its nodes and its fixed (default) mapping.
type Machine struct {
	Name    string  `json:"name"`
	Nodes   []Node  `json:"nodes"`
	Default Mapping `json:"default_mapping"`
}

// Node looks a node up by name.
func (m *Machine) Node(id NodeID) (Node, bool) {
	i := slices.IndexFunc(m.Nodes, func(n Node) bool { return n.ID == id })
	if i < 0 {
		return Node{}, false
	}
	return m.Nodes[i], true
}

// ByRole returns the nodes of one layer in the machine's order.
func (m *Machine) ByRole(r Role) []Node {
	var out []Node
	for _, n := range m.Nodes {
		if n.Role == r {
			out = append(out, n)
		}
	}
	return out
}
