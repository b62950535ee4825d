package browsertest_test

import (
	"context"
	"os"
	"testing"

	"github.com/chromedp/chromedp"
)

// chromium is the one browser of all tests: starting it takes longer than most of them.
var chromium sharedBrowser

func TestMain(m *testing.M) {
	code := m.Run()
	chromium.stop()
	os.Exit(code)
}

// sharedBrowser is started by the first test that needs it. The tests follow one another: no lock.
type sharedBrowser struct {
	ctx  context.Context
	ends []func() // the last one first
}

// start gives the browser. One that died is started anew, so that it fails one test and not all.
func (b *sharedBrowser) start(path string) (context.Context, error) {
	if b.ctx != nil && b.ctx.Err() == nil {
		return b.ctx, nil
	}
	b.stop()
	profile, err := os.MkdirTemp("", "chromium")
	if err != nil {
		return nil, err
	}
	b.ends = append(b.ends, func() { os.RemoveAll(profile) })
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.UserDataDir(profile), chromedp.Env("TMPDIR="+profile), chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("no-first-run", true), chromedp.Flag("disable-component-update", true))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), opts...)
	b.ends = append(b.ends, cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	b.ends = append(b.ends, cancel)
	b.ctx = ctx
	return ctx, chromedp.Do(ctx)
}

func (b *sharedBrowser) stop() {
	for i := len(b.ends) - 1; i >= 0; i-- {
		b.ends[i]()
	}
	b.ctx, b.ends = nil, nil
}
