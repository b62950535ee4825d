package chart

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"
)

// ramp is the colour of each tenth of a level, dark to light: ten even steps of cividis (Nuñez,
// Anderton and Renslow 2018), which colour-blind readers see in the same order. The browser has the same.
var ramp = [10][3]uint8{
	{0, 34, 78}, {18, 53, 112}, {59, 73, 108}, {87, 93, 109}, {112, 113, 115},
	{138, 134, 120}, {165, 156, 116}, {195, 179, 105}, {225, 204, 85}, {254, 232, 56},
}

// ramp256 is the ramp in xterm's 256 colours.
var ramp256 = [10]int{17, 24, 60, 242, 245, 144, 179, 185, 221, 227}

// ramp16 is what 16 colours allow: the digits carry the level, the colour only groups them.
var ramp16 = [10]int{44, 44, 44, 46, 46, 46, 47, 47, 103, 103}

// darkSteps are the numbers of ramp steps that need white digits: in true colours, in 256 and in 16.
const (
	darkSteps    = 5
	darkSteps256 = 4
	darkSteps16  = 3
)

// Colors says how much a terminal can show.
type Colors int

// The kinds of terminals. Every fact on every screen survives NoAttributes.
const (
	NoAttributes Colors = iota // TERM=dumb: plain text
	NoColors                   // NO_COLOR: bold, dim and reverse only
	Colors16
	Colors256
	TrueColor
)

// ColorsOf reads the usual environment variables.
func ColorsOf(getenv func(string) string) Colors {
	term := getenv("TERM")
	switch {
	case term == "dumb":
		return NoAttributes
	case getenv("NO_COLOR") != "":
		return NoColors
	case getenv("COLORTERM") == "truecolor", getenv("COLORTERM") == "24bit":
		return TrueColor
	case strings.Contains(term, "256color"), strings.HasPrefix(term, "tmux"), strings.HasPrefix(term, "screen"):
		return Colors256
	}
	return Colors16
}

// Palette holds the control sequence of every look, made once: building one per cell would cost
// more than the rest of a view.
type Palette struct {
	Level                          [10]string
	Reset, Bold, Dim, Reverse, Bad string
	// Slow, Suspect and Well are the looks of a forwarder's state, Accent that of what a key does and Frame that of
	// what is around the facts; they group what its words and signs say already.
	Slow, Suspect, Well, Accent, Frame string
	// Blocks says that the terminal has block graphics and round corners.
	Blocks bool
}

// BlocksOf reads from the usual environment variables whether a terminal shows more than ASCII.
func BlocksOf(getenv func(string) string) bool {
	if term := getenv("TERM"); term == "dumb" || term == "linux" || term == "" {
		return false
	}
	locale := strings.ToLower(cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG")))
	return strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
}

// token is one colour of the design: in true colours, 256 and 16, on a dark ground and on a light one.
type token struct{ dark, light lipgloss.CompleteColor }

func color(trueDark, trueLight, dark256, light256, dark16, light16 string) token {
	return token{lipgloss.CompleteColor{TrueColor: "#" + trueDark, ANSI256: dark256, ANSI: dark16},
		lipgloss.CompleteColor{TrueColor: "#" + trueLight, ANSI256: light256, ANSI: light16}}
}

// tokens are the colours of states and of what is around the facts, as the browser has them. Signs and words say the
// same to those who do not see red or green.
func tokens() (slow, suspect, well, accent, frame, dim token) {
	return color("ff7a59", "bf2f0b", "209", "124", "9", "1"), color("f2bd4b", "855700", "221", "94", "11", "3"),
		color("3fd0b6", "0b6e5c", "79", "29", "14", "6"), color("7ab0ff", "0a58ca", "111", "26", "12", "4"),
		color("3a4250", "bcc4cf", "238", "250", "8", "7"), color("a3adba", "505b69", "248", "240", "7", "8")
}

// look is the control sequence of a style, made once: rendering one for each cell costs more than the rest of a view.
func look(r *lipgloss.Renderer, t token, bold bool) string {
	adaptive := lipgloss.CompleteAdaptiveColor{Dark: t.dark, Light: t.light}
	before, _, _ := strings.Cut(r.NewStyle().Foreground(adaptive).Bold(bold).Render("x"), "x")
	return before
}

// LightOf reads whether the terminal's ground is light: FAIRWAY_THEME says so, else COLORFGBG; dark where neither does.
// The terminal itself is not asked: the first frame does not wait for an answer.
func LightOf(getenv func(string) string) bool {
	switch getenv("FAIRWAY_THEME") {
	case "light":
		return true
	case "dark":
		return false
	}
	fields := strings.Split(getenv("COLORFGBG"), ";")
	ground := fields[len(fields)-1]
	return ground == "7" || ground == "15"
}

// NewPalette makes the sequences for one kind of terminal, with a dark or a light ground.
func NewPalette(c Colors, light bool) *Palette {
	p := &Palette{}
	if c == NoAttributes {
		return p
	}
	p.Reset, p.Bold, p.Dim, p.Reverse = "\x1b[m", "\x1b[1m", "\x1b[2m", "\x1b[7m"
	p.Bad = "\x1b[1;7m"
	if profile, ok := map[Colors]termenv.Profile{Colors16: termenv.ANSI, Colors256: termenv.ANSI256,
		TrueColor: termenv.TrueColor}[c]; ok {
		r := lipgloss.NewRenderer(io.Discard)
		r.SetColorProfile(profile)
		r.SetHasDarkBackground(!light)
		slow, suspect, well, accent, frame, dim := tokens()
		p.Slow, p.Suspect, p.Well = look(r, slow, true), look(r, suspect, true), look(r, well, true)
		p.Accent, p.Frame, p.Dim = look(r, accent, true), look(r, frame, false), look(r, dim, false)
	} else {
		p.Slow, p.Suspect, p.Accent, p.Well = p.Bold, p.Bold, p.Bold, p.Bold
	}
	dark := map[Colors]int{TrueColor: darkSteps, Colors256: darkSteps256, Colors16: darkSteps16}[c]
	for i := range p.Level {
		digit := 97
		if i >= dark {
			digit = 30
		}
		switch c {
		case Colors16:
			p.Level[i] = fmt.Sprintf("\x1b[0;%d;%dm", digit, ramp16[i])
		case Colors256:
			p.Level[i] = fmt.Sprintf("\x1b[0;%d;48;5;%dm", digit, ramp256[i])
		case TrueColor:
			p.Level[i] = fmt.Sprintf("\x1b[0;%d;48;2;%d;%d;%dm", digit, ramp[i][0], ramp[i][1], ramp[i][2])
		}
	}
	return p
}

// Glyph is a sign in block graphics, or what every terminal has in its place.
func (p *Palette) Glyph(block, ascii string) string {
	if p.Blocks {
		return block
	}
	return ascii
}

// Painter writes text in looks, with a control sequence only where the look changes.
type Painter struct {
	strings.Builder
	reset, look string
}

// NewPainter begins without a look.
func NewPainter(p *Palette) *Painter { return &Painter{reset: p.Reset} }

// Wear changes the look of what follows; "" takes it off.
func (w *Painter) Wear(look string) {
	if look == w.look {
		return
	}
	if w.WriteString(look); look == "" {
		w.WriteString(w.reset)
	}
	w.look = look
}

// Painted is the whole text; no look goes on behind it.
func (w *Painter) Painted() string {
	w.Wear("")
	return w.String()
}

// Paint wraps text in a look; an empty text stays empty.
func (p *Palette) Paint(look, text string) string {
	if look == "" || text == "" {
		return text
	}
	return look + text + p.Reset
}
