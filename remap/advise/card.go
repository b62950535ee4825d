// Package advise says what needs a person: one card an incident, in its stage, in order, in the words that every face,
// command, alert and report prints. It is pure: a situation and its plans in, cards out.
package advise

import (
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
)

// Stage is where an incident is: what its node does, then what became of the move, then that it is over.
type Stage string

// The stages.
const (
	Suspect    Stage = "suspect"
	Slow       Stage = "slow"
	Hung       Stage = "hung"
	Dead       Stage = "dead"
	Silent     Stage = "silent"
	Unreadable Stage = "unreadable"
	Neighbour  Stage = "neighbour" // a job slows the others of its forwarder
	BackEnd    Stage = "back end"
	Odd        Stage = "odd" // a fact beside slowness, such as a second agent for one node

	Moving     Stage = "moving"
	Incomplete Stage = "incomplete" // some nodes were not moved
	Measuring  Stage = "measuring"
	Helped     Stage = "helped"
	InVain     Stage = "did not help"
	NotKnown   Stage = "not known" // whether it helped

	Cleared   Stage = "cleared"
	Starved   Stage = "late" // the daemon itself: nothing else can be trusted
	AllSilent Stage = "all silent"
	Waits     Stage = "plan" // a plan of no incident
)

// Card is one incident, or one plan that belongs to none: what is so, who suffers, what to do.
type Card struct {
	// Finding and Plan are what it is about; one of them may be empty.
	Finding string          `json:"finding,omitempty"`
	Plan    string          `json:"plan,omitempty"`
	Node    topology.NodeID `json:"node,omitempty"`
	Stage   Stage           `json:"stage"`
	// Sentence says what is so; Second how much and why. Clock times are left to faces, which know the reader's zone.
	Sentence string `json:"sentence"`
	Second   string `json:"second,omitempty"`
	// Since is when it began, of a cleared one since when it has been over.
	Since time.Time `json:"since"`
	// Factor is the headline on its steps, FactorNow that of the last seconds; 0 is not known.
	Factor    float64       `json:"factor,omitempty"`
	FactorNow float64       `json:"factor_now,omitempty"`
	Cause     string        `json:"cause,omitempty"`
	Effect    *remap.Effect `json:"effect,omitempty"`
	// Victims wait for it or have waited, those that wait the most first.
	Victims []Victim `json:"victims"`
	Steps   []Step   `json:"steps,omitempty"`
	// Action is what to press, nil where nothing helps; Others are what else can be done.
	Action *Action  `json:"action,omitempty"`
	Others []Action `json:"others,omitempty"`
}

// Action is something that a person can do about a card; faces know the keys.
type Action struct {
	Name  remap.Action `json:"name"`
	Label string       `json:"label"` // of a button
	// Text says what it does; empty where the label does.
	Text string `json:"text,omitempty"`
	Plan string `json:"plan,omitempty"`
	// Filled marks the one button that is expected to be pressed.
	Filled bool `json:"filled,omitempty"`
}

// What is done about a card besides the actions of plans, findings and forwarders.
const (
	ActPropose remap.Action = "propose"
	ActLook    remap.Action = "look"   // at the evidence
	ActOpen    remap.Action = "open"   // the plan
	ActDoctor  remap.Action = "doctor" // see whether agents and network are well
)

// Step is one step of the way from suspicion to help.
type Step struct {
	Name string    `json:"name"`
	At   time.Time `json:"at,omitzero"`
	By   string    `json:"by,omitempty"`
	// State is done, next, failed or empty: to come.
	State string `json:"state,omitempty"`
}

// Victim is a job that waits for a node, or without a batch system the compute nodes that do.
type Victim struct {
	Job   topology.JobID `json:"job,omitempty"`
	App   string         `json:"app,omitempty"`
	User  string         `json:"user,omitempty"`
	Nodes int            `json:"nodes,omitempty"` // of the job; 0 where the batch system does not report it
	// Waiting counts its nodes behind the node, Share is the part of their time that they wait now, 0..1.
	Waiting     int     `json:"waiting,omitempty"`
	Share       float64 `json:"share"`
	CostSeconds float64 `json:"cost_seconds"`
	// Wait is what a request takes its nodes, PeersWait those of other forwarders, where jobs are not reported;
	// 0: not known.
	Wait      float64 `json:"wait_seconds,omitempty"`
	PeersWait float64 `json:"peers_wait_seconds,omitempty"`
	Text      string  `json:"text"` // all of it in words
}

// Over says that nothing is to be pressed any more: faces draw the card grey.
func (c *Card) Over() bool { return c.Stage == Cleared }

// wellAgain is the step with which an incident is over.
const wellAgain = "well again"

// Until is when it was over, also where what was done about it is still shown; zero: it is not.
func (c *Card) Until() time.Time {
	if n := len(c.Steps); n > 0 && c.Steps[n-1].Name == wellAgain {
		return c.Steps[n-1].At
	}
	return time.Time{}
}

// Accuses says that the card is about a node that is slow or worse, as a level of alarm.
func (c *Card) Accuses() bool {
	switch c.Stage {
	case Slow, Hung, Dead, Unreadable:
		return true
	}
	return false
}

// Waits says that somebody waits for it now.
func (c *Card) Waits() bool {
	for i := range c.Victims {
		if c.Victims[i].waits() {
			return true
		}
	}
	return false
}

// waits says that it is more than what differs from second to second.
func (v *Victim) waits() bool { return v.Share >= 0.005 }

// stageOf is the stage of a finding as long as nobody does anything about it.
func stageOf(f *anomaly.Finding) Stage {
	switch {
	case f.Over():
		return Cleared
	case f.Kind == anomaly.SecondSpeaker, f.Kind == anomaly.LongList, f.Kind == anomaly.TargetFull:
		return Odd
	case f.Kind.OfJob():
		return Neighbour
	case !f.Kind.Accuses():
		return BackEnd
	case conditionOf(f) != anomaly.Slow:
		return Stage(conditionOf(f))
	case f.State == anomaly.Suspect:
		return Suspect
	}
	return Slow
}

// conditionOf is in which way the node of a finding fails; a journal from before conditions has only kinds.
func conditionOf(f *anomaly.Finding) anomaly.Condition {
	switch {
	case f.Condition != "":
		return f.Condition
	case f.Kind == anomaly.ForwarderSilent:
		return anomaly.Silent
	}
	return anomaly.Slow
}

// enteredAt is when a finding came into a state first since it was last over; zero: never.
func enteredAt(f *anomaly.Finding, state anomaly.State) (at time.Time) {
	for i, s := range f.Steps {
		if i > 0 && (f.Steps[i-1].State == anomaly.Returned || f.Steps[i-1].State == anomaly.Dismissed) {
			at = time.Time{}
		}
		if s.State == state && at.IsZero() {
			at = s.At
		}
	}
	return at
}
