package survey

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/targetslow"
	"fairway/collector"
	"fairway/collector/scraped"
	"fairway/tsdb"
)

// Answer is what a survey found.
type Answer struct {
	From         time.Time `json:"from"`
	To           time.Time `json:"to"`
	EverySeconds float64   `json:"every_seconds"` // from scrape to scrape, the longest of the groups
	Exporters    []string  `json:"exporters"`
	Series       int       `json:"series"`
	Resets       int       `json:"resets"` // counters that went backwards
	Missed       int       `json:"missed"` // intervals in which a scrape was missing
	Groups       []Group   `json:"groups"`
	Findings     []Finding `json:"findings"` // those that differ from their peers
	Missing      []Missing `json:"missing"`  // what cannot be known from there
}

// Group are subjects that do the same kind of work.
type Group struct {
	Name    string   `json:"name"`
	Members []Member `json:"members"`
	Idle    int      `json:"idle,omitempty"` // further ones, which moved nothing
	// Imbalance is the largest mean load over the mean of all of them; 1 where all are alike.
	Imbalance *float64 `json:"imbalance,omitempty"`
	Compared  []string `json:"compared,omitempty"` // classes of operations
	Why       string   `json:"not_compared,omitempty"`
}

// Member is one subject. Unknown values are absent.
type Member struct {
	Name      string           `json:"name"`
	Node      string           `json:"node,omitempty"`
	Load      collector.Metric `json:"load,omitempty"` // what Mean and Peak are of
	Intervals int              `json:"intervals"`
	Mean      *float64         `json:"mean,omitempty"` // a second
	Peak      *float64         `json:"peak,omitempty"` // the 99th percentile over the intervals
	// Occupancy is the share of the intervals with at least 80 % of the peak.
	Occupancy *float64                     `json:"occupancy,omitempty"`
	Took      map[collector.Metric]float64 `json:"took_seconds,omitempty"`
}

// Finding is that one subject differs from its peers.
type Finding struct {
	Name       string             `json:"name"`
	Node       string             `json:"node,omitempty"`
	Group      string             `json:"group"`
	Ratios     map[string]float64 `json:"ratios"` // to the peers' median, by class of operations
	Since      time.Time          `json:"since"`
	Until      time.Time          `json:"until,omitzero"`    // absent while it goes on
	Targets    []string           `json:"targets,omitempty"` // of a server, those that are slow
	Confidence float64            `json:"confidence"`
	Sentence   string             `json:"sentence"`

	kind scraped.Kind
}

// Missing is a question that this data does not answer.
type Missing struct {
	Question string `json:"question"`
	Why      string `json:"why"`
}

// Finish closes the survey.
func (s *Survey) Finish(sum scraped.Summary) Answer {
	a := Answer{From: sum.From, To: sum.To, Exporters: sum.Exporters, Series: sum.Series, Resets: sum.Resets,
		Missed: sum.Missed, Groups: []Group{}, Findings: []Finding{}}
	for _, name := range slices.Sorted(maps.Keys(s.groups)) {
		g := s.groups[name]
		g.close()
		shown := g.show()
		if len(shown.Members) == 0 {
			continue
		}
		a.EverySeconds = max(a.EverySeconds, float64(g.width)/1e3)
		a.Groups = append(a.Groups, shown)
		a.Findings = append(a.Findings, g.differences()...)
	}
	a.Findings = s.fold(a.Findings)
	a.Missing = s.listMissing(&a, sum)
	return a
}

// show is a group's part of the answer.
func (g *group) show() Group {
	out := Group{Name: g.name, Members: []Member{}}
	largest, all, loaded := 0.0, 0.0, 0.0
	for _, name := range slices.Sorted(maps.Keys(g.members)) {
		m := g.members[name].show()
		if m.Mean != nil && *m.Mean == 0 && len(m.Took) == 0 {
			out.Idle++
			continue
		}
		if m.Mean != nil {
			largest, all, loaded = max(largest, *m.Mean), all+*m.Mean, loaded+1
		}
		out.Members = append(out.Members, m)
	}
	if loaded > 1 && all > 0 {
		imbalance := largest / (all / loaded)
		out.Imbalance = &imbalance
	}
	need := g.slow.FewestPoints()
	for _, class := range slices.Sorted(maps.Keys(g.compared)) {
		if g.compared[class] >= need {
			out.Compared = append(out.Compared, class)
		}
	}
	few := targetslow.DefaultRules().FewestPeers
	switch n := len(out.Members); {
	case len(out.Compared) > 0:
	case !g.timed:
		out.Why = "nothing here times what they do"
	case n <= few:
		out.Why = fmt.Sprintf("no peers to compare with: a server needs %d others that do the same", few)
	case len(g.compared) == 0:
		out.Why = fmt.Sprintf("no peers to compare with: fewer than %d worked at the same time", few+1)
	default:
		most := slices.Max(slices.Collect(maps.Values(g.compared)))
		out.Why = fmt.Sprintf("too short a time: %d intervals, and it takes %d (%s) to accuse one", most, need,
			(time.Duration(need) * time.Duration(g.width) * time.Millisecond).Round(time.Second))
	}
	return out
}

// peakQuantile stands for a peak: one interval may be a counter's mistake.
const peakQuantile = 0.99

