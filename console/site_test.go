package console_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"fairway/cmd/lab/simsite"
	"fairway/collector/topology"
	"fairway/console"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/webui/api"
	"fairway/webui/client"
)

// script is an operator at a terminal in front of a whole daemon, in a bubble whose clock begins at noon. Commands are
// run at once, so that a script needs no waiting.
type script struct {
	t       *testing.T
	site    *simsite.Site
	server  *client.Client
	wire    *wire
	model   tea.Model
	copied  string
	palette *chart.Palette
	quit    bool
	largest topology.JobID // of a slow site
}

// atNoon runs a test in a bubble of its own: time stands still there unless the test lets it go on.
func atNoon(t *testing.T, test func(*testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(noon.Add(-4 * time.Second)))
		test(t)
	})
}

// wire is what is between the console and the daemon: it notes the writes that were taken, and can be cut, answer
// something else or change what is read.
type wire struct {
	mu      sync.Mutex
	calls   []string
	cut     bool
	refused error         // answers every request
	mangle  func(any) any // changes what is read, in place
	next    http.Handler  // the daemon
	dial    func(context.Context) (net.Conn, error)
}

func (w *wire) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	refused, mangle := w.refused, w.mangle
	w.mu.Unlock()
	if refused != nil {
		api.WriteProblem(out, r, refused)
		return
	}
	verb := verbOf(r)
	if verb == "" && mangle == nil {
		w.next.ServeHTTP(out, r)
		return
	}
	rec := httptest.NewRecorder()
	w.next.ServeHTTP(rec, r)
	b := rec.Body.Bytes()
	if verb != "" && rec.Code < 300 {
		w.mu.Lock()
		w.calls = append(w.calls, verb)
		w.mu.Unlock()
	}
	var v any
	if d := json.NewDecoder(bytes.NewReader(b)); mangle != nil && d.Decode(&v) == nil {
		if changed, err := json.Marshal(mangle(v)); err == nil {
			b = changed
		}
	}
	for k, values := range rec.Header() {
		out.Header()[k] = values
	}
	out.Header().Del("Content-Length")
	out.WriteHeader(rec.Code)
	_, _ = out.Write(b) // the client is gone: nobody is left to read it
}

// verbOf says what a write wants, as "verb subject"; "" of a read.
func verbOf(r *http.Request) string {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/")
	switch {
	case r.Method == http.MethodGet:
		return ""
	case len(parts) == 3:
		return strings.ReplaceAll(parts[2], "rollback", "roll back") + " " + parts[1]
	case parts[0] == "exclusions":
		return map[string]string{http.MethodPut: "exclude ", http.MethodDelete: "return "}[r.Method] + parts[1]
	case parts[0] == "plans":
		var m api.ManualRemap
		b, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(b, &m)
		}
		r.Body = io.NopCloser(bytes.NewReader(b))
		return fmt.Sprintf("propose %s%v", m.To, map[bool]any{true: "", false: err}[err == nil])
	}
	return r.Method + " " + r.URL.Path
}

func (w *wire) Dial(ctx context.Context) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		return nil, &net.OpError{Op: "dial", Err: fmt.Errorf("connection refused")}
	}
	return w.dial(ctx)
}

// lose cuts the connection to the daemon, or gives it back.
func (s *script) lose(cut bool) {
	s.wire.mu.Lock()
	s.wire.cut = cut
	s.wire.mu.Unlock()
	s.server.Close()
}

// refuse lets the daemon answer every request with err; nil ends it.
func (s *script) refuse(err error) {
	s.wire.mu.Lock()
	s.wire.refused = err
	s.wire.mu.Unlock()
}

// layout is the site and the terminal of a script.
type layout struct {
	simsite.Options
	w, h   int
	colors chart.Colors
	secret string // "" is the operator's
	slow   bool   // with minutes of a past in which a forwarder became slow
	open   screen.Address
}

func newScript(t *testing.T, forwarders, w, h int) *script {
	return layout{Options: simsite.Options{Forwarders: forwarders, Compute: 4 * forwarders}, w: w, h: h}.start(t)
}

// newScriptAt is an operator who opens an address.
func newScriptAt(t *testing.T, a screen.Address) *script {
	return layout{Options: simsite.Options{Forwarders: 8, Compute: 32}, w: 120, h: 36, open: a}.start(t)
}

func (l layout) start(t *testing.T) *script {
	t.Helper()
	s := &script{t: t, wire: &wire{}}
	l.Offline, l.Steady = true, true
	l.Answers = func(next http.Handler) http.Handler { s.wire.next = next; return s.wire }
	if l.slow {
		s.site, _ = simsite.NewSlow(t, l.Options)
		s.largest = s.site.TellJobs(1000)
	} else {
		s.site = simsite.New(t, l.Options)
		for range 3 { // until the desk has seen who uses which forwarder
			s.comes()
		}
	}
	s.wire.dial = s.site.Dial
	if l.secret == "" {
		l.secret = simsite.OperatorSecret
	}
	s.server = client.Over(s.wire.Dial, l.secret)
	t.Cleanup(s.server.Close)
	if l.open.Page == "" {
		l.open.Page = "overview"
	}
	s.show(l)
	return s
}

