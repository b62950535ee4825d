package avoid

import (
	"slices"
	"testing"

	"fairway/collector/topology"
	"fairway/remap/policy/dfra"
)

func TestDecideOnlySteersAwayFromSlowForwarders(t *testing.T) {
	job := dfra.Job{App: "A", User: "u", Nodes: 512, DefaultForwarders: []topology.ForwarderID{"f1", "f2"}}
	c := dfra.Case{Job: job, Forwarders: dfra.Pool{Idle: []topology.ForwarderID{"f3", "f4", "f5"},
		Anomalous: []topology.ForwarderID{"f2", "f3"}},
		History: []dfra.Run{{App: "A", User: "u", Nodes: 512, VolumeBytes: 1e15, IONodes: 512, Mode: topology.ModeN1}}}
	d := Decide(c)
	if d.Action != dfra.Default || !d.Remap || !slices.Equal(d.Forwarders, []topology.ForwarderID{"f1", "f4"}) ||
		len(d.Reasons) != 1 {
		t.Errorf("%+v", d)
	}
	c.Forwarders.Anomalous = nil
	if d := Decide(c); d.Remap || !slices.Equal(d.Forwarders, job.DefaultForwarders) {
		t.Errorf("a job on healthy forwarders is moved: %+v", d)
	}
}
