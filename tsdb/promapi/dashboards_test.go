package promapi_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/engine"
	"fairway/tsdb/promapi"
)

var update = flag.Bool("update", false, "write the dashboards of docs/grafana")

// dashboard is one of docs/grafana: a layer's.
type dashboard struct {
	file, uid, title string
	nodes            string // what its variable's nodes are called
	panels           []panel
}

// panel is a chart of a dashboard; a row begins a section.
type panel struct {
	kind, title, help, unit string
	queries                 []query
}

type query struct{ expr, legend string }

// section is a row and a chart of each metric of a role: the nodes with the most of it. Words and unit are the
// catalogue's.
func section(title string, role topology.Role, metrics string) []panel {
	out := []panel{{kind: "row", title: title}}
	for name := range strings.FieldsSeq(metrics) {
		m, _ := collector.ParseMetric(name) // the test finds what is unknown
		info := m.Info()
		unit := map[collector.Unit]string{collector.BytesPerSec: "Bps", collector.OpsPerSec: "ops",
			collector.PerSec: "cps", collector.Seconds: "s", collector.Ratio: "percentunit"}
		most := "topk"
		if m == collector.BuffersFreeRatio || m == collector.RouteUp { // little is trouble
			most = "bottomk"
		}
		out = append(out, panel{"timeseries", strings.ToUpper(info.Label[:1]) + info.Label[1:], info.Help,
			cmp.Or(unit[info.Unit], "none"), []query{{fmt.Sprintf("%s($top, %s{node=~\"$node\",role=%q})", most,
				m.SeriesName(), role), "{{node}}"}}})
	}
	return out
}

// host are the signs of trouble that every node's own kernel shows.
func host(role topology.Role) []panel {
	return section("Hosts", role, "link_rx_bytes link_tx_bytes cpu_wait resent_ratio disk_busy_ratio throttled_ratio")
}

func dashboards() []dashboard {
	const fwd, chosen = topology.Forwarder, `{node=~"$node",role="forwarder"}`
	const read, written = "fairway_read_bytes_per_second", "fairway_write_bytes_per_second"
	one := func(expr string) []query { return []query{{expr, "{{node}}"}} }
	// moved are the two numbers above the charts of what servers of a role move.
	moved := func(role topology.Role, of string) []panel {
		by := fmt.Sprintf("{role=%q}", role)
		return []panel{
			{"stat", "Moved by all " + of, "Read and written in the newest second.", "Bps",
				[]query{{"sum(" + read + by + ") + sum(" + written + by + ")", ""}}},
			{"stat", "That report", "Nodes with a second in the last ten.", "none",
				[]query{{"count(" + read + by + ")", ""}}},
		}
	}
	racks := `{role="compute",rack!=""}`
	return []dashboard{
		{"fairway.json", "fairway-forwarding", "I/O forwarding", "Forwarder", slices.Concat(moved(fwd, "forwarders"),
			[]panel{
				{"stat", "Near their peak", "Forwarders that moved at least 80 % of their peak bandwidth in more " +
					"than half of the last full two minutes.", "none",
					[]query{{`count(fairway_occupancy_ratio{role="forwarder"} > 0.5) or vector(0)`, ""}}},
				{"stat", "Metadata operations", "Of all forwarders in the newest second.", "ops",
					[]query{{`sum(fairway_meta_ops_per_second{role="forwarder"})`, ""}}},
			},
			section("Forwarders", fwd, "read_bytes write_bytes"),
			[]panel{
				{"heatmap", "Occupancy", "Share of each full two minutes in which a forwarder moved at least 80 % of " +
					"its peak; read from the store's index.", "percentunit", one("fairway_occupancy_ratio" + chosen)},
				{"timeseries", "Occupancy over the range", "Mean occupancy of the shown range.", "percentunit",
					one("topk($top, avg_over_time(fairway_occupancy_ratio" + chosen + "[$__range]))")},
			},
			section("Waiting", fwd, "meta_wait queue_len"),
			[]panel{
				{"timeseries", "Worst second of each minute, as clients saw it", "Mean time of an operation on the " +
					"compute nodes, grouped by forwarder: the worst second of each minute.", "s", []query{
					{"max_over_time(fairway_client_read_seconds" + chosen + "[1m])", "read {{node}}"},
					{"max_over_time(fairway_client_write_seconds" + chosen + "[1m])", "write {{node}}"}}},
				{"stack", "Racks", "Moved by the compute nodes of a rack.", "Bps", []query{
					{"sum by (rack) (" + read + racks + ") + sum by (rack) (" + written + racks + ")", "{{rack}}"}}},
			},
			host(fwd))},
		{"nfs.json", "fairway-nfs", "NFS gateways", "Gateway", slices.Concat(moved(fwd, "gateways"),
			section("Gateways", fwd, "read_bytes write_bytes read_ops write_ops meta_ops cpu_seconds"),
			section("In the server", fwd, "read_exec write_exec meta_wait meta_exec no_thread_ratio answer_time"),
			section("As clients see it", fwd, "client_read client_write client_meta retransmits connections errors"),
			host(fwd))},
		{"lustre.json", "fairway-lustre", "Lustre and LNet", "Node", slices.Concat(
			moved(topology.Storage, "object servers"),
			section("Object servers", topology.Storage, "read_bytes write_bytes read_wait write_wait read_exec "+
				"write_exec queue_len disk_busy_ratio"),
			section("Metadata servers", topology.Metadata, "meta_ops meta_queue_len meta_wait meta_exec threads_busy "+
				"cpu_wait"),
			section("LNet routers", fwd, "routed_bytes routed_ops transit_time buffers_free_ratio tx_waiting errors"),
			section("Routes as servers see them", topology.Storage, "route_up "+
				"round_trip_time tx_waiting resent_ratio"))},
		{"dvs.json", "fairway-dvs", "Cray DVS", "Server", slices.Concat(
			section("Servers", fwd, "read_ops write_ops meta_ops queue_len read_wait write_wait meta_wait meta_exec "+
				"threads_busy meta_queue_len"),
			section("As clients see it", fwd, "client_read client_write client_meta errors"), host(fwd))},
		{"gpfs.json", "fairway-gpfs", "GPFS protocol nodes", "Protocol node", slices.Concat(
			moved(fwd, "protocol nodes"),
			section("Protocol nodes", fwd, "read_bytes write_bytes read_ops write_ops meta_ops waiter_age "+
				"disk_waiter_age"), host(fwd))},
		{"lwfs.json", "fairway-lwfs", "LWFS forwarding servers", "Server", slices.Concat(
			section("Servers", fwd, "read_ops write_ops meta_ops queue_len read_wait write_wait meta_wait read_exec "+
				"write_exec meta_exec"), host(fwd))},
	}
}

