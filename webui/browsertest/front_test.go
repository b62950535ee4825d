package browsertest_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/cmd/lab/simsite"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// The first page answers without a key: is the machine well, what is slow, why, who suffers, what to press. At the desk
// and on a phone, light and dark.
func TestTheFirstPageAnswers(t *testing.T) {
	s, slow := simsite.NewSlow(t, simsite.Options{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for t.Context().Err() == nil {
			s.Second()
			time.Sleep(time.Second)
		}
	}()
	t.Cleanup(func() { <-ended }) // before the site is taken down
	for _, size := range [][2]int64{{1440, 900}, {390, 844}} {
		for _, scheme := range []string{"light", "dark"} {
			t.Run(fmt.Sprint(size[0], scheme), func(t *testing.T) {
				b := newTab(t, size[0], size[1])
				if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
					Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}); err != nil {
					t.Fatal(err)
				}
				b.open("http://" + s.TCP + s.SignInPath("olga", remap.Operator))
				answers := func() {
					b.frames(3)
					b.until("the charts are drawn", "document.querySelectorAll('.strip4 canvas').length === 4")
					b.until("how the layer is stands in the header",
						`/^1 forwarder (slow|suspect)$/.test(document.querySelector('#bar .health').textContent)`)
					b.until("what is slow, and how much, is the first need",
						fmt.Sprintf(`document.querySelector('.need.first .what')?.textContent.startsWith(%q)`, slow))
					b.until("who suffers is there",
						`/wait/.test(document.querySelector('.need.first .victim')?.textContent)`)
					b.until("what to press is there", `document.querySelector('.need.first .buttons kbd')`)
					b.until("the slow one is the first row",
						fmt.Sprintf(
							`document.querySelector('section[aria-label=hottest] tbody td').textContent.startsWith(%q)`,
							slow))
					b.until("its minutes are drawn",
						`document.querySelector('section[aria-label=hottest] svg.spark .own')`)
				}
				answers()
				if !js[bool](b, "(r => r.height > 40 && r.bottom <= innerHeight)(document.querySelector("+
					"'.strip4 .trend canvas').getBoundingClientRect())") {
					t.Error("since when clients wait is not on the first screen")
				}
				if js[bool](b, "document.documentElement.scrollWidth > innerWidth") {
					t.Error("the page is wider than the screen")
				}
				b.shot(fmt.Sprintf("front-%d-%s", size[0], scheme))
				b.staysStill(answers)
			})
		}
	}
	t.Run("its pages say who suffers and what helps", func(t *testing.T) { suffering(t, s, slow) })
}

// mostShift is the sum of layout shifts that a page may have until it shows everything, as browsers count them.
const mostShift = 0.05

// staysStill fails where what was shown has moved since the page was opened, each of three times: what comes in parts
// while the machine has no turn for the page moves more.
func (b *tab) staysStill(answers func()) {
	b.t.Helper()
	const times = 3
	for i := range times {
		js[bool](b, "(window.shifts = [], new PerformanceObserver((l) => window.shifts.push(...l.getEntries()))"+
			".observe({ type: 'layout-shift', buffered: true }), setTimeout(() => { window.moved = "+
			"window.shifts.reduce((sum, e) => sum + e.value, 0); }, 300), true)")
		b.until("the shifts are counted", "window.moved !== undefined")
		moved := js[float64](b, "window.moved")
		if moved <= mostShift {
			return
		}
		b.t.Logf("what is shown moved by %.3f, at most %v: %s", moved, mostShift, js[string](b,
			"window.shifts.map((e) => Math.round(e.startTime) + ' ms ' + e.value.toFixed(3) + ' ' + "+
				"e.sources.map((x) => (x.node?.className || x.node?.nodeName) + ' ' + x.previousRect.y + '>' + "+
				"x.currentRect.y).join(', ')).join('; ')"))
		if i < times-1 {
			b.do(chromedp.Reload())
			answers()
		}
	}
	b.t.Errorf("what is shown moved each of %d times", times)
}

