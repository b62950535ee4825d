package recorded

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strings"

	"fairway/anomaly/failslow"
	"fairway/collector/topology"
)

// Second is everything that arrived in one second of the trace.
type Second struct {
	RX   int64 // Unix seconds of the collector's clock
	Rows []failslow.Observation
	// Pools are the mean service times in seconds of the storage pools; empty where the trace does not say.
	Pools []float64
}

// Job is one row of the job table.
type Job struct {
	ID         string
	Start, End int64
	Nodes      []topology.NodeID
}

// Trace is an open directory of recorded seconds, read from front to back with bounded memory.
type Trace struct {
	Nodes []topology.NodeID // of nodes.csv; empty without it
	Jobs  []Job
	Rows  int // read so far

	samples, backend, probe *table
	ids                     map[string]topology.NodeID
	second                  Second
	slots                   map[topology.NodeID]slot
	ahead                   map[*table]bool // the table stands on a row that is not used yet
	ended                   map[*table]bool // optional files that are damaged from where they were read to
	damage                  error           // what of them could not be read
	bad                     func(*RowError)
}

var sampleColumns = []string{"rx", "node", "r_bytes", "r_ops", "r_wait_us", "r_exe_us", "w_bytes", "w_ops", "w_wait_us",
	"w_exe_us", "m_ops", "m_wait_us", "m_exe_us", "qlen"}

const poolCount = 8

// Open opens the trace in dir. bad gets every row that cannot be used.
func Open(dir string, bad func(*RowError)) (t *Trace, err error) {
	t = &Trace{ids: map[string]topology.NodeID{}, slots: map[topology.NodeID]slot{}, ahead: map[*table]bool{},
		ended: map[*table]bool{}, bad: bad}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Close())
		}
	}()
	if t.samples, err = openTable(dir, "samples.csv", sampleColumns, bad); errors.Is(err, fs.ErrNotExist) {
		return t, fmt.Errorf("%s holds no samples.csv, no targets.csv (each may end in .gz), no days of disks and no "+
			"*.darshan: %w", dir, fs.ErrNotExist)
	} else if err != nil {
		return t, err
	}
	for _, o := range []struct {
		into    **table
		name    string
		columns string
	}{
		{&t.backend, "backend.csv",
			"rx,pool0_us,pool1_us?,pool2_us?,pool3_us?,pool4_us?,pool5_us?,pool6_us?,pool7_us?"},
		{&t.probe, "probe.csv", "rx,node,read1m_us?,write1m_us?,stat_us?"},
	} {
		if *o.into, err = openTable(dir, o.name, strings.Split(o.columns, ","), bad); err != nil &&
			!errors.Is(err, fs.ErrNotExist) {
			return t, err
		}
	}
	if err = t.readNodes(dir); err != nil {
		return t, err
	}
	return t, t.readJobs(dir)
}

// Damage is what of the optional files could not be read so far: what came before it was used.
func (t *Trace) Damage() error { return t.damage }

// Close closes the files.
func (t *Trace) Close() error {
	var errs []error
	for _, f := range []*table{t.samples, t.backend, t.probe} {
		if f != nil {
			errs = append(errs, f.close())
		}
	}
	return errors.Join(errs...)
}

func (t *Trace) readNodes(dir string) error {
	f, err := openTable(dir, "nodes.csv", []string{"node"}, t.bad)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for err = f.next(); err == nil; err = f.next() {
		t.Nodes = append(t.Nodes, t.id(f.text(0)))
	}
	return errors.Join(ignoreEOF(err), f.close())
}

