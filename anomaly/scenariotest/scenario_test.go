package scenariotest

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Flow is how a job does I/O on each of its forwarders.
type Flow string

// The flows. Random and sync requests cost the back end several times as much at the same size, shared
// ones wait for the locks of one file, storm is metadata.
const (
	ReadFlow   Flow = "read"
	WriteFlow  Flow = "write"
	RandomFlow Flow = "random"
	SyncFlow   Flow = "sync"
	SharedFlow Flow = "shared"
	StormFlow  Flow = "storm"
)

// Job is one job: bursts of requests from each of its forwarders.
type Job struct {
	ID         string
	Flow       Flow
	Start, End int
	First      int // the first of its forwarders
	Count      int
	Size       float64 // bytes a request
	PerSec     float64 // requests that it would like to make on a forwarder
	Burst      int     // seconds on
	Every      int     // seconds from one burst to the next
	Cost       float64 // of Random, Sync and Shared: times the usual
	Pool       int
}

// Fault is one fail-slow forwarder.
type Fault struct {
	Node       int
	Kind       string // one of the cases of Layer.state
	Start, End int
	Severity   float64 // speed left, 0..1; for net_loss seconds added, for meta_slow and times: times as long
}

// Brownout is a slow back end.
type Brownout struct {
	Pool       int // -1: all
	Start, End int
	Times      float64
}

// Scenario is everything that happens to a layer.
type Scenario struct {
	Seed    uint64
	Nodes   int
	Reserve int // of the nodes, without service: almost idle
	Seconds int
	Jobs    []Job
	Loops   []Loop
	// Quiet is the share of the nodes without a background of small requests that is always there.
	Quiet     float64
	Faults    []Fault
	Brownouts []Brownout
	// Missing, Restart and Reboot disturb what is collected: a node's rows lost with a probability, all
	// rows for some seconds, a node silent and then cold.
	Missing []Fault
	Restart []Brownout
	Reboot  []Fault
}

// Parse reads a scenario: one thing a line, '#' begins a comment.
//
//	layer NODES SECONDS SEED [RESERVE]
//	job ID FLOW START END FIRST COUNT SIZE PERSEC BURST EVERY [COST [POOL]]
//	fault NODE KIND START END SEVERITY
//	brownout all|POOL START END TIMES
//	missing NODE START END SHARE
//	restart START END
//	reboot NODE START END
func Parse(r io.Reader) (*Scenario, error) {
	s := &Scenario{}
	in := bufio.NewScanner(r)
	for line := 1; in.Scan(); line++ {
		text, _, _ := strings.Cut(in.Text(), "#")
		f := strings.Fields(text)
		if len(f) == 0 {
			continue
		}
		p := &fields{words: f[1:]}
		s.take(f[0], p)
		if p.err == nil && len(p.words) > 0 {
			p.err = fmt.Errorf("too much: %q", p.words)
		}
		if p.err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", line, f[0], p.err)
		}
	}
	return s, in.Err()
}

func (s *Scenario) take(what string, p *fields) {
	switch what {
	case "layer":
		s.Nodes, s.Seconds, s.Seed = p.int(), p.int(), uint64(p.int())
		if len(p.words) > 0 {
			s.Reserve = p.int()
		}
	case "job":
		j := Job{ID: p.word(), Flow: Flow(p.word()), Start: p.int(), End: p.int(), First: p.int(), Count: p.int(),
			Size:   p.number(),
			PerSec: p.number(), Burst: p.int(), Every: p.int(), Cost: 1}
		if len(p.words) > 0 {
			j.Cost = p.number()
		}
		if len(p.words) > 0 {
			j.Pool = p.int()
		}
		s.Jobs = append(s.Jobs, j)
	case "fault":
		s.Faults = append(s.Faults, Fault{p.int(), p.word(), p.int(), p.int(), p.number()})
	case "brownout":
		b := Brownout{Pool: -1}
		if w := p.word(); w != "all" {
			b.Pool, p.err = strconv.Atoi(w)
		}
		b.Start, b.End, b.Times = p.int(), p.int(), p.number()
		s.Brownouts = append(s.Brownouts, b)
	case "missing":
		s.Missing = append(s.Missing, Fault{p.int(), what, p.int(), p.int(), p.number()})
	case "restart":
		s.Restart = append(s.Restart, Brownout{Start: p.int(), End: p.int()})
	case "reboot":
		s.Reboot = append(s.Reboot, Fault{Node: p.int(), Start: p.int(), End: p.int()})
	default:
		p.err = fmt.Errorf("unknown word")
	}
}

// fields hands out the words of a line and keeps the first error.
type fields struct {
	words []string
	err   error
}

func (p *fields) word() string {
	if len(p.words) == 0 {
		if p.err == nil {
			p.err = fmt.Errorf("too short")
		}
		return ""
	}
	w := p.words[0]
	p.words = p.words[1:]
	return w
}

func (p *fields) number() float64 {
	w := p.word()
	v, err := strconv.ParseFloat(w, 64)
	if err != nil && p.err == nil {
		p.err = err
	}
	return v
}

func (p *fields) int() int { return int(p.number()) }
