package relay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"fairway/remap/share"
)

// Table says whose requests come from where and how they share the forwarder.
type Table struct {
	// Policy is a sharing policy's name; empty serves requests in the order of their arrival.
	Policy string `json:"policy"`
	// Idle says who uses what idle jobs leave; default inside.
	Idle share.Idle `json:"idle"`
	Jobs []Job      `json:"jobs"`
}

// Job is a job and the addresses its requests come from. A client in no job belongs to a job without
// a name, of size and priority 1, with a user and a group of its own.
type Job struct {
	share.Row
	Clients []netip.Addr `json:"clients"`
}

// maxTable bounds a table, bytes.
const maxTable = 64 << 20

// ReadTable reads a table and checks it. Keys it does not know are errors.
func ReadTable(r io.Reader) (Table, error) {
	var t Table
	d := json.NewDecoder(io.LimitReader(r, maxTable))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return Table{}, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Table{}, fmt.Errorf("something follows the table at byte %d", d.InputOffset())
	}
	_, err := t.compile()
	return t, err
}

// sharing is a table made ready: lanes of jobs, the last one for clients in no job.
type sharing struct {
	policy share.Policy // nil: order of arrival
	idle   share.Idle
	jobs   []share.Job
	lane   map[netip.Addr]int
}

func (t Table) compile() (*sharing, error) {
	s := &sharing{idle: t.Idle, lane: map[netip.Addr]int{}}
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
		s.jobs = append(s.jobs, j.Entity())
		for k, c := range j.Clients {
			c = c.Unmap()
			if _, twice := s.lane[c]; twice || !c.IsValid() {
				return nil, fmt.Errorf("jobs[%d].clients[%d]: %s is in two jobs or no address", i, k, c)
			}
			s.lane[c] = i
		}
	}
	if len(t.Jobs) > 0 {
		if err := rows.Check(p); err != nil {
			return nil, err
		}
	}
	s.jobs = append(s.jobs, share.Job{Size: 1, Priority: 1})
	return s, nil
}

// of is the lane of a client.
func (s *sharing) of(client netip.Addr) int {
	if lane, found := s.lane[client.Unmap()]; found {
		return lane
	}
	return len(s.jobs) - 1
}
