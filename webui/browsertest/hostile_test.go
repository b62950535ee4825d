package browsertest_test

import (
	"strings"
	"testing"

	"fairway/cmd/lab/simsite"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/dispatch"
	"fairway/webui/api"
)

// evil is what users name jobs, programs and reasons so that a page runs it, or is broken by it.
const evil = `<img src=x onerror="window.owned=1">"'><script>window.owned=1</script>${window.owned=1}` +
	"\u202e[x](javascript:owned)"

// TestPagesShowHostileNamesAsText: no page runs what a job, program, person's reason or finding is called, makes an
// element of it, or becomes wider than the window by it.
func TestPagesShowHostileNamesAsText(t *testing.T) {
	for _, width := range []int64{1280, 390} {
		walkHostile(t, newTab(t, width, 900))
	}
}

func walkHostile(t *testing.T, b *tab) {
	t.Helper()
	s := simsite.New(t, simsite.Options{Forwarders: 24, Compute: 96, Steady: true})
	s.Run(60)
	s.AccuseInThePast()
	for i, job := range []topology.JobID{"8", "9"} {
		res, body := post(s, "/api/v1/dispatch", simsite.HookSecret, dispatch.Request{Job: job,
			User: "eve<b>" + evil[:20], App: evil + strings.Repeat("W", 60),
			Nodes: s.Machine.Topo.Default.Clients("fwd001")[i : i+1]})
		if res.StatusCode != 200 {
			t.Fatalf("%d %s", res.StatusCode, body)
		}
	}
	if res, body := post(s, "/api/v1/plans", simsite.OperatorSecret,
		api.ManualRemap{Nodes: s.Machine.Topo.Default.Clients("fwd001")[:1], To: "fwd000",
			Reason: evil + strings.Repeat("W", 400)}); res.StatusCode != 200 {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	b.open("http://" + s.TCP + s.SignInPath("olga", remap.Operator))
	b.says("olga (operator)")
	for _, path := range []string{"/overview", "/overview?view=table", "/overview?view=compute", "/overview?view=flow",
		"/overview?view=matrix", "/forwarders/fwd001", "/findings", "/findings/F-0001", "/plans", "/plans/P-000001",
		"/jobs", "/jobs/9", "/jobs/9/why", "/audit", "/report", "/whatif", "/propose?from=fwd001"} {
		b.open("http://" + s.TCP + path)
		b.frames(1)
		b.until(path+" is there", "document.querySelector('#page').textContent.length > 20 && "+
			"document.querySelector('#keys').textContent.includes('help')")
		for what, ask := range map[string]string{
			"a script ran":                   "window.owned === undefined",
			"a name became an element":       "!document.querySelector('img[src=\"x\"], #page script, #page b > b')",
			"the page is wider than its tab": "document.documentElement.scrollWidth <= innerWidth + 1",
			"a link runs a script":           "![...document.links].some(a => a.protocol === 'javascript:')",
		} {
			if !js[bool](b, ask) {
				t.Errorf("%s: %s", path, what)
			}
		}
	}
}
