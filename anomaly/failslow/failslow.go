// Package failslow judges whether a forwarder is slow for what it is asked to do: its execution times
// against what the fleet needs for the same requests, second by second, in a sequential test.
package failslow

import (
	"fmt"
	"time"

	"fairway/collector/topology"
)

// Settings of a detector. The zero value is not useful; begin with DefaultSettings.
type Settings struct {
	// FalseAlarmEvery is the mean time between two false alarms of one healthy node that the
	// sequential test promises, under the conditions that docs/detection.md names.
	FalseAlarmEvery time.Duration `toml:"false_alarm_every" help:"Mean time between two false alarms of a forwarder."`
	// PeakBytesPerSec is what a forwarder can move; 0 learns it from the fleet.
	PeakBytesPerSec float64 `toml:"-"`
	// ProbeBusy has nodes with load probed as often as idle ones: then canaries through a loaded node are
	// compared with canaries through others with as much load, and not with those through idle ones.
	ProbeBusy bool `toml:"-"`
}

// DefaultSettings promise a false alarm of a node in 500 days.
func DefaultSettings() Settings {
	return Settings{FalseAlarmEvery: 500 * 24 * time.Hour, ProbeBusy: true}
}

// Validate says which setting is out of its range.
func (s Settings) Validate() error {
	if s.FalseAlarmEvery < time.Hour {
		return fmt.Errorf("false_alarm_every = %s: want at least 1h", s.FalseAlarmEvery)
	}
	if !(s.PeakBytesPerSec >= 0) { // of fairway detect --peak
		return fmt.Errorf("peak_bytes_per_sec = %g: want 0 (learn it) or more", s.PeakBytesPerSec)
	}
	return nil
}

// Job is what the scheduler or the mapping knows: which forwarders serve a job now. Forwarders of one
// job do the same kind of work, which makes them each other's best peers.
type Job struct {
	ID    topology.JobID
	Nodes []topology.NodeID
}
