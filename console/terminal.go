package console

import (
	"fmt"
	"os"
	"sync"

	"github.com/aymanbagabas/go-osc52/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
)

// terminal is the operator's terminal in raw mode, with one writer at a time: the clipboard's sequence
// must not land inside a frame.
type terminal struct {
	in  *os.File
	was *term.State

	mu  sync.Mutex // guards everything that follows
	out *os.File
}

// What the console asks of a terminal, and takes back: the alternate screen, no cursor, and marks
// around pasted text, and clicks and the wheel of the mouse.
const (
	takeScreen = ansi.SetAltScreenSaveCursorMode + ansi.HideCursor + ansi.SetBracketedPasteMode +
		ansi.SetNormalMouseMode + ansi.SetSgrExtMouseMode
	giveScreen = ansi.ResetSgrExtMouseMode + ansi.ResetNormalMouseMode + ansi.ResetBracketedPasteMode +
		ansi.ShowCursor + ansi.ResetAltScreenSaveCursorMode
)

// openTerminal takes the terminal; where standard input is something else, the process's own is read.
func openTerminal() (*terminal, error) {
	t := &terminal{in: os.Stdin, out: os.Stdout}
	if !term.IsTerminal(t.in.Fd()) {
		var err error
		if t.in, err = os.Open("/dev/tty"); err != nil {
			return nil, fmt.Errorf("%w: %w", errNoTerminal, err)
		}
	}
	var err error
	if t.was, err = term.MakeRaw(t.in.Fd()); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoTerminal, err)
	}
	_, err = t.Write([]byte(takeScreen))
	return t, err
}

// restore gives the terminal back as it was.
func (t *terminal) restore() error {
	_, err := t.Write([]byte(giveScreen))
	if err2 := term.Restore(t.in.Fd(), t.was); err == nil {
		err = err2
	}
	return err
}

func (t *terminal) size() (w, h int, err error) { return term.GetSize(t.out.Fd()) }

// Write is for those who write whole sequences.
func (t *terminal) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.out.Write(b)
}

// Paint brings lines to a screen of w columns; shown is what is there, nil when that is not known.
func (t *terminal) Paint(lines, shown []string, w int) {
	// A terminal that is gone ends the program by its signal; until then nobody reads it.
	_, _ = t.Write(frame(lines, shown, w))
}

// copy puts text on the operator's own clipboard, through ssh and tmux.
func (t *terminal) copy(text string) {
	seq := osc52.New(text)
	if os.Getenv("TMUX") != "" {
		seq = seq.Tmux()
	}
	// A terminal without a clipboard ignores it; there is nothing else to do about an error.
	_, _ = seq.WriteTo(t)
}
