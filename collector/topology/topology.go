// Package topology names the parts of a machine: compute nodes, forwarding nodes, storage
// targets, metadata servers and jobs, and which compute node uses which forwarder.
//
// It holds identifiers and look-ups only; every other package may import it.
package topology

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
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

// Mode is how a job's processes share files ("Automatic, Application-Aware I/O Forwarding Resource
// Allocation", FAST'19, section 2.1).
type Mode string

// The I/O modes; the empty mode is unknown. Counters of nodes cannot distinguish N-N from N-1: that comes
// from mounts and logs, which know files.
const (
	ModeNN Mode = "N-N"
	ModeN1 Mode = "N-1"
	Mode11 Mode = "1-1"
	ModeNM Mode = "N-M"
)

// jobNumber is a job's number with its task of an array or its part of a heterogeneous job, and PBS's server behind it.
var jobNumber = regexp.MustCompile(`^([0-9]+(?:_[0-9]+|_?\[[0-9,:%-]*\]|\+[0-9]+)?)(\.[A-Za-z][A-Za-z0-9_.-]*)?$`)

// JobOf is the job that a batch system, a server's job statistics or a program's environment names; "" where the text
// names none. It knows
//
//	24, 24_7, 24+1                                Slurm, arrays and heterogeneous jobs
//	SLURM_JOB10, SLURM_JOB_host_10                Slurm, as sites put it into Lustre's jobid_name
//	1234.pbs01, 1234[7].pbs01.example.org         PBS: its hooks leave the server out
//	12[3]                                         LSF
//	f2PTYP4HzE5, 10303648732379178                Flux, to the base 58, or 10 as older releases have it
//
// each with more behind a colon (jobid_name=%j:%u:%h). A program and its user (dd.1000, jobid_var=procname_uid) are no
// job, also where the program's name begins with digits.
func JobOf(text string) JobID {
	text, _, _ = strings.Cut(strings.Trim(text, `"`), ":")
	if f, isFlux := strings.CutPrefix(text, "ƒ"); isFlux {
		text = "f" + f
	}
	if isFluxID(text) {
		return JobID(text)
	}
	slurms, isSlurms := strings.CutPrefix(text, "SLURM_JOB")
	text = strings.TrimPrefix(slurms, "_")
	if isSlurms && (text == "" || text[0] < '0' || text[0] > '9') {
		text = text[strings.LastIndexByte(text, '_')+1:]
	}
	m := jobNumber.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	last := m[2][strings.LastIndexByte(m[2], '.')+1:]
	if m[2] != "" && strings.Trim(last, "0123456789") == "" {
		return "" // a program's name and its user's number
	}
	if n, err := strconv.ParseUint(m[1], 10, 64); err == nil && n >= leastFlux && isFluxID(toBase58(n)) {
		return JobID(toBase58(n))
	}
	return JobID(m[1])
}

// NoJob begins what a storage server's list has instead of a job: behind it is the id as the server prints it, such as
// that of a program and its user (@dd.1000).
const NoJob = "@"

// IsJob says whether a batch system's job is named, and not what else a storage server counts.
func (j JobID) IsJob() bool { return !strings.HasPrefix(string(j), NoJob) }

// fluxID is an f and a number to the base 58, which has no 0, O, I and l.
var fluxID = regexp.MustCompile(`^f[1-9A-HJ-NP-Za-km-z]{5,11}$`)

// leastFlux is more than any other batch system counts to: Flux's numbers begin with the milliseconds that it runs.
const leastFlux = 1e12

// toBase58 writes a number of Flux as its programs do.
func toBase58(n uint64) string {
	const digits = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	text := ""
	for ; n > 0; n /= 58 {
		text = digits[n%58:n%58+1] + text
	}
	return "f" + text
}

// isFluxID says whether a text is one of Flux's identifiers. Nearly all of them have a capital, and few programs whose
// names begin with f do.
func isFluxID(text string) bool {
	return fluxID.MatchString(text) && strings.ContainsAny(text, "ABCDEFGHJKLMNPQRSTUVWXYZ")
}

// CleanName says whether a name from outside has no control character and is UTF-8, so that a terminal or a log shows
// it as it is.
func CleanName(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' {
			return cleanRest(s[i:])
		}
	}
	return true
}

func cleanRest(s string) bool { return utf8.ValidString(s) && !strings.ContainsFunc(s, dirty) }

// dirty says whether a character is an order to a terminal, or changes the direction or order of what is shown.
func dirty(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// Clean replaces every character of a text that a terminal would obey by U+FFFD.
func Clean(s string) string {
	if CleanName(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if dirty(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(s, string(utf8.RuneError)))
}
