//go:build race

package gateways

// underRace says that everything takes many times as long.
const underRace = true
