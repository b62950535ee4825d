package simmachine

import (
	"fmt"
	"time"

	"fairway/collector/topology"
)

// slowFactor is how many times as long a slow forwarder takes for everything.
const slowFactor = 10

// Slow has a forwarder do everything at a tenth of its speed from a time on, until it is cleared.
func (m *Machine) Slow(f topology.ForwarderID, from time.Time) error {
	i, ok := m.fwdIdx[f]
	if !ok {
		return fmt.Errorf("%q is not a forwarder of %s", f, m.cfg.Name)
	}
	m.fwds[i].slow, m.fwds[i].slowFrom = true, from
	return nil
}

// Clear ends a forwarder's slowness.
func (m *Machine) Clear(f topology.ForwarderID) {
	if i, ok := m.fwdIdx[f]; ok {
		m.fwds[i].slow = false
	}
}

// times is how many times as long as usual a forwarder takes this second.
func (f *forwarder) times(now time.Time) float64 {
	if f.slow && !now.Before(f.slowFrom) {
		return slowFactor
	}
	return 1
}

// backEnd sets the back end's slowdown of this second: what was moved in the last one beyond its peak waits there.
func (m *Machine) backEnd() {
	moved := 0.0
	for i := range m.fwds {
		moved += m.fwds[i].read + m.fwds[i].write
	}
	m.slowdown = 1
	if over := moved / m.cfg.StorageBytesPerSec; over > 1 {
		m.slowdown = over
	}
}
