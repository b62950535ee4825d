package scraped

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// saved writes expositions of nodes, every 15 s from second 1000 on, into a folder; "" is a scrape that is missing.
func saved(t *testing.T, of map[string][]string) string {
	t.Helper()
	dir := t.TempDir()
	for node, texts := range of {
		for i, text := range texts {
			name := filepath.Join(dir, fmt.Sprintf("%s@%d", node, 1000+15*i))
			if text == "" {
				continue
			}
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// folder reads a folder and writes each interval in a line.
func folder(t *testing.T, dir string, named ...string) (lines, bad []string, sum Summary) {
	t.Helper()
	r := NewReader(named, func(i Interval) error {
		line := fmt.Sprintf("%d %s|%s|%s:", i.End.Unix(), i.Subject.Name, i.By, i.Subject.Group)
		for _, s := range i.Samples {
			line += fmt.Sprintf(" %s=%.4g", s.Metric, s.Value)
		}
		for _, m := range i.Means {
			operation := strings.TrimSuffix("("+m.Operation+")", "()")
			line += fmt.Sprintf(" %s%s=%.4g/%.4g", m.Metric, operation, m.Seconds, m.Ops)
		}
		lines = append(lines, line)
		return nil
	})
	err := r.ReadFolder(dir, func(err error) { bad = append(bad, strings.ReplaceAll(err.Error(), dir, "DIR")) })
	if err != nil {
		t.Fatal(err)
	}
	return lines, bad, r.Summary()
}

// TestExporters reads two scrapes of each exporter in its own format.
func TestExporters(t *testing.T) {
	for _, test := range []struct {
		folder, exporter string
		named            []string
		jobs             bool
		want             []string
	}{
		// HPE's and GSI's lustre_exporter on an object server.
		{folder: "lustre_exporter", exporter: lustre, jobs: true, want: []string{
			"1015 fs1-OST0000|oss1|OSTs of fs1: read_bytes=2e+06 write_bytes=1e+05 read_ops=2 read_exec=7.695/30",
			"1015 oss1|oss1|LNet routers: routed_bytes=0",
			"1015 oss1|oss1|Lustre's object servers: read_bytes=2e+06 write_bytes=1e+05 read_ops=2 read_exec=7.695/30",
		}},
		// lustrefs-exporter, which has no times of one size twice.
		{folder: "lustrefs-exporter", exporter: lustre, want: []string{
			"1015 fs1-MDT0000|mds1|MDTs of fs1: meta_ops=6 meta_exec(open)=3/30",
			"1015 fs1-OST0000|mds1|OSTs of fs1: read_bytes=1",
			"1015 mds1|mds1|Lustre's metadata servers: meta_ops=6 meta_exec(open)=3/30",
			"1015 mds1|mds1|Lustre's object servers: read_bytes=1",
		}},
		// Telegraf's lustre2, with shares of clients and jobs beside.
		{folder: "lustre2", exporter: lustre2, jobs: true, want: []string{
			"1015 fs1-MDT0001|oss7|MDTs of fs1: meta_ops=3",
			"1015 fs1-OST0004|oss7|OSTs of fs1: read_bytes=2 read_ops=1 read_exec=0.06/40",
			"1015 oss7|oss7|Lustre's metadata servers: meta_ops=3",
			"1015 oss7|oss7|Lustre's object servers: read_bytes=2 read_ops=1 read_exec=0.06/40",
		}},
		// Telegraf's nfsclient on two clients, one with a mount in two places.
		{folder: "nfsclient", exporter: nfs, want: []string{
			"1015 gw1|cn1|NFS servers of /scratch as clients see them: read_bytes=10 read_ops=2 client_read=0.6/30",
			"1015 gw1|cn2|NFS servers of /scratch as clients see them: read_bytes=20 read_ops=4 client_read=1.2/60",
		}},
		// node_exporter's mountstats.
		{folder: "mountstats", exporter: node, want: []string{
			"1015 10.2.0.1|cn1|NFS servers of /scratch as clients see them: write_bytes=20 write_ops=1 meta_ops=1 " +
				"client_write=0.125/15 client_meta(GETATTR)=0.03/15",
		}},
		// node_exporter on an NFS server: its disks, and its links where it is named.
		{folder: "nfsd", exporter: node, named: []string{"gw1"}, want: []string{
			"1015 gw1 sdb|gw1|disks sdb: read_ops=2 read_exec=0.06/30",
			"1015 gw1|gw1|NFS servers: read_bytes=1 write_bytes=2 threads=8",
			"1015 gw1|gw1|nodes that were named: link_rx_bytes=3",
		}},
		// node_exporter on a node that serves nothing and is not named.
		{folder: "neither", exporter: "", want: []string{
			"1015 cn1|cn1|NFS servers: threads=0",
		}},
	} {
		t.Run(test.folder, func(t *testing.T) {
			lines, bad, sum := folder(t, filepath.Join("testdata", test.folder), test.named...)
			slices.Sort(lines)
			if !slices.Equal(lines, test.want) || len(bad) > 0 {
				t.Errorf("got  %s\nwant %s\nbad %v", strings.Join(lines, "\n     "), strings.Join(test.want, "\n     "),
					bad)
			}
			if test.exporter != "" && !slices.Equal(sum.Exporters, []string{test.exporter}) || sum.Jobs != test.jobs {
				t.Errorf("exporters %v, series of jobs %v", sum.Exporters, sum.Jobs)
			}
		})
	}
}

// TestWhatIsMissingIsAbsent: a reset, a missing scrape and a target that appears give no value, and never 0.
func TestWhatIsMissingIsAbsent(t *testing.T) {
	line := func(target string, v int) string {
		return fmt.Sprintf("lustre_read_bytes_total{component=\"ost\",target=%q} %d\n", target, v)
	}
	lines, bad, sum := folder(t, saved(t, map[string][]string{"oss1": {
		line("a-OST0000", 100), line("a-OST0000", 115), line("a-OST0000", 5) + line("a-OST0001", 7),
		line("a-OST0000", 20) + line("a-OST0001", 7), "", line("a-OST0000", 600), line("a-OST0000", 630)}}))
	want := []string{
		"1015 a-OST0000|oss1|OSTs of a: read_bytes=1",
		"1015 oss1|oss1|Lustre's object servers: read_bytes=1",
		"1045 a-OST0000|oss1|OSTs of a: read_bytes=1",
		"1045 oss1|oss1|Lustre's object servers: read_bytes=1",
		"1045 a-OST0001|oss1|OSTs of a: read_bytes=0",
		"1090 a-OST0000|oss1|OSTs of a: read_bytes=2",
		"1090 oss1|oss1|Lustre's object servers: read_bytes=2",
	}
	if !slices.Equal(lines, want) || len(bad) > 0 {
		t.Errorf("got  %s\nwant %s", strings.Join(lines, "\n     "), strings.Join(want, "\n     "))
	}
	if sum.Resets != 1 || sum.Missed != 1 {
		t.Errorf("%d resets, %d missing scrapes", sum.Resets, sum.Missed)
	}
}

// TestFilesThatCannotBeUsed are named and cost themselves only.
func TestFilesThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	const good = "lustre_read_bytes_total{component=\"ost\",target=\"a-OST0000\"} "
	for name, text := range map[string]string{
		"oss1@1000": good + "15\n", "oss1@1015.prom": good + "30\n" + good + "many\n", "notes.txt": good + "1\n",
		"oss2@1000": "<html>lustre_read_bytes_total{", "broken.json": "{",
		"refused.json": `{"status":"error","error":"no"}`,
		"saved.json": `{"status":"success","warnings":["a store is down"],"data":{"resultType":"matrix",` +
			`"result":[{"metric":{"__name__":` +
			`"lustre_read_bytes_total","component":"ost","target":"a-OST0009","instance":"oss9:9169","job":"l"},` +
			`"values":[[2000.001,"15"],[2015.001,"45"]]}]}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "oss3@1000"), 0o700); err != nil {
		t.Fatal(err)
	}
	lines, bad, _ := folder(t, dir)
	if want := []string{"1015 a-OST0000|oss1|OSTs of a: read_bytes=1",
		"1015 oss1|oss1|Lustre's object servers: read_bytes=1", "2015 a-OST0009|oss9|OSTs of a: read_bytes=2",
		"2015 oss9|oss9|Lustre's object servers: read_bytes=2"}; !slices.Equal(lines, want) {
		t.Errorf("got %s", strings.Join(lines, "\n"))
	}
	want := []string{
		"DIR/broken.json: not an answer of the query API: unexpected end of JSON input; it is left out",
		"DIR/notes.txt: an exposition is named NODE@SECONDS, as in oss1@1764372000; it is left out",
		"DIR/oss1@1015.prom: 1 of its lines could not be read and are left out",
		"DIR/oss2@1000: nothing in it of the exporters that are read here; it is left out",
		"DIR/oss3@1000: not a file; it is left out",
		`DIR/refused.json: not an answer of the query API: status "error": no; it is left out`,
		"DIR/saved.json: the answer may lack values: a store is down",
	}
	if !slices.Equal(bad, want) {
		t.Errorf("got %s", strings.Join(bad, "\n"))
	}
}
