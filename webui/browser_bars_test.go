package webui

import (
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// firstLoad is what the console promises of its first page, gzip, bytes.
const firstLoad = 100_000

// TestBarsInTheBrowser prints what the browser's bars are measured by: bytes of the first load, first
// paint, first data, redraw of 40,960 cells, and the time from a tick of the server until its picture
// is painted. Only the bytes decide, the times depend on the machine and are for people to read.
func TestBarsInTheBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures for a while")
	}
	t.Run("load and redraw", loadAndRedraw)
	t.Run("tick to pixels", tickToPixels)
}

func loadAndRedraw(t *testing.T) {
	s := newSite(t, siteOptions{forwarders: 240, compute: 40960, simulated: true})
	s.run(0)
	b := newTab(t, 1440, 900)
	begun := time.Now()
	b.open("http://" + s.tcp + "/overview?metric=bw")
	b.frames(1)
	data := time.Since(begun)
	b.until("the cells are drawn", "document.querySelector('canvas')?.dataset.redrawMs")
	files := js[[]map[string]any](b, `[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')].filter((e) => e.name.includes('/static/') || e.entryType === 'navigation').map((e) => ({ name: e.name.replace(/.*\/static\/|\?.*/g, ''), bytes: e.encodedBodySize, plain: e.decodedBodySize }))`)
	sum, plain := 0.0, 0.0
	for _, f := range files {
		sum, plain = sum+f["bytes"].(float64), plain+f["plain"].(float64)
	}
	t.Logf("first load: %d files, %.1f kB gzip (%.1f kB plain), at most %d", len(files), sum/1e3, plain/1e3, firstLoad/1000)
	if sum > firstLoad || sum < 5000 || sum > plain*0.6 {
		t.Errorf("the first load has %.0f bytes of %.0f: %v", sum, plain, files)
	}
	t.Logf("first paint %.0f ms, first data %d ms after the address was opened", js[float64](b, "performance.getEntriesByType('paint').find((e) => e.name === 'first-contentful-paint')?.startTime ?? -1"), data.Milliseconds())

	b.open("http://" + s.tcp + "/overview?view=compute")
	b.until("the compute grid is drawn", "document.querySelector('canvas[data-cells=\"40960\"]')")
	took := js[[]float64](b, `(() => { const out = []; for (let i = 0; i < 200; i++) { dispatchEvent(new Event('resize')); out.push(Number(document.querySelector('canvas').dataset.redrawMs)); } return out; })()`)
	t.Logf("redraw of 40,960 cells, 200 times: p50 %.1f ms, p99 %.1f ms", quantile(took, 0.5), quantile(took, 0.99))

}

// tickToPixels has few compute nodes: only the forwarders go over the wire here.
func tickToPixels(t *testing.T) {
	s := newSite(t, siteOptions{forwarders: 240, compute: 480, simulated: true})
	s.run(0)
	b := newTab(t, 1440, 900)
	// A frame is painted when the second animation frame after its message begins.
	b.open("http://" + s.tcp + "/overview?metric=bw")
	b.frames(1)
	js[bool](b, `(() => { window.late = []; new MutationObserver(() => { const sent = Date.parse(document.documentElement.dataset.sent); requestAnimationFrame(() => { const c = new MessageChannel(); c.port1.onmessage = () => window.late.push(Date.now() - sent); c.port2.postMessage(0); }); }).observe(document.documentElement, { attributes: true, attributeFilter: ['data-frames'] }); return true; })()`)
	b.until("pictures are painted", "window.late.length >= 10")
	late := js[[]float64](b, "window.late")
	t.Logf("tick of the server to pixels, %d pictures of 240 forwarders: p50 %.0f ms, p99 %.0f ms", len(late), quantile(late, 0.5), quantile(late, 0.99))
	b.do(chromedp.Navigate("about:blank"))
}

// quantile sorts v.
func quantile(v []float64, q float64) float64 {
	slices.Sort(v)
	return v[min(len(v)-1, int(q*float64(len(v))))]
}
