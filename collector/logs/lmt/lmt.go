// Package lmt reads what the Lustre Monitoring Tool has recorded of storage targets, metadata servers and
// routers: its database as SQLite files, rows of it as CSV or tab-separated text with a header line, and
// the strings that its agents send over cerebro.
//
// LMT's byte and operation counts are cumulative since the target was mounted. Differ turns the readings
// of one target into what happened between them.
package lmt

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

// Reading is what one target reported at one time. Unknown values are absent.
type Reading struct {
	Kind string `json:"kind"` // "ost", "mdt", "router"
	// Target is the name in Lustre; Index its number there (the hexadecimal digits of the name), which is
	// not the database's OST_ID.
	Target     topology.TargetID `json:"target,omitempty"`
	Index      *int64            `json:"index,omitempty"`
	FileSystem string            `json:"file_system,omitempty"`
	Host       topology.NodeID   `json:"host,omitempty"`
	// Time ends the interval that the reading is of. Cerebro strings have none.
	Time time.Time `json:"time,omitzero"`

	Totals
	CPUPercent    *float64 `json:"cpu_percent,omitempty"`
	MemoryPercent *float64 `json:"memory_percent,omitempty"`
	Space
	Exports  *uint64 `json:"exports,omitempty"`
	Recovery string  `json:"recovery,omitempty"`

	// Delta is set by Differ.
	Delta *Delta `json:"delta,omitempty"`

	// zeroed are what bytes read and written were before they were 0, of a Differ's newest reading.
	zeroed [2]*uint64
}

// Space is what of a target is free and used.
type Space struct {
	KBytesFree *uint64 `json:"kbytes_free,omitempty"`
	KBytesUsed *uint64 `json:"kbytes_used,omitempty"`
	InodesFree *uint64 `json:"inodes_free,omitempty"`
	InodesUsed *uint64 `json:"inodes_used,omitempty"`
}

// Totals count since the target was mounted.
type Totals struct {
	ReadBytesTotal   *uint64 `json:"read_bytes_total,omitempty"`
	WriteBytesTotal  *uint64 `json:"write_bytes_total,omitempty"`
	RoutedBytesTotal *uint64 `json:"routed_bytes_total,omitempty"`
	// OpsTotal are a metadata target's operations by name.
	OpsTotal map[string]uint64 `json:"ops_total,omitempty"`
}

// Delta is what happened at a target since its reading before.
type Delta struct {
	// Start is the time of the reading before, Seconds how long ago that was.
	Start      time.Time         `json:"start"`
	Seconds    float64           `json:"seconds"`
	ReadBytes  *uint64           `json:"read_bytes,omitempty"`
	WriteBytes *uint64           `json:"write_bytes,omitempty"`
	Ops        map[string]uint64 `json:"ops,omitempty"`
	// Gap says that readings are missing in between: the figures are of all that time together.
	Gap bool `json:"gap,omitempty"`
	// Reset says that a counter went backwards (the target moved to another server, or was mounted anew):
	// there are no figures for this time.
	Reset bool `json:"reset,omitempty"`
}

// setTarget takes the file system and the index from a target's name: fs-OST00ad.
func (r *Reading) setTarget(name string) {
	r.Target = topology.TargetID(name)
	for _, mark := range []string{"-OST", "-MDT"} {
		if i := strings.LastIndex(name, mark); i > 0 {
			if r.FileSystem == "" {
				r.FileSystem = name[:i]
			}
			if n, err := strconv.ParseInt(name[i+len(mark):], 16, 32); err == nil {
				r.Index = &n
			}
		}
	}
}

// Options are what the input itself does not say.
type Options struct {
	// Zone is where the database server is: its rows have local times without a zone. nil is UTC.
	Zone *time.Location
	// Interval is the time between readings, 5 s where it is 0 (LMT's default).
	Interval time.Duration
}

func (o Options) zone() *time.Location {
	if o.Zone == nil {
		return time.UTC
	}
	return o.Zone
}

func (o Options) interval() time.Duration {
	if o.Interval <= 0 {
		return 5 * time.Second
	}
	return o.Interval
}

// Differ compares each reading with the one before of the same kind and target. It takes them in order of
// time for each target.
type Differ struct {
	Interval time.Duration
	last     map[string]Reading
}

// Add sets r.Delta, nil for a target's first reading.
func (d *Differ) Add(r *Reading) {
	if r.Time.IsZero() || r.Target == "" {
		return
	}
	if d.last == nil {
		d.last = map[string]Reading{}
	}
	key := r.Kind + string(r.Target)
	before, ok := d.last[key]
	if ok && !r.Time.After(before.Time) {
		return
	}
	now := *r
	again := false // a counter that was 0 for a while is what it was: it did not count from 0
	for i, c := range [...]struct{ now, was *uint64 }{{r.ReadBytesTotal, before.ReadBytesTotal},
		{r.WriteBytesTotal, before.WriteBytesTotal}} {
		had := before.zeroed[i]
		switch {
		case c.now == nil:
		case *c.now > 0:
			again = again || had != nil && *c.now >= *had
		case c.was != nil && *c.was > 0:
			had = c.was
			fallthrough
		default:
			now.zeroed[i] = had
		}
	}
	d.last[key] = now
	if !ok {
		return
	}
	took := r.Time.Sub(before.Time)
	delta := &Delta{Start: before.Time, Seconds: took.Seconds(), Gap: took > d.Interval*3/2}
	up := !again
	delta.ReadBytes, up = minus(r.ReadBytesTotal, before.ReadBytesTotal, up)
	delta.WriteBytes, up = minus(r.WriteBytesTotal, before.WriteBytesTotal, up)
	for op, n := range r.OpsTotal {
		m, known := before.OpsTotal[op]
		up = up && (!known || n >= m)
	}
	if !up {
		r.Delta = &Delta{Start: before.Time, Seconds: took.Seconds(), Gap: delta.Gap, Reset: true}
		return
	}
	for op, n := range r.OpsTotal {
		if m, known := before.OpsTotal[op]; known && n > m {
			if delta.Ops == nil {
				delta.Ops = map[string]uint64{}
			}
			delta.Ops[op] = n - m
		}
	}
	r.Delta = delta
}

// minus subtracts counters that are both known; up turns false where one went backwards.
func minus(now, before *uint64, up bool) (*uint64, bool) {
	if now == nil || before == nil {
		return nil, up
	}
	if *now < *before {
		return nil, false
	}
	v := *now - *before
	return &v, up
}

// clock reads local times in order.
type clock struct {
	zone *time.Location
	last time.Time
}

// read reads "2018-01-28 00:00:05". A time that the clocks show twice, when they are set back in autumn,
// is taken to be the first one that is not before the last reading.
func (c *clock) read(s string) (time.Time, error) {
	const layout = "2006-01-02 15:04:05"
	s = strings.Replace(s, "T", " ", 1)
	t, err := time.ParseInLocation(layout, s, c.zone)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is not a time (want %s)", collector.Clip(s), layout)
	}
	best := t
	for _, shift := range []time.Duration{-time.Hour, 0, time.Hour} {
		if at := t.Add(shift); at.Format(layout) == t.Format(layout) {
			best = at
			if !at.Before(c.last) {
				break
			}
		}
	}
	c.last = best
	return best.UTC(), nil
}
