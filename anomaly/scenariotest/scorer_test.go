package scenariotest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fairway/anomaly"
	"fairway/anomaly/recorded"
)

// Label is one thing that is true of a trace: a fault of a node, or a confounder.
type Label struct {
	Fault      bool
	Node       string // "*": all
	Start, End int64
	Kind       string
	Info, Weak float64
	Seconds    int // with evidence
	First      int64
	found      int64
}

const (
	grace     = 60   // seconds after a fault's end in which an alarm is still right
	probation = 1800 // seconds after a fault's end in which an exclusion is still right
)

func (l *Label) observable() bool { return l.Fault && l.Info >= 200 && l.Seconds >= 30 }

// Score counts what was right and wrong, over any number of traces.
type Score struct {
	Hits, False, Again    int
	Observable, Found     int
	Strong, FoundStrong   int
	NodeDays              float64
	Delays                []int64 // from the first evidence
	PerKind               map[string][2]int
	FaultSeconds, Covered int64
	HealthyMost           int     // healthy forwarders excluded at once
	Cleared               []int64 // seconds from the end of each found fault to that of its accusation
	Named, Names          map[string][2]int
	Probes                int
	FalseAlarms, NotFound []string
}

// Add scores one trace's events against its labels.
func (s *Score) Add(trace string, labels []Label, events []recorded.Event, nodes int, from, to int64) {
	if s.PerKind == nil {
		s.PerKind, s.Named, s.Names = map[string][2]int{}, map[string][2]int{}, map[string][2]int{}
	}
	slices.SortStableFunc(events, func(a, b recorded.Event) int { return cmp.Compare(a.Start, b.Start) })
	s.NodeDays += float64(int64(nodes)*(to-from)) / 86400
	for i := range labels {
		if l := &labels[i]; l.Fault {
			s.NodeDays -= float64(l.End-l.Start) / 86400
			s.FaultSeconds += l.End - l.Start
		}
	}
	for i := range events {
		switch e := &events[i]; e.Type {
		case "fail_slow":
			s.alarm(trace, labels, e, from)
		case "interference", "backend":
			s.name(labels, e, to)
		case "exclude":
			s.cover(labels, e, to)
		case "probe":
			s.Probes++
		}
	}
	s.countNamed(labels, events, to)
	s.clear(labels, events, to)
	s.HealthyMost = max(s.HealthyMost, healthyExcluded(labels, events, to))
	for i := range labels {
		s.countFault(trace, &labels[i], from)
	}
}

func (s *Score) alarm(trace string, labels []Label, e *recorded.Event, from int64) {
	for i := range labels {
		if l := &labels[i]; l.Fault && l.Node == string(e.Node) && l.Start <= e.Start && e.Start <= l.End+grace {
			if l.found != 0 {
				s.Again++
				return
			}
			l.found = e.Start
			s.Hits++
			return
		}
	}
	s.False++
	s.FalseAlarms = append(s.FalseAlarms, fmt.Sprintf("%s: %s at %d: %s", trace, e.Node, e.Start-from, e.Detail))
}

func (s *Score) countFault(trace string, l *Label, from int64) {
	if !l.observable() {
		return
	}
	k := s.PerKind[l.Kind]
	k[0]++
	s.Observable++
	strong := l.Info >= 2000
	if strong {
		s.Strong++
	}
	if l.found != 0 {
		k[1]++
		s.Found++
		if strong {
			s.FoundStrong++
		}
		s.Delays = append(s.Delays, max(0, l.found-l.First))
	} else {
		s.NotFound = append(s.NotFound, fmt.Sprintf("%s: %s %s from %d to %d, information %.0f in %d s", trace, l.Node,
			l.Kind, l.Start-from, l.End-from, l.Info, l.Seconds))
	}
	s.PerKind[l.Kind] = k
}

// clear notes how long a healed forwarder remained accused. A fault that ends with the trace shows nothing of it.
func (s *Score) clear(labels []Label, events []recorded.Event, to int64) {
	for i := range labels {
		l := &labels[i]
		if l.found == 0 || to-l.End < 60 {
			continue
		}
		stood := int64(0)
		for k := range events {
			e := &events[k]
			if e.Type == "fail_slow" && string(e.Node) == l.Node && e.Start <= l.End+grace && until(e, to) > l.End {
				stood = max(stood, until(e, to)-l.End)
			}
		}
		s.Cleared = append(s.Cleared, stood)
	}
}

func until(e *recorded.Event, to int64) int64 {
	if e.End == 0 {
		return to
	}
	return e.End
}

func (s *Score) name(labels []Label, e *recorded.Event, to int64) {
	right := 0
	for i := range labels {
		l := &labels[i]
		same := l.Kind == e.Detail || e.Type == "backend" && strings.HasPrefix(l.Kind, "brownout")
		if !l.Fault && same && (l.Node == "*" || l.Node == string(e.Node)) && l.Start-5 <= until(e, to) &&
			e.Start <= l.End+60 {
			right = 1
		}
	}
	n := s.Names[e.Detail]
	s.Names[e.Detail] = [2]int{n[0] + 1, n[1] + right}
}

