package live

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
)

// mostUses is how many users of a server are listed; the others are one row.
const mostUses = 50

// Uses says who works at forwarders, storage servers and storage targets in the newest second, as far as anybody counts
// it. All that a server does is in its rows: what nobody is known for has one of its own.
func Uses(p *Picture, of []topology.NodeID) map[topology.NodeID]api.Uses {
	return usesAt(p.Snapshot(), of, p.cfg.Board.Visit)
}

// usesAt counts what some nodes' frames say.
func usesAt(s *Snapshot, of []topology.NodeID,
	each func(visit func(*collector.Frame))) map[topology.NodeID]api.Uses {
	c := userCount{situation: s.Situation, oldest: oldestShown(s.Made), owners: ownersOf(s.Situation.Jobs),
		at: map[topology.NodeID]*usersAt{}}
	for _, id := range of {
		c.at[id] = &usersAt{}
	}
	each(c.frame)
	out := map[topology.NodeID]api.Uses{}
	for id, u := range c.at {
		if u.seen {
			out[id] = u.view()
		}
	}
	return out
}

// did is what somebody did in a second: bytes read and written, metadata operations.
type did [3]float64

const (
	didRead = iota
	didWrite
	didMeta
)

func didOf(samples []collector.Sample) (d did) {
	for _, s := range samples {
		switch s.Metric {
		case collector.ReadBytes:
			d[didRead] += s.Value
		case collector.WriteBytes:
			d[didWrite] += s.Value
		case collector.MetaOps:
			d[didMeta] += s.Value
		}
	}
	return d
}

func (d did) plus(e did, part float64) did {
	for i := range d {
		d[i] += part * e[i]
	}
	return d
}

func (d did) bytes() float64 { return d[didRead] + d[didWrite] }

// more says which of two does more: bytes count, and where none move, metadata operations.
func (d did) more(e did) bool {
	return d.bytes() > e.bytes() || d.bytes() == e.bytes() && d[didMeta] > e[didMeta]
}

// without is what is left of it, never less than nothing: counters of several nodes are read at different times.
func (d did) without(e did) did {
	for i := range d {
		d[i] = max(0, d[i]-e[i])
	}
	return d
}

// parts are those of bytes and of metadata operations in a whole.
func (d did) parts(all did) (bytes, meta *float64) {
	if moved := all.bytes(); moved > 0 {
		bytes = new(d.bytes() / moved)
	}
	if all[didMeta] > 0 {
		meta = new(d[didMeta] / all[didMeta])
	}
	return bytes, meta
}

// usersAt are the users of one server or target.
type usersAt struct {
	seen bool
	role topology.Role
	// own is what it counts by job itself, asked what its clients count of it; nodes that have no one job come under
	// their names.
	own, asked map[topology.JobID]did
	total      *did // what it counts in all
	note       string
}

func addTo(m *map[topology.JobID]did, who topology.JobID, d did, part float64) {
	if *m == nil {
		*m = map[topology.JobID]did{}
	}
	(*m)[who] = (*m)[who].plus(d, part)
}

type userCount struct {
	situation *remap.Situation
	oldest    int64
	owners    map[topology.NodeID]topology.JobID
	at        map[topology.NodeID]*usersAt
}

func (c *userCount) frame(f *collector.Frame) {
	if f.TimeMillis < c.oldest {
		return
	}
	if u := c.at[f.Node]; u != nil {
		u.seen, u.role = true, f.Role
		if f.CountsIO() {
			u.total = new(didOf(f.Samples))
		}
		for i := range f.Jobs {
			addTo(&u.own, f.Jobs[i].Job, didOf(f.Jobs[i].Samples), 1)
		}
		u.note = noteOf(f, "")
	}
	for i := range f.Jobs {
		if u := c.at[topology.NodeID(f.Jobs[i].Target)]; u != nil && f.Jobs[i].Target != "" {
			if u.seen, u.role = true, f.Role; u.note == "" { // it is in many rows
				u.note = noteOf(f, f.Jobs[i].Target)
			}
			addTo(&u.own, f.Jobs[i].Job, didOf(f.Jobs[i].Samples), 1)
		}
	}
	for i := range f.Targets {
		id := f.Targets[i].Target
		if u := c.at[topology.NodeID(id)]; u != nil && !c.situation.IsForwarder(topology.ForwarderID(id)) {
			u.seen = true
			addTo(&u.asked, c.userOf(f.Node), didOf(f.Targets[i].Samples), 1)
		}
	}
	if f.Role == topology.Compute {
		c.client(f)
	}
}

// userOf is the job that has a node for itself, or the node.
func (c *userCount) userOf(n topology.NodeID) topology.JobID {
	if job := c.owners[n]; job != "" {
		return job
	}
	return nodeMark + topology.JobID(n)
}

// nodeMark begins a node's name in the place of a job's. No id of a client has a blank there.
const nodeMark = topology.NoJob + " node "

