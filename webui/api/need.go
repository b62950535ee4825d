package api

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap"
)

// Need is something that waits for a person: what is wrong or proposed, who suffers from it, and what to do. Its words
// hold no times; faces write these in their reader's zone.
type Need struct {
	// Finding and Plan are what it is about; one of them may be empty.
	Finding string          `json:"finding,omitempty"`
	Plan    string          `json:"plan,omitempty"`
	Node    topology.NodeID `json:"node,omitempty"`
	State   string          `json:"state"` // suspect, slow, silent, neighbour, back end or plan
	// What is wrong, Times how often it was seen where that is more than once, Since when it began.
	What  string    `json:"what"`
	Times int       `json:"times,omitempty"`
	Since time.Time `json:"since"`
	// Victims wait for it or have waited, those that wait the most first.
	Victims []Victim `json:"victims"`
	Remedy  *Remedy  `json:"remedy,omitempty"`
}

// Victim is a job that waits for a slow node.
type Victim struct {
	Job   topology.JobID `json:"job"`
	App   string         `json:"app,omitempty"`
	User  string         `json:"user,omitempty"`
	Nodes int            `json:"nodes,omitempty"` // of the job; 0 where the batch system does not report it
	// Waiting counts its nodes behind the slow node, Share is the part of their time that they wait now, 0..1.
	Waiting     int     `json:"waiting,omitempty"`
	Share       float64 `json:"share"`
	CostSeconds float64 `json:"cost_seconds"`
	Text        string  `json:"text"` // all of it in words
}

// Remedy is what helps, and the key that does it.
type Remedy struct {
	Plan   string       `json:"plan,omitempty"`
	Action remap.Action `json:"action"`
	Key    string       `json:"key,omitempty"`
	Text   string       `json:"text"` // such as: move cn[002-003] to fwd007 (idle)
	Else   *Remedy      `json:"else,omitempty"`
}

// Waits says that some job waits for it now.
func (n *Need) Waits() bool {
	return slices.ContainsFunc(n.Victims, func(v Victim) bool { return v.waits() })
}

// waits says that it is more than what differs from second to second.
func (v *Victim) waits() bool { return v.Share >= 0.005 }

// What is done about a finding without a plan.
const (
	ActPropose remap.Action = "propose"
	ActLook    remap.Action = "look"
	ActNothing remap.Action = "nothing" // no job waits; without a key
)

// Write makes the victim's words.
func (v *Victim) Write() {
	var b strings.Builder
	switch {
	case v.App != "":
		fmt.Fprintf(&b, "%s (job %s)", v.App, v.Job)
	default:
		fmt.Fprintf(&b, "job %s", v.Job)
	}
	if v.User != "" {
		b.WriteString(" of " + v.User)
	}
	b.WriteString(": ")
	switch {
	case !v.waits():
		b.WriteString("waits no more")
	case v.Nodes > 0 && v.Waiting > 0:
		verb := "wait"
		if v.Waiting == 1 {
			verb = "waits"
		}
		fmt.Fprintf(&b, "%d of %s %s %.0f %%", v.Waiting, anomaly.Counted(v.Nodes, "node"), verb, 100*v.Share)
	default:
		fmt.Fprintf(&b, "waits %.0f %%", 100*v.Share)
	}
	if v.CostSeconds >= 0.5 {
		b.WriteString(", cost so far " + Span(v.CostSeconds))
	}
	v.Text = b.String()
}

// Span writes seconds as people read them: 18 s, 6m12, 2h05.
func Span(seconds float64) string {
	s := int64(seconds + 0.5)
	switch {
	case s < 100:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02d", s/60, s%60)
	}
	return fmt.Sprintf("%dh%02d", s/3600, s/60%60)
}

// NeedState is the state of a finding as a need has it.
func NeedState(f *anomaly.Finding) string {
	switch {
	case f.Kind == anomaly.ForwarderSilent:
		return "silent"
	case f.Kind.OfJob():
		return "neighbour"
	case f.Kind != anomaly.FailSlow:
		return "back end"
	case f.State == anomaly.Suspect:
		return "suspect"
	}
	return "slow"
}

// remarkable is from how many times as long as its peers a forwarder is named that no detector accuses: below it is
// what differs among healthy ones from second to second.
const remarkable = 5

// Quiet writes Calm.
func (o *Overview) Quiet() {
	o.Calm = ""
	if len(o.Needs) > 0 {
		return
	}
	compared := 0
	for i := range o.Forwarders {
		if o.Forwarders[i].Slow != nil {
			compared++
		}
	}
	text := "Nothing needs you"
	open := slices.DeleteFunc(slices.Clone(o.Findings), func(f anomaly.Finding) bool {
		return !f.Open() || !f.Kind.Accuses()
	})
	if len(open) == 0 {
		text = "Nothing is slow"
	}
	for i := range open[:min(2, len(open))] {
		f := &open[i]
		text += fmt.Sprintf(". %s (%s)", cmp.Or(f.Sentence, string(f.Node)+" is "+NeedState(f)), f.ID)
		switch {
		case f.ExcludedBy != "":
			text += " and is drained"
		case f.Owner != "":
			text += "; " + f.Owner + " looks after it"
		default:
			text += "; no job waits for it"
		}
	}
	if more := len(open) - 2; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	o.Calm = fmt.Sprintf("%s. %d of %s do I/O now and were compared.", text, compared,
		anomaly.Counted(len(o.Forwarders), "forwarder"))
	// The list of forwarders shows this one at its top, and must not seem to contradict.
	var most *ForwarderRow
	for i := range o.Forwarders {
		if r := &o.Forwarders[i]; r.Slow != nil && *r.Slow >= remarkable && (most == nil || *r.Slow > *most.Slow) {
			most = r
		}
	}
	if len(open) == 0 && most != nil {
		o.Calm += fmt.Sprintf(" %s takes %s as long as its peers now, not for long enough to accuse it.", most.ID,
			anomaly.Times(*most.Slow))
	}
}
