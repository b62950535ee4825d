package browsertest_test

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"fairway/cmd/lab/simsite"
	"fairway/collector"
	"fairway/collector/topology"
	"fairway/remap/desk"
	"fairway/remap/dispatch"
	"fairway/tsdb/history"
	"fairway/webui/api"
)

// watchSaving keeps what the page saves.
func (b *tab) watchSaving() {
	b.t.Helper()
	js[bool](b,
		"(() => { window.savedFile = null; const real = window.realURL ??= URL.createObjectURL; "+
			"HTMLAnchorElement.prototype.click = function () { window.savedAs = this.download; };\n"+
			"\t\tURL.createObjectURL = (blob) => { blob.arrayBuffer().then((a) => { window.savedFile = { kind: "+
			"blob.type, body: [...new Uint8Array(a)] }; }); return real.call(URL, blob); }; return true; })()")
}

func (b *tab) saved(key string) (name, kind string, body []byte) {
	b.t.Helper()
	b.until("something is saved by "+key, "window.savedFile")
	for _, n := range js[[]int](b, "window.savedFile.body") {
		body = append(body, byte(n))
	}
	return js[string](b, "window.savedAs"), js[string](b, "window.savedFile.kind"), body
}

// exported presses a key and returns what the page saves.
func (b *tab) exported(key string) (name, kind string, body []byte) {
	b.t.Helper()
	b.watchSaving()
	b.key(key)
	return b.saved(key)
}

// png checks that a picture is saved and has some colours in it.
func (b *tab) png(name string) {
	b.t.Helper()
	got, kind, body := b.exported("P")
	if got != name || kind != "image/png" || len(body) < 400 || string(body[1:4]) != "PNG" {
		b.t.Errorf("saved %q, %s, %d bytes; want %s", got, kind, len(body), name)
	}
	b.until("the picture is not blank",
		fmt.Sprintf(
			"(() => { if (window.pngState?.of !== %q) { const st = window.pngState = { of: %q }, i = new "+
				"Image(); i.onload = () => { const c = document.createElement('canvas'); c.width = i.width; "+
				"c.height = i.height; const g = c.getContext('2d'); g.drawImage(i, 0, 0);\n"+
				"\t\tconst d = g.getImageData(0, 0, c.width, c.height).data, seen = new Set(); for (let k = 0; "+
				"k < d.length; k += 4) seen.add(d[k] << 16 | d[k + 1] << 8 | d[k + 2]); st.colours = seen.size;"+
				" };\n"+
				"\t\ti.src = URL.createObjectURL(new Blob([new Uint8Array(window.savedFile.body)], { type: "+
				"'image/png' })); } return window.pngState.colours > 1; })()", name, name))
}

// table checks that the saved CSV begins with the rows of the page's table with a caption, cell by cell.
func (b *tab) table(name, caption string) [][]string {
	b.t.Helper()
	b.until("rows of "+caption, fmt.Sprintf("[...document.querySelectorAll('main table')].find((t) => "+
		"t.caption?.textContent === %q)?.tBodies[0].rows.length", caption))
	// The page lives on: what is saved and what is on screen are of one instant only in one go. The clock goes on
	// between the drawing and the key all the same.
	b.watchSaving()
	onScreen := js[[][]string](b,
		fmt.Sprintf(
			"(() => { const t = [...document.querySelectorAll('main table')].find((t) => "+
				"t.caption?.textContent === %q), rows = [...t.tBodies[0].rows].map((r) => [...r.cells].map((c) "+
				"=> c.textContent));\n"+
				"\t\tconst real = Date.now; Date.now = () => real() + 1700;\n"+
				"\t\tdocument.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'E', bubbles: true "+
				"})); Date.now = real; return rows; })()", caption))
	got, kind, body := b.saved("E")
	rows, err := csv.NewReader(strings.NewReader(string(body))).ReadAll()
	if err != nil || got != name || kind != "text/csv" || len(onScreen) == 0 || len(rows) < 1+len(onScreen) {
		b.t.Fatalf("saved %q, %s, %d rows, %v; want %s with %d rows:\n%s", got, kind, len(rows), err, name,
			len(onScreen), body)
	}
	for i, want := range onScreen {
		for k := range want {
			if want[k] == "-" {
				want[k] = ""
			}
		}
		if !slices.Equal(rows[i+1], want) {
			b.t.Errorf("%s row %d is %q, on screen %q", name, i+1, rows[i+1], want)
		}
	}
	return rows
}

