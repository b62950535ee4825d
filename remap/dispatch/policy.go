package dispatch

import (
	"fmt"

	"fairway/remap/policy/avoid"
	"fairway/remap/policy/dfra"
	"fairway/remap/policy/mckp"
)

// Policy decides one case; it is a pure function.
type Policy func(dfra.Case) dfra.Decision

// PolicyByName returns dfra, mckp (with its bound on harm; see mckp.Policy) or avoid.
func PolicyByName(name string, harm float64) (Policy, error) {
	switch name {
	case "dfra":
		return dfra.Decide, nil
	case "mckp":
		return mckp.Policy(harm), nil
	case "avoid":
		return avoid.Decide, nil
	}
	return nil, fmt.Errorf("policy = %q: want dfra, mckp or avoid", name)
}
