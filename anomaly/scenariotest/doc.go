// Package scenariotest gives the detectors layers to judge whose truth is known: a scenario, written as
// text or drawn from a seed, is played second by second by a small model of forwarders, and what the
// detectors reported is scored against it.
//
// It holds tests only: no program carries the drawn layers.
package scenariotest
