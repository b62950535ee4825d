//go:build race

package engine

// underRace says that everything takes many times as long.
const underRace = true
