// Package screen is what all screens of the terminal share: the state that they are drawn from, how they ask the
// server, the addresses by which they open each other, and the questions before a change.
package screen

import (
	"cmp"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/collector/topology"
	"fairway/console/chart"
)

// Screen is one screen. The root model owns screens and gives them actions and answers; a screen gives back
// commands and lines, and opens others by their addresses.
type Screen interface {
	Name() string // as in the key table
	Address(s *State) Address
	// Refresh asks for what the screen shows; called when it opens and after each new second.
	Refresh(s *State) tea.Cmd
	// Answer takes what Refresh and Act asked for.
	Answer(s *State, msg tea.Msg) tea.Cmd
	Act(s *State, a Action) tea.Cmd
	Title(s *State, w int) string
	Body(s *State, w, h int) []string
}

// Place is a screen's name in the key table and its address, which holds what is asked for.
type Place struct {
	On string
	At Address
}

// Name is described at Screen.
func (p *Place) Name() string { return p.On }

// Address is described at Screen.
func (p *Place) Address(*State) Address { return p.At }

// Typist is a screen with a field: while Field is not nil keys are text.
type Typist interface {
	Field() *Input
	// Typed ends the field: ok is false when it was left by escape.
	Typed(s *State, ok bool) tea.Cmd
}

// Filterer is a screen with a filter, which escape takes away before it goes back.
type Filterer interface{ Unfilter() bool }

// Questioner is a screen that asks once before it changes the machine.
type Questioner interface {
	// Unask takes the question back unless a answers it. It gets every key, also those that lead to other
	// screens: coming back is not an answer.
	Unask(a Action)
}

// Clicker is a screen that takes clicks, at a column and a line of its body.
type Clicker interface {
	Click(s *State, x, y int) tea.Cmd
}

// Refuser is a screen that knows what is refused now; its bottom line leaves that out.
type Refuser interface {
	Refuses(s *State, a Action) string
	// Hides says that the bottom line leaves a key out.
	Hides(s *State, a Action) bool
}

// Twinned is a screen whose actions are commands too.
type Twinned interface {
	// Twin is the command that does what an action does here; "" without one.
	Twin(s *State, a Action) string
}

// Exporter is a screen with a table: its titles, then its rows as they are on screen.
type Exporter interface{ Table(s *State) [][]string }

// Host is what screens ask of the console around them.
type Host interface {
	// Open puts the screen of an address on top at once, not by a message: the next key may be there already.
	Open(a Address) tea.Cmd
	// Replace does it in place of the screen on top.
	Replace(a Address) tea.Cmd
	// Propose opens a proposal for clients of a forwarder: those nodes, or those of a job, or all.
	Propose(from topology.ForwarderID, job topology.JobID, nodes []topology.NodeID) tea.Cmd
	Back() tea.Cmd
	// Refresh asks again for what the screen on top shows.
	Refresh() tea.Cmd
	// ReplayAt shows a second of the past on the overview.
	ReplayAt(at time.Time) tea.Cmd
	// Height is how many lines the terminal has.
	Height() int
	// Key is what the key of an action is called on the screen shown.
	Key(a Action) string
}

// Input is one line being typed, of at most so many bytes; 0 is maxInput.
type Input struct {
	Label, Text string
	Most        int
}

// maxInput bounds a typed line; the server takes reasons of this length.
const maxInput = 500

// Key takes one key.
func (in *Input) Key(k tea.KeyMsg) {
	switch {
	case k.Type == tea.KeyBackspace:
		if r := []rune(in.Text); len(r) > 0 {
			in.Text = string(r[:len(r)-1])
		}
	case k.Type == tea.KeyCtrlU:
		in.Text = ""
	case (k.Type == tea.KeyRunes || k.Type == tea.KeySpace) && !k.Alt:
		if text := in.Text + chart.Clean(string(k.Runes)); len(text) <= cmp.Or(in.Most, maxInput) {
			in.Text = text
		}
	}
}
