package plan

import (
	"testing"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/console/screen"
	"fairway/remap"
	"fairway/webui/api"
)

// TestTargetsKeepTheirOrder changes the load under the list of targets: the rows stay where they were
// and newcomers stand behind them.
func TestTargetsKeepTheirOrder(t *testing.T) {
	row := func(id topology.ForwarderID, state remap.ForwarderState, mb float64) api.ForwarderRow {
		b := mb * 1e6
		r := api.ForwarderRow{ID: id, State: state, PeakBytesPerSec: 1e9}
		r.Values.Set(collector.WriteBytes, &b)
		return r
	}
	p, s := NewProposal("a", "", nil), &screen.State{}
	order := func(rows ...api.ForwarderRow) (ids string) {
		s.Shown.Forwarders = rows
		for _, r := range p.targets(s) {
			ids += string(r.ID)
		}
		return ids
	}
	if got := order(row("a", remap.ForwarderOK, 0), row("b", remap.ForwarderOK, 500),
		row("c", remap.ForwarderIdle, 1)); got != "cb" {
		t.Errorf("first shown as %q, want the least loaded first", got)
	}
	if got := order(row("a", remap.ForwarderOK, 0), row("b", remap.ForwarderIdle, 0), row("c", remap.ForwarderOK, 900),
		row("d", remap.ForwarderIdle, 0)); got != "cbd" {
		t.Errorf("after the load changed: %q, want cb with d behind", got)
	}
	promised := row("e", remap.ForwarderIdle, 0)
	promised.Plan = "P-000001"
	p = NewProposal("a", "", nil)
	if got := order(promised, row("b", remap.ForwarderOK, 500)); got != "be" {
		t.Errorf("first shown as %q, want what a waiting plan would fill last", got)
	}
	if got := order(row("c", remap.ForwarderSuspect, 0), row("b", remap.ForwarderOK, 3)); got != "b" {
		t.Errorf("a suspect can be chosen: %q", got)
	}
}
