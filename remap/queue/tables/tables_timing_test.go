package tables

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/tsdb/window"
)

// BenchmarkSecond is what making and writing the tables of a machine of TaihuLight's size costs, which is
// done once a second: 240 forwarders, 40,960 nodes, 100 jobs.
func BenchmarkSecond(b *testing.B) {
	m := &topology.Machine{Name: "big", Default: topology.Mapping{}}
	for i := range 240 {
		m.Nodes = append(m.Nodes, topology.Node{ID: topology.NodeID(fmt.Sprintf("fwd%03d", i)),
			Role: topology.Forwarder})
	}
	jobs := make([]remap.Job, 100)
	for i := range jobs {
		jobs[i] = remap.Job{ID: topology.JobID(fmt.Sprint(i)), Start: time.Unix(int64(i), 0)}
	}
	for i := range 40960 {
		n := topology.NodeID(fmt.Sprintf("cn%05d", i))
		m.Nodes = append(m.Nodes, topology.Node{ID: n, Role: topology.Compute})
		m.Default[n] = topology.ForwarderID(fmt.Sprintf("fwd%03d", i/171))
		j := &jobs[i%100]
		j.Nodes = append(j.Nodes, n)
	}
	s := remap.BuildSituation(remap.SituationParts{At: time.Unix(0, 0), Machine: m,
		Routes: map[topology.NodeID]window.Route{}, Jobs: jobs})
	c := Defaults()
	c.Policy = "size-fair"
	for b.Loop() {
		bytes := 0
		for _, t := range Of(s, &c, nil) {
			body, err := json.Marshal(t)
			if err != nil {
				b.Fatal(err)
			}
			bytes += len(body)
		}
		b.ReportMetric(float64(bytes), "bytes")
	}
}
