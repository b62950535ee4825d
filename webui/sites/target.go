package sites

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/webui/api"
)

// Shared is one storage target that several sites use.
type Shared struct {
	Target topology.NodeID `json:"target"`
	// Accused are the sites' findings, Users the other sites that report bytes there.
	Accused []Accusation `json:"accused"`
	Users   []string     `json:"users"`
	// Text is who accuses and who uses it, Lines what moves there and what no site reports.
	Text  string   `json:"text"`
	Lines []string `json:"lines"`
	// Neighbour is the job of another site that does most of what is reported to go there; nil: no such job.
	Neighbour *Neighbour `json:"neighbour,omitempty"`
}

// Accusation is a site's finding of the target.
type Accusation struct {
	Site    string        `json:"site"`
	Finding string        `json:"finding"`
	State   anomaly.State `json:"state"`
}

// Neighbour is a job that does most of the I/O to a target.
type Neighbour struct {
	Site             string         `json:"site"`
	Job              topology.JobID `json:"job"`
	User             string         `json:"user,omitempty"`
	App              string         `json:"app,omitempty"`
	ReadBytesPerSec  float64        `json:"read_bytes_per_sec"`
	WriteBytesPerSec float64        `json:"write_bytes_per_sec"`
	Share            float64        `json:"share"` // of the bytes that sites report there, 0..1
}

// traffic is bytes per second.
type traffic struct{ read, write float64 }

func (t traffic) sum() float64 { return t.read + t.write }

func (t traffic) add(u traffic) traffic { return traffic{t.read + u.read, t.write + u.write} }

// text says what it does, by the direction that it mostly has.
func (t traffic) text() string {
	switch size := anomaly.Size(t.sum()) + "/s"; {
	case t.write >= 2*t.read:
		return "writes " + size
	case t.read >= 2*t.write:
		return "reads " + size
	default:
		return "moves " + size
	}
}

// target is one accused target, with what every site moves there.
type target struct {
	name    topology.NodeID
	answers []Answer
	of      []use
	total   traffic
}

// use is what a site moves at the target.
type use struct {
	findings []Accusation
	known    bool // the site reports what it moves there
	all      traffic
	jobs     map[topology.JobID]traffic
}

func newTarget(answers []Answer, name topology.NodeID, at running) *target {
	t := &target{name: name, answers: answers, of: make([]use, len(answers))}
	for i := range answers {
		a, u := &answers[i], &t.of[i]
		if a.Err != nil {
			continue
		}
		for k := range a.Overview.Findings {
			if f := &a.Overview.Findings[k]; f.Node == name && ofStorage(f) && len(u.findings) <= mostListed {
				u.findings = append(u.findings, Accusation{Site: a.Site, Finding: f.ID, State: f.State})
			}
		}
		u.known, u.jobs = a.Uses != nil && name != anomaly.Everywhere, map[topology.JobID]traffic{}
		for _, b := range a.Uses {
			moved := traffic{known(&b.ReadBytesPerSec), known(&b.WriteBytesPerSec)}
			if b.Target != name || moved.sum() == 0 {
				continue
			}
			if b.By == api.StorageByServers && at.elsewhere(b.Job, i) {
				b.Job = ""
			}
			u.all, u.jobs[b.Job] = u.all.add(moved), u.jobs[b.Job].add(moved)
		}
		t.total = t.total.add(u.all)
	}
	return t
}

// running are the sites where a job of a number runs.
type running map[topology.JobID][]int

func runningAt(answers []Answer) running {
	at := running{}
	for i := range answers {
		for k := range answers[i].Jobs {
			if j := &answers[i].Jobs[k]; j.End.IsZero() && !slices.Contains(at[j.ID], i) {
				at[j.ID] = append(at[j.ID], i)
			}
		}
	}
	return at
}

// elsewhere says that another site has a job of the same number: a server cannot know them apart.
func (r running) elsewhere(job topology.JobID, here int) bool {
	return slices.ContainsFunc(r[job], func(i int) bool { return i != here })
}

// Describe says who accuses a target, who uses it and what moves there, and of which sites that is not known.
func Describe(answers []Answer, name topology.NodeID) api.SharedTarget {
	s, _ := newTarget(answers, name, runningAt(answers)).describe()
	return api.SharedTarget{Target: s.Target, Text: s.Text, Lines: s.Lines}
}

