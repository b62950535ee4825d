package topology

// Index answers questions about a machine's nodes without going through all of them. It holds for
// the machine as it was when the index was made, and is never changed.
type Index struct {
	roles      map[NodeID]Role
	forwarders []ForwarderID
	inService  map[ForwarderID]bool
}

// NewIndex goes through a machine once.
func NewIndex(m *Machine) *Index {
	x := &Index{roles: make(map[NodeID]Role, len(m.Nodes)), inService: map[ForwarderID]bool{}}
	for _, n := range m.Nodes {
		x.roles[n.ID] = n.Role
		if n.Role == Forwarder {
			x.forwarders = append(x.forwarders, ForwarderID(n.ID))
		}
	}
	for _, f := range m.Default {
		x.inService[f] = true
	}
	return x
}

// Role returns the layer of a node; RoleUnknown for one that is not the machine's.
func (x *Index) Role(id NodeID) Role { return x.roles[id] }

// Forwarders returns the forwarding nodes in the machine's order. It must not be changed.
func (x *Index) Forwarders() []ForwarderID { return x.forwarders }

// InService says whether a forwarder is the default one of any compute node.
func (x *Index) InService(f ForwarderID) bool { return x.inService[f] }
