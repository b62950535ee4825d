package browsertest_test

import (
	"fmt"
	"testing"

	"fairway/anomaly"
	"fairway/cmd/lab/simsite"
	"fairway/collector/topology"
	"fairway/remap/dispatch"
	"fairway/webui/client"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// drag pulls the mouse over a part of an element, from and to are shares of its width.
func (b *tab) drag(selector string, from, to float64) {
	b.t.Helper()
	b.until("it rests", fmt.Sprintf("(() => { const r = document.querySelector(%q)?.getBoundingClientRect(), "+
		"at = r && [r.x, r.y, r.width].join(), was = window.rest ?? {}; "+
		"window.rest = { at, times: at && at === was.at ? was.times + 1 : 0 }; "+
		"return window.rest.times > 10; })()", selector))
	box := js[map[string]float64](b, fmt.Sprintf(
		"(r => ({ x: r.x, y: r.y + r.height / 2, w: r.width }))(document.querySelector(%q).getBoundingClientRect())",
		selector))
	mouse := func(kind input.DispatchMouseEventType, at float64, held input.MouseButton) {
		_, err := chromedp.Call(b.ctx, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind,
			X: box["x"] + at*box["w"], Y: box["y"], Button: held, ClickCount: 1})
		if err != nil {
			b.t.Fatal(err)
		}
	}
	mouse(input.DispatchMouseEventTypeMouseMoved, from, input.MouseButtonNone)
	mouse(input.DispatchMouseEventTypeMousePressed, from, input.MouseButtonLeft)
	mouse(input.DispatchMouseEventTypeMouseMoved, (from+to)/2, input.MouseButtonLeft)
	mouse(input.DispatchMouseEventTypeMouseMoved, to, input.MouseButtonLeft)
	mouse(input.DispatchMouseEventTypeMouseReleased, to, input.MouseButtonLeft)
}

