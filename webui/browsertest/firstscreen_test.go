package browsertest_test

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"fairway/remap"
	"fairway/remap/advise"
	"fairway/webui/client"
)

// demo is a demo that runs, as its printed lines name it.
type demo struct {
	http, addr string
	name       string // of its pictures
	slow       []string
}

var (
	browserLine = regexp.MustCompile(`(?m)^browser: (http://\S+)/ `)
	addrLine    = regexp.MustCompile(`--addr (unix:\S+)`)
	slowLine    = regexp.MustCompile(`msg="one node is slow now" node=(\S+)`)
)

// findDemo reads what a demo printed, and beside its socket which nodes it has made slow.
func findDemo(t *testing.T, printed string) *demo {
	t.Helper()
	text, err := os.ReadFile(printed)
	if err != nil {
		t.Fatal(err)
	}
	browser, addr := browserLine.FindStringSubmatch(string(text)), addrLine.FindStringSubmatch(string(text))
	if browser == nil || addr == nil {
		t.Fatalf("%s is not what a demo prints:\n%s", printed, text)
	}
	d := &demo{http: browser[1], addr: addr[1], name: "demo"}
	if bytes.Contains(text, []byte("SIMULATED")) {
		d.name = "hour"
	}
	log, err := os.ReadFile(filepath.Join(filepath.Dir(strings.TrimPrefix(d.addr, "unix:")), "demo.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range slowLine.FindAllStringSubmatch(string(log), -1) {
		d.slow = append(d.slow, m[1])
	}
	if len(d.slow) == 0 {
		t.Fatalf("the demo has made nothing slow:\n%s", log)
	}
	return d
}

// signInPath signs its first visitor in as whom the socket knows this test.
func (d *demo) signInPath(t *testing.T) string {
	t.Helper()
	c, err := client.New(d.addr, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	link, err := c.SignInLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(link.Address)
	if err != nil {
		t.Fatal(err)
	}
	return "/#" + address.Fragment
}

// known are the first page's needs of the demo's slow nodes, as the daemon has them: where nobody waits at this moment
// it has no need. One that is not confirmed is the detector's failure.
func (d *demo) known(t *testing.T) (needs map[string]advise.Card) {
	t.Helper()
	c, err := client.New(d.addr, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	o, err := c.Overview(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	needs = map[string]advise.Card{}
	for _, n := range o.Needs {
		if slices.Contains(d.slow, string(n.Node)) {
			needs[string(n.Node)] = n
		}
	}
	for i := range o.Forwarders {
		r := &o.Forwarders[i]
		if !slices.Contains(d.slow, string(r.ID)) {
			continue
		}
		t.Logf("%s is %s; its need: %+v", r.ID, r.State, needs[string(r.ID)])
		if r.State != remap.ForwarderSlow {
			t.Errorf("%s was made slow and is %s", r.ID, r.State)
		}
	}
	return needs
}

// TestFirstScreens looks at the first screen of a running demo: both faces, each at the desk and in a small window.
// Whatever the demo made slow must be named there with who suffers and what helps. With -update the pictures are kept
// in docs. .ci/firstscreens starts a demo and waits for the moment.
func TestFirstScreens(t *testing.T) {
	printed := os.Getenv("FAIRWAY_DEMO")
	if printed == "" {
		t.Skip(".ci/firstscreens looks at a demo; FAIRWAY_DEMO names the file of what the demo has printed")
	}
	d := findDemo(t, printed)
	b := newTab(t, 1440, 900)
	b.open(d.http + d.signInPath(t))
	b.says("(admin)")
	for _, size := range [][2]int64{{1440, 900}, {390, 844}} {
		b.do(chromedp.EmulateViewport(size[0], size[1]))
		b.open(d.http + "/overview")
		b.frames(3)
		b.until("the charts are drawn", "document.querySelectorAll('.strip4 canvas').length === 4")
		b.until("the minutes of the slow are drawn",
			"document.querySelector('section[aria-label=hottest] svg.spark .own')")
		// What makes and removes network interfaces on this machine cuts the page off for a moment.
		b.until("it is live", "/LIVE/.test(document.getElementById('bar').innerText) && "+
			"!/disconnected/.test(document.getElementById('bar').innerText)")
		name := fmt.Sprintf("%s-%dx%d", d.name, size[0], size[1])
		needs := d.known(t)
		d.answers(t, name, js[string](b, inSight), needs)
		d.keep(b, name)
	}
	for _, size := range [][2]int{{120, 36}, {80, 24}} {
		name := fmt.Sprintf("%s-%dx%d", d.name, size[0], size[1])
		needs := d.known(t)
		screen := d.terminal(t, size[0], size[1])
		plain := looks.ReplaceAllString(screen, "")
		t.Logf("%s:\n%s", name, plain)
		if !regexp.MustCompile(`[▁-█]{5}`).MatchString(plain) {
			t.Errorf("%s shows no trend", name)
		}
		d.answers(t, name, unframed(plain), needs)
		b.open("about:blank")
		js[bool](b, fmt.Sprintf("(document.open(), document.write(%q), document.close(), true)", asHTML(t, screen)))
		box := js[[]int64](b, "(({ width, height }) => [Math.ceil(width), Math.ceil(height)])"+
			"(document.querySelector('pre').getBoundingClientRect())")
		b.do(chromedp.EmulateViewport(box[0], box[1]))
		d.keep(b, name)
	}
}

// inSight is the text that is seen without scrolling and that nothing covers.
const inSight = `(() => {
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
	const out = [];
	for (let n; (n = walker.nextNode()); ) {
		if (!n.textContent.trim()) continue;
		range.selectNodeContents(n);
		const r = range.getBoundingClientRect();
		if (r.width < 2 || r.top < 0 || r.left < 0 || r.bottom > innerHeight || r.right > innerWidth) continue;
		const on = document.elementFromPoint(r.left + r.width / 2, r.top + r.height / 2);
		if (on && (on.contains(n) || n.parentElement.contains(on))) out.push(n.textContent);
	}
	return out.join(' ');
})()`

var (
	health  = regexp.MustCompile(`\b([1-9]\d*) forwarders? slow\b`)
	guilty  = regexp.MustCompile(`\b\S+ is (?:over )?[\d.]+x slow\b`)
	victims = regexp.MustCompile(`\bwaits? (?:no more|\d+ %)`)
	helps   = regexp.MustCompile(`\b(?:move|drain|look)\b.*?\b[Aepn]\b`)
)

// answers asks a screen the five questions. Its trend is not text.
func (d *demo) answers(t *testing.T, name, text string, needs map[string]advise.Card) {
	t.Helper()
	text = strings.Join(strings.Fields(text), " ")
	if m := health.FindStringSubmatch(text); m == nil || m[1] != fmt.Sprint(len(d.slow)) {
		t.Errorf("%s does not say that %d forwarders are slow: %q", name, len(d.slow), text)
	}
	for _, slow := range d.slow {
		if len(needs[slow].Victims) == 0 {
			if !strings.Contains(text, "!"+slow) && !strings.Contains(text, slow+"!") &&
				!strings.Contains(text, slow+" is ") {
				t.Errorf("%s does not name %s, for which nobody waits any more, as slow: %q", name, slow, text)
			}
			continue
		}
		at := -1
		for _, m := range guilty.FindAllStringIndex(text, -1) {
			if strings.HasPrefix(text[m[0]:], slow+" ") {
				at = m[1]
				break
			}
		}
		if at < 0 {
			t.Errorf("%s does not say how slow %s is: %q", name, slow, text)
			continue
		}
		about := text[at:]
		if next := guilty.FindStringIndex(about); next != nil {
			about = about[:next[0]]
		}
		for what, words := range map[string]*regexp.Regexp{"who suffers": victims, "what helps": helps} {
			if !words.MatchString(about) {
				t.Errorf("%s does not say of %s %s: %q", name, slow, what, about)
			}
		}
	}
}

// terminal is what the console shows after some seconds in a terminal of its own, with its colours.
func (d *demo) terminal(t *testing.T, width, height int) string {
	t.Helper()
	tmux := func(args ...string) string {
		t.Helper()
		c := exec.Command("tmux", append([]string{"-L", "firstscreens", "-f", "/dev/null"}, args...)...)
		c.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "COLORTERM=truecolor")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %s: %v: %s", args, err, out)
		}
		return string(out)
	}
	console, err := filepath.Abs("../../bin/fairway")
	if err != nil {
		t.Fatal(err)
	}
	tmux("new-session", "-d", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), console+" --addr "+d.addr, ";",
		"set", "-g", "status", "off")
	defer tmux("kill-server")
	screen := ""
	eventually(t, "the console shows the list with its minutes", func() bool {
		screen = tmux("capture-pane", "-e", "-p")
		plain := looks.ReplaceAllString(screen, "")
		return strings.Contains(plain, "SLOW") && regexp.MustCompile(`(?m)^>.*[▁-█]{5}`).MatchString(plain)
	})
	return screen
}

// unframed are the lines of a screen's need, without what is beside them.
func unframed(screen string) string {
	var out []string
	for line := range strings.Lines(screen) {
		if _, right, ok := strings.Cut(line, "││"); ok {
			line = strings.TrimSuffix(strings.TrimSpace(right), "│")
		}
		out = append(out, line)
	}
	return strings.Join(out, " ")
}

// looks are the sequences that change how a terminal's text looks.
var looks = regexp.MustCompile(`\x1b\[([\d;]*)m`)

// asHTML is a terminal's screen as a page, with the colours that xterm has.
func asHTML(t *testing.T, screen string) string {
	t.Helper()
	out := "<!doctype html><style>body { margin: 0 } pre { margin: 0; padding: 6px 8px; width: max-content; " +
		"background: #14171c; color: #d6d9de; font: 14px/17px 'DejaVu Sans Mono' }</style><pre>"
	var l look
	at := 0
	for _, m := range looks.FindAllStringSubmatchIndex(screen, -1) {
		out += l.span(screen[at:m[0]])
		l.change(t, screen[m[2]:m[3]])
		at = m[1]
	}
	return out + l.span(screen[at:]) + "</pre>"
}

// look is how text looks; a colour that is not set is the page's.
type look struct {
	bold, dim, reverse bool
	fore, back         string
}

// change follows one sequence.
func (l *look) change(t *testing.T, sequence string) {
	t.Helper()
	codes := strings.Split(cmp.Or(sequence, "0"), ";")
	for i := 0; i < len(codes); i++ {
		code, err := strconv.Atoi(codes[i])
		if err != nil {
			t.Fatalf("the look %q: %v", sequence, err)
		}
		switch {
		case code == 0:
			*l = look{}
		case code == 1:
			l.bold = true
		case code == 2:
			l.dim = true
		case code == 7:
			l.reverse = true
		case code == 39:
			l.fore = ""
		case code == 49:
			l.back = ""
		case code >= 30 && code <= 37:
			l.fore = xterm(code - 30)
		case code >= 40 && code <= 47:
			l.back = xterm(code - 40)
		case code >= 90 && code <= 97:
			l.fore = xterm(code - 90 + 8)
		case code >= 100 && code <= 107:
			l.back = xterm(code - 100 + 8)
		case (code == 38 || code == 48) && len(codes) > i+2 && codes[i+1] == "5":
			n, err := strconv.Atoi(codes[i+2])
			if err != nil {
				t.Fatalf("the look %q: %v", sequence, err)
			}
			l.paint(code, xterm(n))
			i += 2
		case (code == 38 || code == 48) && len(codes) > i+4 && codes[i+1] == "2":
			l.paint(code, fmt.Sprintf("rgb(%s)", strings.Join(codes[i+2:i+5], ",")))
			i += 4
		default:
			t.Fatalf("the look %d in %q is not known", code, sequence)
		}
	}
}

func (l *look) paint(code int, colour string) {
	if code == 38 {
		l.fore = colour
	} else {
		l.back = colour
	}
}

// basic are the first of xterm's 256 colours.
var basic = [16]string{"#000", "#cd0000", "#00cd00", "#cdcd00", "#0000ee", "#cd00cd", "#00cdcd", "#e5e5e5",
	"#7f7f7f", "#f00", "#0f0", "#ff0", "#5c5cff", "#f0f", "#0ff", "#fff"}

// xterm is one of xterm's 256 colours: the basic ones, a cube, greys.
func xterm(n int) string {
	part := func(v int) int {
		if v == 0 {
			return 0
		}
		return 55 + 40*v
	}
	switch {
	case n < 16:
		return basic[n]
	case n < 232:
		n -= 16
		return fmt.Sprintf("rgb(%d,%d,%d)", part(n/36), part(n/6%6), part(n%6))
	}
	return fmt.Sprintf("rgb(%d,%[1]d,%[1]d)", 8+10*(n-232))
}

func (l *look) span(text string) string {
	fore, back := cmp.Or(l.fore, "inherit"), cmp.Or(l.back, "inherit")
	if l.reverse {
		fore, back = cmp.Or(l.back, "#14171c"), cmp.Or(l.fore, "#d6d9de")
	}
	style := fmt.Sprintf("color:%s;background:%s", fore, back)
	if l.bold {
		style += ";font-weight:bold"
	}
	if l.dim {
		style += ";opacity:.6"
	}
	return fmt.Sprintf(`<span style="%s">%s</span>`, style, html.EscapeString(text))
}

// keep writes a picture for the guide, which must show it.
func (d *demo) keep(b *tab, name string) {
	b.t.Helper()
	doc, err := os.ReadFile(guideDoc)
	if err != nil {
		b.t.Fatal(err)
	}
	b.keep(name+".png", doc)
}
