package simmachine

import (
	"fmt"
	"math"
	"slices"
	"time"

	"fairway/collector/topology"
)

// Kind is a way in which a forwarder, or the back end, is slow.
type Kind string

// The fail-slow kinds of forwarders, and Brownout of the whole back end.
const (
	Hard         Kind = "hard"         // the whole node at Severity of its speed (0.1 by default)
	Mild         Kind = "mild"         // the node's own part at 0.5
	Intermittent Kind = "intermittent" // Hard in bursts
	Ramp         Kind = "ramp"         // from healthy to Hard over the fault's life
	MetaSlow     Kind = "meta_slow"
	ReadSlow     Kind = "read_slow"
	NetLoss      Kind = "net_loss" // milliseconds added to each request, less bandwidth
	LinkCap      Kind = "link_cap" // bandwidth only
	Brownout     Kind = "brownout_all"
)

// Fault is one slowness with its time.
type Fault struct {
	Kind      Kind
	Forwarder topology.ForwarderID // none for Brownout
	Start     time.Time
	End       time.Time // zero: until cleared
	// Severity is the speed left, 0..1; 0 takes the kind's default.
	Severity float64
}

var defaultSeverity = map[Kind]float64{Hard: 0.1, Mild: 0.5, Intermittent: 0.1, Ramp: 0.1, MetaSlow: 0.1, ReadSlow: 0.2,
	NetLoss: 0.4, LinkCap: 0.25, Brownout: 0.25}

// Inject adds a fault.
func (m *Machine) Inject(f Fault) error {
	s, ok := defaultSeverity[f.Kind]
	if !ok {
		return fmt.Errorf("fault kind %q is not known", f.Kind)
	}
	if f.Severity == 0 {
		f.Severity = s
	}
	if f.Severity < 0 || f.Severity > 1 {
		return fmt.Errorf("severity %v of fault %s is not in 0..1", f.Severity, f.Kind)
	}
	if _, ok := m.fwdIdx[f.Forwarder]; !ok && f.Kind != Brownout {
		return fmt.Errorf("%q is not a forwarder of %s", f.Forwarder, m.cfg.Name)
	}
	m.faults = append(m.faults, f)
	return nil
}

// Clear ends every fault of a forwarder; none names the back end.
func (m *Machine) Clear(f topology.ForwarderID) {
	m.faults = slices.DeleteFunc(m.faults, func(x Fault) bool { return x.Forwarder == f })
}

// effect is what the faults of one forwarder do this second: factors on service times and bandwidth,
// and seconds added to each data request.
type effect struct{ read, write, meta, bandwidth, delay float64 }

func (m *Machine) active(f *Fault) bool {
	return !m.now.Before(f.Start) && (f.End.IsZero() || m.now.Before(f.End))
}

// faultAt combines the active faults of forwarder i.
func (m *Machine) faultAt(i int) effect {
	e := effect{1, 1, 1, 1, 0}
	for k := range m.faults {
		f := &m.faults[k]
		if f.Forwarder != m.fwds[i].id || !m.active(f) {
			continue
		}
		slow := 1 / f.Severity
		switch f.Kind {
		case Ramp:
			if life := f.End.Sub(f.Start).Seconds(); life > 0 {
				slow = math.Pow(slow, m.now.Sub(f.Start).Seconds()/life)
			}
		case Intermittent: // 20 s in every 80
			if int(m.now.Sub(f.Start).Seconds())%80 >= 20 {
				continue
			}
		}
		switch f.Kind {
		case MetaSlow:
			e.meta *= slow
		case ReadSlow:
			e.read *= slow
		case NetLoss:
			e.bandwidth *= f.Severity
			e.delay += 1e-3 + 5e-3*m.rng.Float64()
		case LinkCap:
			e.bandwidth *= f.Severity
		default:
			e.read, e.write, e.meta, e.bandwidth = e.read*slow, e.write*slow, e.meta*slow, e.bandwidth/slow
		}
	}
	return e
}

// backEnd sets the back end's slowdown of this second.
func (m *Machine) backEnd() {
	m.slowdown = 1
	for k := range m.faults {
		if f := &m.faults[k]; f.Kind == Brownout && m.active(f) {
			m.slowdown /= f.Severity
		}
	}
	// What the forwarders moved in the last second beyond the back end's peak waits there.
	moved := 0.0
	for i := range m.fwds {
		moved += m.fwds[i].read + m.fwds[i].write
	}
	if over := moved / m.cfg.StorageBytesPerSec; over > 1 {
		m.slowdown *= over
	}
}
