package console

import (
	"context"
	"io"
	"os"
	"sync"
	"time"

	"github.com/aymanbagabas/go-osc52/v2"
	tea "github.com/charmbracelet/bubbletea"

	_ "fairway/console/early" // before bubbletea's initialisation
)

// framesPerSec is the most often the screen is written: half of it makes keys feel late (p99 over
// 100 ms), twice of it doubles the CPU.
const framesPerSec = 30

// Run shows the console on the terminal until the operator quits or ctx ends.
func Run(ctx context.Context, b Backend, first Address, colors Colors) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &screen{File: os.Stdout}
	m := NewModel(ctx, b, first, NewPalette(colors), time.Now, func(text string) { copyText(out, text) })
	// Signals are the caller's, by ctx: bubbletea's own handler sends into a loop that may have ended
	// and would then wait for ever.
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithAltScreen(), tea.WithFPS(framesPerSec), tea.WithOutput(out), tea.WithoutSignalHandler())
	var watch sync.WaitGroup
	watch.Go(func() {
		b.Watch(ctx, func(o Overview, err error) { p.Send(OverviewMsg(o, err, time.Now())) })
	})
	_, err := p.Run()
	stopped := ctx.Err() != nil
	cancel()
	watch.Wait()
	if stopped {
		return nil // the caller asked for it
	}
	return err
}

// screen is the terminal with one writer at a time: the clipboard's sequence must not land inside
// a frame.
type screen struct {
	*os.File
	mu sync.Mutex
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.File.Write(b)
}

// copyText puts text on the operator's own clipboard, through ssh and tmux.
func copyText(w io.Writer, text string) {
	seq := osc52.New(text)
	if os.Getenv("TMUX") != "" {
		seq = seq.Tmux()
	}
	// A terminal without a clipboard ignores it; there is nothing else to do about an error.
	_, _ = seq.WriteTo(w)
}