// jobSite has six jobs that write, one of them known from the batch system and decided.
func jobSite(t *testing.T) *simsite.Site {
	s := simsite.New(t, simsite.Options{Forwarders: 8, Compute: 256,
		Desk: func(set *desk.Settings) { set.HealthyFloor = 1 }})
	s.Run(20)
	eventually(t, "routes are known", func() bool { return len(s.Board.Routes(time.Now())) == 256 })
	var nodes []topology.NodeID
	for i := 40; i < 80; i++ {
		nodes = append(nodes, topology.NodeID(fmt.Sprintf("c%05d", i)))
	}
	queue := 1.0
	end := time.Now().Add(-time.Hour)
	err := s.History.End(history.Run{Job: "7", User: "wei", App: "ROMS", Nodes: 40, Start: end.Add(-time.Hour),
		End: end,
		Profile: &history.Profile{WriteBytes: 1e12, IONodes: 40, MetaQueue: &queue, Coverage: 1, IOSeconds: 600,
			Peaks: history.Peaks{PeakBytesPerSec: 3e9}, From: "test",
			Phases: []history.Phase{{AtSeconds: 300, Seconds: 300, WriteBytes: 6e11},
				{AtSeconds: 2000, Seconds: 300, WriteBytes: 4e11, ReadBytes: 1e10}}}})
	if err != nil {
		t.Fatal(err)
	}
	if res, b := post(s, "/api/v1/dispatch", simsite.HookSecret,
		dispatch.Request{Job: "88201", User: "wei", App: "ROMS",
			Nodes: nodes}); res.StatusCode != 200 {
		t.Fatalf("%d %s", res.StatusCode, b)
	}
	eventually(t, "the job is seen", func() bool {
		return len(get[api.JobView](s,
			"/api/v1/jobs/88201").Forwarders) > 0
	})
	return s
}

func TestJobsFlowAndExportInTheBrowser(t *testing.T) {
	b := newTab(t, 1280, 900)
	s := jobSite(t)
	b.open("http://" + s.TCP + "/jobs/88201")
	b.says("job 88201  ROMS  user wei  40 nodes")
	b.says("by policy dfra")
	b.until("it begins with the answer", "document.querySelector('h1').textContent.startsWith('Job 88201 ')")
	b.key("Y")
	b.until("the answer is copied", "document.querySelector('#note').textContent.includes('Job 88201 ')")
	for _, rule := range get[api.JobView](s, "/api/v1/jobs/88201").Decision.Decision.Reasons {
		b.says(rule.Text)
	}
	b.says("The flow stops at the forwarder")
	b.until("the flow is drawn", "document.querySelectorAll('.sankey .band').length >= 2")
	b.says("88202") // its neighbour on fwd002
	b.says("This run beside 1 like it")
	b.says("median 10m")
	b.until("the boxes are drawn", "document.querySelectorAll('svg.spread').length === 2")
	b.shot("job")
	b.png("job-88201.png")
	b.open("http://" + s.TCP + "/jobs/7")
	b.says("wrote 1 TB")
	b.until("phases are drawn", "document.querySelectorAll('.strip .piece').length >= 2")
	b.shot("job-ended")
	b.open("http://" + s.TCP + "/overview?view=flow")
	b.until("the flow is drawn", "document.querySelectorAll('.sankey .band').length >= 6")
	b.shot("flow")
	b.table("flow.csv", "what jobs move over forwarders")
	b.png("flow.png")
	b.key("f")
	b.until("the matrix is drawn", "document.querySelectorAll('.matrix rect').length >= 6")
	b.shot("matrix")
	b.table("interference.csv", "pairs of jobs on the same forwarders")
	b.png("interference.png")
	// The other pages with tables and pictures.
	b.open("http://" + s.TCP + "/overview?view=table&sort=-node")
	b.table("forwarders.csv", "forwarders")
	b.key("g")
	b.until("the grid is drawn", "document.querySelector('.gridbox canvas')?.dataset.redrawMs")
	b.png("forwarders.png")
	b.open("http://" + s.TCP + "/overview?view=compute")
	b.until("the grid is drawn", "document.querySelector('canvas[data-cells=\"256\"]')")
	b.png("compute.png")
	if _, _, body := b.exported("E"); strings.Count(string(body), "\n") != 257 ||
		!strings.Contains(string(body), "c00255,") {
		t.Errorf("the compute nodes are saved as %.200s", body)
	}
	b.open("http://" + s.TCP + "/forwarders/fwd001")
	b.until("series are drawn", "document.querySelectorAll('.chart canvas').length >= 4")
	b.png("fwd001.png")
	if _, _, body := b.exported("E"); !strings.HasPrefix(string(body), "time,") ||
		strings.Count(string(body), "\n") < 15 {
		t.Errorf("the series are saved as %.200s", body)
	}
	b.open("http://" + s.TCP + "/occupancy")
	b.until("the calendar is drawn", "document.querySelector('canvas')")
	b.png("occupancy.png")
	if _, _, body := b.exported("E"); !strings.Contains(string(body), "fwd007 %") {
		t.Errorf("the calendar is saved as %.200s", body)
	}
	b.open("http://" + s.TCP + "/report")
	b.until("the report is there",
		"document.querySelector('#page div div')?.shadowRoot?.querySelectorAll('h2').length > 3")
	if _, _, body := b.exported("E"); !strings.Contains(string(body), "<!doctype html>") {
		t.Errorf("the report is saved as %.200s", body)
	}
	if margin := js[string](b, "getComputedStyle(document.body).maxWidth"); margin == "1080px" {
		t.Error("the report's styles are the console's, too")
	}
	b.open("http://" + s.TCP + "/whatif")
	b.until("the pattern is drawn", "document.querySelector('.gantt')")
	b.png("pattern.png")
	if _, _, body := b.exported("E"); !strings.Contains(string(body), "88201,wei,") {
		t.Errorf("shares are saved as %.200s", body)
	}
	b.open("http://" + s.TCP + "/jobs")
	b.says("88201")
	b.table("jobs.csv", "jobs that run, and those that ended last")
}

