package promapi

import (
	"fmt"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

const (
	// maxSubSteps is the most points of one series inside a subquery: a day of seconds. The engine makes room for all
	// of them before it counts any.
	maxSubSteps = 100_000
	maxQuery    = 64 << 10 // bytes of an expression
	// defaultStep is that of a subquery without one.
	defaultStep = time.Second
)

// check refuses an expression whose evaluation makes room for more points than a query may hold, longer labels, or
// takes too long where nobody looks at the time. It returns how many bytes of labels the expression makes for one
// series whose own labels have at most longest bytes.
func (a *API) check(text string, start, end time.Time) (made func(longest int64) int64, err error) {
	if err := tokens(text); err != nil {
		return nil, badRequest{fmt.Errorf("invalid parameter \"query\": %w", err)}
	}
	expr, err := a.parser.ParseExpr(text)
	if err != nil {
		return nil, nil // the engine words it
	}
	made = func(longest int64) int64 { return widthsOf(expr, longest).all() }
	if own := made(0); own > maxMade {
		return nil, fmt.Errorf("the expression makes labels of %d bytes, at most %d", own, maxMade)
	}
	most, tooCostly := time.Duration(0), error(nil)
	parser.Inspect(expr, func(n parser.Node, path []parser.Node) error {
		if tooCostly == nil {
			tooCostly = costly(n)
		}
		sub, ok := n.(*parser.SubqueryExpr)
		if !ok {
			return nil
		}
		step, window := sub.Step, end.Sub(start)+sub.Range
		if step <= 0 {
			step = defaultStep
		}
		for _, outer := range path {
			if o, ok := outer.(*parser.SubqueryExpr); ok {
				window += o.Range
			}
		}
		if window < 0 { // more than 292 years
			window = 1<<63 - 1
		}
		most = max(most, window/step)
		return nil
	})
	if most > maxSubSteps {
		return nil, fmt.Errorf("a subquery has %d steps, at most %d: choose a longer step, such as [1h:10s]", most,
			maxSubSteps)
	}
	return made, tooCostly
}

// The least bytes of a point and of a label in an answer.
const (
	pointBytes = 20
	labelBytes = 6
)

// fits refuses a result whose answer would be too long before it is written.
func (a *API) fits(v parser.Value) error {
	size := int64(0)
	named := func(l labels.Labels) {
		l.Range(func(l labels.Label) { size += int64(len(l.Name)+len(l.Value)) + labelBytes })
	}
	switch v := v.(type) {
	case promql.Matrix:
		for i := range v {
			named(v[i].Metric)
			size += int64(len(v[i].Floats)) * pointBytes
		}
	case promql.Vector:
		for i := range v {
			named(v[i].Metric)
			size += pointBytes
		}
	case promql.String:
		size = int64(len(v.V))
	}
	return a.tooLong(size)
}

func (a *API) tooLong(size int64) error {
	if size <= a.cfg.MaxBytes {
		return nil
	}
	return fmt.Errorf("the answer would have more than %d bytes: choose fewer series, a longer step or a shorter range",
		a.cfg.MaxBytes)
}
