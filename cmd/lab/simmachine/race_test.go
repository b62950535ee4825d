//go:build race

package simmachine_test

// underRace says that everything takes many times as long.
const underRace = true
