package browsertest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/simsite"

	"github.com/chromedp/chromedp"

	"fairway/collector"
	"fairway/webui/api"
)

// The past in the browser: its address, its keys, its banner, and that no number of now stands in it.
func TestReplayInTheBrowser(t *testing.T) {
	b := newTab(t, 1280, 800)
	s := simsite.New(t, simsite.Options{})
	s.Run(300)
	eventually(t, "clients are shown", func() bool {
		return get[api.Overview](s,
			"/api/v1/overview").Forwarders[1].Clients == 4
	})
	since := s.AccuseInThePast()
	at := func(d time.Duration) string { return since.Add(d).UTC().Format(time.RFC3339) }
	row := func(when string) string {
		o := get[api.Overview](s, "/api/v1/overview?at="+when)
		return fmt.Sprintf("%s %s", mega(*o.Forwarders[2].Value(collector.ReadBytes)),
			mega(*o.Forwarders[2].Value(collector.WriteBytes)))
	}
	shows := func(when string) {
		t.Helper()
		b.until("the row of "+when,
			fmt.Sprintf(
				"document.documentElement.hasAttribute('data-past') && "+
					"[...document.querySelectorAll('tbody tr')].some(tr => "+
					"tr.children[0].textContent.startsWith('fwd002') && [6,7].map(i => "+
					"tr.children[i]?.textContent).join(' ') === %q)", row(when)))
		b.until("the address of "+when, fmt.Sprintf("decodeURIComponent(location.search).includes('at=%s')", when))
	}
	b.open("http://" + s.TCP + "/overview?view=table&at=" + at(-time.Minute))
	b.says("REPLAY")
	b.says("Actions are off")
	shows(at(-time.Minute))
	b.shot("replay-table")
	// Nothing of the header touches the strip, and on a telephone it ends where the screen does.
	for _, width := range []int64{1280, 420} {
		b.do(chromedp.EmulateViewport(width, 800))
		b.until(fmt.Sprintf("the strip stands alone at %d", width),
			"(([nav, strip, page]) => (nav.bottom + 3 <= strip.top || nav.top >= strip.bottom + 3 || "+
				"nav.right <= strip.left) && "+
				"strip.right <= page.right && [...document.querySelectorAll('#replay *')].every((e) => "+
				"e.getBoundingClientRect().right <= page.right))(['nav', '#replay', 'body'].map((q) => "+
				"document.querySelector(q).getBoundingClientRect()))")
	}
	b.do(chromedp.EmulateViewport(1280, 800))
	b.key("}")
	shows(at(0))
	b.says("suspect")
	b.do(chromedp.KeyEvent("\u0302")) // left
	shows(at(-time.Second))
	b.until("nobody was suspect a second before", "!document.querySelector('main').innerText.includes('suspect')")
	b.key("]") // the mark: the finding
	shows(at(0))
	b.says("F-0001")
	b.key("p")
	b.says("Actions are off in replay")
	if strings.Contains(js[string](b, "location.pathname"), "propose") {
		t.Error("a plan could be proposed in the past")
	}
	// It runs, and faster on request; the page is another one with the same second.
	b.key(" ")
	b.until("it runs", fmt.Sprintf("Date.parse(new URLSearchParams(location.search).get('at')) > %d",
		since.UnixMilli()))
	b.key("+")
	b.until("at twice the speed", "new URLSearchParams(location.search).get('speed') === '2'")
	b.key(" ")
	b.until("it stands", "!new URLSearchParams(location.search).has('speed')")
	b.key("1")
	b.until("the overview of the past", "document.querySelector('canvas') && location.search.includes('at=')")
	b.says("not known of that time")
	b.shot("replay-overview")
	b.open("http://" + s.TCP + "/forwarders/fwd001?at=" + at(20*time.Second))
	b.says("fwd001  SLOW")
	b.until("its metadata is in operations",
		`/METADATA OPERATIONS\s*[\d.]+ ops\/s/i.test(document.querySelector('#page').innerText)`)
	b.key("n")
	b.says("F-0001  fwd001  confirmed")
	b.open("http://" + s.TCP + "/forwarders/fwd001?at=" + at(20*time.Second))
	b.says("Clients (4)")
	b.until("series are drawn", "document.querySelectorAll('.chart canvas').length >= 4")
	b.shot("replay-forwarder")
	b.open("http://" + s.TCP + "/findings?at=" + at(-time.Second))
	b.says("No finding.")
	b.open("http://" + s.TCP + "/findings/F-0001?at=" + at(2*time.Second))
	b.says("F-0001  fwd001  suspect")
	b.open("http://" + s.TCP + "/overview?view=compute&at=" + at(0))
	b.until("the compute grid is drawn", "document.querySelector('canvas[data-cells=\"32\"]')")
	b.shot("replay-compute")
	b.key("4")
	b.says("This page is about now")
	b.key("2")
	b.says("This page is about now")
	b.shot("replay-none")
	b.key("L")
	b.until("it is live", "!document.documentElement.hasAttribute('data-past') && !location.search.includes('at=')")
	b.says("No job is known")
	// An address opened twice at once has one banner.
	js[bool](b,
		fmt.Sprintf(
			"(history.pushState(null, '', '/overview?at=%s'), dispatchEvent(new PopStateEvent('popstate')),"+
				" dispatchEvent(new PopStateEvent('popstate')))", at(0)))
	b.says("Actions are off")
	b.says("REPLAY")
	if n := js[int](b, "document.querySelectorAll('#replay').length"); n != 1 {
		t.Errorf("%d banners", n)
	}
	b.key("L")
	b.until("it is live again", "!document.documentElement.hasAttribute('data-past')")
	b.key("1")
	b.says("Slowest first")
	b.key("H")
	b.says("live is 1m ahead")
	b.open("http://" + s.TCP + "/history?at=" + at(0) + "&speed=10")
	b.says("x10")
	b.open("http://" + s.TCP + "/overview?at=yesterday")
	b.says("is not a time")
}

