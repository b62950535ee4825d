package browsertest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/simsite"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"fairway/collector/topology"
	"fairway/remap"
	"fairway/webui/api"
)

const (
	guideDoc    = "../../docs/guide.md"
	guideImages = "../../docs/img"
	maxPicture  = 256 << 10 // bytes
)

// guidePage is one picture of the guide, or a page that is looked at only.
type guidePage struct {
	name, path string
	says       []string
	ready      string // more that must be true
	picture    bool
	scroll     string // what the picture begins with
}

func guidePages(slow topology.ForwarderID, finding, plan string, job topology.JobID) []guidePage {
	then := time.Now().Add(-45 * time.Second).UTC().Format(time.RFC3339)
	return []guidePage{
		{"overview", "/overview", []string{"24 forwarders:", "SIMULATED", finding, "Slowest first",
			"Needs you"},
			"document.querySelector('.gridbox canvas')?.dataset.redrawMs", true, ""},
		{"forwarder", "/forwarders/" + string(slow), []string{string(slow) + "  SUSPECT", finding, "peers"},
			"document.querySelectorAll('.chart canvas').length >= 4", true, ""},
		{"finding", "/findings/" + finding, []string{"Who suffers", "Evidence beside its peers", "Life"},
			"document.querySelectorAll('.incident figure .own').length >= 4", false, ""},
		{"job", "/jobs/" + string(job), []string{"by policy dfra", "volume", "io-nodes", "Which way its bytes take"},
			"", true, ""},
		{"plan", "/plans/" + plan, []string{"Checks", "Map, before and after"},
			"document.querySelectorAll('.sankey .band').length > 0", true, "#map"},
		{"flow", "/overview?view=flow", []string{"The flow stops at the forwarder"},
			"document.querySelectorAll('.sankey .band').length > 3", false, ""},
		{"matrix", "/overview?view=matrix", []string{"Pairs", "PRESSURE"},
			"document.querySelectorAll('.matrix rect').length > 0", false, ""},
		{"replay", "/overview?metric=bw&at=" + then, []string{"REPLAY", "Actions are off"},
			"document.querySelector('.gridbox canvas')?.dataset.redrawMs", true, ""},
		{"compute", "/overview?view=compute", []string{"1024 compute nodes"},
			"document.querySelector('canvas[data-cells=\"1024\"]')", false, ""},
		{"table", "/overview?view=table", []string{"SRVms"}, "", false, ""},
		{"jobs", "/jobs", []string{string(job)}, "", false, ""},
		{"findings", "/findings", []string{finding}, "", false, ""},
		{"plans", "/plans", []string{plan}, "", false, ""},
		{"audit", "/audit", []string{"propose"}, "", false, ""},
		{"occupancy", "/occupancy", []string{"Occupancy over the last hour"}, "document.querySelector('main canvas')",
			false, ""},
		{"logs", "/logs", []string{"jobs"}, "document.querySelector('.parallel')", false, ""},
		{"whatif", "/whatif", []string{"Staggered I/O"}, "document.querySelector('.gantt')", false, ""},
	}
}

// TestGuide takes the pictures of docs/guide.md; with -update it keeps them. Every page must show what
// the guide says of it, in every size and theme, without an error and without what does not fit.
func TestGuide(t *testing.T) {
	if os.Getenv("FAIRWAY_LONG") == "" {
		t.Skip("skipped: takes the pictures of the guide: make prove")
	}
	b := newTab(t, 1280, 800)
	s, slow := simsite.NewSlow(t, simsite.Options{})
	s.Run(0)
	finding := ""
	for _, f := range s.Loop.Findings() {
		if f.Node == slow.Node() && f.Kind.Accuses() && f.Open() {
			finding = f.ID
		}
	}
	if finding == "" {
		t.Fatalf("%s is slow for %s and nobody found it: %+v", slow, simsite.SlowFor, s.Loop.Findings())
	}
	eventually(t, "routes are known", func() bool { return len(s.Situation().Observed) == 1024 })
	job := s.TellJobs(1000)
	var plans []api.PlanRow
	eventually(t, "the policy proposes",
		func() bool { plans = get[[]api.PlanRow](s, "/api/v1/plans"); return len(plans) > 0 })
	doc, err := os.ReadFile(guideDoc)
	if err != nil && !*update {
		t.Fatal(err)
	}
	b.open("http://" + s.TCP + s.SignInPath("olga", remap.Operator))
	b.says("olga (operator)")
	b.key("t") // dark
	b.key("t") // light
	for _, p := range guidePages(slow, finding, plans[len(plans)-1].ID, job) {
		b.open("http://" + s.TCP + p.path)
		b.frames(1)
		for _, text := range p.says {
			b.says(text)
		}
		if p.ready != "" {
			b.until(p.name+" is drawn", p.ready)
		}
		b.shot("guide-" + p.name)
		if p.picture {
			b.picture("guide-"+p.name+".png", p.scroll, doc)
		}
		b.fits(p.name)
	}
}

