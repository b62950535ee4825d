package escape

import (
	"bytes"
	"encoding/csv"
	"regexp"
	"strings"
	"testing"
)

// hostile are names of jobs that do something where they are not escaped.
var hostile = []string{`=HYPERLINK("http://eve/","pay")`,
	"+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", " =1", "\n@x",
	"\u00a0=1", "\ufeff=1", "\u200b@x", "\uff1d1+1", "\uff0b1", "a;=1+1", "a\t=1+1",
	"![](http://eve/x.png)", "[click](http://eve/)", "<img src=x onerror=alert(1)>", "a|b|c", "`rm`", "**bold**",
	"http://eve/", "www.eve.org", "eve@eve.org", "&lt;script>", "# heading\n- list", `"quoted, and more"`}

// TestNoCellIsAFormula: a spreadsheet takes no name for a formula, and numbers stay numbers.
func TestNoCellIsAFormula(t *testing.T) {
	var b bytes.Buffer
	var all [][]string
	for _, name := range hostile {
		all = append(all, []string{name, "-1.5"})
	}
	if err := WriteCSV(&b, all); err != nil {
		t.Fatal(err)
	}
	if bare := regexp.MustCompile(`"(?:[^"]|"")*"`).ReplaceAllString(b.String(), ""); strings.ContainsAny(bare, ";\t") {
		t.Errorf("a separator of another language is outside quotes: %q", bare)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != len(hostile) {
		t.Fatal(len(rows), err)
	}
	for i, row := range rows {
		if start := strings.TrimLeft(row[0], " \t\r\n"); strings.ContainsAny(start[:1], "=+-@") {
			t.Errorf("%q is written as %q", hostile[i], row[0])
		}
		if row[1] != "-1.5" || strings.TrimPrefix(row[0], "'") != hostile[i] {
			t.Errorf("%q is written as %q", hostile[i], row)
		}
	}
	for _, plain := range []string{"", "-", "roms", "-1.5", "+3e4", "12[3]", "a=b"} {
		if QuoteCell(plain) != plain {
			t.Errorf("%q is written as %q", plain, QuoteCell(plain))
		}
	}
}

// TestMarkdownIsText: a page of Markdown shows a name, and makes nothing of it.
func TestMarkdownIsText(t *testing.T) {
	for _, name := range hostile {
		got := EscapeMarkdown(name)
		bare := strings.NewReplacer(`\\`, "", `\[`, "", `\]`, "", `\!`, "", `\|`, "", `\*`, "", `\_`, "", "\\`", "",
			`\~`, "", `\@`, "", `\.`, "", `\:`, "", "&lt;", "", "&gt;", "", "&amp;", "").Replace(got)
		if strings.ContainsAny(bare, "[]!|*_`<>~@\n\r&") || strings.Contains(got, "://") ||
			strings.Contains(got, "www.") {
			t.Errorf("%q is written as %q", name, got)
		}
	}
	if got := EscapeMarkdown("roms, 12 nodes (a-b.c)"); got != "roms, 12 nodes (a-b.c)" {
		t.Errorf("a plain name is written as %q", got)
	}
}
