package browsertest_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/cmd/lab/simsite"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"fairway/anomaly"
	"fairway/remap"
)

// tab is one page of a browser that fails its test on console errors.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	errors []string
	over   bool // the test is: its server may be gone
	// expect are words of errors that the test causes on purpose.
	expect []string
}

// newTab opens a tab with cookies, cache and storage of its own in the tests' browser. Without a browser
// the test is skipped, or fails where FAIRWAY_REQUIRE_BROWSER=1, or CI=true as root, says that there must
// be one.
func newTab(t *testing.T, width, height int64) *tab {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes some seconds a test")
	}
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("FAIRWAY_REQUIRE_BROWSER") == "1" || os.Getenv("CI") == "true" && os.Geteuid() == 0 {
			t.Fatal("FAIRWAY_REQUIRE_BROWSER=1 or CI=true, but chromium is missing: apt-get install chromium")
		}
		t.Skip("no chromium here (apt-get install chromium)")
	}
	browser, err := chromium.start(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(browser, 6*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	// Tests beside this one make and remove network interfaces, which Chromium says in the console.
	b := &tab{t: t, ctx: ctx, expect: []string{"net::ERR_NETWORK_CHANGED"}}
	messages := chromedp.Console(ctx)
	b.do(chromedp.EmulateViewport(width, height))
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.Type == chromedp.ConsoleError || m.Type == chromedp.ConsoleException {
				b.mu.Lock()
				if !b.over {
					b.errors = append(b.errors, fmt.Sprintf("%s (%s:%d)", m, m.URL, m.Line+1))
				}
				b.mu.Unlock()
			}
		}
	}()
	t.Cleanup(b.noErrors)
	return b
}

func (b *tab) noErrors() {
	b.mu.Lock()
	defer b.mu.Unlock()
next:
	for _, e := range b.errors {
		for _, word := range b.expect {
			if strings.Contains(e, word) {
				continue next
			}
		}
		b.t.Errorf("the page's console: %s", e)
	}
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// js evaluates an expression.
func js[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// patience is how long a test waits for what must come: a machine with other work takes its time.
const patience = 90 * time.Second

// until waits for an expression to become true. A page that is just left for another one cannot answer, and is asked
// again when the other one is there.
func (b *tab) until(what, expression string) {
	b.t.Helper()
	var last error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		is, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		switch {
		case is:
			return
		case err != nil && strings.Contains(err.Error(), "SyntaxError"):
			b.t.Fatalf("%s: %s: %v", what, expression, err)
		}
		last = err // what is not there yet, or a page that is going
	}
	b.shot("failed-" + strings.ReplaceAll(b.t.Name(), "/", "-"))
	b.t.Fatalf("never: %s (%v); the page says:\n%.2000s", what, last, js[string](b, "document.body.innerText"))
}

func (b *tab) says(text string) {
	b.t.Helper()
	b.until("the page says "+text, fmt.Sprintf("document.body.innerText.toLowerCase().includes(%q)",
		strings.ToLower(text)))
}

func (b *tab) open(url string) {
	b.t.Helper()
	b.t.Cleanup(func() { // comes before the server's, which was started before
		b.mu.Lock()
		b.over = true
		b.mu.Unlock()
	})
	b.do(chromedp.Navigate(url))
}

// key presses keys as a keyboard does: the character comes with the key going down, and not at all where
// the page keeps the key for itself.
func (b *tab) key(keys string) {
	b.t.Helper()
	for _, r := range keys {
		events := kb.Encode(r)
		if len(events) == 3 { // down, character, up
			down, char := *events[0], events[1]
			down.Text, down.UnmodifiedText = char.Text, char.UnmodifiedText
			events = []*input.DispatchKeyEventParams{&down, events[2]}
		}
		for _, e := range events {
			if _, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, *e); err != nil {
				b.t.Fatalf("press %q: %v", r, err)
			}
		}
	}
}

