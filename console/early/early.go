// Package early answers, before bubbletea's package initialisation asks, whether the terminal's
// background is dark. Bubbletea asks the terminal itself, and one that does not answer would freeze
// every command of the program for 5 s. Go initialises packages that are ready in the order of
// their import paths, and fairway/... comes before github.com/...; our colours do not depend on
// the background, so any answer will do. cmd/fairway's mute terminal test guards this.
package early

import "github.com/charmbracelet/lipgloss"

func init() { lipgloss.SetHasDarkBackground(true) }
