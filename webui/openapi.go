package webui

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"time"

	"fairway/anomaly"
	"fairway/anomaly/rootcause"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/dispatch"
	"fairway/remap/policy/evacuate"
	"fairway/tsdb/history"
	"fairway/tsdb/history/iolog"
	"fairway/webui/access"
	"fairway/webui/api"
	"fairway/webui/live"
	"fairway/webui/report"
	"fairway/webui/sites"
)

// openAPI answers the API's description, made from the table of routes, so that it cannot
// differ from what is served.
func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request, _ access.Caller) error {
	return api.WriteJSON(w, describe(s.site.Routes, s.version))
}

type object = map[string]any

func describe(routes []access.Route, version string) object {
	if version == "" {
		version = "devel"
	}
	k := schemas{object{}}
	refuse := object{"description": "refused: " + api.ProblemType,
		"content": object{api.ProblemType: object{"schema": k.of(reflect.TypeFor[api.Problem]())}}}
	paths := object{}
	for i := range routes {
		t := &routes[i]
		about := docs[t.Method+" "+t.Path]
		item, ok := paths[t.Path].(object)
		if !ok {
			item = object{}
			paths[t.Path] = item
		}
		answer := object{"description": about.summary}
		if about.out != nil {
			answer["content"] = object{"application/json": object{"schema": k.of(reflect.TypeOf(about.out))}}
		}
		need := string(t.Need)
		if need == "" {
			need = "anybody"
		}
		op := object{"summary": about.summary, "x-role": need, "x-listeners": t.On.Names(),
			"responses": object{"200": answer, "default": refuse}}
		if p := parameters(t, about.params); len(p) > 0 {
			op["parameters"] = p
		}
		if about.in != nil {
			op["requestBody"] = object{"required": true,
				"content": object{"application/json": object{"schema": k.of(reflect.TypeOf(about.in))}}}
		}
		item[strings.ToLower(t.Method)] = op
	}
	return object{
		"openapi": "3.1.0",
		"info": object{"title": "fairway", "version": version,
			"license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"}},
		"paths": paths,
		"components": object{"schemas": k.named, "securitySchemes": object{
			"bearer": object{"type": "http", "scheme": "bearer"},
			"cookie": object{"type": "apiKey", "in": "cookie", "name": access.CookieName},
			"secret": object{"type": "apiKey", "in": "header", "name": access.SecretHeader},
		}},
		"security": []object{{}, {"bearer": []string{}}, {"cookie": []string{}, "secret": []string{}}},
	}
}

func parameters(t *access.Route, query []param) (list []object) {
	for _, part := range strings.Split(t.Path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			list = append(list, object{"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true,
				"schema": object{"type": "string"}})
		}
	}
	for _, p := range query {
		list = append(list, object{"name": p.name, "in": "query", "description": p.about,
			"schema": object{"type": "string"}})
	}
	if t.Keyed() {
		list = append(list, object{"name": "Idempotency-Key", "in": "header", "required": true,
			"schema":      object{"type": "string", "minLength": 1, "maxLength": 200},
			"description": "the same key with the same body is answered alike; with another body it is refused"})
	}
	return list
}

// schemas collects JSON schemas of Go types by name.
type schemas struct{ named object }

