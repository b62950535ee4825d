package browsertest_test

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"testing"

	"fairway/cmd/lab/simsite"
	"fairway/remap"
	"fairway/webui/api"

	"github.com/chromedp/chromedp"
)

// axe is axe-core 4.10.3 (testdata/axe/LICENSE), which looks for what keeps people with disabilities from using a page.
// It is for tests alone.
//
//go:embed testdata/axe/axe.min.js
var axe string

const axeSum = "880970c081707360e64f34cea25ff91892f5bc95675b0776925b9709dd8a68bb"

// Every page has no fault of any level that axe-core finds, and enough contrast in both themes.
func TestPagesAreAccessible(t *testing.T) {
	if sum := sha256.Sum256([]byte(axe)); hex.EncodeToString(sum[:]) != axeSum {
		t.Fatalf("testdata/axe/axe.min.js is not the pinned one: %x", sum)
	}
	b := newTab(t, 1280, 900)
	s := simsite.New(t, simsite.Options{Forwarders: 24, Compute: 96, Steady: true})
	s.Run(60)
	s.AccuseInThePast()
	s.StartTwo()
	if res, body := post(s, "/api/v1/plans", simsite.OperatorSecret,
		api.ManualRemap{Nodes: s.Machine.Topo.Default.Clients("fwd001")[:1], To: "fwd000",
			Reason: "fwd001 is slow today"}); res.StatusCode != 200 {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	b.open("http://" + s.TCP + s.SignInPath("olga", remap.Operator))
	b.says("olga (operator)")
	for _, path := range []string{"/overview", "/overview?view=table", "/overview?view=compute", "/overview?view=flow",
		"/overview?view=matrix", "/forwarders/fwd001", "/findings", "/findings/F-0001", "/plans", "/plans/P-000001",
		"/jobs", "/jobs/9", "/jobs/9/why", "/jobs/9/domains", "/audit", "/report", "/occupancy", "/logs", "/whatif",
		"/propose?from=fwd001"} {
		b.open("http://" + s.TCP + path)
		b.frames(1)
		b.until(path+" is there", "!document.documentElement.matches('.opening') && "+
			"document.querySelector('#page').textContent.length > 20 && "+
			"document.querySelector('#keys').textContent.includes('help')")
		js[bool](b, axe+"\n;true")
		// The theme changes colours alone; on a phone tables scroll.
		for _, look := range []struct {
			theme, rules string
			width        int64
		}{{"light", "{ rules: { 'target-size': { enabled: true } } }", 1280},
			{"dark", "{ runOnly: ['color-contrast'] }", 1280}, {"light", "{}", 390}} {
			theme, rules := look.theme, look.rules
			b.do(chromedp.EmulateViewport(look.width, 900))
			js[bool](b, fmt.Sprintf("(document.documentElement.dataset.theme = %q, dispatchEvent(new "+
				"Event('fairway-theme')), window.faults = null, axe.run(%s).then((r) => { window.faults = "+
				"r.violations.flatMap((v) => v.nodes.slice(0, 3).map((n) => v.id + ' (' + v.impact + '): ' + "+
				"n.html.slice(0, 160))); }), true)", theme, rules))
			b.until("axe has looked at "+path, "window.faults")
			for _, f := range js[[]string](b, "window.faults") {
				t.Errorf("%s, %s, %d wide: %s", path, theme, look.width, f)
			}
		}
	}
}
