package console

import (
	"fairway/remap/policy/cycles"
	"fairway/remap/policy/periodic"
)

// CyclesView is what the history says of periodic applications.
type CyclesView struct {
	Cycles []cycles.Cycle `json:"cycles"`
	// Set is the periodic ones on this machine, each running once; nil where Problem says what is missing.
	Set     *periodic.Set `json:"set"`
	Problem string        `json:"problem,omitempty"`
	// LeftOut are periodic ones for which the machine has no room beside the others.
	LeftOut []string `json:"left_out,omitempty"`
}