// Before an approval a person sees where the nodes are and where they would be.
func TestPlanMapInTheBrowser(t *testing.T) {
	b := newTab(t, 1280, 900)
	s := jobSite(t)
	if res, body := post(s, "/api/v1/plans", simsite.OperatorSecret,
		api.ManualRemap{Nodes: s.Machine.Topo.Default.Clients("fwd001")[:20], To: "fwd006",
			Reason: "fwd001 is slow today"}); res.StatusCode != 200 {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	plans := get[[]api.PlanRow](s, "/api/v1/plans")
	b.open("http://" + s.TCP + "/plans/" + plans[0].ID)
	b.says("Map, before and after")
	b.until("the map has both sides",
		"(() => { const t = document.querySelector('.sankey')?.textContent ?? ''; return "+
			"t.includes('fwd001  -20 of 32 clients') && t.includes('fwd006  +20 = 52 clients'); })()")
	b.shot("plan-map")
	b.png(plans[0].ID + ".png")
	if _, _, body := b.exported("E"); strings.Count(string(body), ",fwd001,fwd006,") != 20 {
		t.Errorf("the moves are saved as %.200s", body)
	}
}

// A forwarder's series over an hour have their least and most, the finding is marked, and peers that
// are all idle are called so; also in a browser that names a locale which Intl refuses, as under LANG=C.
func TestSeriesInTheBrowser(t *testing.T) {
	b := newTab(t, 1280, 900)
	s := simsite.New(t, simsite.Options{})
	s.Run(150)
	eventually(t, "clients are shown", func() bool {
		return get[api.Overview](s,
			"/api/v1/overview").Forwarders[1].Clients == 4
	})
	s.AccuseInThePast()
	_, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: "Object.defineProperty(Navigator.prototype, 'language', { get: () => 'en-US@posix' })"})
	if err != nil {
		t.Fatal(err)
	}
	b.open("http://" + s.TCP + "/forwarders/fwd001?span=1h")
	b.until("series are drawn", "document.querySelectorAll('.chart canvas').length >= 4")
	b.says("a point is the mean of 15 s")
	b.says("F-0001 suspect")
	b.shot("series-1h")
	b.until("one outlier does not flatten a chart", "(import('/static/range.js').then((m) => { window.tops = "+
		"[Array(60).fill(2).with(7, 900), [1, 2, 4]].map((v) => m.cutRange({ data: [[], v] }, 0, Math.max(...v))[1]); "+
		"}), window.tops?.[0] < 3 && window.tops[1] > 4)")
	b.png("fwd001.png")
	_, _, body := b.exported("E")
	rows, err := csv.NewReader(strings.NewReader(string(body))).ReadAll()
	if err != nil || len(rows) < 9 || !slices.Contains(rows[0], "read_bytes_min") ||
		!slices.Contains(rows[0], "read_bytes_max") {
		t.Fatalf("%v, saved %.300s", err, body)
	}
	from := time.Now().Add(-time.Hour).Truncate(15 * time.Second)
	most := get[api.SeriesAnswer](s,
		fmt.Sprintf("/api/v1/series?node=fwd001&metric=read_bytes&step=15s&agg=max&from=%d",
			from.UnixMilli())).Series[0].Points
	k := slices.Index(rows[0], "read_bytes_max")
	if got, want := rows[2][k], fmt.Sprint(*most[1].Value); got != want && js[float64](b, got) != *most[1].Value {
		t.Errorf("the second point's most is %s, the store says %s", got, want)
	}
	s.Machine.Mu.Lock()
	s.Machine.Typical = 0
	s.Machine.Mu.Unlock()
	b.key("z")
	b.until("six hours", "location.search.includes('span=6h')")
	b.says("all peers idle")
}

