package browsertest_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"fairway/anomaly"
	"fairway/cmd/lab/simsite"
	"fairway/collector/topology"
	"fairway/remap"
	"fairway/remap/advise"
	"fairway/webui"
	"fairway/webui/access"
	"fairway/webui/api"
	"fairway/webui/client"
	"fairway/webui/sites"
)

// sharedTarget is slow for two sites.
const sharedTarget topology.NodeID = "scratch-OST0003"

// slowSite is a machine with a slow forwarder that a job waits for, which accuses the shared target, too.
func slowSite(t *testing.T, finding string) *simsite.Site {
	s := simsite.New(t, simsite.Options{})
	s.FindMu.Lock()
	for i, f := range []anomaly.Finding{
		{Node: "fwd003", Kind: anomaly.FailSlow, Sentence: "fwd003 is 9.8x slow at reading, for its load",
			Impact: []anomaly.Impact{{Job: "88000", Share: 0.9, CostSeconds: 340}}},
		{Node: sharedTarget, Kind: anomaly.TargetSlow,
			Sentence: string(sharedTarget) + " takes 6x as long as its peers"},
	} {
		f.ID, f.State, f.Confidence = fmt.Sprint(finding, i), anomaly.Confirmed, 0.97
		f.Since = time.Now().Add(-4 * time.Minute)
		s.Find = append(s.Find, f)
	}
	s.FindMu.Unlock()
	s.Run(3)
	return s
}

// hostileSite answers as a daemon whose names are attacks.
func hostileSite(t *testing.T) string {
	overview := api.Overview{At: time.Now().Add(time.Hour), Findings: []anomaly.Finding{{ID: evil, Node: sharedTarget,
		Kind: anomaly.TargetSlow, State: anomaly.Confirmed}}, Forwarders: make([]api.ForwarderRow, 3),
		Todo: api.Todo{Needs: []advise.Card{{Finding: evil, Stage: advise.Slow,
			Sentence: evil + strings.Repeat("W", 500), Victims: []advise.Victim{{Text: evil, Share: 7}}}}}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var v any = overview
		switch r.URL.Path {
		case "/api/v1/jobs":
			v = []api.JobRow{{Job: remap.Job{ID: evil, User: evil, App: evil}}}
		case "/api/v1/flow":
			v = map[string]any{"targets": []api.TargetUse{{Target: sharedTarget, Job: evil, WriteBytesPerSec: 3e9}}}
		}
		_ = json.NewEncoder(w).Encode(v)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// siteView starts a view of the places and returns its address.
func siteView(t *testing.T, places []client.Place) string {
	asked := client.NewSites(places)
	var links []api.Site
	for _, p := range places {
		links = append(links, api.Site{Name: p.Name, Addr: sites.URL(p.Addr)})
	}
	web, err := webui.NewOfSites(webui.SitesConfig{Access: access.Config{Anonymous: remap.Viewer}, Version: "test",
		Addresses: webui.Addresses{Sites: links}, Log: slog.New(slog.DiscardHandler),
		View: func() sites.View { return sites.Merge(asked.Answers(), time.Now()) }})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(web.HTTP(access.TCP).Handler)
	t.Cleanup(s.Close)
	done := make(chan struct{})
	go func() {
		defer close(done)
		asked.Run(t.Context(), func() []topology.NodeID {
			return append([]topology.NodeID{}, sites.Accused(asked.Answers())...)
		})
	}()
	t.Cleanup(func() { <-done })
	return s.URL
}

// TestSeveralSitesInTheBrowser: one page has what needs somebody at any site, and each link leads to that site's own
// page. One that is silent, and one whose names are attacks, cost their own rows.
func TestSeveralSitesInTheBrowser(t *testing.T) {
	b := newTab(t, 1440, 900)
	hpc1, calm := slowSite(t, "F-000"), simsite.New(t, simsite.Options{})
	calm.Run(3)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(simsite.ViewerSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	at := siteView(t, []client.Place{{Name: "hpc1", Addr: "http://" + hpc1.TCP, TokenFile: token},
		{Name: "hpc2", Addr: "http://" + calm.TCP, TokenFile: token}, {Name: "eve", Addr: hostileSite(t)},
		{Name: "gone", Addr: gone.URL}, {Name: "locked", Addr: "http://" + calm.TCP, TokenFile: token + "no"}})
	b.open(at)
	for _, text := range []string{"fwd003 is 9.8x slow", "nothing is known of gone and locked", "connection refused",
		"token file", "3 open findings", string(sharedTarget) + " is accused by hpc1"} {
		b.says(text)
	}
	for width, height := range map[int64]int64{1440: 900, 390: 844} {
		b.do(chromedp.EmulateViewport(width, height))
		for _, theme := range []string{"dark", "light"} {
			js[bool](b, fmt.Sprintf("(document.documentElement.dataset.theme = %q, dispatchEvent(new "+
				"Event('fairway-theme')), true)", theme))
			b.frames(2)
			b.shot(fmt.Sprint("sites-", width, "-", theme))
			for what, ask := range map[string]string{
				"a script ran":                   "window.owned === undefined",
				"a name became an element":       "!document.querySelector('img[src=x], #page script, #page b > b')",
				"the page is wider than its tab": "document.documentElement.scrollWidth <= innerWidth + 1",
				"a link runs a script":           "![...document.links].some(a => a.protocol === 'javascript:')",
			} {
				if !js[bool](b, ask) {
					t.Errorf("%d pixels wide, %s: %s", width, theme, what)
				}
			}
		}
	}
	js[bool](b, axe+"\n;window.faults = null, axe.run().then(r => { window.faults = r.violations.flatMap(v => "+
		"v.nodes.slice(0, 3).map(n => v.id + ': ' + n.html.slice(0, 160))); }), true")
	b.until("axe has looked", "window.faults")
	for _, f := range js[[]string](b, "window.faults") {
		t.Error(f)
	}
	b.key("n1?") // of a machine, which this server has not; and help
	b.says("copy address")
	b.key("\x1b")
	js[bool](b, "([...document.links].find(a => a.textContent.includes('hpc1: fwd003')).click(), true)")
	b.until("the finding at its own site",
		"location.host === '"+hpc1.TCP+"' && location.pathname === '/findings/F-0000'")
	b.expect = append(b.expect, "/findings/F-0000") // which is in the picture alone

	b.open(at + "/overview")
	b.expect = append(b.expect, at)
	b.says("No such page")
}

// TestSitesThatNobodyAnswersForInTheBrowser: the view that goes away is named in the bar, as a daemon is.
func TestSitesThatNobodyAnswersForInTheBrowser(t *testing.T) {
	b := newTab(t, 1000, 700)
	b.open(siteView(t, []client.Place{{Name: "hpc1", Addr: "http://127.0.0.1:1"}}))
	b.says("Nothing is known of 1 machine")
	b.frames(1)
	b.shot("sites-none")
	js[bool](b, "(window.fetch = () => Promise.reject(new Error('gone')), true)")
	b.says("disconnected")
	b.shot("sites-lost")
}
