package webui

import (
	"testing"
	"time"
)

// The way of a question: slow jobs as lines, a range on one axis, one job, its critical path.
func TestLogsInTheBrowser(t *testing.T) {
	b := newTab(t, 1280, 900)
	s := newSite(t, siteOptions{})
	s.run(2)
	eventually(t, "routes are known", func() bool { return len(s.board.Routes(time.Now())) == 32 })
	b.open("http://" + s.tcp + "/logs")
	b.says("40 of 40 jobs")
	if n := js[int](b, "document.querySelectorAll('.parallel .line').length"); n != 40 {
		t.Errorf("%d lines, want 40", n)
	}
	b.shot("logs")
	// The upper half of the first axis holds the faster jobs; its scale is logarithmic.
	b.until("a range is dragged", `(() => { const hit = document.querySelectorAll('.parallel .hit')[0], r = hit.getBoundingClientRect();
		const e = (type, y) => hit.dispatchEvent(new PointerEvent(type, { pointerId: 1, clientX: r.x + 5, clientY: y, bubbles: true }));
		hit.setPointerCapture = () => {}; hit.hasPointerCapture = () => true;
		e('pointerdown', r.y + 1); e('pointermove', r.y + r.height / 2); return true; })()`)
	b.until("lines outside the range fade", "document.querySelectorAll('.parallel .line.off').length > 3 && document.querySelectorAll('.parallel .line.off').length < 30")
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
