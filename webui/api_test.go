package webui_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/simsite"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/desk"
	"fairway/remap/dispatch"
	"fairway/webui/access"
	"fairway/webui/api"
)

func TestRemapFromProposalToVerified(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	s.Run(0)
	eventually(t, "an overview with every forwarder reporting", func() bool {
		o := get[api.Overview](s, "/api/v1/overview")
		return len(o.Forwarders) == 8 && o.Forwarders[7].Value(collector.ReadBytes) != nil &&
			o.Forwarders[0].Clients == 4
	})
	ask := api.ManualRemap{Nodes: s.Machine.Topo.Default.Clients("fwd001"), To: "fwd002",
		Reason: "fwd001 is slow today"}
	res, b := post(s, "/api/v1/plans", simsite.OperatorSecret, ask)
	if res.StatusCode != 200 {
		t.Fatalf("propose: %d %s", res.StatusCode, b)
	}
	var p api.PlanView
	if err := json.Unmarshal(b, &p); err != nil {
		t.Fatal(err)
	}
	if p.State != remap.Proposed || len(p.Moves) != 4 || p.MayApprove != "you proposed it" || p.PreviewHash == "" {
		t.Fatalf("proposal: %s", b)
	}
	eventually(t, "the forwarders are marked by the waiting plan", func() bool {
		o := get[api.Overview](s, "/api/v1/overview")
		return len(o.Waiting) == 1 && o.Forwarders[1].Plan == p.ID && o.Forwarders[2].Plan == p.ID &&
			o.Forwarders[3].Plan == ""
	})
	yes := api.Decision{PreviewHash: p.PreviewHash, Reason: "agreed with olga"}
	for _, c := range []struct {
		name, secret, path string
		body               api.Decision
		status             int
		code               string
	}{
		{"by the proposer", simsite.OperatorSecret, "/approve", yes, 403, "not_allowed"},
		{"of another preview", simsite.AdminSecret, "/approve",
			api.Decision{PreviewHash: "0000", Reason: "agreed with olga"}, 412, "changed"},
		{"without a reason", simsite.AdminSecret, "/approve", api.Decision{PreviewHash: p.PreviewHash}, 400, "invalid"},
		{"of a viewer", simsite.ViewerSecret, "/approve", yes, 403, "not_allowed"},
	} {
		res, b := post(s, "/api/v1/plans/"+p.ID+c.path, c.secret, c.body)
		var d api.Problem
		if err := json.Unmarshal(b, &d); err != nil || res.StatusCode != c.status || d.Code != c.code ||
			d.Detail == "" {
			t.Errorf("approval %s: %d %s, want %d %s", c.name, res.StatusCode, b, c.status, c.code)
		}
	}
	if res, b := post(s, "/api/v1/plans/"+p.ID+"/approve", simsite.AdminSecret, yes); res.StatusCode != 200 {
		t.Fatalf("approve: %d %s", res.StatusCode, b)
	}
	eventually(t, "the collector saw the moves", func() bool {
		return get[api.PlanView](s, "/api/v1/plans/"+p.ID).State == remap.Verified
	})
	eventually(t, "the moved nodes show on their new forwarder", func() bool {
		d := get[api.ForwarderDetail](s, "/api/v1/forwarders/fwd002")
		return len(d.ClientNodes) == 8 && d.ClientNodes[0].ID == "c00004"
	})
	audit := get[[]api.AuditEntry](s, "/api/v1/audit?subject="+p.ID)
	if len(audit) < 4 || audit[len(audit)-1].Action != "propose" || audit[len(audit)-1].Actor != "olga" {
		t.Errorf("audit: %+v", audit)
	}
}