func (t *Trace) readJobs(dir string) error {
	f, err := openTable(dir, "jobs.csv", []string{"job", "start", "end", "nodes"}, t.bad)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for err = f.next(); err == nil; err = f.next() {
		start, badStart := f.seconds(1)
		end, badEnd := f.seconds(2)
		if bad := cmp.Or(badStart, badEnd); bad != nil {
			t.bad(bad)
			continue
		}
		j := Job{ID: string(f.text(0)), Start: start, End: end}
		for n := range strings.SplitSeq(string(f.text(3)), ";") {
			j.Nodes = append(j.Nodes, t.id([]byte(n)))
		}
		t.Jobs = append(t.Jobs, j)
	}
	return errors.Join(ignoreEOF(err), f.close())
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// id makes one string of each node's name.
func (t *Trace) id(b []byte) topology.NodeID {
	id, ok := t.ids[string(b)]
	if !ok {
		id = topology.NodeID(b)
		t.ids[string(b)] = id
	}
	return id
}

// Next returns the next second with samples; io.EOF ends the trace. The second is used again by the
// next call.
func (t *Trace) Next() (*Second, error) {
	s := &t.second
	s.Rows, s.Pools = s.Rows[:0], s.Pools[:0]
	rx, err := t.peek(t.samples)
	if err != nil {
		return nil, err
	}
	s.RX = rx
	for err == nil && rx <= s.RX { // a row out of order arrives now
		if bad := t.sample(s.RX - rx); bad != nil {
			t.bad(bad)
		}
		t.ahead[t.samples] = false
		rx, err = t.peek(t.samples)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	t.others()
	return s, nil
}

// peek returns the time of the row that comes next.
func (t *Trace) peek(f *table) (int64, error) {
	for {
		if !t.ahead[f] {
			if err := f.next(); err != nil {
				return 0, err
			}
			t.ahead[f] = true
		}
		rx, bad := f.seconds(0)
		if bad == nil {
			return rx, nil
		}
		t.bad(bad)
		t.ahead[f] = false
	}
}

// mostLate is how much a row may be out of order, s: beyond that a clock or a digit is wrong.
const mostLate = 300

func (t *Trace) sample(late int64) *RowError {
	f := t.samples
	t.Rows++
	if late > mostLate {
		return &RowError{f.name, f.line, "rx", fmt.Sprintf("%d comes after %d", t.second.RX-late, t.second.RX)}
	}
	var v [12]float64
	for i := range v {
		n, bad := f.number(i + 2)
		if bad != nil {
			return bad
		}
		v[i] = n
	}
	if len(f.text(1)) == 0 {
		return &RowError{f.name, f.line, "node", "empty"}
	}
	const us = 1e-6
	t.second.Rows = append(t.second.Rows, failslow.Observation{Node: t.id(f.text(1)), QueueLen: v[11],
		Class: [3]failslow.ClassSecond{
			{Bytes: v[0], Ops: v[1], Wait: v[2] * us, Exec: v[3] * us},
			{Bytes: v[4], Ops: v[5], Wait: v[6] * us, Exec: v[7] * us},
			{Ops: v[8], Wait: v[9] * us, Exec: v[10] * us},
		}})
	return nil
}

// others reads the optional files up to the second.
func (t *Trace) others() {
	for _, f := range []struct {
		t   *table
		use func() *RowError
	}{{t.backend, t.backendRow}, {t.probe, t.probeRow}} {
		if f.t == nil || t.ended[f.t] {
			continue
		}
		for {
			rx, err := t.peek(f.t)
			if errors.Is(err, io.EOF) || err == nil && rx > t.second.RX {
				break
			}
			if err != nil { // the rest of the trace is judged without it
				t.ended[f.t], t.damage = true, errors.Join(t.damage, err)
				break
			}
			if rx == t.second.RX || f.t == t.probe {
				if bad := f.use(); bad != nil {
					t.bad(bad)
				}
			}
			t.ahead[f.t] = false
		}
	}
}

func (t *Trace) backendRow() *RowError {
	f := t.backend
	s := &t.second
	s.Pools = s.Pools[:0]
	for i := range poolCount {
		v, bad := f.number(i + 1)
		if bad != nil {
			return bad
		}
		if !math.IsNaN(v) {
			s.Pools = append(s.Pools, v*1e-6)
		}
	}
	return nil
}

func (t *Trace) probeRow() *RowError {
	f := t.probe
	p := failslow.Probe{Node: t.id(f.text(1))}
	for c := range p.Took {
		v, bad := f.number(c + 2)
		if bad != nil {
			return bad
		}
		p.Took[c] = v * 1e-6
	}
	rx, _ := f.seconds(0)
	t.slots[p.Node] = slot{p, rx}
	return nil
}

// slot is what a canary would see in the seconds from rx on.
type slot struct {
	failslow.Probe
	rx int64
}

const slotSeconds = 10

// Canary is what a canary sent to a node now would have seen; ok is false where the trace does not say.
func (t *Trace) Canary(node topology.NodeID) (failslow.Probe, bool) {
	s, ok := t.slots[node]
	return s.Probe, ok && t.second.RX < s.rx+slotSeconds
}