// TestAJobsNodesStandBesideEachOther: the one whose requests take ten times as long is first, and red.
func TestAJobsNodesStandBesideEachOther(t *testing.T) {
	b := newTab(t, 1280, 900)
	s := jobSite(t)
	began := time.Now().Truncate(time.Second).Add(-time.Minute)
	nodes := []topology.NodeID{"far1", "far2", "far3", "far4"} // of which the machine itself reports nothing
	var many []topology.NodeID                                 // of which every third is looked at
	for i := range 200 {
		many = append(many, nodes[i/3%4])
		if i%3 > 0 || i >= 12 {
			many[i] = topology.NodeID(fmt.Sprintf("silent%d", i))
		}
	}
	for job, list := range map[topology.JobID][]topology.NodeID{"51": nodes, "52": many} {
		if err := s.History.Begin(history.Run{Job: job, User: "wei", App: "ROMS", Nodes: len(list), NodeList: list,
			Start: began}); err != nil {
			t.Fatal(err)
		}
	}
	for second := range 60 {
		var frames []collector.Frame
		for i, n := range nodes {
			took := 0.004
			if i == 2 && second >= 20 {
				took = 0.04
			}
			frames = append(frames, collector.Frame{Node: n, Role: topology.Compute,
				TimeMillis: began.Add(time.Duration(second) * time.Second).UnixMilli(),
				Samples: []collector.Sample{{Metric: collector.WriteOps, Value: 10},
					{Metric: collector.ClientWrite, Value: took}}})
		}
		if err := s.Store.Append(t.Context(), frames); err != nil {
			t.Fatal(err)
		}
	}
	b.open("http://" + s.TCP + "/jobs/51")
	b.says("Its nodes, each beside the others")
	const rows = "[...document.querySelectorAll('[aria-label=\"its nodes\"] tbody tr')]"
	b.until("four nodes", rows+".length === 4")
	b.until("the slow one is first", rows+"[0].textContent.startsWith('"+string(nodes[2])+"') && "+
		rows+"[0].textContent.endsWith('10x')")
	// Cells are of a second, or of some where the page came late.
	b.until("it alone is red, for two thirds of its time", "(r => (red => red > 0.55 && red < 0.8)("+
		"r[0].querySelectorAll('.late').length / r[0].querySelectorAll('rect').length) && "+
		"r.slice(1).every(o => !o.querySelector('.late')))("+rows+")")
	b.says("The 4 slowest of its 4 nodes.")
	b.shot("job-nodes")
	b.open("http://" + s.TCP + "/jobs/52")
	b.says("The 4 slowest of 67 looked at, spread over its 200 nodes.")
}