// shot keeps a picture where FAIRWAY_SCREENSHOTS says.
func (b *tab) shot(name string) {
	b.t.Helper()
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if len(png) < 2000 {
		b.t.Errorf("screenshot %s has %d bytes", name, len(png))
	}
	dir := os.Getenv("FAIRWAY_SCREENSHOTS")
	if dir == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) frames(n int) {
	b.t.Helper()
	b.until(fmt.Sprintf("%d live frames, shown", n), fmt.Sprintf(
		"Number(document.documentElement.dataset.frames) >= %d && !document.documentElement.matches('.opening')", n))
}

// noNote is shown at once, not after the time for which notes stay.
func (b *tab) noNote() {
	b.t.Helper()
	if js[bool](b, "document.getElementById('note').classList.contains('on')") {
		b.t.Errorf("the note is still there: %s", js[string](b, "document.getElementById('note').textContent"))
	}
}

const (
	enter     = "\r"
	arrowDown = "\u0301"
)

func TestBrowserShowsTheLayerAndMovesANode(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	s.Run(120)
	b := newTab(t, 1280, 800)
	begun := time.Now()
	b.open("http://" + s.TCP + s.SignInPath("olga", remap.Operator))
	b.frames(1)
	t.Logf("first data %v after the address was opened; first paint %.0f ms", time.Since(begun).Round(time.Millisecond),
		js[float64](b,
			"performance.getEntriesByType('paint').find(e => e.name === 'first-contentful-paint')?.startTime ?? -1"))
	b.frames(3)
	b.says("8 forwarders: ")
	b.says("olga (operator)")
	b.shot("overview")
	if strings.Contains(js[string](b, "location.href"), "signin") {
		t.Error("the sign-in code stays in the address")
	}
	// Walk: the second forwarder, its page, two clients, propose, choose, reason. Keys begin at the chosen one, else at
	// the slowest.
	b.open("http://" + s.TCP + "/overview?sel=fwd000")
	b.frames(1)
	b.key("l")
	b.until("the cursor moved", "location.search.includes('sel=fwd001')")
	b.key(enter)
	b.says("compute nodes on fwd001")
	b.until("series are drawn", "document.querySelectorAll('.chart canvas').length >= 4")
	b.shot("forwarder")
	b.key("s")
	b.says("1 chosen")
	b.key("p")
	b.says("Propose: move 1 client of fwd001")
	b.until("the best target is chosen, with why", "/fwd001 → fwd/.test(document.body.innerText) && "+
		"/the best of 7: (idle|busy)/.test(document.querySelector('tr.sel').innerText)")
	b.key("j")
	b.until("another is chosen", "!/the best of/.test(document.querySelector('tr.sel').innerText)")
	b.key(enter)
	b.key("too short")
	b.key(enter)
	b.says("Write a reason of 10 letters")
	b.key(", now long enough")
	b.noNote()
	b.shot("propose")
	b.key(enter)
	b.says("P-000001")
	b.says("You cannot approve: you proposed it")
	b.shot("plan-proposer")
	// Somebody else approves, with the page open.
	b.open("http://" + s.TCP + s.SignInPath("sam", remap.Operator))
	b.says("sam (operator)")
	b.frames(1)
	b.key("n")
	b.says("P-000001")
	b.until("Cancel has the focus", "document.activeElement.textContent === 'Cancel'")
	b.key("A") // the reason is filled in
	b.until("it asks once, with the focus on Cancel",
		"document.querySelector('dialog[open]') && document.activeElement.textContent === 'Cancel'")
	b.shot("plan-confirm")
	b.key(enter)
	b.until("Enter did not approve", "!document.querySelector('dialog[open]')")
	if p, err := s.Desk.Plan(t.Context(), "P-000001"); err != nil || p.State != remap.Proposed {
		t.Fatalf("after Enter the plan is %s (%v)", p.State, err)
	}
	b.key("A")
	b.until("it asks again", "document.querySelector('dialog[open]')")
	b.key("A")
	b.says("verified 1 of 1")
	if js[bool](b, "!!document.querySelector('dialog[open]')") {
		t.Error("the key that answered the question asked it again")
	}
	b.until("by whom it was approved",
		"[...document.querySelectorAll('dt')].some((e) => e.textContent === 'approved' && "+
			"e.nextSibling.textContent.startsWith('sam ('))")
	b.shot("plan-verified")
	b.open("http://" + s.TCP + "/audit")
	b.says("approve")
	b.until("what a person did is a line each, and the machine's steps one line, behind their count",
		"(() => { const lines = [...document.querySelectorAll('main tbody tr')].map((r) => r.innerText), "+
			"of = (who) => lines.filter((l) => l.includes('P-000001') && l.split('\\t')[2].includes(who)); "+
			"return of('sam').length === 1 && of('olga').length === 1 && "+
			"of('desk').length === 1 && /[0-9]+\\ssteps/.test(of('desk')[0]); })()")
	b.shot("audit")
	filter := func(actor, from string) {
		js[bool](b,
			fmt.Sprintf(
				"(() => { const f = document.querySelector('main form'); f.elements.actor.value = %q; "+
					"f.elements.from.value = %q; f.requestSubmit(); return true; })()", actor, from))
	}
	filter("nobody", "soon")
	b.says("from: soon is not a time")
	filter("nobody", "-2h")
	b.says("A name must be whole")
	b.until("the filter is in the address", "location.search === '?actor=nobody&from=-2h'")
	p, err := s.Desk.Plan(t.Context(), "P-000001")
	if err != nil {
		t.Fatal(err)
	}
	b.open("http://" + s.TCP + "/forwarders/" + string(p.Moves[0].To))
	b.says(string(p.Moves[0].Node))
	// Back goes without a reason, as in the terminal.
	b.open("http://" + s.TCP + "/plans/P-000001")
	b.says("B roll back (shift)")
	b.key("B")
	b.until("it asks once",
		"document.querySelector('dialog[open]')?.innerText.includes('goes back to fwd001')")
	b.key("B")
	b.says("rolled back 1 of 1")
}

