package watch

import (
	"fmt"
	"maps"
	"strings"

	"fairway/anomaly"
	"fairway/collector"
	"fairway/collector/topology"
)

const (
	// longWait is the age of a waiter of GPFS, seconds, from which a finding mentions it: those of a busy
	// node are shorter.
	longWait = 1.0
	// gpfsSource is the source whose note is what the longest waiter waits for.
	gpfsSource = "gpfs"
)

// waiters are the long waiters of GPFS on the forwarders, in the newest second. They accuse nobody: a node whose disks
// are slow has them, and so has one that is about to flush. They are what a finding says of the cause.
type waiters map[topology.NodeID]waiter

type waiter struct {
	age, disk float64 // seconds; disk of the longest that waits for one
	reason    string
}

func (w waiters) take(f *collector.Frame) {
	age := valueOr(f, collector.WaiterAge, 0)
	if age < longWait {
		return
	}
	of := waiter{age: age, disk: valueOr(f, collector.DiskWaiterAge, 0)}
	for i := range f.Sources {
		if f.Sources[i].Name == gpfsSource {
			of.reason = f.Sources[i].Note
		}
	}
	w[f.Node] = of
}

// explain adds to the causes of slow forwarders what these wait for.
func (w waiters) explain(verdicts []anomaly.Verdict) {
	for i := range verdicts {
		v := &verdicts[i]
		of, ok := w[v.Node]
		if !ok || v.Kind != anomaly.FailSlow || v.Level < anomaly.Doubt {
			continue
		}
		waits := fmt.Sprintf("its longest waiter in GPFS waits %.0f s", of.age)
		if of.reason != "" {
			waits += fmt.Sprintf(": '%s'", of.reason)
		}
		if of.disk == of.age {
			waits += ", which is for the disks behind it"
		}
		if v.Cause != "" && !strings.HasPrefix(v.Cause, notKnown) {
			waits = v.Cause + "; " + waits
		}
		v.Cause = waits
		v.Evidence = maps.Clone(v.Evidence)
		if v.Evidence == nil {
			v.Evidence = map[string]float64{}
		}
		v.Evidence[collector.WaiterAge.String()] = of.age
	}
}
