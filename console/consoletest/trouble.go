package consoletest

import (
	"fmt"
	"time"

	"fairway/anomaly"
	"fairway/webui/api"
)

// addTrouble is what the page of the suspect forwarder has besides: threads, waits, three storage targets
// of which one is slow, and the life of its finding.
func (f *Fake) addTrouble(d *api.ForwarderDetail, o *api.Overview) {
	v := func(x float64) *float64 { return &x }
	for name, x := range map[string]float64{"threads_busy": 16, "threads": 16, "write_wait": 0.196, "write_exec": 0.02,
		"read_wait": 0.006, "read_exec": 0.005} {
		d.Series[name] = []api.Point{{TimeMillis: o.At.UnixMilli(), Value: x}}
	}
	for name, x := range map[string]float64{"write_wait": 0.0022, "write_exec": 0.002, "read_wait": 0.0055,
		"read_exec": 0.005} {
		d.PeersMedian[name] = v(x)
	}
	d.Storage = api.StorageView{By: api.StorageByForwarder}
	for i := range 6 {
		row := api.StorageRow{Target: fmt.Sprintf("scratch-OST%04x", 0x43+i),
			RequestsPerSec: v(395 - float64(10*i)), ReadBytesPerSec: v(30e6),
			WriteBytesPerSec: v(150e6 - 20e6*float64(i)),
			LatencySeconds:   v(0.010), PeersLatency: v(0.009)}
		if i == 0 {
			row.LatencySeconds = v(0.038)
		}
		d.Storage.Rows = append(d.Storage.Rows, row)
	}
	g := &o.Findings[0]
	last := time.Date(2026, 10, 2, 3, 10, 0, 0, time.UTC)
	d.Life = &api.ForwarderLife{Steps: []anomaly.Step{{State: anomaly.Suspect, At: g.Since}},
		Next: "confirmed after 5 s of alarm", Earlier: 1,
		Last: &anomaly.Finding{ID: "F-0033", Node: g.Node, Kind: anomaly.FailSlow, Class: "read",
			State: anomaly.Returned, Since: last, Changed: last.Add(37 * time.Minute)}}
}
