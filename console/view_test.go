package console_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"fairway/console/chart"
	"fairway/console/screen"
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

var sizes = []struct{ w, h int }{{120, 36}, {80, 24}}

// shot is a screen that a golden file keeps: of an address, after some keys.
type shot struct {
	name, address string
	keys          []string
}

// take compares a screen in every size.
func (s *script) take(c shot) {
	s.t.Helper()
	a, err := screen.ParseAddress(c.address)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, size := range sizes {
		s.show(layout{w: size.w, h: size.h, open: a})
		s.look()
		s.press(c.keys...)
		golden(s.t, fmt.Sprintf("%s-%dx%d", c.name, size.w, size.h), s.screen())
	}
}

// The screens of a machine of which one forwarder is slow, as the daemon's own detectors found it.
func TestScreens(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := layout{slow: true, w: 120, h: 36}.start(t)
		s.seconds(3)
		o := s.site.Picture.Snapshot().Overview
		finding, job := "", string(s.largest)
		for _, f := range o.Findings {
			if f.Kind.Accuses() && f.Open() {
				finding = f.ID
			}
		}
		for _, c := range []shot{
			{"overview", "/overview", nil},
			{"overview-cursor", "/overview", []string{"right", "right", "right", "m"}},
			{"table", "/overview?view=table", []string{">", "r"}},
			{"filter", "/overview", []string{"/", "s", "l", "o", "enter"}},
			{"forwarder", "/forwarders/fwd006", []string{"down", "down"}},
			{"forwarder-jobs", "/forwarders/fwd006", []string{"j", "down"}},
			{"forwarder-quiet", "/forwarders/fwd020", nil},
			{"propose", "/forwarders/fwd006", []string{"p", "down"}},
			{"replay", "/overview", []string{"H", "left", "{", "+", "+"}},
			{"replay-forwarder", "/forwarders/fwd006", []string{"H", "p"}},
			{"jobs", "/jobs", []string{"down"}},
			{"job", "/jobs/" + job, []string{"down"}},
			{"job-ended", "/jobs/87012", nil},
			{"runs", "/jobs/" + job + "/runs", []string{"down"}},
			{"job-propose", "/jobs/" + job, []string{"p"}},
			{"audit", "/audit", []string{"down"}},
			{"audit-filter", "/audit", []string{"/", "actor=dfra from=11:00", "enter"}},
			{"audit-filter-refused", "/audit", []string{"/", "sam", "enter"}},
			{"calendar", "/occupancy", []string{"m", "down"}},
			{"logs", "/logs", []string{"down"}},
			{"logs-all-reads", "/logs", []string{"w", "a", ">", "r"}},
			{"why", "/jobs/9/why", nil},
			{"why-unknown", "/jobs/10/why", nil},
			{"domains", "/jobs/9/domains", nil},
			{"shares", "/whatif", nil},
			{"pattern", "/whatif", []string{"tab"}},
			{"pattern-refused", "/whatif", []string{"tab", "e", "x", "enter"}},
			{"findings", "/findings", nil},
			{"findings-silence", "/findings", []string{"s"}},
			{"finding", "/findings/" + finding, nil},
			{"finding-dismiss", "/findings/" + finding, []string{"x", "no"}},
			{"plans", "/plans", nil},
			{"plan", "/plans", []string{"enter"}},
			{"plan-evidence", "/plans", []string{"enter", "e"}},
			{"plan-all", "/plans", []string{"enter", "d"}},
			{"help", "/overview", []string{"?"}},
			{"help-find", "/overview", []string{"?", "/", "plan"}},
			{"go", "/overview", []string{":", "fwd01"}},
			{"go-action", "/plans", []string{"enter", ":", "ap"}},
			{"requests", "/plans", []string{"@"}},
		} {
			s.take(c)
		}
		s.show(layout{w: 160, h: 48})
		s.blocks()
		s.look()
		golden(t, "overview-blocks-160x48", s.screen())
		plain := ansi.Strip(s.view())
		s.show(layout{w: 160, h: 48, colors: chart.TrueColor})
		s.blocks()
		s.look()
		if text := ansi.Strip(s.view()); text != plain {
			t.Errorf("colours change the text of a list with graphs:\n%s", text)
		}
		s.show(layout{w: 120, h: 36, open: screen.Address{Page: "findings"}})
		s.look()
		s.press("s", "its array rebuilds", "enter")
		s.second()
		s.take(shot{"findings-silent", "/findings", nil})
		s.show(layout{w: 120, h: 36, open: screen.Address{Page: "plans"}})
		s.look()
		s.press("enter")
		s.approve()
		s.take(shot{"plan-approved", "/plans", []string{"enter"}})
	})
}

// A layer of full size, in the terminals that a console is seen in, and in one that is too small.
func TestTheOverviewOfAFullLayer(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		s := newScript(t, 240, 120, 36)
		s.accuse()
		for _, size := range []struct{ w, h int }{{160, 48}, {120, 36}, {80, 24}, {72, 20}} {
			s.show(layout{w: size.w, h: size.h})
			s.look()
			golden(t, fmt.Sprintf("full-%dx%d", size.w, size.h), s.screen())
		}
		s.show(layout{w: 80, h: 24})
		s.pass(5 * time.Second)
		golden(t, "late-80x24", s.screen())
		s.lose(true)
		s.pass(7 * time.Second)
		golden(t, "no-data-80x24", s.screen())
	})
}

// Colours may group cells; they must not carry a fact of their own.
func TestColorsCarryNoFact(t *testing.T) {
	atNoon(t, func(t *testing.T) {
		plain := ""
		s := newScript(t, 16, 120, 36)
		s.accuse()
		for _, c := range []chart.Colors{chart.NoAttributes, chart.NoColors, chart.Colors16, chart.Colors256,
			chart.TrueColor} {
			s.show(layout{w: 120, h: 36, colors: c})
			s.look()
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
	})
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
	for seed := range uint64(12) {
		f.Add(seed, uint8(60+seed*29), uint8(5+seed*9), "name\x1b]0;owned\x07\n\t\u202e漢字")
	}
	keys := []string{"g", "m", "enter", "4", "p", "?", "@", ":", "tab", "down", "right", "backspace", "/", "esc",
		"space", "A", "x", "B", "d", "n", "<", "r", "f", "3", "a", "e", "1", "7", "8", "w", "o", "j", "C", "s", "2",
		"5", "6", "u", "H", "[", "C", "o", "j", "s", "w"}
	f.Fuzz(func(t *testing.T, seed uint64, w8, h8 uint8, text string) {
		atNoon(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			w, h := 20+int(w8)*280/255, 5+int(h8)*95/255
			s := newScript(t, 1+random.IntN(40), w, h)
			s.accuse()
			s.wire.mangle = func(v any) any { return mangled(v, text, random) }
			for range 40 {
				if random.IntN(3) == 0 {
					s.look()
				}
				s.press(keys[random.IntN(len(keys))])
				if random.IntN(20) == 0 {
					s.refuse(errors.New(text))
					s.pass(time.Duration(random.IntN(20)) * time.Second)
					s.refuse(nil)
				}
				check(t, s.view(), w, h)
			}
		})
	})
}

// mangled puts text in place of some of the strings that the server answers, at any depth.
func mangled(v any, text string, random *rand.Rand) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = mangled(v[i], text, random)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			v[k] = mangled(v[k], text, random)
		}
	case string:
		if _, err := time.Parse(time.RFC3339, v); err != nil && random.IntN(4) == 0 {
			return text
		}
	}
	return v
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
