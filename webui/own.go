package webui

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/rootcause"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/remap/dispatch"
	"fairway/tsdb/history"
	"fairway/webui/access"
	"fairway/webui/api"
)

// unnamed stands where the name of another user's job would.
const unnamed = "unnamed"

// own is what a person of the role user may see: the own jobs, their compute nodes, and the forwarders that these use.
// Answers are made of what belongs to it, with no text that a detector or a person wrote: such a text may name others.
// nil is somebody who may see everything.
type own struct {
	name       string
	jobs       map[topology.JobID]bool
	nodes      map[topology.NodeID]bool
	forwarders map[topology.ForwarderID]bool
}

func ownOf(by remap.Person, sit *remap.Situation) *own {
	if by.Role.Includes(viewer) {
		return nil
	}
	o := &own{name: by.Name, jobs: map[topology.JobID]bool{}, nodes: map[topology.NodeID]bool{},
		forwarders: map[topology.ForwarderID]bool{}}
	for i := range sit.Jobs {
		if j := &sit.Jobs[i]; o.has(j.User) {
			o.jobs[j.ID] = true
			for _, n := range j.Nodes {
				o.nodes[n] = true
				for _, f := range observedOf(sit, n) {
					o.forwarders[f] = true
				}
			}
		}
	}
	return o
}

// has says whether what belongs to a user may be seen.
func (o *own) has(user string) bool { return o == nil || user != "" && user == o.name }

// askingAt is the own of who asks, and the second that is asked for, zero live. A user has no past: whose job was where
// then is not kept with a second.
func (p *parts) askingAt(r *http.Request, by access.Caller) (mine *own, at time.Time, err error) {
	mine = p.asking(by)
	if at, err = past(r); err == nil && mine != nil && !at.IsZero() {
		err = fmt.Errorf("%w: the past of the layer needs the role %s", api.ErrNotAllowed, viewer)
	}
	return mine, at, err
}

func (o *own) row(r api.ForwarderRow) api.ForwarderRow {
	r.Plan = ""
	if !o.jobs[r.TopJob] {
		r.TopJob, r.TopJobShare = "", nil
	}
	return r
}

// only are those of a list that may be seen.
func only[T any](all []T, may func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool { return !may(one) })
}

// overview is that of the own forwarders.
func (o *own) overview(v api.Overview) api.Overview {
	if o == nil {
		return v
	}
	if v.Jobs != nil {
		v.Jobs = new(len(o.jobs))
	}
	rows := []api.ForwarderRow{}
	for _, r := range v.Forwarders {
		if o.forwarders[r.ID] {
			rows = append(rows, o.row(r))
		}
	}
	found := o.findings(v.Findings)
	v.Forwarders, v.Findings, v.Now, v.Waiting, v.Needs = rows, found, nil, []api.PlanRow{}, o.needs(v.Needs, found)
	v.Quiet()
	return v
}

// needs are those of findings that delay an own job.
func (o *own) needs(all []advise.Card, found []anomaly.Finding) []advise.Card {
	out := []advise.Card{}
	for _, n := range all {
		i := slices.IndexFunc(found, func(f anomaly.Finding) bool { return f.ID == n.Finding })
		victims := only(n.Victims, func(v advise.Victim) bool { return o.jobs[v.Job] })
		if i >= 0 && len(victims) > 0 {
			out = append(out, advise.Card{Finding: n.Finding, Node: n.Node, Stage: n.Stage, Sentence: found[i].Sentence,
				Since: n.Since, Victims: victims})
		}
	}
	return out
}

// findings are those about own nodes, own forwarders and the back end.
func (o *own) findings(all []anomaly.Finding) []anomaly.Finding {
	if o == nil {
		return all
	}
	out := []anomaly.Finding{}
	for i := range all {
		if f := &all[i]; o.nodes[f.Node] || o.forwarders[topology.ForwarderID(f.Node)] ||
			f.Node == anomaly.Everywhere && len(o.jobs) > 0 {
			out = append(out, o.finding(f))
		}
	}
	return out
}

// finding is what a finding says without what it says of others.
func (o *own) finding(f *anomaly.Finding) anomaly.Finding {
	v := anomaly.Finding{ID: f.ID, Node: f.Node, Kind: f.Kind, State: f.State, Since: f.Since, Changed: f.Changed,
		Confidence: f.Confidence, Times: f.Times, Again: f.Again, Class: f.Class, Steps: f.Steps, Stage: f.Stage,
		Relapses: f.Relapses, Condition: f.Condition, Factor: f.Factor, FactorAtLeast: f.FactorAtLeast,
		FactorNow: f.FactorNow}
	v.Jobs = only(f.Jobs, func(j topology.JobID) bool { return o.jobs[j] })
	v.Impact = only(f.Impact, func(i anomaly.Impact) bool { return o.jobs[i.Job] })
	v.Nodes = only(f.Nodes, func(n topology.NodeID) bool { return o.nodes[n] || o.forwarders[topology.ForwarderID(n)] })
	v.Sentence = sentenceOfOwn(&v)
	return v
}

