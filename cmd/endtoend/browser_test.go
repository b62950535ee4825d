package endtoend

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// page is one page of a browser.
type page struct {
	t     *testing.T
	ctx   context.Context
	close context.CancelFunc
}

// openBrowser starts a browser with a fresh profile.
func openBrowser(t *testing.T, url string) *page {
	t.Helper()
	profile, err := os.MkdirTemp("", "c") // short: sockets lie below it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(profile) })
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("chromium"), chromedp.NoSandbox,
		chromedp.UserDataDir(profile), chromedp.Env("TMPDIR="+profile), chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("no-first-run", true), chromedp.Flag("disable-component-update", true))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, cancel := chromedp.NewContext(alloc)
	p := &page{t: t, ctx: ctx, close: func() { cancel(); stop() }}
	t.Cleanup(p.close)
	p.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(url))
	return p
}

func (p *page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

func (p *page) open(url string) { p.t.Helper(); p.do(chromedp.Navigate(url)) }

// text is what a person can read on the page.
func (p *page) text() string {
	p.t.Helper()
	s, err := chromedp.Run(p.ctx, chromedp.Evaluate[string]("document.body?.innerText ?? ''"))
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

func (p *page) await(what string, see func(text string) bool) {
	p.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		s := p.text()
		if see(s) {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("the browser never shows %s; the page says:\n%.3000s", what, s)
		}
	}
}

// says waits until the page holds all of the words at once, in any case.
func (p *page) says(words ...string) {
	p.t.Helper()
	p.await(strings.Join(words, " and "), func(s string) bool {
		for _, w := range words {
			if !strings.Contains(strings.ToLower(s), strings.ToLower(w)) {
				return false
			}
		}
		return true
	})
}

// seesBandwidth is the terminal's, in the browser's list.
func (p *page) seesBandwidth(listed int, busy ...string) {
	p.t.Helper()
	seen := map[string]bool{}
	p.await("bandwidth "+strings.Join(busy, " "), func(s string) bool {
		return bandwidth(moved(s), listed, seen, busy)
	})
}