// client gives what a compute node does to its jobs, and what none of them does to the one that has it or to itself.
func (c *userCount) client(f *collector.Frame) {
	for _, over := range c.situation.Over(f.Node) {
		u := c.at[over.Forwarder.Node()]
		if u == nil {
			continue
		}
		rest := didOf(f.Samples)
		for i := range f.Jobs {
			d := didOf(f.Jobs[i].Samples)
			addTo(&u.asked, f.Jobs[i].Job, d, over.Part)
			rest = rest.without(d)
		}
		if rest != (did{}) {
			addTo(&u.asked, c.userOf(f.Node), rest, over.Part)
		}
	}
}

// noteOf is what a Lustre server's agent says of its tables of jobs, and of who fills its targets; of one target what
// is about that.
func noteOf(f *collector.Frame, target topology.TargetID) string {
	if target != "" {
		var lines []string
		for _, about := range []string{"job_stats", string(target) + " bytes", string(target) + " inodes"} {
			if text := f.NoteOf("lustre", about); text != "" {
				lines = append(lines, about+": "+text)
			}
		}
		return strings.Join(lines, "\n")
	}
	for i := range f.Sources {
		if f.Sources[i].Name == "lustre" {
			return f.Sources[i].Note
		}
	}
	return ""
}

// view makes the rows. A forwarder's clients know better than itself whose work it is, a storage server's do not: other
// machines may have that mounted, too.
func (u *usersAt) view() api.Uses {
	v := api.Uses{Note: u.note, Rows: []api.Use{}}
	rows := u.own
	if len(rows) == 0 || u.role == topology.Forwarder && len(u.asked) > 0 {
		rows = u.asked
	}
	var all did
	for _, d := range rows {
		all = all.plus(d, 1)
	}
	_, counted := rows[collector.UncountedWork]
	if !counted && u.total != nil {
		if rest := u.total.without(all); len(rows) > 0 && rest != (did{}) {
			rows[collector.UncountedWork] = rest
			all = all.plus(rest, 1)
		}
		counted = true
	}
	switch {
	case len(rows) == 0:
		v.Unknown = "neither it nor its clients count by whom"
		return v
	case !counted:
		v.Unknown = "what it does in all is not known, so that there may be more"
	}
	var named did
	for who, d := range rows {
		row := api.Use{ReadBytesPerSec: d[didRead], WriteBytesPerSec: d[didWrite], MetaOpsPerSec: d[didMeta]}
		row.Who, row.Kind, row.Why = describeUser(who)
		row.BytesPart, row.MetaPart = d.parts(all)
		if row.Kind != api.UseRest {
			named = named.plus(d, 1)
		}
		if d != (did{}) || row.Kind == api.UseRest {
			v.Rows = append(v.Rows, row)
		}
	}
	slices.SortFunc(v.Rows, func(a, b api.Use) int {
		rest := func(r *api.Use) int { return cmp.Compare(r.Why, "") }
		return cmp.Or(cmp.Compare(rest(&a), rest(&b)), cmp.Compare(b.Part(), a.Part()),
			cmp.Compare(a.Who, b.Who))
	})
	bytes, meta := named.parts(all)
	for _, part := range []*float64{bytes, meta} {
		if part != nil && (v.Attributed == nil || *part < *v.Attributed) {
			v.Attributed = part
		}
	}
	return fewer(v, all)
}

// fewer makes one row of those that are too many.
func fewer(v api.Uses, all did) api.Uses {
	users := 0
	for users < len(v.Rows) && v.Rows[users].Kind != api.UseRest {
		users++
	}
	if users <= mostUses {
		return v
	}
	var d did
	for i := range v.Rows[mostUses:users] {
		r := &v.Rows[mostUses+i]
		d = d.plus(did{r.ReadBytesPerSec, r.WriteBytesPerSec, r.MetaOpsPerSec}, 1)
	}
	others := api.Use{Who: fmt.Sprintf("%d others", users-mostUses), Kind: api.UseOthers, ReadBytesPerSec: d[didRead],
		WriteBytesPerSec: d[didWrite], MetaOpsPerSec: d[didMeta]}
	others.BytesPart, others.MetaPart = d.parts(all)
	v.Rows = slices.Replace(v.Rows, mostUses, users, others)
	return v
}

// describeUser says what a name in a list of jobs is.
func describeUser(who topology.JobID) (name, kind, why string) {
	node, isNode := strings.CutPrefix(string(who), nodeMark)
	switch {
	case who == collector.UncountedWork:
		return "not attributed", api.UseRest, "no job, user or node is counted for it"
	case who == collector.SmallJobs:
		return "not attributed: small", api.UseRest, "too many did something, and these the least"
	case isNode:
		return node, api.UseNode, ""
	case who.IsJob():
		return string(who), api.UseJob, ""
	}
	name = strings.TrimPrefix(string(who), topology.NoJob)
	if isUser(name) {
		return name, api.UseUser, ""
	}
	return name, api.UseID, ""
}

// isUser says whether an id names a user: dd.1000 (jobid_var=procname_uid), 1000@login1, or :1000:login1.
func isUser(id string) bool {
	number := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	return number(id[strings.LastIndexByte(id, '.')+1:]) && strings.Contains(id, ".") || strings.Contains(id, "@") ||
		slices.ContainsFunc(strings.Split(id, ":")[1:], number)
}