// write makes a dashboard's file, a panel a line.
func (d *dashboard) write() []byte {
	type object = map[string]any
	source := object{"type": "prometheus", "uid": "${source}"}
	roles := "forwarder"
	if strings.HasPrefix(d.file, "lustre") {
		roles = "forwarder|storage|metadata"
	}
	top := []object{}
	for _, n := range []string{"5", "10", "20", "50"} {
		top = append(top, object{"text": n, "value": n, "selected": n == "10"})
	}
	board := object{"title": "fairway: " + d.title, "uid": d.uid,
		"tags": []string{"fairway", "io"}, "schemaVersion": 39, "version": 1, "editable": true, "refresh": "5s",
		"time": object{"from": "now-15m", "to": "now"}, "timezone": "browser", "links": []object{},
		"annotations": object{"list": []object{}}, "panels": []object{},
		"templating": object{"list": []object{
			{"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"},
			{"name": "node", "label": d.nodes, "type": "query", "datasource": source, "refresh": 2, "includeAll": true,
				"allValue": ".*", "multi": true, "sort": 7, "current": object{"text": "All", "value": "$__all"},
				"query": object{"refId": "node",
					"query": fmt.Sprintf("label_values({role=~%q}, node)", roles)}},
			{"name": "top", "label": "Most", "type": "custom", "query": "5,10,20,50", "options": top,
				"current": object{"text": "10", "value": "10"}},
		}}}
	var lines [][]byte
	x, y, row := 0, 0, 0
	for i, p := range d.panels {
		w, h := 12, 8
		switch p.kind {
		case "row":
			w, h = 24, 1
		case "stat":
			w, h = 6, 4
		}
		if x+w > 24 || p.kind == "row" || i > 0 && (p.kind == "stat") != (d.panels[i-1].kind == "stat") {
			x, y = 0, y+row
		}
		row = h
		out := object{"id": i + 1, "type": p.kind, "title": p.title, "gridPos": object{"x": x, "y": y, "w": w, "h": h}}
		x += w
		custom := object{"lineWidth": 1, "fillOpacity": 10, "showPoints": "never", "spanNulls": false}
		defaults := object{"unit": p.unit}
		switch p.kind {
		case "stat":
			out["options"] = object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "graphMode": "area"}
		case "heatmap":
			out["interval"] = "120s"
			out["options"] = object{"calculate": false, "rowsFrame": object{"layout": "auto"},
				"color": object{"mode": "scheme", "scheme": "Oranges", "steps": 64, "min": 0, "max": 1}}
		case "stack":
			out["type"], custom["fillOpacity"] = "timeseries", 60
			custom["stacking"] = object{"mode": "normal", "group": "A"}
			fallthrough
		case "timeseries":
			defaults["min"], defaults["custom"] = 0, custom
			if p.unit == "percentunit" {
				defaults["max"] = 1
			}
			out["options"] = object{"tooltip": object{"mode": "multi", "sort": "desc"}, "legend": object{
				"displayMode": "table", "placement": "right", "calcs": []string{"max", "lastNotNull"}}}
		}
		if p.kind != "row" {
			targets := []object{}
			for k, q := range p.queries {
				targets = append(targets, object{"expr": q.expr, "legendFormat": q.legend,
					"refId": string(rune('A' + k)), "range": true})
			}
			out["description"], out["datasource"], out["targets"] = p.help, source, targets
			out["fieldConfig"] = object{"defaults": defaults, "overrides": []object{}}
		}
		lines = append(lines, encoded(out))
	}
	panels := append([]byte("[\n"), bytes.Join(lines, []byte(",\n"))...)
	return append(bytes.Replace(encoded(board), []byte(`"panels":[]`), append([]byte(`"panels":`),
		append(panels, "\n]"...)...), 1), '\n')
}