// A driver's preview asks every node: an approval takes one, though the plan still waits for a second person and the
// answer has everything that the first one saw.
func TestAnApprovalPreviewsOnce(t *testing.T) {
	s := simsite.New(t, simsite.Options{Desk: func(set *desk.Settings) { set.TwoPersons, set.BigPlan = true, 1 }})
	s.Run(0)
	eventually(t, "every forwarder reports", func() bool {
		return len(get[api.Overview](s, "/api/v1/overview").Forwarders) == 8
	})
	res, b := post(s, "/api/v1/plans", simsite.OperatorSecret, api.ManualRemap{
		Nodes: s.Machine.Topo.Default.Clients("fwd001"), To: "fwd002", Reason: "fwd001 is slow today"})
	p := decode[api.PlanView](t, b)
	if res.StatusCode != 200 || p.Needs != 2 {
		t.Fatalf("proposal: %d %s", res.StatusCode, b)
	}
	before := s.Machine.Previews.Load()
	res, b = post(s, "/api/v1/plans/"+p.ID+"/approve", simsite.AdminSecret,
		api.Decision{PreviewHash: p.PreviewHash, Reason: "agreed with olga"})
	got := decode[api.PlanView](t, b)
	if res.StatusCode != 200 || got.State != remap.Proposed || len(got.Approvals) != 1 ||
		got.PreviewHash != p.PreviewHash || len(got.Lines) != len(p.Lines) ||
		got.MayApprove != "you approved it already; somebody else must too" || got.Options.Permits(remap.ActApprove) {
		t.Errorf("approve: %d %s", res.StatusCode, b)
	}
	if n := s.Machine.Previews.Load() - before; n != 1 {
		t.Errorf("the driver was asked for %d previews", n)
	}
}

func TestIdempotencyKey(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	s.Run(0)
	eventually(t, "routes are known", func() bool { return len(s.Board.Routes(time.Now())) == 32 })
	one := api.ManualRemap{Nodes: s.Machine.Topo.Default.Clients("fwd001"), To: "fwd002",
		Reason: "fwd001 is slow today"}
	other := one
	other.To = "fwd003"
	if res, b := s.Ask("POST", "/api/v1/plans", simsite.OperatorSecret, one); res.StatusCode != 400 ||
		!strings.Contains(string(b), "Idempotency-Key") {
		t.Errorf("without a key: %d %s", res.StatusCode, b)
	}
	var first, again api.PlanView
	_, b := s.Ask("POST", "/api/v1/plans", simsite.OperatorSecret, one, "Idempotency-Key", "a")
	json.Unmarshal(b, &first)
	_, b = s.Ask("POST", "/api/v1/plans", simsite.OperatorSecret, one, "Idempotency-Key", "a")
	json.Unmarshal(b, &again)
	if first.ID == "" || first.ID != again.ID {
		t.Errorf("the same request twice made %q and %q", first.ID, again.ID)
	}
	if res, b := s.Ask("POST", "/api/v1/plans", simsite.OperatorSecret, other, "Idempotency-Key",
		"a"); res.StatusCode != 409 {
		t.Errorf("another body under the same key: %d %s", res.StatusCode, b)
	}
}

func TestBadRequestsAreProblems(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	for _, c := range []struct {
		path   string
		status int
		says   string
	}{
		{"/api/v1/nodes/nosuch", 404, "nosuch"},
		{"/api/v1/forwarders/c00001", 404, "no such forwarding node"},
		{"/api/v1/plans/P-9", 404, "P-9"},
		{"/api/v1/nodes?role=router", 400, "router"},
		{"/api/v1/series?metric=speed&node=fwd000", 400, "speed"},
		{"/api/v1/series?metric=read_bytes", 400, "node"},
		{"/api/v1/series?metric=read_bytes&node=a&from=yesterday", 400, "yesterday"},
		{"/api/v1/series?metric=read_bytes&node=a&from=now&to=-1h", 400, "not before"},
		{"/api/v1/series?metric=read_bytes&node=a&step=1ms", 400, "step"},
		{"/api/v1/series?metric=read_bytes&node=a&from=0", 400, "points"},
		{"/api/v1/occupancy?threshold=7", 400, "threshold"},
		{"/api/v1/audit?limit=-1", 400, "limit"},
		{"/api/v1/live?topics=weather", 400, "weather"},
		{"/api/v1/nothing", 404, "nothing"},
	} {
		res, b := s.Ask("GET", c.path, simsite.ViewerSecret, nil)
		var d api.Problem
		err := json.Unmarshal(b, &d)
		if err != nil || res.StatusCode != c.status || d.Status != c.status || !strings.Contains(d.Detail, c.says) ||
			res.Header.Get("Content-Type") != api.ProblemType {
			t.Errorf("GET %s: %d %s", c.path, res.StatusCode, b)
		}
	}
	if res, b := s.Ask("PUT", "/api/v1/plans", simsite.OperatorSecret, nil); res.StatusCode != 405 {
		t.Errorf("PUT: %d %s", res.StatusCode, b)
	}
	if res, b := post(s, "/api/v1/plans", simsite.OperatorSecret,
		map[string]any{"nodes": []string{}, "speed": 1}); res.StatusCode != 400 ||
		!strings.Contains(string(b), "speed") {
		t.Errorf("unknown field: %d %s", res.StatusCode, b)
	}
}

