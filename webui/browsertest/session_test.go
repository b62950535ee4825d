package browsertest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"fairway/cmd/lab/simsite"
	"fairway/remap"
	"fairway/webui/access"
	"fairway/webui/api"
)

// beside opens another tab of the same browser: it has the first one's cookies, and no storage of it.
func (b *tab) beside() *tab {
	b.t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	b.t.Cleanup(cancel)
	return &tab{t: b.t, ctx: ctx}
}

// TestOtherMachinesInTheHeader: choosing one opens the same list there; nothing of it is on this page.
func TestOtherMachinesInTheHeader(t *testing.T) {
	other := simsite.New(t, simsite.Options{})
	other.Run(3)
	s := simsite.New(t, simsite.Options{Sites: []api.Site{{Name: "hpc2", Addr: "http://" + other.TCP}}})
	s.Run(3)
	b := newTab(t, 1000, 700)
	b.open("http://" + s.TCP + "/findings")
	b.until("the other one is offered", "document.querySelectorAll('#bar select option').length === 2")
	js[bool](b, "(c => (c.value = c.options[1].value, c.dispatchEvent(new Event('change'))))("+
		"document.querySelector('#bar select'))")
	b.until("the same list of the other machine is open", "location.origin === 'http://"+other.TCP+
		"' && location.pathname === '/findings' && !document.querySelector('#bar select')")
}

// TestTheCookieGoesToEveryPortAndOpensNothing signs in, and lets the same browser visit another port of the host, which
// gets the session's cookie. A second tab of the console is signed in by the first, and a sign-in in one tab is one in
// both.
func TestTheCookieGoesToEveryPortAndOpensNothing(t *testing.T) {
	s := simsite.New(t, simsite.Options{Access: func(a *access.Config) { a.Anonymous = "" }})
	s.Run(3)
	stolen := make(chan string, 10)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if c := r.Header.Get("Cookie"); c != "" {
			stolen <- c
		}
	}))
	defer other.Close()

	b := newTab(t, 1000, 700)
	b.expect = append(b.expect, "401") // before the page is signed in
	b.open("http://" + s.TCP + s.SignInPath("olga", remap.Operator))
	b.frames(1)
	b.says("olga (operator)")
	second := b.beside()
	second.open("http://" + s.TCP + "/overview")
	second.says("olga (operator)")
	second.frames(1)

	thief := b.beside()
	thief.open(other.URL)
	var cookie string
	select {
	case cookie = <-stolen:
	default:
		t.Fatal("the other port got no cookie: the test shows nothing")
	}
	if !strings.Contains(cookie, access.CookieName) {
		t.Fatalf("the other port got %q", cookie)
	}
	for _, c := range []struct{ method, path string }{{"GET", "/api/v1/overview"}, {"POST", "/api/v1/plans"}} {
		if res, body := s.Ask(c.method, c.path, "", nil, "Cookie", cookie, "Origin", "http://"+s.TCP,
			"Idempotency-Key", "k"); res.StatusCode != 401 {
			t.Errorf("%s %s with the cookie: %d %s", c.method, c.path, res.StatusCode, body)
		}
	}

	second.open("http://" + s.TCP + s.SignInPath("sam", remap.Operator))
	second.says("sam (operator)")
	js[bool](b,
		"(fetch('/api/v1/session', {headers: {'X-Fairway-Session': sessionStorage.getItem('fairway.session')}})"+
			".then(r => r.json()).then(v => window.who = v.name), true)")
	b.until("the first tab is sam, too", "window.who === 'sam'")
	b.do(chromedp.Reload())
	b.says("sam (operator)")
}

// A page that could not be fetched because the server was away is fetched again without a hand.
func TestPageComesBackByItself(t *testing.T) {
	b := newTab(t, 1280, 800)
	s := simsite.New(t, simsite.Options{})
	s.Run(60)
	b.open("http://" + s.TCP + "/overview")
	b.frames(1)
	js[bool](b, `(() => {
		const real = window.fetch;
		window.back = () => { window.fetch = real; };
		window.fetch = () => Promise.reject(new TypeError('Failed to fetch'));
		return true;
	})()`)
	b.key("2")
	b.says("This page could not be shown")
	js[bool](b, "window.back(), true")
	b.until("the jobs are shown", "document.title.startsWith('jobs')")
}