func encoded(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // maps of texts and numbers
	}
	return bytes.TrimSpace(b.Bytes())
}

// TestDashboards asks every question of the Grafana dashboards in the docs of nodes that report all that their layer
// can: each has an answer. The files are those that this table writes.
func TestDashboards(t *testing.T) {
	db, err := engine.Open(t.TempDir(), engine.Options{SyncInterval: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	roles := []topology.Role{topology.Forwarder, topology.Compute, topology.Storage, topology.Metadata}
	var frames []collector.Frame
	for sec := range int64(600) {
		for _, role := range roles {
			f := collector.Frame{Node: topology.NodeID(role.String()), Role: role, TimeMillis: (start + sec) * 1000}
			for _, m := range collector.Catalogue() {
				if m.At(role) != 0 {
					f.Samples = append(f.Samples, collector.Sample{Metric: m.Metric, Value: 1})
				}
			}
			frames = append(frames, f)
		}
	}
	if err := db.Append(context.Background(), frames); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.StripPrefix("/prometheus", promapi.New(promapi.Config{Store: db,
		Racks: func() map[topology.NodeID]string { return map[topology.NodeID]string{"compute": "r1"} },
		Peaks: func() map[topology.NodeID]float64 { return map[topology.NodeID]float64{"forwarder": 1} }})))
	defer s.Close()
	const dir = "../../docs/grafana"
	for _, d := range dashboards() {
		path := filepath.Join(dir, d.file)
		if *update {
			if err := os.WriteFile(path, d.write(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(text, d.write()) {
			t.Errorf("%s is not what its table says (%v): run go test ./tsdb/promapi -run Dashboards -update", path,
				err)
		}
		var board struct {
			Panels []struct {
				Type, Title string
				Targets     []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(text, &board); err != nil {
			t.Fatal(err)
		}
		for _, p := range board.Panels {
			if (p.Type == "row") != (len(p.Targets) == 0) {
				t.Errorf("%s: %s asks %d questions", d.file, p.Title, len(p.Targets))
			}
			for _, target := range p.Targets {
				expr := strings.NewReplacer("$node", ".*", "$top", "10", "$__range", "5m").Replace(target.Expr)
				form := url.Values{"query": {expr}, "start": {"1700000700"}, "end": {"1700000760"}, "step": {"15"}}
				if code, body := ask(t, s, "query_range", form); code != http.StatusOK ||
					!strings.Contains(body, `"values":[[`) {
					t.Errorf("%s: %s: %s: %d %s", d.file, p.Title, expr, code, body)
				}
			}
		}
	}
	files, err := filepath.Glob(dir + "/*.json")
	if err != nil || len(files) != len(dashboards()) {
		t.Errorf("there are %q (%v), not a file a dashboard", files, err)
	}
}
