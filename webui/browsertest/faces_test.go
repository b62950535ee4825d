package browsertest_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/simsite"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/console"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/webui/api"
	"fairway/webui/client"
)

// face is the terminal's model on the same daemon, as high as its longest list.
type face struct {
	t     *testing.T
	model tea.Model
}

func newFace(t *testing.T, s *simsite.Site, address string) *face {
	t.Helper()
	a, err := screen.ParseAddress(address)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New("http://"+s.TCP, simsite.ViewerSecret)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	f := &face{t, console.NewModel(t.Context(), c, a, chart.NewPalette(chart.NoAttributes, false),
		time.Now,
		func(string) {})}
	f.send(tea.WindowSizeMsg{Width: 160, Height: 60})
	o, err := c.Overview(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.send(console.OverviewMsg(o, nil, time.Now()))
	return f
}

// send gives the model a message and everything that follows from it.
func (f *face) send(msg tea.Msg) {
	m, cmd := f.model.Update(msg)
	f.model = m
	f.run(cmd)
}

func (f *face) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range msg {
			f.run(c)
		}
	default:
		f.send(msg)
	}
}

// column reads one column of the nth row of the terminal's table that begins with id: what stands under
// the title in the nearest line above that has it.
func (f *face) column(id string, nth int, title string) string {
	head, heads := -1, []rune(nil)
	for _, line := range strings.Split(f.model.View(), "\n") {
		if line != "" {
			line = " " + line[1:] // without the mark
		}
		if at := strings.Index(" "+strings.NewReplacer(" v", "  ", " ^", "  ").Replace(line)+" ",
			" "+title+" "); at >= 0 {
			head, heads = at, []rune(title)
		}
		if fields := strings.Fields(line); head >= 0 && len(fields) > 0 &&
			strings.TrimLeft(strings.TrimRight(fields[0], "!x?>d"), "!?>") == id {
			if nth--; nth >= 0 {
				continue
			}
			return under(line, head, head+len(heads))
		}
	}
	return ""
}

// under is the word of a line that touches the columns from..to.
func under(line string, from, to int) string {
	for _, w := range regexp.MustCompile(`\S+`).FindAllStringIndex(line, -1) {
		if w[0] < to && w[1] > from {
			return line[w[0]:w[1]]
		}
	}
	return ""
}

// browserTables are the page's tables as a person reads them: rows of title and text.
const browserTables = "" +
	"JSON.stringify([...document.querySelectorAll('#page table')].filter((t) => t.tHead).map((t) => " +
	"[...t.tBodies[0].rows].filter((r) => r.cells.length === t.tHead.rows[0].cells.length)\n" +
	"  .map((r) => Object.fromEntries([...r.cells].map((c, i) => " +
	"[t.tHead.rows[0].cells[i].textContent.replace(/\\s[v^]$/, ''), c.textContent.trim()])))))"

// twoFaces are the pages with the columns that show the same number: the browser's title, the terminal's.
var twoFaces = []struct {
	name, browser, terminal string
	key                     string // the browser's column that names the row
	rows                    int    // at least
	columns                 [][2]string
}{
	{"overview", "/overview", "/overview?view=table", "NODE", 8, [][2]string{{"OCC", "OCC"}, {"QUEUE", "QUEUE"}}},
	{"table", "/overview?view=table", "/overview?view=table", "NODE", 8, [][2]string{{"OCC", "OCC"}, {"READ", "READ"},
		{"WRITE", "WRITE"}, {"QUEUE", "QUEUE"}, {"MDms", "MDms"},
		{"SRVms", "SRVms"}, {"MD/s", "MD/s"}, {"ERR/s", "ERR/s"}, {"CLIENTS", "CN"}}},
	{"forwarder", "/forwarders/fwd001", "/forwarders/fwd001", "CLIENT", 4,
		[][2]string{{"READ MB/s", "READ"}, {"WRITE MB/s", "WRITE"}, {"MD/S", "MD/s"}, {"LATENCY ms", "LATms"}}},
	{"jobs", "/jobs", "/jobs", "JOB", 2, [][2]string{{"NODES", "NODES"}}},
	{"findings", "/findings", "/findings", "ID", 1, [][2]string{{"CONF", "CONF"}}},
	{"audit", "/audit", "/audit", "#", 1, [][2]string{{"#", "SEQ"}}},
	{"logs", "/logs", "/logs", "JOB", 1, [][2]string{{"PROCS", "PROCS"}, {"SMALL %", "SMALL%"},
		{"NONCONSEC %", "NONCONS%"}, {"COLL %", "COLL%"}, {"ONE FILE %", "ONEFILE%"}, {"OSTS", "OSTS"},
		{"PROCS/OST", "PROCS/OST"}}},
	{"why", "/jobs/9/why", "/jobs/9/why", "CRITICAL FILE", 2,
		[][2]string{{"FROM s", "FROM s"}, {"EXCLUSIVE s", "EXCLUSIVE s"}, {"OF I/O TIME %", "OF I/O TIME"}}},
	{"shares", "/whatif", "/whatif", "JOB", 2, [][2]string{{"NODES", "NODES"}, {"SHARE %", "SHARE %"}}},
}

