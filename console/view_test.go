package console_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/console/chart"
	"fairway/remap"
	"fairway/webui/api"
)

var update = flag.Bool("update", false, "rewrite the golden screens")

func TestMain(m *testing.M) {
	time.Local = time.UTC // screens show the operator's zone
	flag.Parse()
	os.Exit(m.Run())
}

// noon is the time of every test.
var noon = time.Date(2026, 11, 21, 12, 4, 31, 0, time.UTC)

// golden compares a screen with its file; -update rewrites it.
func golden(t *testing.T, name, screen string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(screen+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if screen+"\n" != string(want) {
		t.Errorf("%s differs (go test ./console -update rewrites it, look at the diff):\n%s", name, screen)
	}
}

var sizes = []struct{ w, h int }{{120, 36}, {80, 24}, {72, 20}, {200, 50}}

func TestScreens(t *testing.T) {
	screens := []struct {
		name string
		keys []string
		do   func(*script)
	}{
		{"overview", nil, nil},
		{"overview-cursor", []string{"right", "right", "right", "m"}, nil},
		{"table", []string{"g", ">", "r"}, nil},
		{"filter", []string{"/", "s", "u", "s", "enter"}, nil},
		{"simulated", nil, func(s *script) {
			s.fake.Do(func(o *api.Overview) { o.Simulated = true })
			s.second()
			s.sees("SIMULATED")
		}},
		{"no-data", nil, func(s *script) {
			s.fake.Lose(fmt.Errorf("%w: connection refused", api.ErrUnreachable))
			s.pass(12 * time.Second)
		}},
		{"late", nil, func(s *script) { s.pass(5 * time.Second) }},
		{"forwarder", []string{"right", "right", "right", "enter", "down", "down"}, nil},
		{"forwarder-jobs", []string{"right", "right", "right", "enter", "j", "down"}, nil},
		{"forwarder-backend", []string{"right", "right", "right", "enter", "o", "down"}, nil},
		{"forwarder-quiet", []string{"right", "enter"}, nil},
		{"forwarder-canary", []string{"right", "right", "right", "enter", "C", "wait", "C"}, nil},
		{"propose", []string{"right", "right", "right", "p", "down"}, nil},
		{"replay", []string{"H", "left", "{", "+", "+"}, nil},
		{"replay-forwarder", []string{"H", "right", "right", "enter", "p"}, nil},
		{"jobs", []string{"2", "down"}, nil},
		{"job", []string{"2", "enter", "down"}, nil},
		{"job-ended", []string{"2", "down", "enter"}, nil},
		{"runs", []string{"2", "enter", "u", "down"}, nil},
		{"job-metadata", []string{"2", "enter", "down"}, func(s *script) { s.fake.MetaJob = true }},
		{"runs-metadata", []string{"2", "enter", "u", "down"}, func(s *script) { s.fake.MetaJob = true }},
		{"runs-none", []string{"2", "down", "enter", "u"}, nil},
		{"job-propose", []string{"2", "enter", "p"}, nil},
		{"audit", []string{"5", "down"}, nil},
		{"audit-filter", []string{"5", "/", "actor=sam from=11:00", "enter"}, nil},
		{"audit-filter-refused", []string{"5", "/", "sam", "enter"}, nil},
		{"calendar", []string{"6", "down"}, nil},
		{"logs", []string{"7", "down"}, nil},
		{"logs-all-reads", []string{"7", "w", "a", ">", "r"}, nil},
		{"why", []string{"7", "enter"}, nil},
		{"why-unknown", []string{"7", "down", "enter"}, nil},
		{"domains", []string{"7", "enter", "d"}, nil},
		{"domains-given", []string{"2", "enter", "d", "m", "e", "servers=5 aggregators=3", "enter", "down", "down"},
			nil},
		{"domains-missing", []string{"2", "enter", "d", "m"}, nil},
		{"domains-none", []string{"2", "down", "enter", "d"}, nil},
		{"shares", []string{"8"}, nil},
		{"shares-by-user", []string{"right", "enter", "8", "m", "m"}, nil},
		{"shares-in-force", nil, func(s *script) { s.fake.Gathered = true; s.press("8") }},
		{"pattern", []string{"8", "tab"}, nil},
		{"pattern-refused", []string{"8", "tab", "e", "x", "enter"}, nil},
		{"findings", []string{"3"}, nil},
		{"findings-silence", []string{"3", "s"}, nil},
		{"findings-silent", nil, func(s *script) {
			s.press("3", "s", "its array rebuilds", "enter")
			s.fake.Do(func(o *api.Overview) { o.Forwarders[3].Plan = "P-000001" })
			s.second()
		}},
		{"finding", []string{"3", "enter"}, nil},
		{"finding-dismiss", []string{"3", "enter", "x", "no"}, nil},
		{"plans", []string{"4"}, nil},
		{"plan", []string{"4", "enter"}, nil},
		{"plan-evidence", []string{"4", "enter", "e"}, nil},
		{"plan-all", []string{"4", "enter", "d"}, nil},
		{"plan-approved", []string{"4", "enter", "tab", "because it is slow", "enter", "A", "wait", "A"}, nil},
		{"plan-partial", []string{"4", "enter", "tab", "because it is slow", "enter", "A", "wait", "A"},
			func(s *script) { s.fake.Verify = remap.Partial }},
		{"help", []string{"?"}, nil},
		{"go-action", []string{"4", "enter", ":", "ap"}, nil},
		{"help-find", []string{"?", "/", "plan"}, nil},
		{"go", []string{":", "fwd11"}, nil},
		{"requests", []string{"4", "@"}, nil},
	}
	for _, sc := range screens {
		for _, size := range sizes {
			t.Run(fmt.Sprintf("%s-%dx%d", sc.name, size.w, size.h), func(t *testing.T) {
				s := newScript(t, 240, size.w, size.h)
				s.fake.AddPlan(api.ManualRemap{Nodes: nodes(6), To: "fwd200", Reason: "fwd001 is slow today"},
					"sam")
				s.second()
				if sc.do != nil {
					sc.do(s)
				}
				s.press(sc.keys...)
				golden(t, fmt.Sprintf("%s-%dx%d", sc.name, size.w, size.h), s.screen())
			})
		}
	}
}

func nodes(n int) (out []topology.NodeID) {
	for i := range n {
		out = append(out, topology.NodeID(fmt.Sprintf("c%d", i+1)))
	}
	return out
}

// Colours may group cells; they must not carry a fact of their own.
func TestColorsCarryNoFact(t *testing.T) {
	plain := ""
	for _, c := range []chart.Colors{chart.NoAttributes, chart.NoColors, chart.Colors16, chart.Colors256,
		chart.TrueColor} {
		s := newScriptColors(t, 240, 120, 36, c)
		s.second()
		text := ansi.Strip(s.view())
		if c == chart.NoAttributes {
			plain = text
			if s.view() != text {
				t.Error("a dumb terminal got a control sequence")
			}
		} else if text != plain {
			t.Errorf("colours %d change the text", c)
		}
		if c == chart.NoColors && (strings.Contains(s.view(), ";48;") || strings.Contains(s.view(), "\x1b[0;3")) {
			t.Error("NO_COLOR got a colour")
		}
	}
}

func TestColorsOf(t *testing.T) {
	for _, c := range []struct {
		env  string
		want chart.Colors
	}{
		{"TERM=dumb COLORTERM=truecolor", chart.NoAttributes}, {"TERM=xterm-256color NO_COLOR=1", chart.NoColors},
		{"TERM=xterm-256color", chart.Colors256}, {"TERM=xterm", chart.Colors16},
		{"TERM=xterm COLORTERM=truecolor", chart.TrueColor},
		{"", chart.Colors16}, {"TERM=screen", chart.Colors256},
	} {
		get := func(name string) string {
			for _, v := range strings.Fields(c.env) {
				if k, val, _ := strings.Cut(v, "="); k == name {
					return val
				}
			}
			return ""
		}
		if got := chart.ColorsOf(get); got != c.want {
			t.Errorf("%q: %d, want %d", c.env, got, c.want)
		}
	}
}

// Whatever a server says, no screen is wider or higher than the terminal and nothing that came
// from outside reaches the terminal as a control sequence.
func FuzzScreensFit(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed, uint8(60+seed*9), uint8(5+seed*3), "name\x1b]0;owned\x07\n\t\u202e漢字")
	}
	keys := []string{"g", "m", "enter", "4", "p", "?", "@", ":", "tab", "down", "right", "backspace", "/", "esc",
		"space", "A", "x", "B", "d", "n", "<", "r", "f", "3", "a", "e", "q1", "7", "8", "w", "o", "j", "C", "s", "2",
		"5", "6", "u", "H", "[", "C", "o", "j", "s", "w"}
	f.Fuzz(func(t *testing.T, seed uint64, w8, h8 uint8, text string) {
		random := rand.New(rand.NewPCG(seed, 2))
		w, h := 20+int(w8)*280/255, 5+int(h8)*95/255
		s := newScript(t, random.IntN(400), w, h)
		s.fake.Foreign = text
		s.fake.AddPlan(api.ManualRemap{Nodes: nodes(random.IntN(200)), To: topology.ForwarderID(text),
			Reason: text}, text)
		s.fake.Do(func(o *api.Overview) {
			o.Machine, o.User = text, text
			for i := range o.Forwarders {
				if random.IntN(9) == 0 {
					r := &o.Forwarders[i]
					r.ID, r.TopJob, r.Rack, r.State = topology.ForwarderID(text), topology.JobID(text), text,
						remap.ForwarderState(text)
					r.Values.Set(collector.ReadBytes, nil)
				}
			}
			for i := range o.Findings {
				o.Findings[i].Sentence, o.Findings[i].ID, o.Findings[i].Node = text, text, topology.NodeID(text)
			}
		})
		if random.IntN(3) > 0 {
			s.second()
		}
		for range random.IntN(8) {
			key := keys[random.IntN(len(keys))]
			if key == "q1" { // quitting ends a script
				key = "1"
			}
			s.press(key)
			if random.IntN(6) == 0 {
				s.fake.Lose(errors.New(text))
				s.pass(time.Duration(random.IntN(20)) * time.Second)
			}
			check(t, s.view(), w, h)
		}
		check(t, s.view(), w, h)
	})
}

func check(t *testing.T, screen string, w, h int) {
	t.Helper()
	lines := strings.Split(screen, "\n")
	if len(lines) != h {
		t.Fatalf("%d lines on a terminal of %d:\n%s", len(lines), h, screen)
	}
	for _, l := range lines {
		if n := ansi.StringWidth(l); n > w {
			t.Fatalf("a line of %d columns on a terminal of %d: %q", n, w, l)
		}
		if strings.ContainsAny(ansi.Strip(l), "\x1b\x07\r\t\u202e") || strings.Contains(l, "\x1b]") {
			t.Fatalf("a control character from outside: %q", l)
		}
	}
}
