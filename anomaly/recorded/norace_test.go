//go:build !race

package recorded

// underRace says that everything takes many times as long.
const underRace = false
