package webui_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"fairway/cmd/fairway-demo/simsite"
	"fairway/collector/topology"
	"fairway/remap/dispatch"
	"fairway/remap/policy/periodic"
	"fairway/remap/queue/tables"
	"fairway/tsdb/history"
	"fairway/webui/api"
)

const twoWriters = "{\"procs\":200,\"b\":0.01,\"B\":1,\"kprime\":2,\"eps\":0.01,\"apps\":[{\"name\":\"a\",\"w\":10,\"vol\":10," +
	"\"beta\":100},{\"name\":\"b\",\"w\":10,\"vol\":10,\"beta\":100}]}"

// startTwo reports two jobs, of three nodes and of one.
func startTwo(t *testing.T, s *simsite.Site) {
	t.Helper()
	eventually(t, "routes are known", func() bool { return len(s.Board.Routes(time.Now())) == 32 })
	nodes := s.Machine.Topo.Default.Clients("fwd001")
	for i, j := range []dispatch.Request{{Job: "8", User: "wei", App: "ROMS", Nodes: nodes[:3]},
		{Job: "9", User: "ann", App: "WRF", Nodes: nodes[3:4]}} {
		if res, b := post(s, "/api/v1/dispatch", simsite.HookSecret, j); res.StatusCode != 200 {
			t.Fatalf("job %d: %d %s", i, res.StatusCode, b)
		}
	}
	eventually(t, "both jobs run", func() bool { return len(get[api.SharesView](s, "/api/v1/shares").Jobs) == 2 })
}

func TestSharesOfRunningJobs(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	s.Run(1)
	startTwo(t, s)
	if v := get[api.SharesView](s, "/api/v1/shares"); v.Policy != "size-fair" || v.Jobs[0].Job != "8" ||
		v.Jobs[0].Share != .75 || v.Jobs[1].Share != .25 {
		t.Errorf("three nodes and one: %+v", v)
	}
	if v := get[api.SharesView](s, "/api/v1/shares?policy=user-fair"); v.Policy != "user-job-fair" ||
		v.Jobs[0].Share != .5 {
		t.Errorf("a job each: %+v", v)
	}
	if v := get[api.SharesView](s, "/api/v1/shares?forwarder=nosuch"); len(v.Jobs) != 0 {
		t.Errorf("a forwarder without jobs: %+v", v)
	}
	for _, policy := range []string{"node-fair", "priority-fair"} {
		if res, b := s.Ask("GET", "/api/v1/shares?policy="+policy, simsite.OperatorSecret, nil); res.StatusCode != 400 {
			t.Errorf("%s: %d %s", policy, res.StatusCode, b)
		}
	}
}

func TestPeriodicWhatIf(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	v := get[api.PatternView](s, "/api/v1/periodic?set="+url.QueryEscape(twoWriters))
	if v.T != 20 || v.SysEfficiency != .5 || len(v.Apps) != 2 || v.Set.TMin != 20 || v.Unplanned.Dilation < 1.4 {
		t.Errorf("two that take turns: %+v", v)
	}
	for set, says := range map[string]string{
		"": "missing", "{": "EOF", strings.Replace(twoWriters, "procs", "proc", 1): "unknown field",
		// short, but still little work
		strings.Replace(twoWriters, `"w":10,"vol":10`, `"w":0.01,"vol":0.01`, 1):              "",
		strings.Replace(twoWriters, `"kprime":2,"eps":0.01`, `"kprime":1000,"eps":0.0001`, 1): "raise eps",
	} {
		res, b := s.Ask("GET", "/api/v1/periodic?set="+url.QueryEscape(set), simsite.OperatorSecret, nil)
		if (res.StatusCode == 200) != (says == "") || !strings.Contains(string(b), says) {
			t.Errorf("%s: %d %s", set, res.StatusCode, b)
		}
	}
}

