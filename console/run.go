package console

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"fairway/console/chart"
	_ "fairway/console/early"
	"fairway/console/screen" // before bubbletea's initialisation
	"fairway/webui/api"
	"fairway/webui/client"
)

// Run shows the console on the terminal until the operator quits or ctx ends; it answers to keys. A guided one leads
// through an incident; demo is what OfDemo takes, empty of another console.
func Run(ctx context.Context, server *client.Client, first screen.Address, colors chart.Colors, keys *Keys,
	guided bool, demo string) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t, err := openTerminal()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.restore()) }()
	palette := chart.NewPalette(colors, chart.LightOf(os.Getenv))
	palette.Blocks = chart.BlocksOf(os.Getenv)
	c := &canvas{Model: NewModel(ctx, server, first, palette, time.Now, t.copy), paint: t.Paint}
	c.Use(keys)
	Keep(c.Model, listsFile(os.Getenv))
	if guided {
		Guide(c.Model)
	}
	OfDemo(c.Model, demo)
	// Signals are the caller's, by ctx: bubbletea's own handler sends into a loop that may have ended
	// and would then wait for ever. Its renderer looks 30 times a second whether there is something to
	// draw, which costs more than everything else that the console does; canvas draws when there is.
	p := tea.NewProgram(c, tea.WithContext(ctx), tea.WithInput(t.in), tea.WithOutput(t), tea.WithoutSignalHandler(),
		tea.WithoutRenderer())
	c.later = func(d time.Duration) { time.AfterFunc(d, func() { p.Send(paintMsg{}) }) }
	var others sync.WaitGroup
	others.Go(func() {
		server.Watch(ctx, func(o api.Overview, err error) { p.Send(OverviewMsg(o, err, time.Now())) })
	})
	others.Go(func() { t.sizes(ctx, p.Send) })
	_, err = p.Run()
	stopped := ctx.Err() != nil
	cancel()
	others.Wait()
	if stopped {
		return nil // the caller asked for it
	}
	return err
}

// sizes reports the terminal's size, now and whenever it changes, until ctx ends.
func (t *terminal) sizes(ctx context.Context, send func(tea.Msg)) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	defer signal.Stop(changed)
	for {
		if w, h, err := t.size(); err == nil {
			send(tea.WindowSizeMsg{Width: w, Height: h})
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// frameTime is the least time between two frames: faster ones are not seen, and a key waits for no
// longer than this.
const frameTime = time.Second / 30

// canvas draws the model when it has changed.
type canvas struct {
	*Model
	paint func(lines, shown []string, w int)
	later func(time.Duration) // sends a paintMsg
	drawn time.Time
	due   bool     // a paintMsg is on its way
	shown []string // the lines on screen; nil when that is not known
}

// paintMsg says that the time for the next frame has come.
type paintMsg struct{}

// Update gives the message to the model; bubbletea asks for the view after each.
func (c *canvas) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg.(type) {
	case paintMsg:
		c.due = false
		return c, nil
	case tea.WindowSizeMsg:
		c.shown = nil // terminals differ in what they do to it
	}
	_, cmd := c.Model.Update(msg)
	return c, cmd
}

// View paints; bubbletea itself has nothing to draw.
func (c *canvas) View() string {
	if c.due || c.w == 0 {
		return ""
	}
	if wait := frameTime - time.Since(c.drawn); wait > 0 {
		c.due = true
		c.later(wait)
		return ""
	}
	c.drawn = time.Now()
	lines := strings.Split(c.Model.View(), "\n")
	if !slices.Equal(lines, c.shown) {
		c.paint(lines, c.shown, c.w)
		c.shown = lines
	}
	return ""
}

// errNoTerminal says what the console needs.
var errNoTerminal = fmt.Errorf("%w: the console needs a terminal", api.ErrInvalid)
