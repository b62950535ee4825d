package collector

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"fairway/collector/topology"
)

var update = flag.Bool("update", false, "write the catalogue into docs/metrics.md")

// TestDocumentedCatalogue: docs/metrics.md has the catalogue's tables, written by go test ./collector -update.
func TestDocumentedCatalogue(t *testing.T) {
	const page = "../docs/metrics.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := string(text)
	for name, table := range map[string]string{"catalogue": catalogueTable(), "of jobs": jobsTable()} {
		head, rest, found := strings.Cut(want, "<!-- "+name+" -->\n")
		_, rest, ends := strings.Cut(rest, "<!-- end -->")
		if !found || !ends {
			t.Fatalf("%s has no place for the table %q", page, name)
		}
		want = head + "<!-- " + name + " -->\n" + table + "<!-- end -->" + rest
	}
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("%s is older than the catalogue: run go test ./collector -run Documented -update", page)
	}
}

// catalogueTable has a letter for each layer that can report a metric, with a plus where it is on the layer's heat map.
func catalogueTable() string {
	var b strings.Builder
	b.WriteString("| metric | unit | layers | meaning |\n|---|---|---|---|\n")
	for _, row := range Catalogue() {
		layers := ""
		for _, role := range []topology.Role{topology.Forwarder, topology.Compute, topology.Storage,
			topology.Metadata} {
			switch p := row.At(role); {
			case p&InScale != 0:
				layers += strings.ToUpper(role.String()[:1]) + "+"
			case p != 0:
				layers += strings.ToUpper(role.String()[:1])
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", row.Name, row.Unit.Info().Name, layers, row.Help)
	}
	return b.String()
}

func jobsTable() string {
	var b strings.Builder
	b.WriteString("| metric | unit | meaning |\n|---|---|---|\n")
	for _, row := range ofJobs {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", row.Name, row.Unit.Info().Name, row.Help)
	}
	return b.String()
}

func TestCatalogueHasEveryMetric(t *testing.T) {
	seen := map[string]bool{}
	for m := range Metrics() {
		row := m.Info()
		if row.Metric != m || row.Name == "" || row.Label == "" || !strings.HasSuffix(row.Help, ".") {
			t.Errorf("metric %d has no complete row: %+v", m, row)
		}
		if seen[row.Name] {
			t.Errorf("%s is listed twice", row.Name)
		}
		seen[row.Name] = true
		if back, ok := ParseMetric(row.Name); !ok || back != m {
			t.Errorf("%s is read as %v, %v", row.Name, back, ok)
		}
		if row.Forwarder|row.Compute|row.Storage|row.Metadata == 0 {
			t.Errorf("%s is reported by no layer", row.Name)
		}
		if (row.Forwarder|row.Compute)&InScale != 0 && (row.Scale == "" || row.Full <= 0) {
			t.Errorf("%s is on a heat map and has no scale or full scale", row.Name)
		}
		if row.Forwarder&InList != 0 && (row.Column.Title == "" || row.Column.Name == "") || len(row.Column.Title) > 6 {
			t.Errorf("%s has the column %q", row.Name, row.Column)
		}
	}
	if rows := Catalogue(); len(rows) != len(seen) {
		t.Errorf("%d rows, %d metrics: one is listed twice", len(rows), len(seen))
	}
	for m := range Metric(255) {
		if known := m.Known() || m.OfJobs(); known != (m.String() != "") {
			t.Errorf("number %d is known: %v, and its name is %q", m, known, m)
		}
	}
}

// TestNumbersStay holds the numbers that are in files and on the wire.
func TestNumbersStay(t *testing.T) {
	for name, number := range map[string]Metric{"read_bytes": 1, "queue_len": 6, "meta_queue_len": 7, "connections": 16,
		"server_time": 26, "retransmits": 34, "path_loss_ratio": 36, "in_flight": 37} {
		if m, ok := ParseMetric(name); !ok || m != number {
			t.Errorf("%s has number %d, want %d", name, m, number)
		}
	}
	if FilesRead != 127 || LeastFileWritten != 124 || RetiredBacklogLen != 35 {
		t.Error("a number of a job's share, or the retired one, has moved")
	}
}

func TestSeriesNames(t *testing.T) {
	for m, want := range map[Metric]string{ReadBytes: "fairway_read_bytes_per_second",
		MetaOps:    "fairway_meta_ops_per_second",
		ServerTime: "fairway_server_time_seconds", PSIIOSome: "fairway_psi_io_some_ratio",
		QueueLen:      "fairway_queue_len",
		CacheHitRatio: "fairway_cache_hit_ratio", ClientRead: "fairway_client_read_seconds",
		CPUSeconds: "fairway_cpu_seconds_per_second", Threads: "fairway_threads"} {
		if got := m.SeriesName(); got != want {
			t.Errorf("%v is %q in PromQL, want %q", m, got, want)
		}
	}
}

// TestOperationsStay holds what the store's block format depends on.
func TestOperationsStay(t *testing.T) {
	want := map[Metric][2]Metric{QueueLen: moves, InFlight: moves, ServerTime: moves, ThreadsBusy: moves}
	for of, all := range map[Metric][]Metric{ReadOps: {ReadBytes, ReadWait, ReadExec, ClientRead},
		WriteOps: {WriteBytes, WriteWait, WriteExec, ClientWrite},
		MetaOps:  {MetaWait, MetaExec, ClientMeta, MetaQueueLen}} {
		for _, m := range all {
			want[m] = [2]Metric{of}
		}
	}
	for m := range Metrics() {
		if m <= InFlight && m.Info().Of != want[m] {
			t.Errorf("%v belongs to %v, want %v: blocks in stores cannot be read", m, m.Info().Of, want[m])
		}
	}
}