func (m *member) show() Member {
	out := Member{Name: m.Name, Load: m.metric, Intervals: len(m.loads)}
	if m.Node != m.Name {
		out.Node = m.Node
	}
	for metric, t := range m.means {
		if out.Took == nil {
			out.Took = map[collector.Metric]float64{}
		}
		out.Took[metric] = t.seconds / t.ops
	}
	if len(m.loads) == 0 {
		return out
	}
	sum := 0.0
	for _, l := range m.loads {
		sum += float64(l)
	}
	mean := sum / float64(len(m.loads))
	sorted := slices.Sorted(slices.Values(m.loads))
	peak := float64(sorted[int(math.Ceil(peakQuantile*float64(len(sorted))))-1])
	out.Mean, out.Peak = &mean, &peak
	if peak > 0 {
		near, _ := slices.BinarySearch(sorted, float32(tsdb.DefaultThreshold*peak))
		occupancy := float64(len(sorted)-near) / float64(len(sorted))
		out.Occupancy = &occupancy
	}
	return out
}

// differences are a group's findings, one of each member.
func (g *group) differences() []Finding {
	of := map[string]*Finding{}
	for key, d := range g.findings {
		m := g.members[key[0]]
		f := of[m.Name]
		if f == nil {
			f = &Finding{Name: m.Name, Group: g.name, Ratios: map[string]float64{}, Since: d.since, Until: d.until,
				kind: g.kind}
			if m.Node != m.Name {
				f.Node = m.Node
			}
			of[m.Name] = f
		}
		f.Ratios[key[1]] = d.ratio
		f.Confidence = max(f.Confidence, d.confidence)
		if d.since.Before(f.Since) {
			f.Since = d.since
		}
		if d.until.IsZero() || !f.Until.IsZero() && d.until.After(f.Until) {
			f.Until = d.until
		}
	}
	var out []Finding
	for _, name := range slices.Sorted(maps.Keys(of)) {
		out = append(out, *of[name])
	}
	return out
}

// fold names a server whose targets are all slow once, with them, and a target that is slow alone without its server.
func (s *Survey) fold(all []Finding) []Finding {
	slow, has := map[string][]string{}, map[string]int{} // targets of a node
	for _, f := range all {
		if f.kind == scraped.Target {
			slow[f.Node] = append(slow[f.Node], f.Name)
		}
	}
	for _, g := range s.groups {
		for _, m := range g.members {
			if m.Kind == scraped.Target && len(m.means) > 0 {
				has[m.Node]++
			}
		}
	}
	servers := map[string]bool{}
	for i := range all {
		f := &all[i]
		if n := len(slow[f.Name]); f.kind == scraped.Server && (n == 0 || n == has[f.Name]) {
			servers[f.Name], f.Targets = true, slow[f.Name]
		}
	}
	out := slices.DeleteFunc(all, func(f Finding) bool {
		return f.kind == scraped.Target && servers[f.Node] || f.kind == scraped.Server && !servers[f.Name]
	})
	for i := range out {
		out[i].Sentence = out[i].sentence()
	}
	return out
}

// sentence says what differs, the largest ratio first.
func (f *Finding) sentence() string {
	var ratios []string
	for _, class := range slices.SortedFunc(maps.Keys(f.Ratios), func(a, b string) int {
		return cmp.Or(-cmp.Compare(f.Ratios[a], f.Ratios[b]), cmp.Compare(a, b))
	}) {
		ratios = append(ratios, anomaly.Times(f.Ratios[class])+" as long in "+class)
	}
	name := f.Name
	if f.Node != "" {
		name += " on " + f.Node
	}
	if len(f.Targets) > 0 {
		name += " with all of " + strings.Join(f.Targets, ", ")
	}
	return fmt.Sprintf("%s takes %s as its peers, %s", name, strings.Join(ratios, ", "), f.Group)
}

// listMissing lists what cannot be known from what the exporters counted, and what an agent would add.
func (s *Survey) listMissing(a *Answer, sum scraped.Summary) (out []Missing) {
	add := func(question, why string) { out = append(out, Missing{question, why}) }
	if a.EverySeconds > 1 {
		add(fmt.Sprintf("what lasts less than %g s", a.EverySeconds),
			"only means from scrape to scrape are kept; an agent reads every second")
	}
	var wait time.Duration
	for _, shown := range a.Groups {
		if g := s.groups[shown.Name]; len(shown.Compared) > 0 {
			wait = max(wait, time.Duration(g.slow.FewestPoints())*time.Duration(g.width)*time.Millisecond)
		}
	}
	if wait > 0 {
		add(fmt.Sprintf("who was slow for less than %s", wait.Round(time.Second)),
			"it takes as long to accuse one at this distance of scrapes; by an agent's seconds it is minutes")
	}
	if sum.Jobs {
		add("which job waits for whom",
			"series of jobs count what they moved at a target, not how long they waited; agents on compute nodes do")
	} else {
		add("which job causes it, and which waits",
			"no series is of a job; agents read them on servers or compute nodes")
	}
	add("how many requests wait, and how many are being served",
		"no exporter here counts them; an agent does where the layer shows it")
	add("which compute node uses which forwarder, and what a move would help",
		"routes are not exported; agents observe them")
	var untimed, alone []string
	for _, g := range a.Groups {
		switch {
		case strings.HasPrefix(g.Why, "nothing"):
			untimed = append(untimed, g.Name)
		case strings.HasPrefix(g.Why, "no peers"):
			alone = append(alone, g.Name)
		}
	}
	if len(untimed) > 0 {
		add("how long requests take at "+strings.Join(untimed, "; "),
			"their exporter counts work and no time; an agent times it, or their clients' agents do")
	}
	if len(alone) > 0 {
		add("who is slow among "+strings.Join(alone, "; "),
			"there are too few to compare; agents compare with canaries and with each one's own past as well")
	}
	add("how near they are to what they can do",
		"the 99th percentile of this time stands for a peak; peak_bytes_per_sec says it, or a longer time shows it")
	return out
}