// sentenceOfOwn says a finding that has lost the detector's words: f has no names but the own ones.
func sentenceOfOwn(f *anomaly.Finding) string {
	switch {
	case f.Kind.OfJob() && len(f.Jobs) > 0:
		return fmt.Sprintf("job %s keeps %s busy (%s)", f.Jobs[0], f.Node, f.Kind)
	case f.Kind.OfJob():
		return fmt.Sprintf("another user's job keeps %s busy (%s)", f.Node, f.Kind)
	}
	return advise.Sentence(f)
}

// forwarder is the page of an own forwarder: its health, and the own clients behind it.
func (o *own) forwarder(d api.ForwarderDetail) (api.ForwarderDetail, error) {
	switch {
	case o == nil:
		return d, nil
	case !o.forwarders[d.ID]:
		return api.ForwarderDetail{}, fmt.Errorf("forwarder %q: %w among those that your jobs use", d.ID,
			api.ErrNotFound)
	}
	d.ForwarderRow, d.Options, d.Targets = o.row(d.ForwarderRow), nil, nil // who may not move nodes has no targets
	clients := []api.ClientRow{}
	for _, c := range d.ClientNodes {
		if o.nodes[c.ID] {
			if !o.jobs[c.Job] {
				c.Job = ""
			}
			clients = append(clients, c)
		}
	}
	d.ClientNodes = clients
	d.Storage.Rows = slices.Clone(d.Storage.Rows)
	for i := range d.Storage.Rows { // of who does most at a target, an own job alone
		row := &d.Storage.Rows[i]
		if row.Most != nil && !(row.Most.Kind == api.UseJob && o.jobs[topology.JobID(row.Most.Who)]) {
			row.Most = nil
		}
	}
	if d.Drained != "" {
		d.Drained = "drained"
	}
	if d.Life != nil {
		life := *d.Life
		life.Next = ""
		if life.Last != nil {
			life.Last = new(o.finding(life.Last))
		}
		d.Life = &life
	}
	if d.Canary != nil {
		c := *d.Canary
		c.By = ""
		d.Canary = &c
	}
	return d, nil
}

// neighbours are the jobs beside an own one, of which only the effect is shown.
func (o *own) neighbours(all []api.Neighbour) []api.Neighbour {
	for i := range all {
		if n := &all[i]; o != nil && !o.jobs[n.Job] {
			n.Job, n.App, n.Finding = unnamed, "", ""
		}
	}
	return all
}

// decision is what was decided for an own job.
func (o *own) decision(a *dispatch.Answer) *dispatch.Answer {
	if o == nil || a == nil {
		return a
	}
	v := *a
	v.Refused = ""
	if a.Refused != "" {
		v.Refused = "the plan was not made"
	}
	v.Decision.Interference = slices.Clone(a.Decision.Interference)
	for i := range v.Decision.Interference {
		if n := &v.Decision.Interference[i]; !o.jobs[n.Job] {
			n.Job = unnamed
		}
	}
	return &v
}

// withoutOthers leaves out of what explains a job whose the other load was.
func (o *own) withoutOthers(j *rootcause.Job) {
	if o == nil {
		return
	}
	j.Records = slices.Clone(j.Records)
	for i := range j.Records {
		r := &j.Records[i]
		if r.Neighbour != "" && !o.jobs[r.Neighbour] {
			r.Neighbour = unnamed
		}
		if r.Text != "" {
			r.Text = sentenceOfOwn(&anomaly.Finding{Node: topology.NodeID(r.Node), Kind: r.What,
				State: anomaly.Confirmed})
		}
	}
	for i := range j.Storage.Neighbours {
		if n := &j.Storage.Neighbours[i]; !o.jobs[n.Job] {
			n.Job, n.App = unnamed, "of another user"
		}
	}
}

// trend is that of the own forwarders' clients.
func (o *own) trend(t api.Trend) api.Trend {
	if o == nil {
		return t
	}
	waits := map[topology.ForwarderID]api.WaitTrend{}
	for id, w := range t.Waits {
		if o.forwarders[id] {
			waits[id] = w
		}
	}
	t.Layer, t.Waits = []api.LayerNow{}, waits
	return t
}

// asking is the own of who asks, by the newest picture.
func (p *parts) asking(by access.Caller) *own {
	return ownOf(by.Person, p.Picture.Snapshot().Situation)
}

// runs are the ended runs that may be seen, at most limit of them, of the newest.
func (o *own) runs(runs []history.Run, limit int) []history.Run {
	if o != nil {
		runs = only(runs, func(r history.Run) bool { return o.has(r.User) })
	}
	return runs[:min(limit, len(runs))]
}

// ownTopics are what the feed has for a user instead of the topics that everybody else shares.
func ownTopics(by remap.Person, topics []string) (out []string, err error) {
	for _, t := range topics {
		switch {
		case t == topicBeat, t == topicPlans: // say that something is new, and not what
			out = append(out, t)
		case t == topicOverview, t == topicFindings, strings.HasPrefix(t, topicForwarder):
			out = append(out, topicOwn+by.Name+"\x00"+t)
		default:
			return nil, fmt.Errorf("%w: topic %q needs the role %s", api.ErrNotAllowed, t, viewer)
		}
	}
	return out, nil
}