// of returns the schema of a type as encoding/json writes it.
func (k schemas) of(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[time.Duration]():
		return object{"type": "integer", "description": "nanoseconds"}
	case reflect.TypeFor[topology.Role](), reflect.TypeFor[collector.Metric]():
		return object{"type": "string"}
	case reflect.TypeFor[json.RawMessage]():
		return object{}
	case reflect.TypeFor[api.Values]():
		return object{"type": "object", "additionalProperties": object{"type": "number"}}
	case reflect.TypeFor[rootcause.Known]():
		return object{"type": []string{"number", "null"}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		inner := k.of(t.Elem())
		return object{"anyOf": []object{inner, {"type": "null"}}}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Interface:
		return object{}
	case reflect.Slice:
		return object{"type": []string{"array", "null"}, "items": k.of(t.Elem())}
	case reflect.Array:
		return object{"type": "array", "items": k.of(t.Elem()), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Map:
		return object{"type": []string{"object", "null"}, "additionalProperties": k.of(t.Elem())}
	case reflect.Struct:
		return k.structure(t)
	}
	return object{"type": "integer"}
}

// structure names the schema after the type and its package, and refers to it.
func (k schemas) structure(t reflect.Type) object {
	pkg := t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:]
	name := pkg + "." + t.Name()
	ref := object{"$ref": "#/components/schemas/" + name}
	if _, done := k.named[name]; done {
		return ref
	}
	k.named[name] = object{} // a type may hold itself
	props, required := object{}, []string{}
	k.fields(t, props, &required)
	k.named[name] = object{"type": "object", "properties": props, "required": required, "additionalProperties": false}
	return ref
}

func (k schemas) fields(t reflect.Type, props object, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case f.Anonymous && name == "":
			inner := f.Type
			if needs := required; inner.Kind() == reflect.Pointer { // absent as a whole where it is nil
				inner, needs = inner.Elem(), &[]string{}
				k.fields(inner, props, needs)
				continue
			}
			k.fields(inner, props, required)
		default:
			if name == "" {
				name = f.Name
			}
			props[name] = k.of(f.Type)
			if !strings.Contains(opts, "omitempty") && !strings.Contains(opts, "omitzero") {
				*required = append(*required, name)
			}
		}
	}
}

// doc is what the OpenAPI document says of a route. in and out are values of the Go types of the
// bodies; a nil out is not JSON.
type doc struct {
	summary string
	params  []param
	in, out any
}

// param is one parameter of a route's query.
type param struct{ name, about string }

var (
	rangeParams = []param{
		{"from", "start, inclusive: RFC 3339, Unix milliseconds, or -15m before now"},
		{"to", "end, exclusive; now without it"},
	}
	atParam    = []param{{"at", "the second to show: RFC 3339, Unix milliseconds, -15m before now; live without it"}}
	pageParams = []param{{"limit", "at most so many, newest first"}}
)