func TestGapsAreExplicit(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	base := time.Now().Add(-time.Minute).Truncate(time.Second)
	for _, i := range []int{0, 1, 5, 6} {
		if err := s.Store.Append(t.Context(), s.Machine.Frames(base.Add(time.Duration(i)*time.Second))); err != nil {
			t.Fatal(err)
		}
	}
	a := get[api.SeriesAnswer](s, fmt.Sprintf("/api/v1/series?node=fwd001&metric=threads&from=%d", base.UnixMilli()))
	var shape []string
	for _, p := range a.Series[0].Points {
		v := "-"
		if p.Value != nil {
			v = fmt.Sprint(*p.Value)
		}
		shape = append(shape, fmt.Sprint((p.TimeMillis-base.UnixMilli())/1000, "=", v))
	}
	if got := strings.Join(shape, " "); got != "0=16 1=16 2=- 5=16 6=16" {
		t.Errorf("points %s", got)
	}
	if _, b := s.Ask("GET", fmt.Sprintf("/api/v1/series?format=csv&node=fwd001&metric=threads&from=%d",
		base.UnixMilli()), "", nil); !strings.Contains(string(b), ",fwd001,16\n") {
		t.Errorf("csv: %s", b)
	}
}

// TestOpenAPIDescribesTheHandlers asks every GET and compares what comes with what is promised.
func TestOpenAPIDescribesTheHandlers(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	s.Run(3)
	eventually(t, "routes are known", func() bool { return len(s.Board.Routes(time.Now())) == 32 })
	if _, b := post(s, "/api/v1/plans", simsite.OperatorSecret,
		api.ManualRemap{Nodes: s.Machine.Topo.Default.Clients("fwd001"), To: "fwd002",
			Reason: "fwd001 is slow today"}); !strings.Contains(string(b), "P-000001") {
		t.Fatalf("%s", b)
	}
	post(s, "/api/v1/dispatch", simsite.HookSecret, dispatch.Request{Job: "9", User: "wei", App: "ROMS",
		Nodes: s.Machine.Topo.Default.Clients("fwd003")})
	api := get[map[string]any](s, "/api/v1/openapi.json")
	if api["openapi"] != "3.1.0" {
		t.Fatalf("openapi %v", api["openapi"])
	}
	ids := strings.NewReplacer("/nodes/{id}", "/nodes/fwd001", "/forwarders/{id}", "/forwarders/fwd001", "/plans/{id}",
		"/plans/P-000001", "/jobs/{id}", "/jobs/9", "/archive/{name}", "/archive/top-apps")
	query := map[string]string{"/api/v1/series": "?node=fwd001&metric=read_bytes", "/api/v1/archive/sql": "?q=SELECT+1",
		"/api/v1/grid": "?metric=bw&at=-1s", "/api/v1/periodic": "?set=" + url.QueryEscape(twoWriters)}
	seen := 0
	for path, item := range api["paths"].(map[string]any) {
		op, ok := item.(map[string]any)["get"].(map[string]any)
		if !ok || strings.Contains(ids.Replace(path), "{") || op["x-role"] == "agent" || path == "/api/v1/live" ||
			path == access.OIDCStartPath || path == access.OIDCBackPath {
			continue
		}
		res, b := s.Ask("GET", ids.Replace(path)+query[path], simsite.OperatorSecret, nil)
		if res.StatusCode != 200 {
			t.Errorf("GET %s: %d %s", path, res.StatusCode, b)
			continue
		}
		content, ok := op["responses"].(map[string]any)["200"].(map[string]any)["content"].(map[string]any)
		if !ok {
			continue
		}
		var v any
		if err := json.Unmarshal(b, &v); err != nil {
			t.Errorf("GET %s: %v", path, err)
		}
		if why := conforms(api, content["application/json"].(map[string]any)["schema"].(map[string]any), v,
			"answer"); why != "" {
			t.Errorf("GET %s: %s\n%.300s", path, why, b)
		}
		seen++
	}
	if seen < 12 {
		t.Errorf("only %d answers were compared", seen)
	}
	if len(api["paths"].(map[string]any)) < 20 {
		t.Error("paths are missing")
	}
}