// describe says who accuses the target, who uses it and what moves there; false where it is one site's alone.
func (t *target) describe() (Shared, bool) {
	s := Shared{Target: t.name, Users: []string{}, Lines: []string{}}
	var by, unknown []string
	var mute []int // sites that answer, and do not report targets
	for i := range t.of {
		u, site := &t.of[i], t.answers[i].Site
		s.Accused = append(s.Accused, u.findings...)
		switch {
		case t.answers[i].Err != nil:
			unknown = append(unknown, site)
			continue
		case !u.known:
			mute = append(mute, i)
		}
		if len(u.findings) > 0 {
			by = append(by, site+" ("+listFindings(u.findings)+")")
		} else if u.all.sum() > 0 {
			s.Users = append(s.Users, site)
		}
	}
	shared := len(by) != 1 || len(s.Users) > 0 || slices.ContainsFunc(mute, func(i int) bool {
		return len(t.of[i].findings) == 0
	})
	s.Text = fmt.Sprintf("%s is accused by %s", s.Target, join(by))
	if t.name == anomaly.Everywhere {
		s.Text = "the back end is accused by " + join(by)
		if len(by) > 1 {
			s.Text += "; whether it is one and the same is not reported"
		}
	} else if len(s.Users) > 0 {
		s.Text += "; " + join(s.Users) + anomaly.VerbOf(len(s.Users), " uses it, too", " use it, too")
	}
	if t.name != anomaly.Everywhere && len(mute)+len(unknown) < len(t.of) {
		s.Lines = append(s.Lines, t.sayMost(&s, len(by) == 1))
	}
	for _, i := range mute {
		if t.name != anomaly.Everywhere || len(t.of[i].findings) == 0 {
			s.Lines = append(s.Lines, t.sayWhole(i))
		}
	}
	if len(unknown) > 0 {
		s.Lines = append(s.Lines, "nothing is known of "+join(unknown))
	}
	return s, shared
}

// sayMost says who does most of the I/O that sites report at the target, and sets the neighbour. A job of the one site
// that accuses is its own.
func (t *target) sayMost(s *Shared, alone bool) string {
	if t.total.sum() == 0 {
		return "nothing moves there now, as far as " + t.reporters()
	}
	for i := range t.of {
		u, own := &t.of[i], alone && len(t.of[i].findings) > 0
		for id, moved := range u.jobs {
			if id == "" || 2*moved.sum() <= t.total.sum() {
				continue
			}
			n := t.neighbour(i, id, moved)
			if !own {
				s.Neighbour = &n
			}
			return t.sayMoved(fmt.Sprintf("%s's %s", n.Site, nameJob(n.Job, n.User, n.App)), moved)
		}
		if 2*u.all.sum() > t.total.sum() {
			text := t.sayMoved(t.answers[i].Site, u.all)
			if 2*u.jobs[""].sum() > u.all.sum() {
				return text + "; by which job is not reported"
			}
			return text + "; no single job does most of it"
		}
	}
	return "no site does most of the I/O there, " + anomaly.Size(t.total.sum()) + "/s in all, as far as " +
		t.reporters()
}

// sayMoved is what somebody moves there and which part of all that is.
func (t *target) sayMoved(who string, moved traffic) string {
	return fmt.Sprintf("%s %s there, %.0f %% of what %s", who, moved.text(), 100*moved.sum()/t.total.sum(),
		t.reporters())
}

// reporters are the sites whose bytes at the target are known.
func (t *target) reporters() string {
	var names []string
	for i := range t.of {
		if t.of[i].known {
			names = append(names, t.answers[i].Site)
		}
	}
	return join(names) + anomaly.VerbOf(len(names), " reports", " report")
}

// sayWhole says of a site that does not report the target what it moves in all.
func (t *target) sayWhole(i int) string {
	a := &t.answers[i]
	text := a.Site + " does not report what it moves there"
	if a.UsesErr != nil {
		text += " (" + clip(a.UsesErr.Error()) + ")"
	}
	all := movedIn(a.Overview.Now)
	if all.sum() == 0 {
		return text + ", nor any traffic"
	}
	text += "; in all it " + all.text()
	for k := range a.Jobs {
		j := &a.Jobs[k]
		if j.Now != nil && j.End.IsZero() && 2*known(j.Now.MovedBytesPerSec) > all.sum() {
			return text + ", most of it " + nameJob(j.ID, j.User, j.App)
		}
	}
	return text
}

// known is a rate of another daemon; one that is not known is 0, and none is so large that a sum has no value.
func known(v *float64) float64 {
	if v == nil {
		return 0
	}
	return min(max(0, *v), 1e18)
}

// movedIn is what a layer moves.
func movedIn(now *api.LayerNow) traffic {
	if now == nil {
		return traffic{}
	}
	routed := known(now.RoutedBytesPerSec) / 2 // no direction
	return traffic{known(now.ReadBytesPerSec) + routed, known(now.WriteBytesPerSec) + routed}
}

func (t *target) neighbour(i int, id topology.JobID, moved traffic) Neighbour {
	n := Neighbour{Site: t.answers[i].Site, Job: id, ReadBytesPerSec: moved.read, WriteBytesPerSec: moved.write,
		Share: moved.sum() / t.total.sum()}
	for k := range t.answers[i].Jobs {
		if j := &t.answers[i].Jobs[k]; j.ID == id {
			n.User, n.App = j.User, j.App
		}
	}
	return n
}

// nameJob names a job with its user and application.
func nameJob(id topology.JobID, user, app string) string {
	text := "job " + string(id) + " (" + cmp.Or(user, "user not known")
	if app != "" {
		text += ", " + app
	}
	return text + ")"
}

// mostListed is how many findings of one site about one target are kept and named.
const mostListed = 4

// listFindings lists findings, suspects marked.
func listFindings(list []Accusation) string {
	var ids []string
	for i, a := range list {
		if i == mostListed {
			ids = append(ids, fmt.Sprintf("%d more", len(list)-i))
			break
		}
		if a.State == anomaly.Suspect {
			a.Finding += ", suspect"
		}
		ids = append(ids, a.Finding)
	}
	return strings.Join(ids, ", ")
}

// join lists names as people do.
func join(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
