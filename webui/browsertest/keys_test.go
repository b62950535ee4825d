package browsertest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/simsite"
	"fairway/console"
	"fairway/webui/api"
)

// onlyTerminal are the keys that the terminal has on a page and the browser has not, and why.
var onlyTerminal = map[string]string{
	"overview":  "h l tab",             // the browser's arrows move too; its lists and its grid are not panels
	"forwarder": "j o A",               // both lists stand on the page; A answers what e asks in a line of the page
	"plan":      "A x B s e enter tab", // there while they can be done: the plan of this test is not the reader's
	"findings":  "A tab",               // a form of the page; open and closed ones stand in one list
	"finding":   "A",
	"pattern":   "tab", // both halves stand on one page
	"shares":    "tab enter",
	"runs":      "< > r - +", // by the heads of its columns; the keys move among the job's forwarders
}

// facePages are the terminal's pages and where the browser has them.
var facePages = map[string]string{
	"overview": "/overview", "forwarder": "/forwarders/fwd001", "plans": "/plans", "plan": "/plans/P-000001",
	"jobs": "/jobs", "job": "/jobs/9", "audit": "/audit", "findings": "/findings",
	"finding": "/findings/F-0001", "logs": "/logs", "calendar": "/occupancy", "why": "/jobs/9/why",
	"domains": "/jobs/9/domains", "runs": "/jobs/9/runs", "shares": "/whatif", "pattern": "/whatif",
}

// TestBothFacesKnowTheSameKeys holds each page's keys of the terminal against the browser's help.
func TestBothFacesKnowTheSameKeys(t *testing.T) {
	b := newTab(t, 1280, 800)
	s := simsite.New(t, simsite.Options{})
	s.Run(120)
	s.StartTwo()
	since := s.AccuseInThePast()
	if res, body := post(s, "/api/v1/plans", simsite.OperatorSecret,
		api.ManualRemap{Nodes: s.Machine.Topo.Default.Clients("fwd001")[:1], To: "fwd000",
			Reason: "fwd001 is slow today"}); res.StatusCode != 200 {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	rows := console.DefaultKeys().Rows()
	for page, path := range facePages {
		has := b.keysOf("http://" + s.TCP + path)
		var lacks []string
		for _, r := range rows {
			if !r.Replay && slices.Contains(r.On, page) {
				lacks = append(lacks, missingKeys(r.Keys, has)...)
			}
		}
		slices.Sort(lacks)
		for _, key := range slices.Compact(lacks) {
			if !slices.Contains(strings.Fields(onlyTerminal[page]), key) {
				t.Errorf("the terminal's page %s knows %q, %s in the browser does not: it knows %q", page, key, path,
					has)
			}
		}
	}
	has := b.keysOf(fmt.Sprintf("http://%s/overview?at=%s", s.TCP, since.UTC().Format(time.RFC3339)))
	for _, r := range rows {
		if r.Replay || r.On == nil {
			for _, key := range missingKeys(r.Keys, has) {
				t.Errorf("a replay in the terminal knows %q (%s), one in the browser does not: it knows %q", key,
					r.Does, has)
			}
		}
	}
}

// missingKeys are those of an action that a page's help lacks; of several for one thing, all of them
// only where none is there.
func missingKeys(keys, has []string) []string {
	same := map[string]string{"shift+left": "{", "shift+right": "}", "esc": "backspace", "=": "+", "ctrl+c": "q",
		"page-up": "up", "page-down": "down"}
	for _, key := range keys {
		if one := same[key]; slices.Contains(has, key) || one != "" && slices.Contains(has, one) {
			return nil
		}
	}
	return keys
}

// keysOf are the keys that the help of a page names.
func (b *tab) keysOf(url string) []string {
	b.t.Helper()
	b.open(url)
	b.frames(1)
	b.until(url+" is there",
		"document.querySelector('#page').textContent.length > 20 && "+
			"document.querySelector('#keys').textContent.includes('help')")
	b.key("?")
	b.until("the help is open", "document.querySelector('dialog .keys td')")
	return strings.Fields(js[string](b,
		"[...document.querySelectorAll('dialog .keys td:first-child')].map((e) => e.textContent).join(' ')"))
}
