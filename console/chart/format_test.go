package chart_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"fairway/anomaly"
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

// Both faces write a number and a size alike, and none with a power of ten.
func TestBothFacesWriteNumbersAlike(t *testing.T) {
	table := []struct {
		Value        float64
		number, size string
	}{
		{0, "0", "0 B"}, {3.25, "3.3", "3 B"}, {9.949, "9.9", "10 B"}, {9.95, "10", "10 B"}, {999, "999", "999 B"},
		{999.6, "1000", "1 kB"}, {2124, "2124", "2.12 kB"}, {2125, "2125", "2.13 kB"}, {999_499, "999499", "999 kB"},
		{1e6, "1.0M", "1 MB"}, {2.08e9, "2.1G", "2.08 GB"}, {12_400_000, "12M", "12.4 MB"}, {1e12, "1.0T", "1 TB"},
		{3.4e15, "3.4P", "3.4 PB"}, {7e18, "7000P", "7 EB"},
	}
	for _, row := range table {
		if got := chart.Number(row.Value); got != row.number {
			t.Errorf("number %v: %q, want %q", row.Value, got, row.number)
		}
		if got := anomaly.Size(row.Value); got != row.size {
			t.Errorf("size %v: %q, want %q", row.Value, got, row.size)
		}
	}

	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed: what the browser writes is not compared")
	}
	format, err := os.ReadFile("../../webui/static/format.js")
	if err != nil {
		t.Fatal(err)
	}
	in, _ := json.Marshal(table)
	run := exec.CommandContext(t.Context(), node, "--input-type=module", "-e", string(format)+
		"\nconsole.log(JSON.stringify("+string(in)+".map(r => [number(r.Value), volume(r.Value)])));")
	out, err := run.CombinedOutput()
	var browser [][2]string
	if err != nil || json.Unmarshal(out, &browser) != nil {
		t.Fatalf("node: %v: %s", err, out)
	}
	for i, row := range table {
		if want := [2]string{row.number, row.size}; browser[i] != want {
			t.Errorf("the browser writes %v as %q, want %q", row.Value, browser[i], want)
		}
	}
}

// A text that is too long ends where a clause does, and never inside of brackets.
func TestClausesStayWhole(t *testing.T) {
	const text = "2 of 2 nodes use fwd7. So far 87 -> 18 ms (4.8x, beside others), job 8 12 -> 18 MB/s; 3 s left"
	for w, want := range map[int]string{
		200: text, 88: strings.TrimSuffix(text, "; 3 s left"),
		66: "2 of 2 nodes use fwd7. So far 87 -> 18 ms (4.8x, beside others)",
		60: "2 of 2 nodes use fwd7. So far 87 -> 18 ms", 40: "2 of 2 nodes use fwd7", 20: "", 0: "",
	} {
		if got := chart.Clauses(text, w); got != want {
			t.Errorf("%d columns: %q, want %q", w, got, want)
		}
	}
}
