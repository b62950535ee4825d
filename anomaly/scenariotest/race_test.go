//go:build race

package scenariotest

// underRace says that everything takes many times as long.
const underRace = true
