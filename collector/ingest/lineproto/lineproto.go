// Package lineproto reads Influx line protocol, as Telegraf, cc-metric-collector and others write
// it, into frames. Syntax is left to InfluxData's own decoder; what is read here is meaning.
//
// A line's node is its tag node, hostname or host, without domain. Its samples are its numeric
// fields: under the measurement "fairway" a field is named after its metric (read_bytes=1.5e9);
// under a measurement named after a metric the field is called value or gauge (read_bytes,host=cn1
// value=1.5e9); and under any other the measurement and the field together name it
// (read,host=cn1 bytes=1.5e9). Nothing else is guessed: others' names often stand for counters, or
// for one of several devices. Rates are per second, waits are seconds. Lines of one node and second
// become one frame. What has no metric here is left out and counted.
package lineproto

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/influxdata/line-protocol/v2/lineprotocol"

	"fairway/collector"
	"fairway/collector/topology"
)

// Limits of one body.
const (
	MaxFrames          = 65536 // nodes x seconds
	MaxSamplesPerFrame = 1024
	MaxNameBytes       = 255
)

// ErrLimit says that a body is over a limit; the error names it.
var ErrLimit = errors.New("limit exceeded")

// Options say what a body leaves open.
type Options struct {
	Now       time.Time              // of a line without time
	Precision lineprotocol.Precision // of the times
}

// ParsePrecision reads the precision parameter of the write API; "" is nanoseconds.
func ParsePrecision(word string) (lineprotocol.Precision, error) {
	switch word {
	case "", "ns":
		return lineprotocol.Nanosecond, nil
	case "us", "µs", "u":
		return lineprotocol.Microsecond, nil
	case "ms":
		return lineprotocol.Millisecond, nil
	case "s":
		return lineprotocol.Second, nil
	}
	return 0, fmt.Errorf("precision %q: want ns, us, ms or s", word)
}

// Report says what became of a body's lines.
type Report struct {
	Lines   int   // all of them
	Bad     int   // that could not be read
	Err     error // of the first bad one, which it names by number
	Unknown int   // fields that are no metric here, or no number
}

// Parse reads a body. An error that wraps ErrLimit means that nothing of it was read; bad lines are
// left out, counted and named in the report.
func Parse(body []byte, o Options) ([]collector.Frame, Report, error) {
	p := parser{o: o, at: map[key]int{}, dec: lineprotocol.NewDecoderWithBytes(body)}
	for p.dec.Next() {
		p.rep.Lines++
		if err := p.line(); errors.Is(err, ErrLimit) {
			return nil, p.rep, fmt.Errorf("line %d: %w", p.rep.Lines, err)
		} else if err != nil {
			p.rep.Bad++
			if p.rep.Err == nil {
				p.rep.Err = fmt.Errorf("line %d: %w", p.rep.Lines, err)
			}
		}
	}
	return p.frames, p.rep, nil
}

// key is a frame's identity.
type key struct {
	node   topology.NodeID
	second int64
}

type parser struct {
	o       Options
	dec     *lineprotocol.Decoder
	at      map[key]int // place in frames
	frames  []collector.Frame
	rep     Report
	samples []collector.Sample // of the line
}

var errNoNode = errors.New("no tag node, hostname or host says which node it is about")

// line reads one line; nothing of a bad one is kept.
func (p *parser) line() error {
	raw, err := p.dec.Measurement()
	if err != nil {
		return err
	}
	measurement := string(raw)
	node, role, err := p.tags()
	if err != nil {
		return err
	}
	p.samples = p.samples[:0]
	unknown, err := p.fields(measurement)
	if err != nil {
		return err
	}
	at, err := p.dec.Time(p.o.Precision, p.o.Now)
	if err != nil {
		return err
	}
	switch {
	case node == "":
		return errNoNode
	case len(node) > MaxNameBytes:
		return fmt.Errorf("a node name of %d bytes, the most is %d", len(node), MaxNameBytes)
	}
	p.rep.Unknown += unknown
	if len(p.samples) == 0 {
		return nil
	}
	return p.keep(node, role, at.Unix())
}

// tags finds the node and its role.
func (p *parser) tags() (node topology.NodeID, role topology.Role, err error) {
	best := 0
	for {
		k, v, err := p.dec.NextTag()
		if err != nil || k == nil {
			return node, role, err
		}
		rank := 0
		switch string(k) {
		case "role":
			role, _ = topology.ParseRole(string(v))
		case "node":
			rank = 3
		case "hostname":
			rank = 2
		case "host":
			rank = 1
		}
		if rank > best {
			best, node = rank, withoutDomain(string(v))
		}
	}
}

func withoutDomain(name string) topology.NodeID {
	if host, _, ok := strings.Cut(name, "."); ok && host != "" {
		if _, err := netip.ParseAddr(name); err != nil {
			return topology.NodeID(host)
		}
	}
	return topology.NodeID(name)
}

// fields collects the line's samples and counts what is not a metric.
func (p *parser) fields(measurement string) (unknown int, err error) {
	for {
		k, v, err := p.dec.NextField()
		if err != nil {
			return unknown, err
		}
		if k == nil {
			return unknown, nil
		}
		x, number := numeric(v)
		m, known := metricOf(measurement, string(k))
		if !number || !known {
			unknown++
			continue
		}
		p.samples = append(p.samples, collector.Sample{Metric: m, Value: x})
	}
}

func numeric(v lineprotocol.Value) (x float64, ok bool) {
	switch v.Kind() {
	case lineprotocol.Float:
		x = v.FloatV()
	case lineprotocol.Int:
		x = float64(v.IntV())
	case lineprotocol.Uint:
		x = float64(v.UintV())
	default:
		return 0, false
	}
	return x, collector.IsValue(x)
}

// ownMeasurement is under which fields are named after metrics.
const ownMeasurement = "fairway"

func metricOf(measurement, field string) (collector.Metric, bool) {
	name := measurement + "_" + field
	switch {
	case measurement == ownMeasurement:
		return collector.ParseMetric(field)
	case field == "value" || field == "gauge":
		name = measurement
	}
	return collector.ParseMetric(name)
}

// keep adds the line's samples to their frame; of two values of one metric the later one counts.
func (p *parser) keep(node topology.NodeID, role topology.Role, second int64) error {
	k := key{node, second}
	i, ok := p.at[k]
	if !ok {
		if len(p.frames) == MaxFrames {
			return fmt.Errorf("%w: more than %d nodes x seconds in one body; send smaller ones", ErrLimit, MaxFrames)
		}
		i = len(p.frames)
		p.at[k] = i
		p.frames = append(p.frames, collector.Frame{Node: node, TimeMillis: second * 1000})
	}
	f := &p.frames[i]
	if role != topology.RoleUnknown {
		f.Role = role
	}
	if len(f.Samples)+len(p.samples) > MaxSamplesPerFrame {
		return fmt.Errorf("%w: node %s has more than %d samples in one second", ErrLimit, node, MaxSamplesPerFrame)
	}
	f.Samples = append(f.Samples, p.samples...)
	return nil
}
