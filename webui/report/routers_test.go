package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/engine"
)

// Routers know what they passed on and not which way: a report of them says neither that nothing was read and written,
// nor that they did not report.
func TestReportOfRouters(t *testing.T) {
	store, err := engine.Open(t.TempDir(), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	var frames []collector.Frame
	for sec := range 60 {
		at := monday.Add(time.Hour + time.Duration(sec)*time.Second).UnixMilli()
		for _, n := range []topology.NodeID{"rtr1", "rtr2"} {
			frames = append(frames, collector.Frame{Node: n, Role: topology.Forwarder, TimeMillis: at,
				Samples: []collector.Sample{{Metric: collector.RoutedBytes, Value: 50e6}}})
		}
	}
	if err := store.Append(t.Context(), frames); err != nil {
		t.Fatal(err)
	}
	s, _ := sources(t, 1)
	s.Store, s.Forwarders = store, []topology.NodeID{"rtr1", "rtr2"}
	to := monday.Add(2 * time.Hour)
	r, err := Make(t.Context(), s, monday, to, to)
	if err != nil {
		t.Fatal(err)
	}
	if l := &r.Layer; l.RoutedBytes != 2*60*50e6 || fmt.Sprintf("%.4f", l.Reported) != fmt.Sprintf("%.4f", 60./7200) {
		t.Errorf("%g bytes passed on, reported in %g of the time", l.RoutedBytes, l.Reported)
	}
	if first := r.InShort()[0]; !strings.HasPrefix(first, "The forwarders passed on 6 GB; ") {
		t.Error(first)
	}
	var page strings.Builder
	if err := r.HTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"passed on by routers", `<rect class="p"`} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, not := range []string{"</b>written</div>", `<i class="w">`, "Nothing was moved"} {
		if strings.Contains(page.String(), not) {
			t.Errorf("the page has %q", not)
		}
	}
}