// TestBothFacesAgree opens every page in a browser and in the terminal's model, on one daemon whose
// machine does the same in every second, and compares the numbers.
func TestBothFacesAgree(t *testing.T) {
	b := newTab(t, 1600, 1200)
	s := simsite.New(t, simsite.Options{Steady: true})
	s.FindMu.Lock()
	s.Find = []anomaly.Finding{{ID: "F-0091", Node: "fwd003", Kind: anomaly.FailSlow, State: anomaly.Confirmed,
		Since: time.Now().Add(-4 * time.Minute), Confidence: 0.97, Sentence: "write service time 9.8x its peers"}}
	s.FindMu.Unlock()
	s.Run(3)
	s.StartTwo()
	if res, body := post(s, "/api/v1/plans", simsite.OperatorSecret, api.ManualRemap{Nodes: []topology.NodeID{"c00004"},
		To: "fwd000", Reason: "fwd001 is slow today"}); res.StatusCode != 200 {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	for _, c := range twoFaces {
		b.open("http://" + s.TCP + c.browser)
		b.frames(1)
		b.until(fmt.Sprintf("%d rows of %s", c.rows, c.name),
			fmt.Sprintf(`JSON.parse(%s).flat().filter((r) => %q in r).length >= %d`, browserTables, c.key, c.rows))
		var tables [][]map[string]string
		if err := json.Unmarshal([]byte(js[string](b, browserTables)), &tables); err != nil {
			t.Fatal(err)
		}
		f, met := newFace(t, s, c.terminal), map[string]int{}
		for _, rows := range tables {
			for _, r := range rows {
				compareRow(t, f, c.name, r[c.key], met[r[c.key]], r, c.columns)
				met[r[c.key]]++
			}
		}
		if t.Failed() {
			t.Fatalf("the terminal's %s:\n%s", c.name, f.model.View())
		}
	}
	sameSentences(t, b, s)
}

// compareRow compares one row of the browser's, the nth of its name.
func compareRow(t *testing.T, f *face, page, name string, nth int, row map[string]string, columns [][2]string) {
	t.Helper()
	if name == "" {
		return // another table of the page
	}
	id := strings.TrimRight(strings.Fields(name + " ?")[0], "!x?>d")
	for _, c := range columns {
		inBrowser, ok := row[c[0]]
		if !ok {
			t.Errorf("%s: the browser's table has no column %q: %v", page, c[0], row)
			continue
		}
		want := strings.TrimSuffix(strings.TrimSpace(inBrowser), " %")
		if got := f.column(id, nth, c[1]); got != want {
			t.Errorf("%s, %s: the terminal's %s is %q, the browser's %s is %q", page, id, c[1], got, c[0], want)
		}
	}
}

// sameSentences compares the numbers that stand in sentences: where both faces say it, they say the same.
func sameSentences(t *testing.T, b *tab, s *simsite.Site) {
	t.Helper()
	for _, c := range []struct{ path, words string }{
		{"/plans/P-000001", `c00004 +fwd001 (->|→) fwd000`},
		{"/jobs/9/why", `I/O took \d[^.]*%\)`},
		{"/jobs/9/why", `[\d.]+ GB in [\d.]+ s of I/O, [\d.]+ [kMG]B/s`},
		{"/whatif", `no schedule computes more than \d+ % of the machine here, and \d+ % if`},
	} {
		b.open("http://" + s.TCP + c.path)
		b.frames(1)
		words := regexp.MustCompile(c.words)
		b.until("it says "+c.words, fmt.Sprintf("/%s/s.test(document.querySelector('#page').textContent)",
			strings.ReplaceAll(c.words, "/", `\/`)))
		f := newFace(t, s, c.path)
		if strings.HasPrefix(c.words, "no schedule") {
			f.send(tea.KeyMsg{Type: tea.KeyTab})
		}
		inBrowser, inTerminal := words.FindString(js[string](b, "document.querySelector('#page').textContent")),
			words.FindString(f.model.View())
		// In the browser an arrow is one letter: a narrow screen breaks no line within it.
		if one := strings.ReplaceAll(strings.Join(strings.Fields(inBrowser), " "), "→", "->"); one == "" ||
			one != strings.Join(strings.Fields(inTerminal), " ") {
			t.Errorf("%s: the browser says %q, the terminal %q\n%s", c.path, inBrowser, inTerminal, f.model.View())
		}
	}
}