// TestGuideShowsAnEffect takes the guide's picture of what a move has brought: before, after, and what was expected by
// the finding.
func TestGuideShowsAnEffect(t *testing.T) {
	if os.Getenv("FAIRWAY_LONG") == "" {
		t.Skip("skipped: takes a picture of the guide: make prove")
	}
	b := newTab(t, 1280, 800)
	s, slow := simsite.NewSlow(t, simsite.Options{})
	s.Run(0)
	eventually(t, "routes are known", func() bool { return len(s.Situation().Observed) == 1024 })
	var to topology.ForwarderID
	for _, r := range get[api.Overview](s, "/api/v1/overview").Forwarders {
		if r.State == remap.ForwarderIdle && r.Plan == "" && to == "" {
			to = r.ID
		}
	}
	res, body := post(s, "/api/v1/plans", simsite.OperatorSecret, api.ManualRemap{
		Nodes: s.Situation().Observed.Clients(slow), To: to, Reason: "its jobs wait for it"})
	var p api.PlanView
	if err := json.Unmarshal(body, &p); err != nil || res.StatusCode != 200 {
		t.Fatalf("%d %v %s", res.StatusCode, err, body)
	}
	if res, body := post(s, "/api/v1/plans/"+p.ID+"/approve", simsite.AdminSecret,
		api.Decision{PreviewHash: p.PreviewHash, Reason: "agreed with olga"}); res.StatusCode != 200 {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	doc, err := os.ReadFile(guideDoc)
	if err != nil {
		t.Fatal(err)
	}
	b.open("http://" + s.TCP + s.SignInPath("olga", remap.Operator))
	b.says("olga (operator)")
	b.key("t") // dark
	b.key("t") // light
	b.open("http://" + s.TCP + "/plans/" + p.ID)
	b.until("before, after and what was expected have a bar each",
		"document.querySelectorAll('.effect > div:nth-child(2) meter').length === 3")
	b.says("(expected ")
	b.until("it is judged", "/helped|no effect|worse/.test(document.querySelector('.effect').textContent)")
	b.picture("guide-effect.png", ".effect", doc)
}

// picture checks one picture of the guide, and keeps it with -update.
func (b *tab) picture(name, scroll string, doc []byte) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(1200, 740))
	if scroll != "" { // as far up as the page goes with it still in sight
		js[bool](b, fmt.Sprintf("(document.querySelector(%q).scrollIntoView({ block: 'center' }), true)", scroll))
	}
	b.keep(name, doc)
}

// keep checks that the guide shows what is seen now, and keeps it with -update.
func (b *tab) keep(name string, doc []byte) {
	b.t.Helper()
	shot, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		b.t.Fatal(err)
	}
	var small bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, picture); err != nil {
		b.t.Fatal(err)
	}
	if small.Len() > maxPicture {
		b.t.Errorf("%s has %d bytes, at most %d", name, small.Len(), maxPicture)
	}
	if !bytes.Contains(doc, []byte("img/"+name)) && !*update {
		b.t.Errorf("%s does not show %s", guideDoc, name)
	}
	file := filepath.Join(guideImages, name)
	if *update {
		err = os.WriteFile(file, small.Bytes(), 0o644)
	} else {
		_, err = os.Stat(file)
	}
	if err != nil {
		b.t.Errorf("%v; go test ./webui/browsertest -run Guide -update takes it", err)
	}
}

// fits looks at the page in the sizes and themes that people have.
func (b *tab) fits(page string) {
	b.t.Helper()
	media := func(name, value string) chromedp.Action[chromedp.Void] {
		return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia,
				emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: name, Value: value}}})
			return err
		})
	}
	check := func(what string) {
		b.t.Helper()
		js[bool](b, "(dispatchEvent(new Event('resize')), true)")
		got := js[map[string]float64](b,
			"(() => { const d = document.documentElement; return { wide: d.scrollWidth - innerWidth, bar: "+
				"(n => n.offsetWidth > n.offsetHeight ? n.offsetHeight : 0)(document.querySelector('#bar nav')), "+
				"keys: "+
				"document.getElementById('keys').offsetHeight, wide_at: innerWidth }; })()")
		if got["wide"] > 0 {
			b.t.Errorf("%s, %s: %v pixels do not fit: %s", page, what, got["wide"],
				js[string](b,
					"[...document.querySelectorAll('main *, header *')].filter((e) => "+
						"e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll, "+
						"nav, .clients')).slice(0, 3).map((e) => e.outerHTML.slice(0, 120)).join(' | ')"))
		}
		if got["wide_at"] >= 1280 && got["bar"] > 30 {
			b.t.Errorf("%s, %s: the bar wraps, %v pixels high", page, what, got["bar"])
		}
		if os.Getenv("FAIRWAY_SCREENSHOTS") != "" {
			b.shot("fits-" + page + "-" + strings.ReplaceAll(what, " ", "-"))
		}
	}
	for _, size := range [][2]int64{{1920, 1080}, {390, 844}, {800, 600}, {1280, 800}} {
		b.do(chromedp.EmulateViewport(size[0], size[1]))
		check(fmt.Sprint(size[0], " wide"))
	}
	b.do(media("forced-colors", "active"))
	check("forced colours")
	b.do(media("forced-colors", "none"))
	js[bool](b, "(document.documentElement.dataset.theme = 'dark', dispatchEvent(new Event('fairway-theme')), true)")
	check("dark")
	low := js[string](b, contrastOf)
	js[bool](b, "(document.documentElement.dataset.theme = 'light', dispatchEvent(new Event('fairway-theme')), true)")
	if low += js[string](b, contrastOf); low != "" {
		b.t.Errorf("%s: too little contrast: %s", page, low)
	}
}

