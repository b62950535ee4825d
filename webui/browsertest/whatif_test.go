package browsertest_test

import (
	"testing"

	"fairway/cmd/lab/simsite"
	"fairway/remap/queue/tables"
	"fairway/webui/api"
)

func TestWhatIfInTheBrowser(t *testing.T) {
	b := newTab(t, 1280, 900)
	s := simsite.New(t, simsite.Options{})
	s.Run(1)
	s.StartTwo()
	b.open("http://" + s.TCP + "/whatif")
	b.says("Shares under size-fair")
	b.until("two bars, three to one",
		`(() => { const w = [...document.querySelectorAll('.share')].map((r) => Number(r.getAttribute('width')));
			return w.length === 2 && Math.abs(w[0] / w[1] - 3) < .01; })()`)
	b.until("the pattern is drawn",
		"document.querySelectorAll('.gantt .io').length > 20 && document.querySelectorAll('.gantt .cap').length === 1")
	// The line of the bandwidth in use never crosses the system's.
	b.until("the bandwidth stays below the line",
		`(() => { const cap = document.querySelector('.gantt .cap').y1.baseVal.value;
			return [...document.querySelector('.gantt .used').getAttribute('d')
				.matchAll(/[ML]\S+ (\S+?)(?=L|$)/g)].every((m) => Number(m[1]) >= cap - .2); })()`)
	b.says("An example, not this machine")
	b.shot("whatif")
	s.PeriodicRuns()
	b.until("the running jobs are asked",
		`(() => { const x = [...document.querySelectorAll('button')].find((x) => x.textContent === 'running jobs');
			if (x) x.click(); return !!x; })()`)
	b.until("the periodic one is drawn, and the other named",
		`document.querySelector('.gantt')?.textContent.includes('8') &&
			document.body.textContent.includes('9, WRF of ann on 1 node: not known to be periodic')`)
	b.until("they are no example", "!document.body.innerText.includes('An example')")
	b.shot("whatif-running")
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
	s.StartTwo()
	if got := get[api.SharesView](s, "/api/v1/shares"); got.InForce == nil || got.InForce.Jobs[0].Got != .493 {
		t.Errorf("%+v", got.InForce)
	}
	b.open("http://" + s.TCP + "/whatif")
	b.says("in force: size-fair")
	b.until("the job with work has its parts, the other none",
		`(() => { const text = [...document.querySelectorAll('table.shares tbody tr')].map((r) =>
			[...r.cells].map((c) => c.textContent).join(' ').trim());
			return text[0].endsWith('75.0 75.0 50.0 49.3') && text[1].endsWith('25.0 - - -'); })()`)
	b.until("what is wrong is seen as wrong", `document.querySelector('p.error')?.textContent.includes('8 is crowded')`)
	b.shot("whatif-in-force")
}
