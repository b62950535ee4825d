//go:build !race

package sitefiles

// underRace says that everything takes many times as long.
const underRace = false
