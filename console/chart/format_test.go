package chart_test

import (
	"strings"
	"testing"

	"fairway/console/chart"
)

// Looks pass and nothing else that moves, names, beeps or links, wherever it stands in a line.
func TestHarmlessLetsLooksThroughAlone(t *testing.T) {
	for in, want := range map[string]string{
		"":                                  "",
		"plain ▁▂█ text":                    "plain ▁▂█ text",
		"\x1b[1mbold\x1b[0m":                "\x1b[1mbold\x1b[0m",
		"\x1b[38;5;12mblue\x1b[m":           "\x1b[38;5;12mblue\x1b[m",
		"all of it \x1b[2Jgone":             "all of it gone",
		"up\x1b[3A":                         "up",
		"\x1b[1mbold \x1b[2J\x1b[0mnot":     "\x1b[1mbold \x1b[0mnot",
		"title\x1b]0;evil\x07 on":           "title on",
		"link \x1b]8;;http://x\x1b\\here":   "link here",
		"bell\a tab\t c1\u009b2J":           "bell  tab  c1 2J",
		"a \x1b":                            "a ",
		"cut \x1b[1":                        "cut ",
		"bytes \xff\xfe":                    "bytes ",
		"sideways \u202e txt":               "sideways   txt",
		"\x1b[1m\x1b[31mtwo\x1b[0m\x1b[0m ": "\x1b[1m\x1b[31mtwo\x1b[0m\x1b[0m ",
	} {
		if got := chart.Harmless(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzHarmless(f *testing.F) {
	f.Add("\x1b[1mbold \x1b[2J\x1b[0mnot \u009b")
	f.Fuzz(func(t *testing.T, in string) {
		rest := chart.Harmless(in)
		for {
			text, after, found := strings.Cut(rest, "\x1b")
			if chart.Clean(text) != text {
				t.Fatalf("%q: %q", in, text)
			}
			if !found {
				return
			}
			looks := strings.TrimLeft(strings.TrimPrefix(after, "["), "0123456789;")
			if after == "" || after[0] != '[' || looks == "" || looks[0] != 'm' {
				t.Fatalf("%q: %q", in, after)
			}
			rest = looks[1:]
		}
	})
}

// A ratio reads in a list as it does in a sentence: beyond a hundred it is chance how large it is.
func TestTimesAreThoseOfSentences(t *testing.T) {
	for v, want := range map[float64]string{0.8: "1x", 1.4: "1x", 2.44: "2.4x", 10: "10x", 100: "100x",
		101: "over 100x", 9e4: "over 100x"} {
		if got := chart.Times(&v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
	if got := chart.Times(nil); got != chart.Missing {
		t.Errorf("not known: %q", got)
	}
}
