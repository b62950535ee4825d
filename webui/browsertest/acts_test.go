package browsertest_test

import (
	"fmt"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/cmd/lab/simsite"
	"fairway/remap"
	"fairway/webui/access"
	"fairway/webui/api"
)

// Z takes back what the person did last, after asking once; what has no way back says so. W writes a note about a
// finding, which its life and its charts have.
func TestNotesAndUndoInTheBrowser(t *testing.T) {
	b := newTab(t, 1280, 800)
	b.expect = append(b.expect, "404", "409") // there is nothing to undo
	s := simsite.New(t, simsite.Options{})
	s.Run(120)
	s.AccuseInThePast()
	owner := func() string {
		life := get[api.FindingView](s, "/api/v1/findings/F-0001").Changes
		return life[len(life)-1].Finding.Owner
	}

	b.open("http://" + s.TCP + s.SignInPath("olga", remap.Operator))
	b.says("olga (operator)")
	b.key("Z")
	b.says("the audit has no act of olga in the last day")
	b.open("http://" + s.TCP + "/findings/F-0001")
	b.says("Life")
	b.says("olga (operator)")
	b.key("a")
	eventually(t, "it is olga's", func() bool { return owner() == "olga" })
	b.key("Z")
	b.until("it asks once, with the focus on Cancel",
		"document.querySelector('dialog[open]')?.innerText.includes('give F-0001 back') && "+
			"document.activeElement.textContent === 'Cancel'")
	b.key(enter)
	b.until("enter undoes nothing", "!document.querySelector('dialog[open]')")
	if owner() != "olga" {
		t.Fatal("enter undid an act")
	}
	b.key("Z")
	b.until("it asks again", "document.querySelector('dialog[open]')")
	b.key("Z")
	eventually(t, "it is nobody's", func() bool { return owner() == "" })

	b.key("W")
	b.until("a line to write in", "document.activeElement.matches('form.reason input')")
	b.key("its fan is broken" + enter)
	b.until("its life has the note", "[...document.querySelectorAll('main tbody tr')].some(r => "+
		"/note\\s+olga\\s+note: its fan is broken/.test(r.innerText))")
	b.key("Z")
	b.says("a note stays; write another one")
	s.FindMu.Lock()
	s.Find = s.Loop.Findings()
	s.FindMu.Unlock()
	for _, list := range []string{"/findings", "/overview", "/overview?view=table"} {
		b.open("http://" + s.TCP + list)
		b.until("the list at "+list+" has the note's sign and its words", "[...document.querySelectorAll("+
			"'td:first-child abbr')].some(e => e.textContent === 'N' && e.title.includes('olga: its fan is broken'))")
	}

	for i := range 6 { // in one second: their signs must not lie on each other
		if res, body := post(s, "/api/v1/findings/F-0001/notes", simsite.OperatorSecret,
			api.Note{Text: fmt.Sprint("note ", i), At: time.Now().Add(-20 * time.Second)}); res.StatusCode != 200 {
			t.Fatalf("%d %s", res.StatusCode, body)
		}
	}
	b.open("http://" + s.TCP + "/findings/F-0001")
	b.frames(1)
	b.until("the notes are on the chart", "document.querySelectorAll('.incident figure line.moved').length >= 7")
	if n := js[int](b, "[...document.querySelectorAll('.incident figure')].reduce((n, f) => { "+
		"const all = [...f.querySelectorAll('text.moved')].map(e => e.getBoundingClientRect()); "+
		"return n + all.filter((a, i) => all.some((b, k) => k < i && a.left < b.right && b.left < a.right && "+
		"a.top + 2 < b.bottom && b.top + 2 < a.bottom)).length; }, 0)"); n > 0 {
		t.Errorf("%d signs lie on others", n)
	}
	js[bool](b, "(document.querySelector('.incident figure').scrollIntoView(), true)")
	b.shot("notes")
}

// What is over has one age: since when it is over on its card, how long it lasted in lists. Before the first second
// nothing is known, which is not 0.
func TestWhatIsOverInTheBrowser(t *testing.T) {
	b := newTab(t, 1440, 900)
	b.expect = append(b.expect, "404") // nothing is on record of a finding out of nothing
	s := simsite.New(t, simsite.Options{})
	now := time.Now()
	s.FindMu.Lock()
	s.Find = []anomaly.Finding{{ID: "F-0001", Node: "fwd001", Kind: anomaly.FailSlow, State: anomaly.Returned,
		Since: now.Add(-17*time.Minute - 20*time.Second), Changed: now.Add(-5*time.Minute - 20*time.Second),
		Steps: []anomaly.Step{{State: anomaly.Confirmed, At: now.Add(-16 * time.Minute)}}}}
	s.FindMu.Unlock()
	s.Run(120)
	b.open("http://" + s.TCP + "/overview")
	b.frames(1)
	b.until("its card", "/over for 5m/.test(document.querySelector('.need.first .for')?.textContent) && "+
		"/it lasted 12m/.test(document.querySelector('.need.first .second').textContent)")
	if js[bool](b, "/17m/.test(document.querySelector('#page').innerText)") {
		t.Error("its age counts from its first second")
	}
	b.says("No bandwidth is known of the last 15 min") // the detectors have judged no second
	b.shot("over")
	b.key("3")
	b.until("the list", "/\\b12m\\b/.test(document.querySelector('main tbody tr')?.innerText)")
}

// A kiosk has no keys, so it names none. One that may see nothing says who can give it the right.
func TestAKioskNamesNoKeys(t *testing.T) {
	b := newTab(t, 1280, 800)
	s := simsite.New(t, simsite.Options{})
	s.Run(10)
	b.open("http://" + s.TCP + "/overview?kiosk")
	b.frames(2)
	b.says("colour: slowness")
	if js[bool](b, "document.querySelector('#summary').textContent.includes('(')") {
		t.Error("it names a key")
	}
	closed := simsite.New(t, simsite.Options{Access: func(a *access.Config) { a.Anonymous = "" }})
	closed.Run(3)
	b.expect = append(b.expect, "401", "WebSocket connection")
	b.open("http://" + closed.TCP + "/overview?kiosk")
	b.says("This screen has no right to see the machine")
	b.says(`access.anonymous = "viewer"`)
	if js[bool](b, "!!document.querySelector('dialog')") {
		t.Error("it opens a dialog that nobody can answer")
	}
	b.shot("kiosk-denied")
}