func TestBrowserAtFullSize(t *testing.T) {
	if testing.Short() {
		t.Skip("41,000 nodes take a while")
	}
	s := simsite.New(t, simsite.Options{Forwarders: 240, Compute: 40960, Simulated: true})
	s.FindMu.Lock()
	s.Find = []anomaly.Finding{{ID: "F-0091", Node: "fwd113", Kind: anomaly.FailSlow, State: anomaly.Confirmed,
		Since: time.Now().Add(-4 * time.Minute), Confidence: 0.97,
		Sentence: "write service time 9.8x its peers at equal load, 240 of 252 s"}}
	s.FindMu.Unlock()
	s.Machine.Silent["fwd171"], s.Machine.Silent["fwd172"] = true, true
	s.Run(0)
	b := newTab(t, 1440, 900)
	b.expect = append(b.expect, "/findings/F-0091/incident") // of a finding out of nothing nothing is on record
	b.open("http://" + s.TCP + "/overview?metric=bw")
	b.frames(3)
	b.says("240 forwarders:")
	b.says("2 silent")
	b.says("SIMULATED")
	b.shot("overview-240")
	b.key("t")
	b.key("t")
	b.shot("overview-240-light")
	b.key("g")
	b.says("SRVms")
	b.shot("table-240")
	b.open("http://" + s.TCP + "/overview?view=compute")
	b.until("the compute grid is drawn", "document.querySelector('canvas[data-cells=\"40960\"]')")
	b.shot("compute-41k")
	b.open("http://" + s.TCP + "/forwarders/fwd171")
	b.says("never seen")
	b.shot("forwarder-silent")
}

func TestBrowserEmptyStatesSayWhatToDo(t *testing.T) {
	s := simsite.New(t, simsite.Options{Empty: true})
	b := newTab(t, 1100, 700)
	for path, says := range map[string]string{
		"/overview": "Start fairway-agent", "/plans": "press p to propose", "/findings": "minutes of data",
		"/jobs": "fairway hook", "/audit": "kept here for ever",
		"/occupancy": "fills as data arrives", "/forwarders/nosuch": "no such forwarding node",
		"/nonsense": "not an address of this console",
	} {
		b.mu.Lock()
		b.expect = append(b.expect, "404")
		b.mu.Unlock()
		b.open("http://" + s.TCP + path)
		b.says(says)
		b.shot("empty-" + strings.ReplaceAll(strings.Trim(path, "/"), "/", "-"))
	}
}

