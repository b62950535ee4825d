package promapi

import (
	"fmt"
	"regexp/syntax"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"

	"fairway/collector"
)

const (
	// maxTokens is the most words and signs of an expression: the parser's time grows with the square of its depth.
	maxTokens = 2000
	// maxMade is the most bytes of the labels that an expression makes for one series out of its own text.
	maxMade = 64 << 10
	// maxRegex is the most instructions of a regular expression of label_replace times the groups that it keeps: the
	// engine does not look at the time between two series.
	maxRegex = 10_000
	// madeByCount is the most bytes of a number that count_values makes a label of.
	madeByCount = 32
)

// tokens refuses an expression with too many of them, before it is parsed.
func tokens(text string) error {
	if len(text) > maxQuery {
		return fmt.Errorf("%d bytes, at most %d", len(text), maxQuery)
	}
	l, item := parser.Lex(text), parser.Item{}
	for n := 0; ; n++ {
		if l.NextItem(&item); item.Typ == parser.EOF || item.Typ == parser.ERROR {
			return nil // the parser words what is wrong
		}
		if n >= maxTokens {
			return fmt.Errorf("more than %d words and signs", maxTokens)
		}
	}
}

// widths are the most bytes that the labels of one series can have which an expression makes, by name. Each
// label_replace and label_join can make longer ones of those that another one has made.
type widths map[string]int64

// widthsOf are those of an expression over series whose own labels have at most longest bytes.
func widthsOf(n parser.Node, longest int64) widths {
	w := widths{}
	for child := range parser.ChildrenIter(n) {
		for name, width := range widthsOf(child, longest) {
			w[name] = max(w[name], width)
		}
	}
	of := func(name string) int64 {
		if width, made := w[name]; made {
			return max(width, longest)
		}
		return longest
	}
	switch n := n.(type) {
	case *parser.Call:
		texts := make([]string, len(n.Args))
		for i := range n.Args {
			if s, ok := n.Args[i].(*parser.StringLiteral); ok {
				texts[i] = s.Val
			}
		}
		switch {
		case n.Func.Name == "label_replace" && len(texts) == 5:
			repl := texts[2]
			made := int64(len(repl)) + int64(strings.Count(repl, "$"))*of(texts[3])
			w[texts[1]] = max(of(texts[1]), made)
		case n.Func.Name == "label_join" && len(texts) > 3:
			made := int64(len(texts[2])) * int64(len(texts)-4)
			for _, from := range texts[3:] {
				made += of(from)
			}
			w[texts[1]] = max(of(texts[1]), made)
		}
	case *parser.AggregateExpr:
		if s, ok := n.Param.(*parser.StringLiteral); ok && n.Op == parser.COUNT_VALUES {
			w[s.Val] = max(of(s.Val), madeByCount)
		}
	}
	return w
}

// all is the bytes of all of them.
func (w widths) all() (sum int64) {
	for _, width := range w {
		sum += width
	}
	return sum
}

// costly refuses a regular expression of label_replace that takes too long for each series.
func costly(n parser.Node) error {
	c, ok := n.(*parser.Call)
	if !ok || c.Func.Name != "label_replace" || len(c.Args) != 5 {
		return nil
	}
	s, ok := c.Args[4].(*parser.StringLiteral)
	if !ok {
		return nil
	}
	re, err := syntax.Parse(s.Val, syntax.Perl)
	if err != nil {
		return nil // the engine words it
	}
	groups := re.MaxCap() + 1
	prog, err := syntax.Compile(re.Simplify())
	if err == nil && len(prog.Inst)*groups > maxRegex {
		return fmt.Errorf("a regular expression of label_replace has %d steps and %d groups, at most %d when "+
			"multiplied: choose a simpler one", len(prog.Inst), groups, maxRegex)
	}
	return nil
}

// occupancyName is the series of a forwarder's occupancy: at each full two minutes the share of
// the two minutes before in which it moved at least the threshold of its peak. It is read from the
// store's index, so avg_over_time(fairway_occupancy_ratio[1d]) is a day's occupancy at little cost.
const (
	occupancyName        = "fairway_occupancy_ratio"
	occupancyStepSeconds = 120
)

// metadata is one metric's line in the answer of /metadata.
type metadata struct {
	Type string `json:"type"`
	Help string `json:"help"`
	Unit string `json:"unit"`
}

// describe lists every metric by its series name. All are gauges: rates are computed where the
// counter is read.
func describe() map[string][]metadata {
	out := map[string][]metadata{
		occupancyName: {
			{"gauge",
				"Share of the two minutes before in which the forwarder moved at least the threshold of its peak " +
					"bandwidth.", "ratio"}},
	}
	for _, m := range collector.Catalogue() {
		out[m.Metric.SeriesName()] = []metadata{{"gauge", m.Help, m.Unit.Info().Prom}}
	}
	return out
}
