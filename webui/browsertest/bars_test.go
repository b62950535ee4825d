package browsertest_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"fairway/cmd/lab/simsite"
	"fairway/webui/api"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
)

// firstLoad is what the console promises of its first page, gzip, bytes.
const firstLoad = 100_000

// bars is the table that TestBarsInTheBrowser prints: what was measured by the wall clock, what the page's
// main thread computed meanwhile, and the machine's load.
type bars struct {
	t    *testing.T
	rows []string
}

// add puts a line of times, ms; cpu is the page's processor time for one of them.
func (b *bars) add(what, goal string, wall []float64, cpu string) {
	mid, most := quantile(wall, 0.5), quantile(wall, 0.99) // sorted by now
	b.rows = append(b.rows, fmt.Sprintf("%s\t%s\t%d\t%.1f\t%.1f\t%.1f\t%s\t%s", what, goal, len(wall), wall[0], mid,
		most, cpu, loadAverage()))
}

func (b *bars) print() {
	b.t.Helper()
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MS\tGOAL\tTIMES\tLEAST\tP50\tP99\tPROCESSOR OF THE PAGE'S THREAD, EACH\tLOAD")
	for _, r := range b.rows {
		fmt.Fprintln(w, r)
	}
	w.Flush()
	b.t.Logf("times by the wall clock wait for a core where the load is above %d\n%s", runtime.NumCPU(), out.String())
}

// loadAverage is of the last minute.
func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "-"
	}
	return strings.Fields(string(b))[0]
}

// work is what a page's main thread has computed, ms.
type work struct{ all, script, layout float64 }

func (b *tab) work() (w work) {
	b.t.Helper()
	got, err := chromedp.Call(b.ctx, performance.GetMetrics, cdp.Empty{})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, m := range got.Metrics {
		switch m.Name {
		case "TaskDuration":
			w.all = m.Value * 1e3
		case "ScriptDuration":
			w.script = m.Value * 1e3
		case "LayoutDuration", "RecalcStyleDuration":
			w.layout += m.Value * 1e3
		}
	}
	return w
}

// since is the work of each of n rounds after an earlier count.
func (w work) since(before work, n int) string {
	d := func(a, b float64) float64 { return max(0, a-b) / float64(n) }
	text := fmt.Sprintf("%.1f", d(w.all, before.all))
	// what is evaluated counts as neither
	if script, layout := d(w.script, before.script), d(w.layout, before.layout); script+layout > 0.1 {
		text += fmt.Sprintf(" (script %.1f, layout %.1f)", script, layout)
	}
	return text
}

// TestBarsInTheBrowser prints what the browser's bars are measured by, as one table: bytes of the first
// load, first paint, first data, redraw of 40,960 cells with their raster, and the time from a tick of the
// server until its picture is painted. Only the bytes decide, the times depend on the machine and are for
// people to read.
func TestBarsInTheBrowser(t *testing.T) {
	if os.Getenv("FAIRWAY_LONG") == "" {
		t.Skip("skipped: measures, which needs a quiet machine: make prove")
	}
	if testing.Short() {
		t.Skip("it measures for a while")
	}
	table := &bars{t: t}
	t.Run("load", func(t *testing.T) { load(t, table) })
	t.Run("redraw", func(t *testing.T) { redraw(t, table) })
	t.Run("tick to pixels", func(t *testing.T) { tickToPixels(t, table) })
	t.Run("a finding's page", func(t *testing.T) { findingPage(t, table) })
	table.print()
}

// measuring has the page's processor time counted, and keeps when the first picture was painted.
func measuring(t *testing.T) *tab {
	b := newTab(t, 1440, 900)
	if _, err := chromedp.Call(b.ctx, performance.Enable,
		performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}); err != nil {
		t.Fatal(err)
	}
	_, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument,
		page.AddScriptToEvaluateOnNewDocumentParams{Source: `
` +
			"\t\tnew MutationObserver((_, o) => { if (!document.documentElement?.dataset.frames) return; " +
			"o.disconnect(); requestAnimationFrame(() => { const c = new MessageChannel(); c.port1.onmessage = " +
			"() => { window.firstData = performance.now(); }; c.port2.postMessage(0); }); }).observe(document, " +
			"{ subtree: true, attributes: true, attributeFilter: ['data-frames'] });"})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func load(t *testing.T, table *bars) {
	s := simsite.New(t, simsite.Options{Forwarders: 240, Compute: 40960, Simulated: true})
	s.Tick(time.Now().Add(-2 * time.Second)) // one second is enough: the machine's own work is not the page's
	b := measuring(t)
	if _, err := chromedp.Call(b.ctx, network.SetCacheDisabled,
		network.SetCacheDisabledParams{CacheDisabled: true}); err != nil {
		t.Fatal(err)
	}
	var paint, data []float64
	var each work
	const loads = 8
	for range loads {
		b.open("about:blank")
		before := b.work()
		b.open("http://" + s.TCP + "/overview?metric=bw")
		b.until("the first picture is painted",
			"window.firstData && document.querySelector('.gridbox canvas')?.dataset.redrawMs && "+
				"performance.getEntriesByName('first-contentful-paint').length")
		now := b.work()
		each.all, each.script, each.layout = each.all+now.all-before.all, each.script+now.script-before.script,
			each.layout+now.layout-before.layout
		paint = append(paint, js[float64](b, "performance.getEntriesByName('first-contentful-paint')[0].startTime"))
		data = append(data, js[float64](b, "window.firstData"))
	}
	files := js[[]map[string]any](b,
		"[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')].filte"+
			"r((e) => e.name.includes('/static/') || e.entryType === 'navigation').map((e) => ({ name: "+
			"e.name.replace(/.*\\/static\\/|\\?.*/g, ''), bytes: e.encodedBodySize, plain: e.decodedBodySize "+
			"}))")
	sum, plain := 0.0, 0.0
	for _, f := range files {
		sum, plain = sum+f["bytes"].(float64), plain+f["plain"].(float64)
	}
	t.Logf("first load: %d files, %.1f kB gzip (%.1f kB plain), at most %d", len(files), sum/1e3, plain/1e3,
		firstLoad/1000)
	if sum > firstLoad || sum < 5000 || sum > plain*0.6 {
		t.Errorf("the first load has %.0f bytes of %.0f: %v", sum, plain, files)
	}
	table.add("first paint after the address was opened", "300", paint, "")
	table.add("first data, painted", "600", data, each.since(work{}, loads))
}