// show opens another terminal on the same daemon.
func (s *script) show(l layout) {
	s.palette = chart.NewPalette(l.colors, false)
	s.model = console.NewModel(s.t.Context(), s.server, l.open, s.palette, time.Now,
		func(text string) { s.copied = text })
	s.send(tea.WindowSizeMsg{Width: l.w, Height: l.h})
}

// send gives the model a message and everything that follows from it.
func (s *script) send(msg tea.Msg) {
	m, cmd := s.model.Update(msg)
	s.model = m
	s.run(cmd)
}

func (s *script) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.QuitMsg:
		s.quit = true
	case tea.BatchMsg:
		for _, c := range msg {
			s.run(c)
		}
	default:
		s.send(msg)
	}
}

// second lets the next second come and shows it.
func (s *script) second() {
	s.comes()
	s.look()
}

// comes lets the next second come, which the console has not seen yet.
func (s *script) comes() {
	s.site.Second()
	time.Sleep(400 * time.Millisecond) // the server shows it
	synctest.Wait()
}

// seconds lets some seconds come, one after the other.
func (s *script) seconds(n int) {
	for range n {
		s.second()
	}
}

// look shows what the server knows now.
func (s *script) look() {
	o, err := s.server.Overview(s.t.Context())
	s.send(console.OverviewMsg(o, err, time.Now()))
}

// pass lets time go by without data.
func (s *script) pass(d time.Duration) {
	s.look()
	time.Sleep(d)
	s.send(tea.KeyMsg{Type: tea.KeyF20}) // no key of ours: the model looks at its clock
}

// press types keys by their names; "wait" lets a second go by, a word is typed letter by letter.
func (s *script) press(keys ...string) {
	named := map[string]tea.KeyType{"enter": tea.KeyEnter, "tab": tea.KeyTab, "esc": tea.KeyEsc,
		"backspace": tea.KeyBackspace, "up": tea.KeyUp,
		"down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight, "ctrl+c": tea.KeyCtrlC, "ctrl+u": tea.KeyCtrlU}
	for _, k := range keys {
		if k == "wait" {
			time.Sleep(time.Second)
			continue
		}
		if t, ok := named[k]; ok {
			s.send(tea.KeyMsg{Type: t})
			continue
		}
		if k == "space" {
			k = " "
		}
		for _, r := range k {
			s.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}})
		}
	}
}

func (s *script) view() string { return s.model.View() }

// screen is the view as a person copies it: without looks, without blanks at line ends.
func (s *script) screen() string {
	lines := strings.Split(ansi.Strip(s.view()), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func (s *script) sees(texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		if !strings.Contains(s.screen(), text) {
			s.t.Fatalf("the screen does not say %q:\n%s", text, s.screen())
		}
	}
}

func (s *script) lacks(texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		if strings.Contains(s.screen(), text) {
			s.t.Fatalf("the screen says %q:\n%s", text, s.screen())
		}
	}
}

// asked compares the writes that the daemon took.
func (s *script) asked(want ...string) {
	s.t.Helper()
	s.wire.mu.Lock()
	got := slices.Clone(s.wire.calls)
	s.wire.mu.Unlock()
	if !slices.Equal(got, want) {
		s.t.Fatalf("the server was asked %q, want %q\n%s", got, want, s.screen())
	}
}

// propose puts a plan on the desk that somebody else proposes: all clients of fwd001 to another forwarder.
func (s *script) propose(to topology.ForwarderID) api.PlanView {
	s.t.Helper()
	ada := client.Over(s.site.Dial, simsite.AdminSecret)
	defer ada.Close()
	p, err := ada.Propose(s.t.Context(), api.ManualRemap{Nodes: s.site.Machine.Topo.Default.Clients("fwd001"), To: to,
		Reason: "fwd001 is slow today"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.wire.mu.Lock()
	s.wire.calls = nil
	s.wire.mu.Unlock()
	return p
}

// accuse lets the loop find fwd001 slow.
func (s *script) accuse() {
	s.site.Says.Detector = simsite.Accuse("fwd001")
	s.seconds(7)
}

// approve approves the plan on screen, and lets the desk work.
func (s *script) approve() {
	s.press("tab", "ctrl+u", "because it is slow", "enter", "A", "wait", "A")
	s.seconds(4)
}

// reroutes lets a compute node of the waiting plan be moved by somebody else; the console has not seen it yet.
func (s *script) reroutes() {
	s.machine(func(m *simsite.Machine) { m.Routes["c00004"] = "fwd007" })
	s.comes()
}

// answers changes what the daemon answers of one object, wherever it is in an answer.
func (s *script) answers(id string, fields map[string]any) {
	var walk func(any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case map[string]any:
			for k := range v {
				v[k] = walk(v[k])
			}
			if v["id"] == id {
				maps.Copy(v, fields)
			}
		}
		return v
	}
	s.wire.mu.Lock()
	s.wire.mangle = walk
	s.wire.mu.Unlock()
	s.look()
}

// machine changes the machine under its lock.
func (s *script) machine(change func(*simsite.Machine)) {
	s.site.Machine.Mu.Lock()
	defer s.site.Machine.Mu.Unlock()
	change(s.site.Machine)
}

// blocks gives the terminal block graphics.
func (s *script) blocks() { s.palette.Blocks = true }
