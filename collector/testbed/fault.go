package testbed

import "fairway/collector/topology"

type Fault struct {
	Kind      string
	Forwarder topology.ForwarderID
}
type activeFault interface{ clear() error }

func (tb *Testbed) clearFaults() error  { return nil }
func sweepCgroup(instance string) error { return nil }