// conforms is the part of JSON Schema that the document uses; it returns where a value differs.
func conforms(api, schema map[string]any, v any, at string) string {
	if ref, ok := schema["$ref"].(string); ok {
		name := ref[strings.LastIndexByte(ref, '/')+1:]
		return conforms(api, api["components"].(map[string]any)["schemas"].(map[string]any)[name].(map[string]any), v,
			at+":"+name)
	}
	if choices, ok := schema["anyOf"].([]any); ok {
		for _, one := range choices {
			if conforms(api, one.(map[string]any), v, at) == "" {
				return ""
			}
		}
		return at + " is not among the choices"
	}
	kinds, _ := schema["type"].([]any)
	if one, ok := schema["type"].(string); ok {
		kinds = []any{one}
	}
	have := map[reflect.Kind]string{reflect.Map: "object", reflect.Slice: "array", reflect.String: "string",
		reflect.Bool: "boolean", reflect.Float64: "number"}[reflect.ValueOf(v).Kind()]
	if v == nil {
		have = "null"
	}
	fits := len(kinds) == 0
	for _, k := range kinds {
		fits = fits || k == have || k == "integer" && have == "number" && v.(float64) == float64(int64(v.(float64)))
	}
	if !fits {
		return fmt.Sprintf("%s is %s, promised %v", at, have, kinds)
	}
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			if why := conforms(api, schema["items"].(map[string]any), e, fmt.Sprint(at, "[", i, "]")); why != "" {
				return why
			}
		}
	case map[string]any:
		props, _ := schema["properties"].(map[string]any)
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, ok := v[name.(string)]; !ok {
				return fmt.Sprintf("%s has no %s", at, name)
			}
		}
		for name, e := range v {
			p, ok := props[name].(map[string]any)
			if more, isMap := schema["additionalProperties"].(map[string]any); !ok && isMap {
				p, ok = more, true
			}
			if !ok {
				return fmt.Sprintf("%s has an undescribed %s", at, name)
			}
			if why := conforms(api, p, e, at+"."+name); why != "" {
				return why
			}
		}
	}
	return ""
}

func TestHealthAndMetrics(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	s.Run(0)
	s.Ask("GET", "/api/v1/overview", "", nil)
	for path, want := range map[string]string{"/healthz": "ok", "/readyz": `"ready":true`,
		"/metrics": `fairway_http_request_seconds_bucket{le="+Inf"}`} {
		if res, b := s.Ask("GET", path, "", nil); res.StatusCode != http.StatusOK ||
			!strings.Contains(string(b), want) {
			t.Errorf("GET %s: %d %.300s", path, res.StatusCode, b)
		}
	}
}

// TestCatalogueOfMetrics: everybody can read it, and it has what a page needs of each metric.
func TestCatalogueOfMetrics(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	rows := get[[]api.Metric](s, "/api/v1/metrics")
	if len(rows) != len(collector.Catalogue()) || rows[0].Name != "read_bytes" || rows[0].ShownUnit != "MB/s" ||
		rows[0].Factor != 1e-6 || !slices.Equal(rows[0].Layers[topology.Forwarder],
		[]string{"series", "list", "scale", "evidence"}) {
		t.Errorf("%d rows, the first %+v", len(rows), rows[0])
	}
}