// redraw draws 40,960 other cells each time, and reads a pixel back so that the raster is done too.
func redraw(t *testing.T, table *bars) {
	s := simsite.New(t, simsite.Options{})
	s.Tick(time.Now())
	b := measuring(t)
	b.open("http://" + s.TCP + "/overview")
	b.frames(1)
	js[bool](b,
		"(() => { (async () => { const { GridView } = await import('/static/grid.js' + "+
			"new URL(document.querySelector('script[src]').src).search); const g = "+
			"new GridView({ label: 'bars', pick() {}, open() {} }); document.body.prepend(g.el);\n"+
			"\t\twindow.drawn = (times) => { const out = [], levels = new Int8Array(40960); "+
			"g.layout(levels.length, 1408, 640, true);\n"+
			"\t\t\tfor (let k = 0; k < times; k++) { for (let i = 0; i < levels.length; i++) levels[i] = "+
			"(i * 7 + k * 3 + (i >> 5)) % 12 - 2; const begun = performance.now(); g.draw({ levels }, k); "+
			"g.canvas.getContext('2d').getImageData(0, 0, 1, 1); out.push(performance.now() - begun); } "+
			"return out; }; })(); return true; })()")
	b.until("the module is here", "window.drawn")
	js[[]float64](b, "window.drawn(50)") // compiled by now
	before := b.work()
	took := js[[]float64](b, "window.drawn(500)")
	table.add("redraw of 40,960 cells, all of them changed, with raster", "10", took, b.work().since(before, len(took)))
}

// tickToPixels has few compute nodes: only the forwarders go over the wire here.
func tickToPixels(t *testing.T, table *bars) {
	s := simsite.New(t, simsite.Options{Forwarders: 240, Compute: 480, Simulated: true})
	s.Run(0)
	b := measuring(t)
	// A frame is painted when the second animation frame after its message begins.
	b.open("http://" + s.TCP + "/overview?metric=bw")
	b.frames(1)
	js[bool](b,
		"(() => { window.late = []; new MutationObserver(() => { const sent = "+
			"Date.parse(document.documentElement.dataset.sent); requestAnimationFrame(() => { const c = new "+
			"MessageChannel(); c.port1.onmessage = () => window.late.push(Date.now() - sent); "+
			"c.port2.postMessage(0); }); }).observe(document.documentElement, { attributes: true, "+
			"attributeFilter: ['data-frames'] }); return true; })()")
	before := b.work()
	// Looking costs the page time, so it is done once a second.
	for tick := time.NewTicker(time.Second); js[int](b, "window.late.length") < 15; {
		select {
		case <-tick.C:
		case <-b.ctx.Done():
			t.Fatal("no pictures are painted")
		}
	}
	late := js[[]float64](b, "window.late")
	table.add("tick of the server to pixels, 240 forwarders", "100", late, b.work().since(before, len(late)))
	b.do(chromedp.Navigate("about:blank"))
}

// findingPage stays on the page of a finding that is over, and on one that is open: how long scripts run in a second.
// Of one that is over nothing is asked again.
func findingPage(t *testing.T, table *bars) {
	s := simsite.New(t, simsite.Options{Forwarders: 240, Compute: 480, Simulated: true})
	s.Run(60)
	s.AccuseInThePast()
	for _, state := range []string{"open", "over"} {
		if state == "over" {
			res, body := post(s, "/api/v1/findings/F-0001/dismiss", simsite.OperatorSecret,
				api.Decision{Reason: "the disk was replaced"})
			if res.StatusCode != 200 {
				t.Fatalf("%d %s", res.StatusCode, body)
			}
		}
		b := measuring(t)
		b.open("http://" + s.TCP + "/findings/F-0001")
		b.until("it is drawn", "document.querySelectorAll('#page canvas').length > 0")
		b.frames(3)
		const asked = "performance.getEntriesByType('resource').filter(e => e.name.includes('/api/v1/findings')).length"
		before := js[float64](b, asked)
		var script []float64
		begun, first := b.work(), b.work()
		for tick := time.NewTicker(time.Second); len(script) < 15; { // a script that waited would count as the page's
			<-tick.C
			now := b.work()
			script = append(script, now.script-begun.script)
			begun = now
		}
		table.add("script a second on the page of a finding that is "+state, "2", script,
			begun.since(first, len(script)))
		if n := js[float64](b, asked) - before; n > 0 && state == "over" {
			t.Errorf("the page of a finding that is over asked the server %.0f times within 15 s", n)
		}
		b.do(chromedp.Navigate("about:blank"))
	}
}

// quantile sorts v.
func quantile(v []float64, q float64) float64 {
	slices.Sort(v)
	return v[min(len(v)-1, int(q*float64(len(v))))]
}