// contrastOf lists texts whose contrast is below 4.5, WCAG 2.1's level AA (section 1.4.3).
const contrastOf = `(() => {
` +
	"\tconst rgb = (c) => (c.match(/[\\d.]+/g) ?? []).map(Number), lum = ([r, g, b]) => [r, g, b].map((v) => { " +
	"v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }).reduce((s, v, i) => s + v * " +
	"[0.2126, 0.7152, 0.0722][i], 0);\n" +
	"\tconst under = (e) => { for (; e; e = e.parentElement) { const c = " +
	"rgb(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] > 0.99) return c; } return [255, 255," +
	" 255]; };\n" +
	`	const low = new Set();
	for (const e of document.querySelectorAll('header *, main *:not(svg *), footer *, #banner')) {
` +
	"\t\tif (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || !e.offsetParent || " +
	"e.closest('.sr, .skip, :disabled')) continue;\n" +
	"\t\tconst a = lum(rgb(getComputedStyle(e).color)), b = lum(under(e)), ratio = (Math.max(a, b) + 0.05) / " +
	"(Math.min(a, b) + 0.05);\n" +
	"\t\tif (ratio < 4.5) low.add(e.tagName + '.' + e.className + ' ' + ratio.toFixed(1) + ' ' + " +
	"e.textContent.slice(0, 20));\n" +
	`	}
	for (const e of document.querySelectorAll('main svg text, dialog *')) {
		if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
` +
	"\t\tconst before = e.previousElementSibling, on = e.classList.contains('on') && " +
	"getComputedStyle(before).fill; // a letter on a coloured cell\n" +
	"\t\tconst a = lum(rgb(e.closest('svg') ? getComputedStyle(e).fill : getComputedStyle(e).color)), b = " +
	"lum(on && on !== 'none' ? rgb(on) : under(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);" +
	"\n" +
	"\t\tif (ratio < 4.5) low.add(e.tagName + '.' + (e.getAttribute('class') ?? '') + ' ' + ratio.toFixed(1) + " +
	"' ' + e.textContent.slice(0, 20));\n" +
	`	}
	return [...low].slice(0, 5).join('; ');
})()`

// screenBlock is where a screen of the terminal stands in the guide.
var screenBlock = regexp.MustCompile(`(?s)<!-- screen ([\w-]+) -->\n.*?<!-- end -->\n`)

// terminalDoc is the page about the terminal.
const terminalDoc = "../../docs/terminal.md"

// The terminal's screens in the documents are those that the terminal's tests compare with.
func TestGuideShowsTheTerminalsScreens(t *testing.T) {
	for file, least := range map[string]int{terminalDoc: 1} {
		n := 0
		keepBlocks(t, file, screenBlock, func(name string) string {
			n++
			screen, err := os.ReadFile(filepath.Join("../../console/testdata", name+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("<!-- screen %s -->\n```\n%s\n```\n<!-- end -->\n", name, bytes.TrimRight(screen, "\n"))
		})
		if n < least {
			t.Errorf("%s has %d screens", file, n)
		}
	}
}

// keepBlocks compares the blocks of a document with what they should be; with -update it rewrites them.
func keepBlocks(t *testing.T, file string, blocks *regexp.Regexp, want func(name string) string) {
	t.Helper()
	doc, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	now := blocks.ReplaceAllFunc(doc, func(block []byte) []byte {
		n++
		return []byte(want(string(blocks.FindSubmatch(block)[1])))
	})
	switch {
	case n == 0:
		t.Errorf("%s has no place for %s", file, blocks)
	case bytes.Equal(doc, now):
	case *update:
		if err := os.WriteFile(file, now, 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is not as the terminal is; go test ./webui/browsertest -run Guide -update", file)
	}
}
