package browsertest_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"fairway/cmd/lab/simsite"
	"fairway/webui/api"
)

// The way of a question: slow jobs as lines, a range on one axis, one job, its critical path.
func TestLogsInTheBrowser(t *testing.T) {
	b := newTab(t, 1280, 900)
	s := simsite.New(t, simsite.Options{})
	s.Run(2)
	eventually(t, "routes are known", func() bool { return len(s.Board.Routes(time.Now())) == 32 })
	b.open("http://" + s.TCP + "/logs")
	b.says("40 of 40 jobs")
	if n := js[int](b, "document.querySelectorAll('.parallel .line').length"); n != 40 {
		t.Errorf("%d lines, want 40", n)
	}
	b.shot("logs")
	// The upper half of the first axis holds the faster jobs; its scale is logarithmic.
	b.until("a range is dragged",
		`(() => { const hit = document.querySelectorAll('.parallel .hit')[0], r = hit.getBoundingClientRect();
`+
			"\t\tconst e = (type, y) => hit.dispatchEvent(new PointerEvent(type, { pointerId: 1, clientX: r.x "+
			"+ 5, clientY: y, bubbles: true }));\n"+
			`		hit.setPointerCapture = () => {}; hit.hasPointerCapture = () => true;
		e('pointerdown', r.y + 1); e('pointermove', r.y + r.height / 2); return true; })()`)
	b.until("lines outside the range fade",
		"document.querySelectorAll('.parallel .line.off').length > 3 && document.querySelectorAll('.parallel "+
			".line.off').length < 30")
	b.key("x")
	b.says("40 of 40 jobs")
	b.key("j")
	b.key(enter)
	b.says("Why job 9")
	b.says("/scratch/out")
	b.says("The critical path takes 2 of 2 files")
	if n := js[int](b, "document.querySelectorAll('.strip .piece').length"); n != 2 {
		t.Errorf("%d pieces of the critical path, want 2", n)
	}
	b.shot("why")
}

// From a job's explanation to how its shared file could be divided, with other numbers, and back.
func TestFileDomainsInTheBrowser(t *testing.T) {
	b := newTab(t, 1280, 900)
	s := simsite.New(t, simsite.Options{})
	s.Run(2)
	b.open("http://" + s.TCP + "/jobs/9/why")
	b.says("Why job 9")
	b.key("d")
	b.says("File domains of job 9")
	b.says("/scratch/out")
	b.says("hints do nothing until the program writes by collective MPI-IO")
	for row, want := range map[string]int{"methods of dividing the file; * is advised": 6, "advised hints": 5,
		"conflicts and locks of each server": 1} {
		if n := js[int](b,
			fmt.Sprintf(
				"[...document.querySelectorAll('main table')].find((t) => t.caption?.textContent === "+
					"%q)?.tBodies[0].rows.length ?? -1", row)); n != want {
			t.Errorf("%d rows of %s, want %d", n, row, want)
		}
	}
	b.shot("domains")
	b.key("e")
	b.until("the form has the focus", "document.activeElement.name === 'servers'")
	b.key("6" + enter)
	b.until("six servers",
		"location.search === '?servers=6' && [...document.querySelectorAll('main "+
			"table')].at(-1).tBodies[0].rows.length === 6")
	v := get[api.DomainsView](s, "/api/v1/jobs/9/domains?servers=6")
	shown := js[[][]string](b,
		"[...[...document.querySelectorAll('main table')].find((t) => "+
			"t.caption?.textContent.startsWith('methods')).tBodies[0].rows].map((r) => [...r.cells].map((c) => "+
			"c.textContent))")
	for i, m := range v.Methods {
		want := []string{string(m.Method), fmt.Sprint(m.TotalConflicts()), fmt.Sprint(slices.Max(m.Conflicts)),
			fmt.Sprint(m.TotalLocks()), fmt.Sprint(slices.Max(m.LockRequests)), fmt.Sprint(m.Requests),
			fmt.Sprint(m.AggregatorsUsed)}
		if m.Method == v.Advice.Method {
			want[0] += " *"
		}
		if !slices.Equal(shown[i], want) {
			t.Errorf("shown %q, want %q", shown[i], want)
		}
	}
	b.png("domains-9.png")
	b.key("b")
	b.until("the job", "location.pathname === '/jobs/9'")
	b.expect = append(b.expect, "404") // it has a log and no run
}
