package queue

import (
	"fmt"
	"io"
	"net/netip"

	"fairway/collector/topology"
	"fairway/remap/policy/share"
	"fairway/remap/policy/strictjson"
)

// Table says whose requests come from where and how they share the forwarder.
type Table struct {
	// Policy is a sharing policy's name; empty serves requests in the order of their arrival.
	Policy string `json:"policy"`
	// Idle says who uses what idle jobs leave; default inside.
	Idle share.Idle `json:"idle"`
	// LeaseSeconds is how long the policy holds without another table; then requests are served in the
	// order of their arrival until one comes. 0 is for ever.
	LeaseSeconds float64 `json:"lease_seconds"`
	Jobs         []Job   `json:"jobs"`
}

// Job is a job and where its requests come from: addresses, or nodes by the name that their address
// has (or the address itself, as text). A client in no job belongs to a job without a name, of size
// and priority 1, with a user and a group of its own.
type Job struct {
	share.Row
	Clients []netip.Addr      `json:"clients"`
	Nodes   []topology.NodeID `json:"nodes"`
	// Limit is the most that the job gets of the forwarder while any job without a limit asks for some, 0..1; 0: all
	// that the policy gives it.
	Limit float64 `json:"limit,omitempty"`
}

// maxTable bounds a table, bytes.
const maxTable = 64 << 20

// ReadTable reads a table and checks it. Keys it does not know are errors.
func ReadTable(r io.Reader) (Table, error) {
	var t Table
	if err := strictjson.Read(r, maxTable, &t); err != nil {
		return Table{}, err
	}
	_, err := t.compile()
	return t, err
}

// sharing is a table made ready: lanes of jobs, the last one for clients in no job.
type sharing struct {
	policy  share.Policy // nil: order of arrival
	idle    share.Idle
	jobs    []share.Job
	limits  []float64 // of jobs; 0: none
	limited bool
	global  bool // weights are those of an all-gather
	// weights are the jobs with their part of the global shares as size; nil: shares are local.
	weights []share.Job
	lane    map[netip.Addr]int
	named   map[topology.NodeID]int
}

// maxLease bounds a lease, seconds: a year is as good as for ever.
const maxLease = 366 * 24 * 3600

// Shares are what the policy gives each job of the whole, 0..1, by its name; without a policy nobody has a share.
func (t Table) Shares() (map[string]float64, error) {
	s, err := t.compile()
	if err != nil || s.policy == nil {
		return nil, err
	}
	rows := share.Table{}
	for _, j := range t.Jobs {
		rows.Jobs = append(rows.Jobs, j.Row)
	}
	if len(rows.Jobs) == 0 {
		return nil, nil
	}
	shares := rows.Answer(s.policy, s.idle).Shares
	for _, j := range t.Jobs {
		if j.Limit > 0 {
			shares[j.Row.Job] = min(shares[j.Row.Job], j.Limit)
		}
	}
	return shares, nil
}

func (t Table) compile() (*sharing, error) {
	s := &sharing{idle: t.Idle, lane: map[netip.Addr]int{}, named: map[topology.NodeID]int{}}
	if !(t.LeaseSeconds >= 0 && t.LeaseSeconds <= maxLease) {
		return nil, fmt.Errorf("lease_seconds: %g, want 0 (for ever) to %d", t.LeaseSeconds, maxLease)
	}
	switch s.idle {
	case "":
		s.idle = share.Inside
	case share.Inside, share.Flat:
	default:
		return nil, fmt.Errorf("idle: %q is neither inside nor flat", s.idle)
	}
	p := share.Policy{share.EachJob} // what an order of arrival still asks of its jobs
	if t.Policy != "" {
		var err error
		if p, err = share.ParsePolicy(t.Policy); err != nil {
			return nil, fmt.Errorf("policy: %w", err)
		}
		s.policy = p
	}
	rows := share.Table{}
	for i, j := range t.Jobs {
		rows.Jobs = append(rows.Jobs, j.Row)
		if !(j.Limit >= 0 && j.Limit <= 1) {
			return nil, fmt.Errorf("jobs[%d].limit: %g is not a share, want 0 (none) to 1", i, j.Limit)
		}
		s.jobs, s.limits, s.limited = append(s.jobs, j.Entity()), append(s.limits, j.Limit), s.limited || j.Limit > 0
		for k, c := range j.Clients {
			c = c.Unmap()
			if _, twice := s.lane[c]; twice || !c.IsValid() {
				return nil, fmt.Errorf("jobs[%d].clients[%d]: %s is in two jobs or no address", i, k, c)
			}
			s.lane[c] = i
		}
		for k, n := range j.Nodes {
			if _, twice := s.named[n]; twice || n == "" {
				return nil, fmt.Errorf("jobs[%d].nodes[%d]: %q is in two jobs or no name", i, k, n)
			}
			s.named[n] = i
		}
	}
	if len(t.Jobs) > 0 {
		if err := rows.Check(p); err != nil {
			return nil, err
		}
	}
	s.jobs, s.limits = append(s.jobs, share.Job{Size: 1, Priority: 1}), append(s.limits, 0)
	return s, nil
}

// of is the lane of a client: its address says more than its name.
func (s *sharing) of(c *conn) int {
	if lane, found := s.lane[c.from]; found {
		return lane
	}
	if lane, found := s.named[c.name]; found {
		return lane
	}
	return len(s.jobs) - 1
}
