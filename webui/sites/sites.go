// Package sites merges what the daemons of several machines say: one row a site, and the storage targets that they
// share. It is pure: answers and a time in, rows and sentences out. What a site does not report is named, not guessed.
package sites

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap/advise"
	"fairway/webui/api"
)

// View is all sites in one.
type View struct {
	At time.Time `json:"at"`
	// Sentence is what is so at all sites together, Second how large they are and what moves there.
	Sentence string `json:"sentence"`
	Second   string `json:"second,omitempty"`
	Sites    []Row  `json:"sites"`
	// Needs are the first cards of each site, what hurts most first; NeedsLeft counts the others.
	Needs     []Need `json:"needs"`
	NeedsLeft int    `json:"needs_left,omitempty"`
	// Shared are the targets that are accused at one site and used, as far as is known, by another, too.
	Shared []Shared `json:"shared"`
	// Left counts accused targets that are too many to be shown.
	Left int `json:"left,omitempty"`
}

// Note is what every list of shared targets says.
const Note = "Targets to which several sites give one name are taken for one."

// Row is one site.
type Row struct {
	Site string `json:"site"`
	Addr string `json:"addr"`
	URL  string `json:"url,omitempty"` // of its pages; empty: no browser reaches it
	// State is how many cards need a person, or the word of a calm overview; Why says why it is unknown, Since is when
	// that began.
	State string    `json:"state"`
	Why   string    `json:"why,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// Findings are those open; nil: not known.
	Findings *int `json:"findings,omitempty"`
	// AgeSeconds is that of the newest second, by the asking host's clock; nil: it has no data.
	AgeSeconds *float64 `json:"age_seconds,omitempty"`
	Worst      *Worst   `json:"worst,omitempty"`
}

// Worst is the first card of a site.
type Worst struct {
	Stage    advise.Stage `json:"stage"`
	Sentence string       `json:"sentence"`
	Finding  string       `json:"finding,omitempty"`
	Plan     string       `json:"plan,omitempty"`
}

// Need is a card with its site.
type Need struct {
	Site string `json:"site"`
	URL  string `json:"url,omitempty"`
	advise.Card
}

// Text is the card in a line.
func (w *Worst) Text() string {
	text := string(w.Stage) + ": " + w.Sentence
	if id := cmp.Or(w.Finding, w.Plan); id != "" {
		text += " (" + id + ")"
	}
	return text
}

// The states of a site without an overview that can be trusted.
const (
	NoAnswer = "no answer"
	NoData   = "no data"
	NotKnown = "not known"
)

// Merge makes one view of the answers, in their order.
func Merge(answers []Answer, now time.Time) View {
	v := View{At: now, Sites: []Row{}, Needs: []Need{}, Shared: []Shared{}}
	for i := range answers {
		r := makeRow(&answers[i], now)
		v.Sites = append(v.Sites, r)
		if r.Worst != nil {
			v.addNeeds(&r, answers[i].Overview.Needs)
		}
	}
	slices.SortStableFunc(v.Needs, func(x, y Need) int { return advise.Compare(x.Card, y.Card) })
	v.Sentence, v.Second = v.summarize(), sumUp(answers, v.Sites)
	names, at := accused(answers), runningAt(answers)
	v.Left = max(0, len(names)-mostTargets)
	for _, name := range names[:min(len(names), mostTargets)] {
		if s, ok := newTarget(answers, name, at).describe(); ok {
			v.Shared = append(v.Shared, s)
		}
	}
	return v
}

// needsShown of a site are among the needs of all: none fills the page alone.
const needsShown = 4

func (v *View) addNeeds(r *Row, cards []Card) {
	for i := range cards[:min(len(cards), needsShown)] {
		c := &cards[i]
		n := Need{r.Site, r.URL, advise.Card{Finding: c.Finding, Plan: c.Plan, Node: c.Node, Stage: c.Stage,
			Sentence: c.Sentence, Second: c.Second, Since: c.Since, Victims: []advise.Victim{}}}
		for _, w := range c.Victims {
			n.Victims = append(n.Victims, advise.Victim{Job: w.Job, Waiting: w.Waiting, Share: w.Share, Text: w.Text})
		}
		v.Needs = append(v.Needs, n)
	}
	v.NeedsLeft += max(0, len(cards)-needsShown)
}

func makeRow(a *Answer, now time.Time) Row {
	r := Row{Site: a.Site, Addr: a.Addr, URL: URL(a.Addr)}
	if a.Err != nil {
		r.State, r.Why, r.Since = NotKnown, clip(a.Err.Error()), a.Since
		if errors.Is(a.Err, api.ErrUnreachable) {
			r.State = NoAnswer
		}
		return r
	}
	o := &a.Overview
	if o.At.IsZero() {
		r.State, r.Why = NoData, "no second of data yet"
		return r
	}
	age := max(0, now.Sub(o.At.Add(time.Second)).Seconds())
	r.AgeSeconds = &age
	if o.StaleAfter > 0 && age > o.StaleAfter {
		r.State, r.Why, r.Since = NoData, "its newest second is too old", o.At
		return r
	}
	open := 0
	for i := range o.Findings {
		if o.Findings[i].Open() {
			open++
		}
	}
	r.Findings = &open
	r.State = string(cmp.Or(o.CalmWord, NotKnown))
	if n := len(o.Needs); n > 0 {
		c := &o.Needs[0]
		r.Worst = &Worst{Stage: c.Stage, Sentence: c.Sentence, Finding: c.Finding, Plan: c.Plan}
		r.State = strconv.Itoa(n) + anomaly.VerbOf(n, " needs you", " need you")
	}
	if o.Simulated {
		r.State += ", simulated"
	}
	return r
}

// URL is where a browser finds the pages of an address that programs use, any daemon of a cluster; empty: nowhere.
func URL(addr string) string {
	addr, _, _ = strings.Cut(addr, ",")
	if strings.HasPrefix(addr, "http://") || strings.HasPrefix(addr, "https://") {
		return strings.TrimRight(addr, "/")
	}
	return ""
}

// summarize says which sites need a person, and of which nothing is known.
func (v *View) summarize() string {
	var needing, unknown []string
	for i := range v.Sites {
		switch r := &v.Sites[i]; {
		case r.Worst != nil:
			needing = append(needing, r.Site)
		case r.Findings == nil:
			unknown = append(unknown, r.Site)
		}
	}
	text := "Nothing needs you on " + anomaly.Counted(len(v.Sites)-len(unknown), "machine")
	switch {
	case len(v.Sites) == len(unknown):
		return "Nothing is known of " + anomaly.Counted(len(unknown), "machine")
	case len(needing) == 1:
		text = needing[0] + " needs you"
	case len(needing) > 1:
		text = joinFew(needing) + " need you"
	}
	if len(unknown) > 0 {
		text += "; nothing is known of " + joinFew(unknown)
	}
	return text
}

// mostNames are named in a sentence.
const mostNames = 4

func joinFew(names []string) string {
	if len(names) > mostNames {
		names = append(names[:mostNames-1:mostNames-1], fmt.Sprintf("%d others", len(names)-mostNames+1))
	}
	return join(names)
}

// sumUp says how large the sites are of which something is known, and what moves there.
func sumUp(answers []Answer, rows []Row) string {
	var forwarders, nodes, jobs, open int
	var moved traffic
	jobsKnown := false
	for i := range answers {
		if rows[i].Findings == nil {
			continue
		}
		o := &answers[i].Overview
		forwarders += len(o.Forwarders)
		nodes += max(0, o.ComputeNodes)
		open += *rows[i].Findings
		if o.Jobs != nil {
			jobs, jobsKnown = jobs+max(0, *o.Jobs), true
		}
		moved = moved.add(movedIn(o.Now))
	}
	if forwarders == 0 {
		return ""
	}
	parts := []string{anomaly.Counted(forwarders, "forwarder"), anomaly.Counted(nodes, "compute node")}
	if jobsKnown {
		parts = append(parts, anomaly.Counted(jobs, "running job"))
	}
	return strings.Join(append(parts, anomaly.Size(moved.read)+"/s read", anomaly.Size(moved.write)+"/s written",
		anomaly.Counted(open, "open finding")), ", ")
}

// ofStorage says that a finding is about a storage target, a server or the back end, which other machines may use.
func ofStorage(f *Finding) bool {
	return f.Open() && (f.Kind == anomaly.TargetSlow || f.Node == anomaly.Everywhere)
}

// Accused lists the storage targets that a site accuses, at most as many as one asks about.
func Accused(answers []Answer) []topology.NodeID {
	names := slices.DeleteFunc(accused(answers), func(n topology.NodeID) bool { return n == anomaly.Everywhere })
	return names[:min(len(names), mostTargets)]
}

// accused lists those of most sites first.
func accused(answers []Answer) []topology.NodeID {
	at := map[topology.NodeID]int{}
	for i := range answers {
		seen := map[topology.NodeID]bool{}
		for k := range answers[i].Overview.Findings {
			if f := &answers[i].Overview.Findings[k]; answers[i].Err == nil && ofStorage(f) && !seen[f.Node] {
				seen[f.Node] = true
				at[f.Node]++
			}
		}
	}
	return slices.SortedFunc(maps.Keys(at), func(a, b topology.NodeID) int {
		return cmp.Or(cmp.Compare(at[b], at[a]), cmp.Compare(a, b))
	})
}