// periodicRuns puts two applications that write every 100 s into the history, and one that does when it likes.
func periodicRuns(t *testing.T, s *simsite.Site) {
	t.Helper()
	begun := time.Now().Add(-time.Hour)
	for i, app := range []string{"ocean", "ice", "loose"} {
		p := &history.Profile{PeakNodeBytesPerSec: 1e9, Coverage: 1, From: "test"}
		at := 0.0
		for k := range 12 {
			p.Phases = append(p.Phases, history.Phase{AtSeconds: at, Seconds: 20, WriteBytes: 40e9})
			at += 100
			if app == "loose" {
				at += float64(k*k%7) * 100
			}
		}
		if err := s.History.End(history.Run{Job: topology.JobID("p" + app), User: "wei", App: app, Nodes: 4,
			Start: begun, End: begun.Add(time.Duration(i+1) * time.Minute), Profile: p}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCyclesFromHistory(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	s.Run(1)
	if v := get[api.CyclesView](s, "/api/v1/cycles"); v.Set != nil ||
		!strings.Contains(v.Problem, "no run with a profile yet") {
		t.Errorf("an empty history: %+v", v)
	}
	periodicRuns(t, s)
	v := get[api.CyclesView](s, "/api/v1/cycles?B=2.5")
	if len(v.Cycles) != 3 || v.Cycles[0].App != "loose" || v.Cycles[0].Periodic ||
		!strings.Contains(v.Cycles[0].Why, "not periodic: half of its 11 periods") {
		t.Errorf("%+v", v.Cycles)
	}
	// 32 nodes of 0.2 GB/s each are configured; the system's bandwidth is what was asked for.
	if v.Set == nil || v.Set.Procs != 32 || v.Set.Link != 0.2 || v.Set.Bandwidth != 2.5 || len(v.Set.Apps) != 2 ||
		v.Set.Apps[0] != (periodic.App{Name: "ice", Work: 80, Volume: 40, Procs: 4}) {
		t.Fatalf("%+v", v.Set)
	}
	text, err := json.Marshal(v.Set)
	if err != nil {
		t.Fatal(err)
	}
	if p := get[api.PatternView](s, "/api/v1/periodic?set="+url.QueryEscape(string(text))); len(p.Apps) != 2 ||
		p.T < 100 {
		t.Errorf("%+v", p)
	}
	for _, bad := range []string{"B=0", "b=x", "B=NaN"} {
		if res, b := s.Ask("GET", "/api/v1/cycles?"+bad, simsite.OperatorSecret, nil); res.StatusCode != 400 {
			t.Errorf("%s: %d %s", bad, res.StatusCode, b)
		}
	}
}

func TestWhatIfInTheBrowser(t *testing.T) {
	b := newTab(t, 1280, 900)
	s := simsite.New(t, simsite.Options{})
	s.Run(1)
	startTwo(t, s)
	b.open("http://" + s.TCP + "/whatif")
	b.says("Shares under size-fair")
	b.until("two bars, three to one",
		`(() => { const w = [...document.querySelectorAll('.share')].map((r) => Number(r.getAttribute('width'))); return w.length === 2 && Math.abs(w[0] / w[1] - 3) < .01; })()`)
	b.until("the pattern is drawn",
		"document.querySelectorAll('.gantt .io').length > 20 && document.querySelectorAll('.gantt .cap').length === 1")
	// The line of the bandwidth in use never crosses the system's.
	b.until("the bandwidth stays below the line",
		`(() => { const cap = document.querySelector('.gantt .cap').y1.baseVal.value; return [...document.querySelector('.gantt .used').getAttribute('d').matchAll(/[ML]\S+ (\S+?)(?=L|$)/g)].every((m) => Number(m[1]) >= cap - .2); })()`)
	b.shot("whatif")
	periodicRuns(t, s)
	b.until("the history is asked",
		`(() => { const x = [...document.querySelectorAll('button')].find((x) => x.textContent === 'from history'); if (x) x.click(); return !!x; })()`)
	b.until("its applications are drawn, and why one is not",
		`document.querySelector('.gantt')?.textContent.includes('ocean') && document.body.textContent.includes('loose of wei on 4 nodes: not periodic')`)
	b.shot("whatif-history")
	b.key("m")
	b.says("Shares under job-fair")
}

// What queues share by now stands beside the what-if: sentences, and three columns.
func TestSharesInForceInTheBrowser(t *testing.T) {
	b := newTab(t, 1280, 900)
	v := tables.Gathering{
		Policy: "size-fair", LambdaSeconds: 1,
		Says: []string{"in force: size-fair", "the global shares cannot be reached: 8 is crowded"},
		Jobs: []tables.GatheredJob{{Job: "8", Share: .75, Reachable: .5, Got: .493}},
	}
	s := simsite.New(t, simsite.Options{Gathering: func() (tables.Gathering, bool) { return v, true }})
	s.Run(1)
	startTwo(t, s)
	if got := get[api.SharesView](s, "/api/v1/shares"); got.InForce == nil || got.InForce.Jobs[0].Got != .493 {
		t.Errorf("%+v", got.InForce)
	}
	b.open("http://" + s.TCP + "/whatif")
	b.says("in force: size-fair")
	b.until("the job with work has its parts, the other none",
		`(() => { const text = [...document.querySelectorAll('table.shares tbody tr')].map((r) => [...r.cells].map((c) => c.textContent).join(' ').trim()); return text[0].endsWith('75.0 75.0 50.0 49.3') && text[1].endsWith('25.0 - - -'); })()`)
	b.until("what is wrong is seen as wrong", `document.querySelector('p.error')?.textContent.includes('8 is crowded')`)
	b.shot("whatif-in-force")
}
