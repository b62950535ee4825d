package daemontest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"fairway/anomaly"
	"fairway/cmd/lab/testbed"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/webui/api"
	"fairway/webui/incident"
)

// conditions are what each fault is called; of the others it is slow.
var conditions = map[testbed.FaultKind]anomaly.Condition{testbed.Hang: anomaly.Hung, testbed.Kill: anomaly.Dead}

// wantSaid holds what every surface says of a confirmed finding, whose nodes were moved by a plan, against the truth:
// the node, how it fails, who lost time, what was done; and all with one sentence.
func (e *evacuation) wantSaid(f testbed.Fault, id string, plans []remap.Plan) {
	e.t.Helper()
	row := func(format string, args ...any) {
		e.t.Helper()
		e.t.Errorf("%s of %s: %s", f.Kind, f.Node, fmt.Sprintf(format, args...))
	}
	text := map[string]string{}
	get := func(path string, to any) {
		e.t.Helper()
		var raw json.RawMessage
		err := e.d.ask("/api/v1/"+path, "", nil, &raw)
		if err == nil && to != nil {
			err = json.Unmarshal(raw, to)
		}
		if err != nil {
			row("%v", err)
		}
		text[path] = string(raw)
	}
	var v api.FindingView
	get("findings/"+id, &v)
	want, known := conditions[f.Kind]
	if !known {
		want = anomaly.Slow
	}
	if v.Condition != want {
		row("it is called %s, want %s: %s", v.Condition, want, v.Sentence)
	}
	var inc incident.Incident
	var o api.Overview
	get("findings/"+id+"/incident", &inc)
	get("overview", &o)
	first := slices.IndexFunc(o.Needs, func(c advise.Card) bool { return c.Finding == id })
	if first < 0 {
		row("the first screen has no card of %s: %+v", id, o.Needs)
		return
	}
	card := &o.Needs[first]
	done := []advise.Stage{advise.Moving, advise.Measuring, advise.Helped, advise.NotKnown}
	if !slices.Contains(done, card.Stage) || card.Action != nil && card.Action.Name == advise.ActPropose {
		row("10 s after the move the first screen says %s: %s, %+v", card.Stage, card.Sentence, card.Action)
	}
	var at api.ForwarderDetail
	get("forwarders/"+string(f.Node), &at)
	if at.State.Healthy() {
		row("its own page calls it %s", at.State)
	}
	for path, words := range map[string][]string{
		"findings/" + id:               {string(f.Node)},
		"findings/" + id + "/incident": {string(f.Node), "charts"},
		"report":                       {string(f.Node), id},
		"audit?limit=500":              {plans[0].ID, "rule move"},
		"plans/" + plans[0].ID:         {id, string(f.Node), "rule move"},
		"jobs/" + string(plans[0].Job): {string(plans[0].Job)},
		"jobs":                         {`"1001"`, `"1002"`},
		"alerts":                       nil,
		"exclusions":                   nil,
		"trend":                        nil,
		"marks":                        nil,
		"jobs/" + string(plans[0].Job) + "/profile": nil,
		"jobs/" + string(plans[0].Job) + "/runs":    nil,
	} {
		if text[path] == "" {
			get(path, nil)
		}
		for _, w := range words {
			if !strings.Contains(text[path], w) {
				row("%s does not say %q: %.600s", path, w, text[path])
			}
		}
	}
}
