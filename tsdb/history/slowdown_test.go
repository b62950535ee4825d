package history

import (
	"fmt"
	"testing"
	"time"

	"fairway/collector/topology"
)

// A pair is compared with the same application alone: other forwarders, other times and other sizes do not count.
func TestSlowdowns(t *testing.T) {
	begin := time.Unix(1e9, 0)
	run := func(app string, nodes, from, to int, ioSeconds float64, on ...topology.ForwarderID) Run {
		return Run{App: app, Nodes: nodes, Start: begin.Add(time.Duration(from) * time.Second),
			End: begin.Add(time.Duration(to) * time.Second), Forwarders: on,
			Profile: &Profile{WriteBytes: 1, IOSeconds: ioSeconds}}
	}
	got := Slowdowns([]Run{
		run("A", 4, 0, 10, 10, "f1"), run("A", 4, 20, 30, 10, "f1"), // alone
		run("A", 4, 40, 60, 30, "f1", "f2"), run("B", 4, 50, 70, 8, "f2"), // A beside B
		run("B", 4, 80, 90, 4, "f2"), run("A", 4, 80, 90, 10, "f3"), // at the same time, elsewhere
		run("A", 8, 100, 110, 50, "f1"), run("B", 4, 105, 109, 4, "f1"), // no A of that size was alone
		run("B", 4, 110, 120, 4, "f1"), // it begins when the other ends
		{App: "C", Nodes: 1, Start: begin, Forwarders: []topology.ForwarderID{"f1"}},
	})
	if want := "[{A B 3 1 3} {B A 1.5 2 2}]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}
