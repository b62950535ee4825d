package scraped

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// expositions are what both parsers read.
var expositions = []string{
	"a 1\n",
	"# HELP a b\n# TYPE a counter\na{x=\"y\"} 1e3\na{x=\"z\", w=\"\"} +Inf\n",
	"a{x=\"q\\\"uo\\\\te\\nline\"} -0.5 1395066363000\n",
	"a { x = \"y\" , } 2\n",
	"a{} 3\nb\t4\n",
	"a{x=\"{,}=\"} 5\n",
	"a\t6\t1395066363000\nb{x=\"y\"}\t7 \t1395066363000\n",
}

// ours reads a text as this package does.
func ours(text string) (lines []string, bad int) {
	bad = parseText(text, func(string) bool { return true }, func(labels map[string]string, v float64) {
		lines = append(lines, written(labels, v))
	})
	slices.Sort(lines)
	return lines, bad
}

func written(labels map[string]string, v float64) string {
	out := ""
	for _, l := range slices.Sorted(maps.Keys(labels)) {
		if labels[l] != "" { // an empty label is an absent one
			out += fmt.Sprintf("%s=%q ", l, labels[l])
		}
	}
	return out + fmt.Sprint(math.Float64bits(v))
}

// theirs reads a text as Prometheus's library does.
func theirs(text string) (lines []string, err error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	for name, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{nameLabel: name}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			v := m.GetUntyped().GetValue()
			switch {
			case m.GetCounter() != nil:
				v = m.GetCounter().GetValue()
			case m.GetGauge() != nil:
				v = m.GetGauge().GetValue()
			}
			lines = append(lines, written(labels, v))
		}
	}
	slices.Sort(lines)
	return lines, err
}

// TestTextsAreReadAsPrometheusDoes compares with its own library, which is too large for every site's program.
func TestTextsAreReadAsPrometheusDoes(t *testing.T) {
	for _, text := range expositions {
		want, err := theirs(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, bad := ours(text); !slices.Equal(got, want) || bad > 0 {
			t.Errorf("%q: got %q, want %q, %d bad lines", text, got, want, bad)
		}
	}
	for _, text := range []string{"a\n", "a{x=\"y} 1\n", "a{x=y} 1\n", "a{x=\"y\" 1\n", "a one\n", "a{x=\"\\"} {
		if got, bad := ours(text); len(got) > 0 || bad != 1 {
			t.Errorf("%q: got %q, %d bad lines", text, got, bad)
		}
	}
}

// FuzzTexts: nothing from outside ends the program, and any label that is written as the format wants comes back.
func FuzzTexts(f *testing.F) {
	for _, text := range expositions {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ours(text)
		quoted := strings.NewReplacer("\\", "\\\\", "\n", "\\n", `"`, `\"`).Replace(text)
		seen := 0
		bad := parseText("a{b=\"c\",x=\""+quoted+"\"} 3 1000\n", func(string) bool { return true },
			func(labels map[string]string, v float64) {
				if seen++; labels["x"] != text || labels["b"] != "c" || v != 3 {
					t.Errorf("%q became %q", text, labels)
				}
			})
		if seen != 1 || bad > 0 {
			t.Errorf("%q: %d samples, %d bad lines", text, seen, bad)
		}
	})
}

// FuzzAnswers: nothing from outside ends the program.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"status":"success","data":{"result":[{"metric":{"a":"b"},"value":[1,"2"]}]}}`))
	f.Add([]byte(`{"status":"success","data":{"result":[{"metric":null,"values":[[1.5,"NaN"],[2,"1e3"]]}]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		series, _, err := parseAnswer(body)
		if err != nil {
			return
		}
		r := NewReader(nil, func(Interval) error { return nil })
		if err := r.Take(series); err != nil {
			t.Error(err)
		}
	})
}
