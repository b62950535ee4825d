package browsertest_test

import (
	"fmt"
	"testing"

	"fairway/cmd/lab/simsite"

	"github.com/chromedp/chromedp"

	"fairway/remap"
	"fairway/webui/api"
)

// escape as a keyboard sends it.
const escape = "\u001b"

// What a person says of a forwarder in the browser: why, then once whether; and nothing before that.
func TestJudgingInTheBrowser(t *testing.T) {
	b := newTab(t, 1280, 800)
	s := simsite.New(t, simsite.Options{})
	s.Run(60)
	eventually(t, "clients are shown", func() bool {
		return get[api.Overview](s,
			"/api/v1/overview").Forwarders[1].Clients == 4
	})
	s.AccuseInThePast()
	eventually(t, "the picture shows it",
		func() bool { return len(get[api.Overview](s, "/api/v1/overview").Findings) == 1 })
	excluded := func() bool { return len(s.Desk.Excluded()) > 0 }

	b.open("http://" + s.TCP + "/findings")
	b.says("F-0001")
	b.until("the row that keys act on is marked", "document.querySelector('main tr.sel')?.innerText.includes('F-0001')")
	b.key("e")
	b.says("only operators do that")
	if js[bool](b, "!document.querySelector('form.reason').hidden") {
		t.Error("a viewer is asked for reasons")
	}

	b.open("http://" + s.TCP + s.SignInPath("olga", remap.Operator))
	b.says("olga (operator)")
	b.open("http://" + s.TCP + "/forwarders/fwd001")
	b.says("healthy → suspect")
	b.frames(3)
	b.says("healthy → suspect") // the feed must not take it away
	b.key("e")
	b.says("Why: drain fwd001 for 4 h")
	b.key("broken" + enter)
	b.says("(6 of 10 letters)")
	b.key(escape)
	b.until("escape takes it back", "document.querySelector('form.reason').hidden")
	b.key("e")
	b.key("its disk is dying" + enter)
	b.until("it asks once, with the focus on Cancel",
		"document.querySelector('dialog[open]')?.innerText.includes('Drain fwd001') && "+
			"document.activeElement.textContent === 'Cancel'")
	b.shot("exclude")
	b.key(enter)
	b.says("Nothing was sent")
	if excluded() {
		t.Fatal("enter excluded a forwarder")
	}
	b.key("e")
	b.key("its disk is dying" + enter)
	b.until("it asks again", "document.querySelector('dialog[open]')")
	b.key("A")
	eventually(t, "it is excluded", excluded)
	b.says("fwd001  DRAINED")
	b.key("w")
	b.says("Life")

	b.key("s")
	b.says("for how long, and why (30m, 4h, 2d; 0 ends it)")
	b.do(chromedp.KeyEvent("its array rebuilds"))
	b.key(enter)
	b.says("silent until")
}

// A list opens as it was left, also its columns; what an address names comes first. A kiosk has nothing to press.
func TestListsAsTheyWereLeftAndAKioskInTheBrowser(t *testing.T) {
	b := newTab(t, 1280, 800)
	s := simsite.New(t, simsite.Options{})
	s.Run(60)
	table := "http://" + s.TCP + "/overview?view=table"
	heads := func(want bool) string {
		return fmt.Sprintf("[...document.querySelectorAll('main th')].some(e => e.innerText.startsWith('NODE')) === %t",
			want)
	}
	b.open(table)
	b.until("the list is there", heads(true))
	b.key("-")
	b.says("1 column hidden: show all (+)")
	b.until("the column that it was sorted by is gone", heads(false))
	b.key("/")
	b.key("fwd001" + enter)
	b.says("1 of 8 shown")
	b.open(table)
	b.says("1 of 8 shown")
	b.until("the address has what was kept", heads(false)+" && location.search.includes('filter=fwd001')")
	b.open(table + "&filter=fwd00")
	b.says("8 of 8 shown")
	b.key("+")
	b.until("all columns are back", heads(true))
	b.key(escape)
	b.until("the filter is gone", "!location.search.includes('filter')")

	b.open("http://" + s.TCP + "/overview?kiosk")
	b.until("the first screen", "document.querySelector('.need')?.innerText.includes('Nothing is known to be slow')")
	b.until("nothing can be pressed",
		"[...document.querySelectorAll('nav, footer, #range, .filter, main button, .button')]"+
			".filter(e => e.offsetParent && !e.matches('th button')).length === 0")
	b.key("4")
	b.frames(2)
	b.shot("kiosk")
	if at := js[string](b, "location.pathname"); at != "/overview" {
		t.Errorf("a key of a kiosk led to %s", at)
	}
}

// The go box finds what the terminal's finds, the best first, and does what a key of the page does.
func TestGoBoxInTheBrowser(t *testing.T) {
	b := newTab(t, 1280, 800)
	s := simsite.New(t, simsite.Options{})
	s.Run(60)
	s.AccuseInThePast()
	b.open("http://" + s.TCP + "/overview")
	b.says("3 findings (1)")
	first := func(typed, says string) {
		t.Helper()
		b.key(":")
		b.until("the go box has the focus", "document.activeElement.matches('dialog[open] input')")
		b.key(typed)
		b.until(says+" is the first of "+typed, "document.querySelector('dialog[open] tbody tr')?.innerText.includes('"+
			says+"')")
	}
	first("wd007", "fwd007")
	b.key(escape)
	first("f-0", "F-0001")
	b.key(escape)
	first("882", "job, the largest on")
	b.key(escape)
	first("metric", "on this page")
	b.key(enter)
	b.until("the metric is the next one", "location.search.includes('metric=occ')")
	first("F-0001", "fairway findings F-0001")
	b.key(enter)
	b.says("Life")
}

// A job whose logs nobody has taken in: the page says what to do.
func TestWhyWithoutALogInTheBrowser(t *testing.T) {
	b := newTab(t, 1280, 800)
	s := simsite.New(t, simsite.Options{})
	s.Run(1)
	b.open("http://" + s.TCP + "/jobs/nosuch/why") // and the browser notes no error
	b.says("No log of this job is in the archive")
	b.says("fairway import PATH")
}
