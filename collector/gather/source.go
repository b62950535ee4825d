package gather

import (
	"context"
	"time"

	"fairway/collector"
)

// Source reports what a gatherer carries. It fills gathered_nodes and gathered_bytes; a tick costs a microsecond.
type Source struct {
	g     *Gatherer
	bytes collector.Rates[string]
}

var _ collector.Source = (*Source)(nil)

// NewSource returns the source of a gatherer in the same process.
func NewSource(g *Gatherer) *Source { return &Source{g: g} }

// Name implements collector.Source.
func (s *Source) Name() string { return "gather" }

// Read implements collector.Source.
func (s *Source) Read(_ context.Context, r *collector.Reading) error {
	state := s.g.State()
	s.bytes.Begin(time.Now())
	r.Add(collector.GatheredNodes, float64(state.Nodes))
	if rate, ok := s.bytes.Rate("bytes", state.Bytes); ok {
		r.Add(collector.GatheredBytes, rate)
	}
	return nil
}

// Close implements collector.Source.
func (s *Source) Close() error { return nil }
