// Package avoid is the policy that grants nothing: a job keeps its default forwarders, except that
// fail-slow ones are replaced while idle healthy ones exist.
package avoid

import (
	"fairway/remap/policy/dfra"
)

// Decide answers one case; it is a pure function of it and reads no history.
func Decide(c dfra.Case) dfra.Decision { return dfra.KeepDefault(c) }
