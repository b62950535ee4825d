package advise

import (
	"slices"

	"fairway/anomaly"
	"fairway/remap"
)

// limits says that a plan's limit is for the job that a finding is about, where it is.
func (b *board) limits(p *remap.Plan, m *remap.Move, f *anomaly.Finding) bool {
	return m.Limit > 0 && slices.Contains(f.Jobs, p.Job) &&
		(m.Node == f.Node || slices.Contains(f.Nodes, m.Node))
}

// doneWord is what a plan that was carried out has done.
func doneWord(p *remap.Plan) string {
	if p.Limits() {
		return "Limited"
	}
	return "Moved"
}
