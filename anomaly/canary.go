package anomaly

import (
	"fmt"
	"time"

	"fairway/collector/topology"
)

// Canary is one canary probe: a small write, a read of it and a stat through one forwarder.
type Canary struct {
	Forwarder topology.ForwarderID `json:"forwarder"`
	At        time.Time            `json:"at"` // of its start
	// By is the person who asked for it; empty: the detectors, by rule.
	By    string     `json:"by,omitempty"`
	Bytes int        `json:"bytes,omitempty"` // that it moved, both directions together
	Took  CanaryTook `json:"took"`
	// Peers is the median over the newest canaries of PeersOf other forwarders that are not suspected.
	Peers   CanaryTook `json:"peers"`
	PeersOf int        `json:"peers_of"`
	// Error is why it did not complete; Took then holds what came before.
	Error string `json:"error,omitempty"`
}

// CanaryTook is how long each operation of a canary took, seconds; nil: it was not reached.
type CanaryTook struct {
	Read  *float64 `json:"read_seconds"`
	Write *float64 `json:"write_seconds"`
	Stat  *float64 `json:"stat_seconds"`
}

// String writes a canary for the audit.
func (c *Canary) String() string {
	if c.Error != "" {
		return "failed: " + c.Error
	}
	text := ""
	for _, one := range []struct {
		name string
		took *float64
	}{{"read", c.Took.Read}, {"write", c.Took.Write}, {"stat", c.Took.Stat}} {
		if one.took == nil {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%s %.3g ms", one.name, *one.took*1000)
	}
	return text
}