func (s *Score) countNamed(labels []Label, events []recorded.Event, to int64) {
	for i := range labels {
		l := &labels[i]
		switch anomaly.Kind(l.Kind) {
		case anomaly.N1Pin, anomaly.MetaStorm, anomaly.HighBandwidth, anomaly.BrownoutAll, anomaly.BrownoutPool:
		default:
			continue
		}
		if l.End-l.Start < 30 {
			continue
		}
		hit := slices.ContainsFunc(events, func(e recorded.Event) bool {
			return e.Detail == l.Kind && (string(e.Node) == l.Node || e.Node == anomaly.Everywhere) &&
				e.Start <= l.End+60 && until(&e, to) >= l.Start
		})
		n := s.Named[l.Kind]
		n[0]++
		if hit {
			n[1]++
		}
		s.Named[l.Kind] = n
	}
}

func (s *Score) cover(labels []Label, e *recorded.Event, to int64) {
	for i := range labels {
		if l := &labels[i]; l.Fault && l.Node == string(e.Node) {
			s.Covered += max(0, min(until(e, to), l.End)-max(e.Start, l.Start))
		}
	}
}

// healthyExcluded is the largest number of forwarders excluded at once that have no fault and had none
// lately.
func healthyExcluded(labels []Label, events []recorded.Event, to int64) (most int) {
	step := map[int64]int{}
	for i := range events {
		e := &events[i]
		if e.Type != "exclude" {
			continue
		}
		for t, end := e.Start, until(e, to); t < end; {
			next := end
			ill := false
			for j := range labels {
				if l := &labels[j]; l.Fault && l.Node == string(e.Node) {
					switch {
					case l.Start <= t && t < l.End+probation:
						ill, next = true, min(next, l.End+probation)
					case t < l.Start:
						next = min(next, l.Start)
					}
				}
			}
			if !ill {
				step[t]++
				step[next]--
			}
			t = next
		}
	}
	at := 0
	for _, t := range slices.Sorted(maps.Keys(step)) {
		at += step[t]
		most = max(most, at)
	}
	return most
}

func share(a, b int) float64 { return float64(a) / float64(max(b, 1)) }

// Precision, Recall, StrongRecall and Coverage are shares, 0..1.
func (s *Score) Precision() float64    { return share(s.Hits, s.Hits+s.False) }
func (s *Score) Recall() float64       { return share(s.Found, s.Observable) }
func (s *Score) StrongRecall() float64 { return share(s.FoundStrong, s.Strong) }
func (s *Score) Coverage() float64     { return float64(s.Covered) / float64(max(s.FaultSeconds, 1)) }

// FalsePerNodeDay is the number of false alarms of a healthy node in a day.
func (s *Score) FalsePerNodeDay() float64 { return float64(s.False) / s.NodeDays }

// Delay is the p-th part of the delays from the first evidence to the alarm, seconds.
func (s *Score) Delay(p float64) int64 { return quantile(s.Delays, p) }

// quantile is 0 of nothing.
func quantile(of []int64, p float64) int64 {
	d := slices.Sorted(slices.Values(of))
	if len(d) == 0 {
		return 0
	}
	return d[int(p*float64(len(d)-1)+0.5)]
}

// NamingShares are how much of what was labelled was named, and how much of what was named was right.
func (s *Score) NamingShares() (recall, precision float64) {
	var labels, named, names, right int
	for _, v := range s.Named {
		labels, named = labels+v[0], named+v[1]
	}
	for _, v := range s.Names {
		names, right = names+v[0], right+v[1]
	}
	return share(named, labels), share(right, names)
}

// String is the score in one line, then one line of each class of faults found and of each kind named.
func (s *Score) String() string {
	nr, np := s.NamingShares()
	list := func(counts map[string][2]int) (out string) {
		for _, k := range slices.Sorted(maps.Keys(counts)) {
			out += fmt.Sprintf(" %s %d/%d", k, counts[k][1], counts[k][0])
		}
		return out
	}
	return fmt.Sprintf(
		"precision %.3f recall %.3f (strong %.3f) false alarms %.4f a node-day (%d in %.1f) delay %d s (p95 %d) "+
			"excluded %.2f of fault time, healthy at once %d; naming recall %.2f precision %.2f; %d probes\n  "+
			"found%s\n  named%s\n  healed ones cleared after %d s (worst %d, of %d)",
		s.Precision(), s.Recall(), s.StrongRecall(), s.FalsePerNodeDay(), s.False, s.NodeDays, s.Delay(.5),
		s.Delay(.95), s.Coverage(), s.HealthyMost, nr, np, s.Probes, list(s.PerKind), list(s.Named),
		quantile(s.Cleared, .5), quantile(s.Cleared, 1), len(s.Cleared))
}
