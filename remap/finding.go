package remap

import (
	"fmt"

	"fairway/anomaly"
)

// KindWords says a kind of finding as an operator would.
func KindWords(k anomaly.Kind) string {
	words := map[anomaly.Kind]string{
		anomaly.FailSlow: "slow for its load", anomaly.N1Pin: "shared-file job pins threads",
		anomaly.MetaStorm: "metadata storm", anomaly.HighBandwidth: "one job fills it",
		anomaly.BrownoutAll: "back end slow", anomaly.BrownoutPool: "back-end pool slow",
		anomaly.ForwarderSilent: "silent",
		anomaly.SecondSpeaker:   "a second agent speaks for it",
		anomaly.LongList:        "lists clients that cannot be",
		anomaly.TargetSlow:      "slower than its peers",
		anomaly.ReceiverSlow:    "routers wait for it", anomaly.BuffersExhausted: "too few router buffers",
		anomaly.ClientSlow: "slow by itself", anomaly.TargetFull: "fills up",
	}
	if w := words[k]; w != "" {
		return w
	}
	return string(k)
}

// FindingWords says in a few words what a finding is; of a node that does not serve, how that is.
func FindingWords(f *anomaly.Finding) string {
	if f.Kind.Accuses() && !f.Condition.Serves() {
		return string(f.Condition)
	}
	return KindWords(f.Kind)
}

// Accusation is a finding that holds its forwarder responsible, as a check says it.
func Accusation(f *anomaly.Finding) string {
	return fmt.Sprintf("%s is %s: %s (%s)", f.Node, f.State, FindingWords(f), f.ID)
}