// A line of the calendar opens the second that it begins with, by its key and by a click.
func TestTheCalendarOpensThePastInTheBrowser(t *testing.T) {
	b := newTab(t, 1280, 800)
	s := simsite.New(t, simsite.Options{})
	s.Run(300)
	for row, do := range map[int]func(){
		1: func() { b.key("j"); b.key(enter) },
		2: func() {
			b.until("it is clicked", "(() => { document.querySelectorAll('tbody tr')[2].click(); return true; })()")
		},
	} {
		b.open("http://" + s.TCP + "/occupancy")
		b.until("the newest line is chosen", "document.querySelector('tbody tr')?.classList.contains('sel')")
		shown := js[string](b, fmt.Sprintf("document.querySelectorAll('tbody tr')[%d].children[0].textContent", row))
		do()
		b.until("the past of "+shown,
			fmt.Sprintf(
				"location.pathname === '/overview' && new Date(new "+
					"URLSearchParams(location.search).get('at')).toTimeString().startsWith('%s:00')", shown))
		b.says("REPLAY")
	}
	// What does little is as light as a light page, and as dark as a dark one.
	b.open("http://" + s.TCP + "/occupancy")
	const cell = "(() => { const c = document.querySelector('.gridbox canvas'); if (!c) return ''; " +
		"const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; " +
		"const i = d.findIndex((v, k) => k % 4 === 3 && v); return i < 0 ? '' : d.slice(i - 3, i).join(); })()"
	b.until("a cell is drawn", cell)
	shown := map[string]string{}
	for _, theme := range []string{"dark", "light"} {
		b.key("t")
		b.until("the theme is "+theme, fmt.Sprintf("document.documentElement.dataset.theme === '%s'", theme))
		shown[theme] = js[string](b, cell)
	}
	if shown["dark"] == shown["light"] {
		t.Errorf("a cell is %s in both themes", shown["dark"])
	}
}

// One thing is not written as many, in the browser as in the terminal.
func TestOneThingIsNotSaidAsManyInTheBrowser(t *testing.T) {
	b := newTab(t, 1280, 800)
	s := simsite.New(t, simsite.Options{})
	s.Run(120)
	s.StartTwo()
	if res, body := post(s, "/api/v1/plans", simsite.OperatorSecret,
		api.ManualRemap{Nodes: s.Machine.Topo.Default.Clients("fwd001")[:1], To: "fwd000",
			Reason: "fwd001 is slow today"}); res.StatusCode != 200 {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	b.open("http://" + s.TCP + "/plans/P-000001")
	b.says("1 compute node changes forwarder")
	js[any](b,
		"void import([...document.scripts].find((e) => e.src.includes('app.js')).src.replace('app.js', "+
			"'format.js')).then((m) => { window.counts = [0, 1, 2].flatMap((n) => ['job', 'process'].map((x) => "+
			"m.counted(n, x))).join(', '); })")
	b.until("the counts are right", "window.counts === '0 jobs, 0 processes, 1 job, 1 process, 2 jobs, 2 processes'")
}
