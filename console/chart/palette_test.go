package chart

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// xterm16 are xterm's own first sixteen colours, those that a level uses.
var xterm16 = map[int][3]uint8{30: {0, 0, 0}, 97: {255, 255, 255}, 44: {0, 0, 238}, 46: {0, 205, 205},
	47: {229, 229, 229}, 103: {255, 255, 0}}

// xterm256 is one of the 256 colours: a cube of 6x6x6 behind the sixteen, then greys.
func xterm256(n int) [3]uint8 {
	if n >= 232 {
		v := uint8(8 + 10*(n-232))
		return [3]uint8{v, v, v}
	}
	side := func(k int) uint8 {
		if k == 0 {
			return 0
		}
		return uint8(55 + 40*k)
	}
	n -= 16
	return [3]uint8{side(n / 36), side(n / 6 % 6), side(n % 6)}
}

// luminance and contrast are WCAG 2.1's.
func luminance(c [3]uint8) (sum float64) {
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		v := float64(c[i]) / 255
		if v <= 0.03928 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		sum += weight * v
	}
	return sum
}

func contrast(a, b [3]uint8) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// A level brings its own ground; all other text is on the terminal's. So
// light and dark terminals show the same, if each digit can be read on its step (WCAG 2.1, 1.4.3: 4.5).
func TestEveryDigitCanBeReadOnItsColour(t *testing.T) {
	look := regexp.MustCompile(`^\x1b\[0;(\d+);(?:(4\d|10\d)|48;5;(\d+)|48;2;(\d+);(\d+);(\d+))m$`)
	for name, c := range map[string]Colors{"16 colours": Colors16, "256 colours": Colors256,
		"true colours": TrueColor} {
		p := NewPalette(c, false)
		for i, seq := range p.Level {
			m := look.FindStringSubmatch(seq)
			if m == nil {
				t.Fatalf("%s, step %d: %q names not both of its colours", name, i, seq)
			}
			n := func(k int) int { v, _ := strconv.Atoi(m[k]); return v }
			ground := [3]uint8{uint8(n(4)), uint8(n(5)), uint8(n(6))}
			if m[2] != "" {
				ground = xterm16[n(2)]
			} else if m[3] != "" {
				ground = xterm256(n(3))
			}
			if got := contrast(xterm16[n(1)], ground); got < 4.5 {
				t.Errorf("%s, step %d: the digit has a contrast of %.1f", name, i, got)
			}
		}
		for what, seq := range map[string]string{"bold": p.Bold, "reverse": p.Reverse, "bad": p.Bad} {
			if regexp.MustCompile(`[\[;](3\d|4\d|9\d|10\d)`).MatchString(seq) {
				t.Errorf("%s: %s has a colour, %q, that nobody has looked at on a light ground", name, what,
					fmt.Sprintf("%q", seq))
			}
		}
	}
}

// Colours of states and of the second line can be read on their ground: WCAG 2.1 asks for 4.5.
func TestStatesCanBeReadOnTheirGround(t *testing.T) {
	slow, suspect, well, accent, _, dim := tokens()
	for what, of := range map[string]token{"slow": slow, "suspect": suspect, "well": well, "accent": accent,
		"dim": dim} {
		for ground, pair := range map[string]struct {
			fg     string
			ground [3]uint8
		}{"dark": {of.dark.ANSI256, xterm16[30]}, "light": {of.light.ANSI256, xterm16[97]}} {
			n, err := strconv.Atoi(pair.fg)
			if err != nil {
				t.Fatal(err)
			}
			if c := contrast(xterm256(n), pair.ground); c < 4.5 {
				t.Errorf("%s has a contrast of %.1f on %s", what, c, ground)
			}
		}
	}
}

// A graph of several lines has as many steps in each: what is under the newest column's top is filled.
func TestGraphOfSeveralLines(t *testing.T) {
	p := NewPalette(NoAttributes, false)
	v := func(x float64) *float64 { return &x }
	for high, want := range map[int][]string{
		1: {"_+ #"},
		2: {" : #", "_# #"},
	} {
		if got := p.Graph([]*float64{v(0), v(0.63), nil, v(1)}, 1, 4, high); !slices.Equal(got, want) {
			t.Errorf("%d lines: %q, want %q", high, got, want)
		}
	}
}
