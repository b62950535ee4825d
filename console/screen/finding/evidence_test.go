package finding

import (
	"strings"
	"testing"

	"fairway/anomaly"
	"fairway/console/chart"
	"fairway/console/screen"
	"fairway/tsdb"
	"fairway/webui/api"
)

// Evidence that the store did not give in time is named, with or without what came.
func TestMissingEvidenceIsNamed(t *testing.T) {
	p := &Screen{view: screen.Load[api.FindingView]{Value: api.FindingView{Changes: []anomaly.Change{{
		Frozen: &anomaly.Frozen{Missing: []string{"read_bytes", "write_exec"}}}}}}}
	s := &screen.State{Palette: chart.NewPalette(chart.NoAttributes, false)}
	want := "the store did not answer in time for read_bytes, write_exec"
	if got := p.evidence(s, 120); len(got) != 1 || !strings.Contains(got[0], want) {
		t.Errorf("without any series: %q", got)
	}
	p.view.Value.Changes[0].Frozen.Series = map[string][]tsdb.Point{"write_bytes": {{TimeMillis: 1000, Value: 1}}}
	if got := p.evidence(s, 120); len(got) != 3 || !strings.Contains(got[2], want) {
		t.Errorf("with one series: %q", got)
	}
}