// docs describes every route, by its method and path.
var docs = map[string]doc{
	"GET /healthz":               {summary: "the process answers"},
	"GET /readyz":                {summary: "the picture is being made", out: api.Readiness{}},
	"GET /metrics":               {summary: "own counters, Prometheus text format"},
	"GET /debug/pprof/{profile}": {summary: "Go profiles"},
	"GET /api/v1/openapi.json":   {summary: "this document"},
	"GET /api/v1/glossary":       {summary: "the words of the faces, and what they mean", out: []api.Term{}},
	"GET /api/v1/metrics": {summary: "the catalogue of metrics: names, units, labels and full scales",
		out: []api.Metric{}},
	"GET /api/v1/sites":   {summary: "several sites in one, of a view of sites", out: sites.View{}},
	"GET /api/v1/session": {summary: "who you are here", out: api.Session{}},
	"POST /api/v1/session": {summary: "sign in by password or one-time code", in: api.SignIn{},
		out: api.Session{}},
	"POST /api/v1/sign-in-link": {
		summary: "a one-time address that signs you in at the browser, with your name and role", out: api.SignInLink{}},
	"GET /api/v1/oidc/start": {summary: "sign in at the site's OpenID Connect provider: a redirect there"},
	"GET /api/v1/oidc/callback": {summary: "the way back from the provider; opens a session",
		params: []param{{"code", "the provider's"}, {"state", "ours"}}},
	"GET /api/v1/sessions": {summary: "open sessions: an admin's view of all, else your own",
		out: []api.OpenSession{}},
	"DELETE /api/v1/sessions/{id}": {summary: "end a session: your own, or anybody's as an admin",
		out: []api.OpenSession{}},
	"DELETE /api/v1/session": {summary: "sign out", out: api.Session{}},
	"GET /api/v1/live": {summary: "live feed (WebSocket)",
		params: []param{
			{"topics",
				"overview, plans, findings, exclusions, beat, forwarder:ID, grid:bw|mdops|latency|err; separated by " +
					"commas"}, {"background", "1: a frame every 5 s"}}},
	"GET /api/v1/ingest": {summary: "frames in, orders out (WebSocket, collector/wire)"},
	"POST /api/v1/revocations": {summary: "refuse the tokens that nodes were given until now", in: api.Revocation{},
		out: api.Revocation{}},
	"POST /api/v1/enroll": {summary: "a node's own token, by a join token", in: api.Enrolment{}, out: api.Enrolled{}},
	"POST /api/v2/write": {summary: "Influx line protocol in, from others' collectors",
		params: []param{{"precision", "ns, us, ms or s of the times; ns without it"}, {"org", "not looked at"},
			{"bucket", "not looked at"}}},
	"GET /api/v1/machine": {summary: "layers, nodes, default and observed mapping",
		out: api.MachineView{}},
	"GET /api/v1/checks": {
		summary: "is the installation well: agents, clocks, sources, mapping, driver", out: []api.Check{}},
	"GET /api/v1/overview": {summary: "the newest second of every forwarder, or a past one",
		out: api.Overview{}, params: atParam},
	"GET /api/v1/trend": {
		summary: "the last 15 minutes of the layer, and the last 5 of how long each forwarder's clients waited",
		out:     api.Trend{}},
	"GET /api/v1/marks": {
		summary: "when findings, plans and exclusions changed, jobs began and ended and connections broke, oldest " +
			"first; the last hour without a range", out: []remap.Mark{}, params: append(pageParams, rangeParams...)},
	"GET /api/v1/grid": {
		summary: "the cells of all compute nodes in one past second, binary as in the live feed",
		params:  append([]param{{"metric", "bw, mdops, latency or err"}}, atParam...)},
	"GET /api/v1/nodes": {summary: "newest second of nodes", out: []api.NodeRow{},
		params: []param{{"role", "compute, forwarder, storage or metadata"},
			{"health", "ok, idle, suspect, excluded, dedicated or stale"},
			{"names", "1: only the names, in the order of the grid's cells"}}},
	"GET /api/v1/nodes/{id}": {summary: "one node with its sources, and who uses it; a storage target, too",
		out: api.NodeView{}},
	"GET /api/v1/forwarders/{id}": {summary: "one forwarder, its clients and last five minutes, or as it was",
		out: api.ForwarderDetail{}, params: atParam},
	"POST /api/v1/forwarders/{id}/canary": {
		summary: "send one canary (a small write, read and stat) through a forwarder, at most one in 10 s, and say " +
			"what it found", in: api.Decision{}, out: anomaly.Canary{}},
	"GET /api/v1/flow": {
		summary: "which way jobs' bytes take now: job to forwarder to storage, the most bytes first", out: FlowView{},
		params: append([]param{{"job", "only that job, and its neighbours on its forwarders"},
			{"target", "instead, who uses that storage target; may be given several times"}}, pageParams...)},
	"GET /api/v1/interference": {summary: "how much jobs that move bytes now stand in each other's way",
		out: live.Interference{}},
	"GET /api/v1/series": {summary: "one metric of nodes over time; a null value is a gap",
		out: api.SeriesAnswer{}, params: append([]param{{"node", "names, separated by commas"}, {"metric", "its name"},
			{"step", "such as 10s; 1s without it"}, {"agg", "mean, sum, min, max or count"}}, rangeParams...)},
	"GET /api/v1/occupancy": {summary: "how often forwarders were near their peak",
		out: api.OccupancyView{}, params: append([]param{{"bucket", "such as 1h; 1h without it"},
			{"threshold", "0..1 of peak; 0.8 without it"}, {"nodes", "0: only what is over all forwarders"}},
			rangeParams...)},
	"GET /prometheus/api/v1/{call...}":  {summary: "Prometheus's HTTP API over the store, for Grafana"},
	"POST /prometheus/api/v1/{call...}": {summary: "the same, with the parameters as a form"},
	"GET /api/v1/findings": {summary: "what detectors say: open findings and those closed within an hour",
		out: []anomaly.Finding{}, params: []param{{"state", "open: only those"}}},
	"GET /api/v1/findings/{id}": {summary: "one finding with its life and frozen evidence",
		out: api.FindingView{}},
	"POST /api/v1/findings/{id}/ack": {summary: "say that somebody looks after it", in: api.Decision{},
		out: anomaly.Finding{}},
	"POST /api/v1/findings/{id}/silence": {
		summary: "keep it from calling anybody for a while; it is followed and shown as before", in: api.Silence{},
		out: anomaly.Finding{}},
	"POST /api/v1/findings/{id}/notes": {summary: "write a note about a finding, also one that is over, or about a " +
		"moment of it", in: api.Note{}, out: anomaly.Finding{}},
	"GET /api/v1/undo": {summary: "what you did last, and what would take it back or why nothing can",
		out: api.LastAct{}},
	"POST /api/v1/undo": {summary: "take back what you did last, if it is still that", in: api.Undo{},
		out: api.LastAct{}},
	"POST /api/v1/findings/{id}/dismiss": {summary: "say that it is not a fault, and why", in: api.Decision{},
		out: anomaly.Finding{}},
	"GET /api/v1/exclusions": {summary: "forwarders excluded from allocation, on a lease", out: remap.Feed{},
		params: []param{{"generation", "wait until the list is another one than this, at most half a lease"}}},
	"PUT /api/v1/exclusions/{node}": {summary: "exclude a forwarder, or renew its lease; nobody is moved",
		in: api.Exclude{}, out: remap.Exclusion{}},
	"DELETE /api/v1/exclusions/{node}": {summary: "take a forwarder back into allocation", out: remap.Feed{},
		params: []param{{"reason", "why; kept in the audit"}}},
	"GET /api/v1/jobs": {summary: "jobs: those that run, or those that have ended, newest first",
		out: []api.JobRow{}, params: append([]param{{"state", "running (without it) or ended"}}, pageParams...)},
	"GET /api/v1/jobs/{id}": {summary: "one job, the forwarders of its nodes and its plans",
		out: api.JobView{}},
	"GET /api/v1/jobs/{id}/runs": {
		summary: "a job beside the ended runs like it: of the same user, application, project and number of nodes",
		out:     api.JobRuns{}, params: []param{{"limit",
			"compare with the newest so many, at most 500; 50 without it"}}},
	"GET /api/v1/jobs/{id}/series": {summary: "what a job's nodes did together, by time (at most 4,096 of them)",
		out: api.JobSeries{}, params: append([]param{{"step", "such as 10s; 1s without it"}}, rangeParams...)},
	"GET /api/v1/jobs/{id}/profile": {summary: "what a job did to the file system", out: api.ProfileView{}},
	"POST /api/v1/dispatch": {summary: "a job is about to start: decide, and propose its plan",
		in: dispatch.Request{}, out: dispatch.Answer{}},
	"POST /api/v1/jobs/{id}/end": {summary: "a job has ended: take its mapping back and build its profile",
		out: dispatch.Ended{}},
	"GET /api/v1/jobs/{id}/rootcause": {summary: "why a job's I/O took as long as it did, from its logs",
		out: api.JobCause{}},
	"GET /api/v1/jobs/{id}/domains": {
		summary: "how a file that several processes of a job wrote could be divided among them, what it costs in " +
			"locks, and the hints to set", out: api.DomainsView{},
		params: []param{{"file", "which of its shared files, from 0 on, the most bytes first"},
			{"servers", "over how many it is striped; as the records say without it"}, {"stripe_size", "bytes"},
			{"aggregators", "processes that write for all"}}},
	"GET /api/v1/archive": {summary: "the named analyses of the I/O-log archive", out: []iolog.Analysis{}},
	"GET /api/v1/archive/sql": {summary: "one SELECT over the I/O-log archive", out: iolog.Result{},
		params: []param{{"q", "the SQL"}, {"limit", "at most so many rows"}}},
	"GET /api/v1/archive/{name}": {summary: "a named analysis; further parameters are its own",
		out: iolog.Result{}},
	"GET /api/v1/shares": {
		summary: "what a sharing policy would give the running jobs, and what queues share now",
		out:     api.SharesView{}, params: []param{{"policy", "such as size-fair (without it) or group-user-size-fair"},
			{"forwarder", "only jobs with a node on it"}}},
	"GET /api/v1/windows": {
		summary: "the pattern of the periodic jobs that run, in force or as it would be",
		out:     dispatch.RunningPattern{}},
	"GET /api/v1/slowdowns": {
		summary: "how much longer applications took beside each other than alone, in the newest runs",
		out:     []history.Slowdown{}},
	"GET /api/v1/periodic": {summary: "stagger periodic applications: what if", out: api.PatternView{},
		params: []param{{"set", "processors, bandwidths and applications as JSON, as fairway periodic reads them"}}},
	"GET /api/v1/plans": {summary: "plans, newest first", out: []api.PlanRow{}, params: pageParams},
	"POST /api/v1/plans": {summary: "propose a remap; nothing moves", in: api.ManualRemap{},
		out: api.PlanView{}},
	"GET /api/v1/plans/{id}":         {summary: "one plan with its checks and progress", out: api.PlanView{}},
	"GET /api/v1/plans/{id}/preview": {summary: "what approving it would do now", out: api.PlanView{}},
	"POST /api/v1/plans/{id}/approve": {summary: "say yes to what was previewed", in: api.Decision{},
		out: api.PlanView{}},
	"POST /api/v1/plans/{id}/reject":   {summary: "say no; nothing moves", in: api.Decision{}, out: api.PlanView{}},
	"POST /api/v1/plans/{id}/rollback": {summary: "take back what was moved", in: api.Decision{}, out: api.PlanView{}},
	"POST /api/v1/plans/{id}/stop":     {summary: "stop applying", in: api.Decision{}, out: api.PlanView{}},
	"POST /api/v1/plans/{id}/complete": {summary: "go on with a partial plan", in: api.Decision{}, out: api.PlanView{}},
	"GET /api/v1/alerts":               {summary: "who is called, and how delivery goes", out: api.Alerts{}},
	"POST /api/v1/alerts/test": {summary: "send a test alert to every receiver; answers how delivery went before",
		out: api.Alerts{}},
	"GET /api/v1/report": {
		summary: "who used the forwarders, what was slow, what was moved; the last seven days without a range",
		out:     report.Report{}, params: append([]param{{"format", "html or markdown; JSON without it"}},
			rangeParams...)},
	"GET /api/v1/rules": {summary: "the site's rules about running jobs behind ill forwarders, and what they decided",
		out: evacuate.View{}},
	"GET /api/v1/rules/test": {summary: "what those rules would have done; the last seven days without a range",
		out: evacuate.Tested{}, params: rangeParams},
	"GET /api/v1/standing": {summary: "standing approvals in force, oldest first", out: []remap.Standing{}},
	"POST /api/v1/standing": {summary: "approve beforehand what policies propose for an application",
		in: api.Allow{}, out: remap.Standing{}},
	"DELETE /api/v1/standing/{id}": {summary: "revoke a standing approval; plans approved by it stay",
		out: []remap.Standing{}, params: []param{{"reason", "why; kept in the audit"}}},
	"GET /api/v1/audit": {summary: "who did what, newest first", out: []api.AuditEntry{},
		params: append([]param{{"actor", "a person's or policy's name"},
			{"subject", "a plan, a finding or an excluded forwarder"}}, append(pageParams, rangeParams...)...)},
}
