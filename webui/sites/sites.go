// Package sites merges what the daemons of several machines say: one row a site, and the storage targets that they
// share. It is pure: answers and a time in, rows and sentences out. What a site does not report is named, not guessed.
package sites

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/remap/advise"
	"fairway/webui/api"
)

// Answer is what the daemon of one site reports.
type Answer struct {
	Site, Addr string
	Err        error // why nothing is known of it
	Overview   api.Overview
	Jobs       []api.JobRow
	// Uses are those of the targets that Accused lists, nil where the site does not report any; UsesErr says why it
	// could not be asked.
	Uses    []api.TargetUse
	UsesErr error
}

// View is all sites in one.
type View struct {
	At    time.Time `json:"at"`
	Sites []Row     `json:"sites"`
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
	// State is how many cards need a person, or the word of a calm overview; Why says why it is unknown.
	State string `json:"state"`
	Why   string `json:"why,omitempty"`
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

const (
	// mostTargets are asked about and shown, mostLetters of a text that another daemon wrote.
	mostTargets = 16
	mostLetters = 300
)

// clip bounds a text of another daemon.
func clip[T ~string](text T) T {
	if r := []rune(text); len(r) > mostLetters {
		return T(r[:mostLetters-1]) + "…"
	}
	return text
}

// Merge makes one view of the answers, in their order.
func Merge(answers []Answer, now time.Time) View {
	v := View{At: now, Sites: []Row{}, Shared: []Shared{}}
	for i := range answers {
		v.Sites = append(v.Sites, makeRow(&answers[i], now))
	}
	names := accused(answers)
	v.Left = max(0, len(names)-mostTargets)
	for _, name := range names[:min(len(names), mostTargets)] {
		if s, ok := newTarget(answers, name).describe(); ok {
			v.Shared = append(v.Shared, s)
		}
	}
	return v
}

func makeRow(a *Answer, now time.Time) Row {
	r := Row{Site: a.Site, Addr: a.Addr}
	if a.Err != nil {
		r.State, r.Why = NotKnown, clip(a.Err.Error())
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
	switch n := len(o.Needs); {
	case o.StaleAfter > 0 && age > o.StaleAfter:
		r.State, r.Why = NoData, "its newest second is too old"
		return r
	case n > 0:
		c := &o.Needs[0]
		r.Worst = &Worst{Stage: clip(c.Stage), Sentence: clip(c.Sentence), Finding: clip(c.Finding), Plan: clip(c.Plan)}
		r.State = strconv.Itoa(n) + " need you"
		if n == 1 {
			r.State = "1 needs you"
		}
	default:
		r.State = clip(cmp.Or(o.CalmWord, NotKnown))
	}
	return r
}

// ofStorage says that a finding is about a storage target, a server or the back end, which other machines may use.
func ofStorage(f *anomaly.Finding) bool {
	return f.Open() && (f.Kind == anomaly.TargetSlow || f.Node == anomaly.Everywhere)
}

// Accused lists the storage targets that a site accuses, at most as many as one asks about.
func Accused(answers []Answer) []topology.NodeID {
	names := slices.DeleteFunc(accused(answers), func(n topology.NodeID) bool { return n == anomaly.Everywhere })
	return names[:min(len(names), mostTargets)]
}

// accused lists those of most sites first.
func accused(answers []Answer) (names []topology.NodeID) {
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
	for n := range at {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b topology.NodeID) int {
		return cmp.Or(cmp.Compare(at[b], at[a]), cmp.Compare(a, b))
	})
	return names
}
