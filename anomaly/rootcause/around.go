package rootcause

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
)

// onTheWay joins the job's critical path with what is recorded of the forwarders and targets it used:
// a trouble counts for the part of the I/O time that it lasted. No log of the job alone can say this.
func onTheWay(j *Job, a *Answer, lim Limits) []Clause {
	type key struct {
		layer     topology.Role
		node      string
		what      anomaly.Kind
		neighbour topology.JobID
		own       bool
	}
	groups := map[key][]Record{}
	for _, r := range j.Records {
		k := key{r.Layer, r.Node, r.What, r.Neighbour, r.Own}
		groups[k] = append(groups[k], r)
	}
	out := []Clause{}
	for k, records := range groups {
		under := a.Critical
		if k.layer == topology.Storage && k.node != string(anomaly.Everywhere) {
			under = onTarget(j.Files, a.Critical, topology.TargetID(k.node))
		} else if k.layer == topology.Forwarder {
			under = onForwarder(j, a.Critical, topology.NodeID(k.node))
		}
		shared := overlap(under, records)
		if shared == 0 {
			continue
		}
		share := shared / a.IOTime
		out = append(out, Clause{
			Rule: string(k.what), Value: Known(share), Limit: Known(lim.Shadow),
			Cause: share >= lim.Shadow && k.what != Excluded, outside: !k.own,
			Text: sentence(records[0], shared, share),
		})
	}
	slices.SortFunc(out, func(a, b Clause) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Text, b.Text))
	})
	return out
}

// onTarget keeps the pieces of files that lie on the target. Where a file does not say which targets it
// lies on, it may lie on this one: a record is only given for a target that the job used.
func onTarget(files []File, critical []Critical, t topology.TargetID) []Critical {
	var out []Critical
	for _, c := range critical {
		if at := files[c.File].Targets; len(at) == 0 || slices.Contains(at, t) {
			out = append(out, c)
		}
	}
	return out
}

// overlap is the time that lies both in a piece and in a record. Records may overlap and are merged first, so that no
// second counts twice.
func overlap(pieces []Critical, records []Record) float64 {
	records = slices.Clone(records)
	slices.SortFunc(records, func(a, b Record) int { return cmp.Compare(a.Start, b.Start) })
	var total float64
	for at := 0; at < len(records); {
		start, end := records[at].Start, records[at].End
		for at++; at < len(records) && records[at].Start <= end; at++ {
			end = max(end, records[at].End)
		}
		total += within(pieces, start, end)
	}
	return total
}

// within is the time from start to end that lies in a piece: of one that is in I/O for a part of its time, that part.
// Pieces come in the order of their starts.
func within(pieces []Critical, start, end float64) (total float64) {
	first := 0
	if len(pieces) > 0 && pieces[0].apart {
		first, _ = slices.BinarySearchFunc(pieces, start, func(c Critical, t float64) int {
			return cmp.Compare(c.End,
				t)
		})
	}
	for _, c := range pieces[first:] {
		if c.Start >= end {
			break
		}
		shared, all := max(0, min(end, c.End)-max(start, c.Start)), c.End-c.Start
		if active := lengthWithin(c.active, c.Start, c.End); active > 0 {
			shared, all = lengthWithin(c.active, max(start, c.Start), min(end, c.End)), active
		}
		if c.Exclusive == all {
			total += shared
		} else {
			total += shared * c.Exclusive / all
		}
	}
	return total
}

// lengthWithin is the part of some times, given by their starts and ends in turn, that lies from start to end.
func lengthWithin(times []float64, start, end float64) (sum float64) {
	for i := 0; i+1 < len(times); i += 2 {
		sum += max(0, min(end, times[i+1])-max(start, times[i]))
	}
	return sum
}

// troubles say what was the matter, of what no job did.
var troubles = map[anomaly.Kind]string{
	anomaly.FailSlow:         "was fail-slow",
	Excluded:                 "was excluded from allocation",
	anomaly.BrownoutAll:      "was slow behind the forwarders",
	anomaly.BrownoutPool:     "was slow behind the forwarders",
	anomaly.ForwarderSilent:  "did not report",
	anomaly.TargetSlow:       "was slower than its peers",
	anomaly.ReceiverSlow:     "was waited for by routers",
	anomaly.BuffersExhausted: "had too few router buffers",
	anomaly.ClientSlow:       "was slow by itself",
}

// sentence says one trouble in the operator's words.
func sentence(r Record, shared, share float64) string {
	var s strings.Builder
	subject := "Forwarder " + r.Node
	switch {
	case r.Node == string(anomaly.Everywhere):
		subject = "The back end as a whole"
	case r.Layer == topology.Storage:
		subject = "Storage target " + r.Node
	}
	trouble := troubles[r.What]
	switch {
	case r.What.OfJob():
		trouble = pinned(r)
	case trouble == "":
		trouble = fmt.Sprintf("had trouble (%s)", r.What)
	}
	s.WriteString(subject + " " + trouble)
	fmt.Fprintf(&s, " for %s of the I/O time (%s)", secs(shared), percent(share))
	if r.Text != "" {
		fmt.Fprintf(&s, ": %s", strings.TrimSuffix(r.Text, "."))
	}
	return s.String() + "."
}

func pinned(r Record) string {
	by := "a neighbour"
	switch {
	case r.Own:
		by = "the job itself"
	case r.Neighbour != "":
		by = "job " + string(r.Neighbour)
	}
	switch r.What {
	case anomaly.N1Pin:
		return "was pinned by " + by + ", which writes one shared file"
	case anomaly.MetaStorm:
		return "was pinned by " + by + " with a storm of metadata operations"
	}
	return "was filled by the bandwidth of " + by
}

// FromFindings makes records of the findings about the forwarders that the job used, and about the back
// end as a whole. start is the job's, own its name; a finding that still stands at now lasts until then. Suspicions
// and what a person dismissed blame nobody.
func FromFindings(findings []anomaly.Finding, own topology.JobID, used map[topology.NodeID]bool, start,
	now time.Time) []Record {
	var out []Record
	for _, f := range findings {
		if f.State == anomaly.Suspect || f.State == anomaly.Dismissed || !used[f.Node] && f.Node != anomaly.Everywhere {
			continue
		}
		end := now
		if f.State == anomaly.Returned || f.State == anomaly.Probation { // it is well again since
			end = f.Changed
		}
		if end.Before(f.Since) {
			continue
		}
		r := Record{Layer: topology.Forwarder, Node: string(f.Node), What: f.Kind, Start: f.Since.Sub(start).Seconds(),
			End: end.Sub(start).Seconds(), Text: f.Sentence}
		if f.Node == anomaly.Everywhere {
			r.Layer = topology.Storage
		}
		if !f.Kind.Accuses() && len(f.Jobs) > 0 {
			others := slices.DeleteFunc(slices.Clone(f.Jobs), func(id topology.JobID) bool { return id == own })
			if r.Own = len(others) == 0; !r.Own {
				r.Neighbour = others[0]
			}
		}
		out = append(out, r)
	}
	return out
}