// A stretch of time is chosen by the picker, by a drag over a chart or by a key. All charts of the page show it, the
// address has it, the next page takes it over, and a stretch without data says so.
func TestTheRangeOfTimeInTheBrowser(t *testing.T) {
	s, slow := simsite.NewSlow(t, simsite.Options{})
	b := newTab(t, 1440, 900)
	b.open("http://" + s.TCP + "/overview")
	b.frames(1)
	drawn := "document.querySelectorAll('.strip4 canvas').length === 4"
	b.until("the charts are drawn", drawn)

	if cut := js[string](b, "uPlot.sync('page').plots.flatMap(p => p.axes[0]._values.filter((v, i) => v && "+
		"p.bbox.left / devicePixelRatio + p.valToPos(p.axes[0]._splits[i], 'x') + 14 > p.width)).join()"); cut != "" {
		t.Errorf("times that are cut: %s", cut)
	}

	// One cursor: every chart names the time of the one under the mouse.
	b.until("the mouse is over a chart", fmt.Sprintf("(() => { const o = document.querySelector('.strip4 .u-over'), "+
		"r = o.getBoundingClientRect(); for (const kind of ['mouseenter', 'mousemove']) o.dispatchEvent(new "+
		"MouseEvent(kind, { clientX: r.x + r.width * 0.8, clientY: r.y + 9 })); return true; })()"))
	b.until("all charts say the same time",
		"(times => times.length === 4 && times[0] && times.every(t => t === times[0]))([...document.querySelectorAll("+
			"'.strip4 .unit')].map(v => /\\d\\d:\\d\\d:\\d\\d$/.exec(v.textContent)?.[0]))")

	b.drag(".strip4 .u-over", 0.6, 0.9)
	fixed := "new URLSearchParams(location.search).get('from') && " +
		"document.querySelector('#range select')?.value === 'custom'"
	b.until("the stretch is in the address", fixed)
	b.until("the charts show it", drawn)
	b.until("the numbers are its means", "/, mean$/.test(document.querySelector('.strip4 .unit').textContent)")
	b.shot("range-zoomed")
	chosen := js[string](b, "location.search")
	b.open("http://" + s.TCP + "/overview" + chosen)
	b.until("it survives a reload", fixed)
	b.until("the charts show it again", drawn)
	b.open("http://" + s.TCP + "/overview")
	b.until("the charts are drawn", drawn)
	b.drag(".strip4 .u-over", 0.6, 0.9)
	b.until("zoomed", fixed)
	b.key(escape)
	b.until("Escape goes back", "!location.search.includes('from=') && "+drawn)
	b.key("{")
	b.until("a length back", fixed)
	b.key("L")
	b.until("live again", "!location.search.includes('from=') && "+
		"document.querySelector('#range button:last-child')?.hidden")

	// The picker, and the next page.
	b.until("the last hour is chosen", "(() => { const s = document.querySelector('#range select'); s.value = '1h'; "+
		"s.dispatchEvent(new Event('change')); return true; })()")
	b.until("the address has it", "new URLSearchParams(location.search).get('span') === '1h' && "+drawn)
	b.shot("range-hour")
	b.until("a forwarder is opened", fmt.Sprintf(
		"(() => { const a = document.querySelector('[data-go=\"/forwarders/%s\"]'); a?.click(); return a; })()", slow))
	b.says("a point is the mean of 15 s")
	b.until("its address has the hour", "new URLSearchParams(location.search).get('span') === '1h'")
	b.until("its charts have the peers' band", "document.querySelector('.charts canvas') && "+
		"document.querySelector('#page').textContent.includes('Grey: median of its peers')")
	b.shot("range-forwarder")

	// Nothing is kept of that time: a sentence stands where the chart would be.
	b.open("http://" + s.TCP + "/overview?from=2020-01-01T00:00:00Z&to=2020-01-01T01:00:00Z")
	b.says("No bandwidth is known of 2020-01-01")
	b.until("no chart is empty", "document.querySelectorAll('.strip4 canvas').length === 0")
	b.open("http://" + s.TCP + "/forwarders/" + string(slow) + "?from=2020-01-01T00:00:00Z&to=2020-01-01T01:00:00Z")
	b.says("is kept of 2020-01-01")

	j := s.Machine.Sim.Jobs()[0]
	if _, err := s.Jobs.Dispatch(t.Context(), dispatch.Request{Job: j.ID, User: j.User, App: j.App,
		Nodes: j.Nodes}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s.Second()
	}
	b.open("http://" + s.TCP + "/jobs/" + string(j.ID))
	b.until("a job has charts", "document.querySelectorAll('.charts canvas').length > 0")
	b.shot("range-job")
	// The finding: the time around it, a stretch that is dragged over, and the picker.
	b.open("http://" + s.TCP + "/findings/" + findingOf(t, s, slow))
	around := "document.querySelector('#range select')?.value === 'around' && document.querySelector('.incident svg " +
		".accused')"
	b.until("the time around it", around)
	whole := js[string](b, "document.querySelector('.incident svg').lastElementChild.previousElementSibling."+
		"previousElementSibling.textContent")
	b.until("it is on the screen",
		"(document.querySelector('.incident svg').scrollIntoView({ block: 'center' }), true)")
	b.drag(".incident svg", 0.5, 0.8)
	b.until("the stretch is in the address", fixed)
	b.until("the charts show it", fmt.Sprintf("document.querySelector('.incident svg .own') && "+
		"![...document.querySelectorAll('.incident svg text')].some(x => x.textContent === %q)", whole))
	b.shot("range-finding")
	b.key(escape)
	b.until("Escape goes back to the time around it", around)
	b.open("http://" + s.TCP + "/findings/" + findingOf(t, s, slow) +
		"?from=2020-01-01T00:00:00Z&to=2020-01-01T01:00:00Z")
	b.says("No series of this node is kept of 2020-01-01")
}

// findingOf is the number of the finding about a forwarder.
func findingOf(t *testing.T, s *simsite.Site, of topology.ForwarderID) string {
	c := client.Over(s.Dial, simsite.OperatorSecret)
	defer c.Close()
	list, err := c.Findings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		if f.Node == of.Node() && f.Kind == anomaly.FailSlow {
			return f.ID
		}
	}
	t.Fatalf("no finding about %s in %+v", of, list)
	return ""
}
