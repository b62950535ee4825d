package api

import (
	"fmt"
	"net/url"
	"strconv"

	"fairway/collector/topology"
	"fairway/remap/policy/filedomain"
	"fairway/remap/policy/periodic"
	"fairway/remap/policy/sharedfiles"
	"fairway/remap/queue/tables"
)

// DomainsView is how the file that several processes of a job wrote could be divided among its I/O
// aggregators, and what each division costs in file locks.
type DomainsView struct {
	Job topology.JobID `json:"job"`
	// Files are those that several processes wrote, the most bytes first; Left counts further ones.
	Files []sharedfiles.File `json:"files"`
	Left  int                `json:"left"`
	// File is the one in Files that the rest is about.
	File int `json:"file"`
	// Case is nil where Files is empty or Problem says what is missing.
	Case    *filedomain.Case `json:"case"`
	Problem string           `json:"problem,omitempty"`
	// Assumed says what of the case no record has, Caveat why hints may do nothing.
	Assumed []string                `json:"assumed"`
	Caveat  string                  `json:"caveat,omitempty"`
	Methods []filedomain.Comparison `json:"methods"`
	// Window are the stripes whose owners the methods have.
	Window filedomain.Window  `json:"window"`
	Advice *filedomain.Advice `json:"advice"`
}

// DomainsQuery chooses a file and says what the records do not; 0 is not given.
type DomainsQuery struct {
	File        int // in the list of files, from 0
	Servers     int
	StripeSize  int64 // bytes
	Aggregators int
}

// Values is the query as the API and an address write it.
func (q DomainsQuery) Values() url.Values {
	v := url.Values{}
	for name, n := range map[string]int64{"file": int64(q.File), "servers": int64(q.Servers),
		"stripe_size": q.StripeSize, "aggregators": int64(q.Aggregators)} {
		if n != 0 {
			v.Set(name, strconv.FormatInt(n, 10))
		}
	}
	return v
}

// ParseDomainsQuery reads it back.
func ParseDomainsQuery(v url.Values) (q DomainsQuery, err error) {
	number := func(name string, bits int) (n int64) {
		text := v.Get(name)
		if text == "" || err != nil {
			return 0
		}
		if n, err = strconv.ParseInt(text, 10, bits); err != nil || n < 0 {
			n, err = 0, fmt.Errorf("%w: %s=%q is not a count; want a whole number from 0 on", ErrInvalid, name, text)
		}
		return n
	}
	q = DomainsQuery{File: int(number("file", 31)), Servers: int(number("servers", 31)),
		StripeSize: number("stripe_size", 63), Aggregators: int(number("aggregators", 31))}
	return q, err
}

// PatternView is a periodic pattern with what it was made for and what happens without it.
type PatternView struct {
	periodic.Pattern
	Unplanned periodic.Unplanned `json:"unplanned"`
	Set       periodic.Set       `json:"set"`
}

// SharesView is what a sharing policy would give the running jobs of a forwarder, or all of them.
type SharesView struct {
	Policy    string               `json:"policy"` // with every level in it
	Forwarder topology.ForwarderID `json:"forwarder,omitempty"`
	Jobs      []ShareRow           `json:"jobs"` // the largest share first
	// InForce is what queues share by now; nil where they get no global shares.
	InForce *tables.Gathering `json:"in_force,omitempty"`
}

// ShareRow is one job's share, 0..1.
type ShareRow struct {
	Job   topology.JobID `json:"job"`
	User  string         `json:"user"`
	Group string         `json:"group"` // its project
	Nodes int            `json:"nodes"`
	Share float64        `json:"share"`
	// Priority is there where the policy divides by it.
	Priority float64 `json:"priority,omitempty"`
}
