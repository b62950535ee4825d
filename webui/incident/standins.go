package incident

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"fairway/webui/api"
)

// Names are what a file for outsiders must not hold beside the names that the incident itself lists, by what they are:
// forwarder, node, job, user or application.
type Names map[string][]string

// Add adds names.
func (n Names) Add(what string, names ...string) { n[what] = append(n[what], names...) }

// StandIns returns the incident with a stand-in for every name of a node, job, user, application and the site, the
// same one each time. Reasons that people typed are left out: nobody knows what they hold.
func (inc *Incident) StandIns(n Names) (*Incident, error) {
	out := *inc
	out.Plans, out.Audit, out.Life = slices.Clone(inc.Plans), slices.Clone(inc.Audit), slices.Clone(inc.Life)
	for i := range out.Plans {
		out.Plans[i].Reason = ""
	}
	for i := range out.Audit {
		out.Audit[i].Reason, out.Audit[i].From = "", ""
		n.Add("user", out.Audit[i].Actor)
	}
	for i := range out.Life {
		if out.Life[i].By != "" {
			n.Add("user", out.Life[i].By)
			out.Life[i].Why = ""
		}
	}
	for _, s := range out.Steps {
		n.Add("user", s.By)
	}
	for _, v := range out.Victims {
		n.Add("job", string(v.Job))
		n.Add("user", v.User)
		n.Add("application", v.App)
	}
	b, err := api.Encode(&out)
	if err != nil {
		return nil, fmt.Errorf("stand-ins: %w", err)
	}
	var tree any
	_ = json.Unmarshal(b, &tree) // it was encoded a moment ago
	b, _ = json.Marshal(newReplacer(&out, n).walk("", tree))
	out = Incident{}
	return &out, json.Unmarshal(b, &out)
}

// replacer has a stand-in for each name.
type replacer struct {
	names map[string]string
	jobs  map[string]string
}

func newReplacer(inc *Incident, n Names) replacer {
	r := replacer{names: map[string]string{}, jobs: map[string]string{}}
	count := map[string]int{}
	add := func(to map[string]string, what string, names ...string) {
		for _, name := range names {
			if name != "" && to[name] == "" && name != "desk" {
				count[what]++
				to[name] = fmt.Sprintf("%s-%d", what, count[what])
			}
		}
	}
	add(r.names, "site", inc.Site)
	add(r.names, "forwarder", string(inc.Node))
	for _, p := range inc.Series.Peers {
		add(r.names, "forwarder", string(p.Node))
	}
	for _, what := range []string{"forwarder", "node", "user", "application"} {
		add(r.names, what, n[what]...)
	}
	add(r.jobs, "job", n["job"]...)
	return r
}

var (
	word  = regexp.MustCompile(`[A-Za-z0-9_][A-Za-z0-9_.@-]*`)
	jobOf = regexp.MustCompile(`\bjob ([A-Za-z0-9_.\[\]-]+)`)
	// nodeLists are lists as batch systems write them: cn[002-003,007].
	nodeLists = regexp.MustCompile(`[A-Za-z][A-Za-z0-9_-]*\[[0-9,+-]+\]`)
)

// kept are the values that are words of fairway's own, whatever a site's names are.
var kept = map[string]bool{"state": true, "action": true, "key": true, "class": true, "metric": true, "label": true,
	"unit": true, "verdict": true, "version": true, "model": true, "id": true, "finding": true, "plan": true,
	"hash": true}

// walk replaces the names in every string of a tree.
func (r replacer) walk(field string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = r.walk(k, x)
		}
	case []any:
		for i := range v {
			v[i] = r.walk(field, v[i])
		}
	case string:
		switch {
		case kept[field]:
			return v
		case field == "job":
			return r.job(v)
		}
		return r.text(v)
	}
	return v
}

func (r replacer) job(id string) string {
	if s := r.jobs[id]; s != "" {
		return strings.TrimPrefix(s, "job-")
	}
	if id == "" {
		return ""
	}
	r.jobs[id] = fmt.Sprintf("job-%d", len(r.jobs)+1)
	return strings.TrimPrefix(r.jobs[id], "job-")
}

func (r replacer) text(s string) string {
	s = jobOf.ReplaceAllStringFunc(s, func(m string) string { return "job " + r.job(strings.TrimPrefix(m, "job ")) })
	s = nodeLists.ReplaceAllString(s, "nodes")
	return word.ReplaceAllStringFunc(s, func(w string) string {
		if to := r.names[w]; to != "" {
			return to
		}
		if to := r.names[strings.TrimRight(w, ".-")]; to != "" {
			return to + w[len(strings.TrimRight(w, ".-")):]
		}
		return w
	})
}