// A page that the server is slow to answer says that it waits, and one that cannot be read says what to
// do; the go box knows the pages that have no number.
func TestBrowserWaitsAndFails(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	s.Run(2)
	b := newTab(t, 1100, 700)
	b.open("http://" + s.TCP + "/overview")
	b.frames(1)
	js[bool](b,
		"(() => { const real = window.fetch; window.fetch = (...a) => "+
			"(String(a[0]).startsWith('/api/v1/plans') ? new Promise((ok) => { window.answer = () => "+
			"ok(real(...a)); }) : real(...a)); return true; })()")
	b.key("4")
	b.says("Opening /plans: the server has not answered yet")
	b.key("c/") // c is a key of the page that is left, / one of the page that comes
	js[bool](b, "(window.answer(), true)")
	b.says("No plan yet")
	b.until("keys act on the page that the tab names", "location.pathname === '/plans' && "+
		"document.activeElement.matches('main input[type=search]')")
	js[bool](b, "(document.activeElement.blur(), true)")
	b.until("the note is gone", "!document.getElementById('note').classList.contains('on')")
	js[bool](b,
		"(() => { const real = window.fetch; window.fetch = (...a) => "+
			"(String(a[0]).startsWith('/api/v1/audit') ? Promise.reject(new Error('no route')) : real(...a)); "+
			"return true; })()")
	b.key("5")
	b.says("Check that fairwayd runs")
	b.says("Press r to try again")
	// The go box leads away from it. The key that opens it may come twice, or late, into the box.
	b.key(":")
	b.until("the go box has the focus", "document.activeElement.matches('dialog[open] input')")
	b.key(":interf")
	b.until("interference is the first of its hits",
		"document.querySelector('dialog[open] [data-go]')?.innerText.toLowerCase().includes('interference')")
	b.key(enter)
	b.says("Interference of jobs")
}

func TestBrowserLosesTheServer(t *testing.T) {
	s := simsite.New(t, simsite.Options{})
	s.Run(0)
	b := newTab(t, 1100, 700)
	b.expect = append(b.expect, "ERR_CONNECTION_REFUSED", "WebSocket connection")
	b.open("http://" + s.TCP + "/overview")
	b.frames(2)
	s.HTTP.Close()
	s.Stop() // ends the live feeds
	b.says("disconnected, trying again")
	b.says("NO DATA since")
	b.says("look whether fairwayd runs")
	b.shot("lost")
}

// A server that stops without a word, as one that hangs: the page says that it lost it, and takes the
// numbers of a forwarder away.
func TestBrowserHearsNothing(t *testing.T) {
	s := simsite.New(t, simsite.Options{Steady: true})
	s.Run(2)
	b := newTab(t, 1100, 700)
	b.open("http://" + s.TCP + "/forwarders/fwd001")
	b.frames(2)
	const read = "[...document.querySelectorAll('dt')].map((e) => (e.textContent === 'read' ? " +
		"e.nextSibling.textContent : '')).join('')"
	b.until("it reads something", "/^[0-9]/.test("+read+")")
	js[bool](b, "(window.real = WebSocket, window.WebSocket = class { close() {} }, true)")
	js[bool](b, "(document.dispatchEvent(new Event('visibilitychange')), true)") // connects anew, to nothing
	b.says("disconnected, trying again")
	b.says("NO DATA since")
	b.until("no number is shown", read+".startsWith('-')")
	b.says("fwd001  silent")
	// It comes back by itself, and reads what it has missed.
	const asked = "performance.getEntriesByType('resource').filter((e) => " +
		"e.name.includes('/api/v1/forwarders/')).length"
	before := js[int](b, asked)
	js[bool](b, "(window.WebSocket = window.real, true)")
	b.until("it reads something again", "/^[0-9]/.test("+read+")")
	b.until("the missed seconds are read", fmt.Sprintf("%s > %d", asked, before))
}

// mega is the terminal's rule for MB/s (console/chart/format.go).
func mega(bytesPerSec float64) string {
	switch v := bytesPerSec / 1e6; {
	case v == 0:
		return "0"
	case v < 9.95:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.0f", v)
	}
}