// Of three slow forwarders of a large machine the first screen says who suffers and what helps, at the desk and on a
// phone.
func TestTheFirstScreenHasPlaceForThreeSlowOnes(t *testing.T) {
	s := simsite.New(t, simsite.Options{Forwarders: 240, Compute: 960, Simulated: true})
	s.FindMu.Lock()
	for i := range 3 {
		var jobs []anomaly.Impact
		for k := range 4 {
			jobs = append(jobs, anomaly.Impact{Job: topology.JobID(fmt.Sprint(88000 + 10*i + k)),
				Share: 0.9 - 0.1*float64(i), CostSeconds: 340})
		}
		id := fmt.Sprintf("fwd%03d", 20*i)
		s.Find = append(s.Find, anomaly.Finding{ID: fmt.Sprint("F-000", i), Node: topology.NodeID(id),
			Kind: anomaly.FailSlow, State: anomaly.Confirmed, Since: time.Now().Add(-4 * time.Minute), Confidence: 0.97,
			Sentence: id + " is 9.8x slow at reading and 4.4x at writing, for its load", Impact: jobs})
	}
	s.FindMu.Unlock()
	s.Run(0)
	for i := range 5 { // plans that wait take two lines at most
		if res, body := post(s, "/api/v1/plans", simsite.OperatorSecret, api.ManualRemap{
			Nodes: []topology.NodeID{topology.NodeID(fmt.Sprintf("c%05d", 100*i+50))}, To: "fwd239",
			Reason: "a plan that waits"}); res.StatusCode != 200 {
			t.Fatalf("%d %s", res.StatusCode, body)
		}
	}
	b := newTab(t, 1440, 900)
	b.expect = append(b.expect, "/incident") // the findings are in the picture alone, which has no chart of them
	b.open("http://" + s.TCP + s.SignInPath("olga", remap.Operator))
	for _, size := range [][2]int64{{1440, 900}, {390, 844}} {
		b.do(chromedp.EmulateViewport(size[0], size[1]))
		b.frames(2)
		b.says("Slowest first")
		b.shot(fmt.Sprint("three-slow-", size[0]))
		text := js[string](b, inSight)
		for i := range 3 {
			for _, want := range []string{fmt.Sprintf("fwd%03d is 9.8x slow", 20*i),
				fmt.Sprintf("job %d: waits %d %%", 88000+10*i, 90-10*i)} {
				if !strings.Contains(text, want) {
					t.Errorf("%d pixels wide: %q is not in sight: %q", size[0], want, text)
				}
			}
		}
		if n := strings.Count(text, "plan waits"); size[0] == 1440 && (n != 2 || !strings.Contains(text, "3 more ")) {
			t.Errorf("%d of 5 plans are in sight: %q", n, text)
		}
		if n := strings.Count(text, "Propose a move"); size[0] == 1440 && n != 3 {
			t.Errorf("%d pixels wide: %d remedies in sight: %q", size[0], n, text)
		}
	}
	s.FindMu.Lock() // another job suffers most: its line opens its page, and not that of whose line it was
	s.Find[0].Impact = slices.Clone(s.Find[0].Impact)
	s.Find[0].Impact[0].Job = "99000"
	s.FindMu.Unlock()
	b.until("a line of who suffers opens the page of that job",
		`document.querySelector('.need.first a[href="/jobs/99000"]')?.textContent.startsWith('job 99000')`)
}

// suffering opens the page of a slow forwarder, and that of a plan against it.
func suffering(t *testing.T, s *simsite.Site, slow topology.ForwarderID) {
	b := newTab(t, 390, 844)
	fact := func(name, words string) {
		t.Helper()
		b.until(name, fmt.Sprintf("[...document.querySelectorAll('.about dt')].some((e) => e.textContent === %q && "+
			"/%s/.test(e.nextSibling.textContent))", name, words))
	}
	eventually(t, "routes are known", func() bool { return len(s.Situation().Observed) == 1024 })
	var idle []topology.ForwarderID
	for _, r := range get[api.Overview](s, "/api/v1/overview").Forwarders {
		if r.State == remap.ForwarderIdle {
			idle = append(idle, r.ID)
		}
	}
	to := idle[0]
	propose := func(from, to topology.ForwarderID) (p api.PlanView) {
		t.Helper()
		res, body := post(s, "/api/v1/plans", simsite.OperatorSecret, api.ManualRemap{
			Nodes: s.Situation().Observed.Clients(from)[:1], To: to, Reason: "its jobs wait for it"})
		if err := json.Unmarshal(body, &p); err != nil || res.StatusCode != 200 {
			t.Fatalf("%d %v %s", res.StatusCode, err, body)
		}
		return p
	}
	p := propose(slow, to)
	propose(idle[1], idle[2])
	b.open("http://" + s.TCP + "/forwarders/" + string(slow))
	fact("suffers", "job [0-9]+.*wait")
	fact("helps", "move .* to "+string(to))
	b.open("http://" + s.TCP + "/plans/" + p.ID)
	fact("because", string(slow)+" (is|may be) .*slow")
	fact("suffers", "job [0-9]+.*wait")
	fact("expected", "x .*as fast as through "+string(slow))
	// The plan that is needed first marks its forwarders, the others' plans none.
	b.open("http://" + s.TCP + "/overview")
	b.frames(1)
	b.until("the plan is the first need's", fmt.Sprintf(
		`document.querySelector('.need.first .buttons a')?.getAttribute('href') === '/plans/%s?act=approve'`, p.ID))
	_, _, body := b.exported("E")
	rows, err := csv.NewReader(bytes.NewReader(body)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if marked := row[len(row)-1] == ">"; marked != (row[0] == string(to)) {
			t.Errorf("%q", row)
		}
	}
}
