package sourcetest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"fairway/collector"
)

var number, lastColumn = regexp.MustCompile(`[0-9]+`), regexp.MustCompile(`[ \t]+\S+\n`)

// attacks are what a file may hold that its writer never meant: other programs' output, a torn write, a newer
// release's columns, numbers of another width.
var attacks = map[string]func(text string) string{
	"nothing":            func(string) string { return "" },
	"a blank":            func(string) string { return "\n \t\n" },
	"one endless line":   func(text string) string { return strings.Repeat(firstLine(text)+" ", 1<<12) },
	"many lines":         func(text string) string { return strings.Repeat(text, 1<<9) },
	"many names":         manyNames,
	"itself twice":       func(text string) string { return text + text },
	"another line's end": func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") },
	"no line's end":      func(text string) string { return strings.ReplaceAll(text, "\n", " ") },
	"zeros between":      func(text string) string { return strings.ReplaceAll(text, " ", "\x00") },
	"not UTF-8":          func(text string) string { return strings.ReplaceAll(text, "a", "\xff\xfe") },
	"one column more":    func(text string) string { return strings.ReplaceAll(text, "\n", " 7\n") },
	"one column less":    func(text string) string { return lastColumn.ReplaceAllString(text, "\n") },
	"a part of it":       func(text string) string { return text[len(text)/3 : 2*len(text)/3] },
	"numbers below 0":    func(text string) string { return number.ReplaceAllString(text, "-1") },
	"numbers of 32 bits": func(text string) string { return number.ReplaceAllString(text, "4294967295") },
	"numbers of 63 bits": func(text string) string { return number.ReplaceAllString(text, "9223372036854775807") },
	"numbers of 64 bits": func(text string) string { return number.ReplaceAllString(text, "18446744073709551615") },
	"numbers too long":   func(text string) string { return number.ReplaceAllString(text, strings.Repeat("9", 40)) },
	"fractions":          func(text string) string { return number.ReplaceAllString(text, "1e308") },
	"not a number":       func(text string) string { return number.ReplaceAllString(text, "NaN") },
	"HTML":               func(string) string { return "<html><body>503 Service Unavailable</body></html>\n" },
}

// mayBeCounts are the attacks that some files' formats take for lower counts than before.
var mayBeCounts = map[string]bool{"many names": true, "many lines": true, "itself twice": true,
	"one column more": true, "one column less": true, "fractions": true, "numbers of 32 bits": true,
	"a part of it": true, "one endless line": true, "no line's end": true, "not UTF-8": true}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSpace(line)
}

// manyNames is the text again and again, with other numbers and names each time.
func manyNames(text string) string {
	var b strings.Builder
	for i := range 200 {
		b.WriteString(strings.ReplaceAll(number.ReplaceAllString(text, fmt.Sprint(i)), "a", fmt.Sprint("a", i)))
	}
	return b.String()
}

// attacked has each file in turn hold what it should not for a second between two good ones: nothing panics, no value
// is below 0 or not a number, what comes back is not a spike, and the other files are read meanwhile.
func attacked(t *testing.T, s Suite) {
	full := s.full(t)
	for file, was := range s.First {
		for kind, made := range attacks {
			bad := without(s.Second, file)
			bad[file] = &fstest.MapFile{Data: []byte(made(string(was.Data)))}
			fails := func() (again collector.Reading, err error) {
				tr := newTree(s.First)
				src := s.New(tr)
				defer closeIt(t, src)
				_, _ = read(t, src)
				time.Sleep(time.Second)
				tr.set(bad)
				_, _ = read(t, src)
				time.Sleep(time.Second)
				tr.set(s.Second)
				again, _ = read(t, src) // may name what was sampled before
				time.Sleep(time.Second)
				_, err = read(t, src)
				return again, err
			}
			again, err := fails()
			if err != nil {
				t.Errorf("after %s held %s: %v", file, kind, err)
			}
			if !mayBeCounts[kind] {
				noMore(t, fmt.Sprintf("%s (%s)", file, kind), again, full)
			}
		}
	}
}
