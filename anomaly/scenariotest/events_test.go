package scenariotest

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"fairway/anomaly/recorded"
	"fairway/collector/topology"
)

// readEvents reads the answer of any detector: type,node,start,end,detail, as 'fairway detect' writes it.
func readEvents(t *testing.T, file string) (out []recorded.Event) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	second := func(s string) int64 {
		v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil && s != "" {
			t.Fatalf("%s: %q: not a second", file, s)
		}
		return int64(v)
	}
	for _, row := range rows[1:] {
		e := recorded.Event{Type: row[0], Node: topology.NodeID(row[1]), Start: second(row[2]), End: second(row[3])}
		if len(row) > 4 {
			e.Detail = row[4]
		}
		out = append(out, e)
	}
	return out
}

// TestScoreOfEvents scores another detector: FAIRWAY_EVENTS is its events.csv for FAIRWAY_TRACE, a public trace (pub-a)
// or a directory.
func TestScoreOfEvents(t *testing.T) {
	file, trace := os.Getenv("FAIRWAY_EVENTS"), os.Getenv("FAIRWAY_TRACE")
	if file == "" {
		file = filepath.Join(t.TempDir(), "events.csv")
		text := "type,node,start,end,detail\nfail_slow,f1,10,,slow\nprobe,f2,11,11,\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := readEvents(t, file)
		if len(got) != 2 || got[0].Node != "f1" || got[0].Start != 10 || got[0].End != 0 || got[1].End != 11 {
			t.Errorf("%q: %+v", text, got)
		}
		return
	}
	if trace == "" {
		trace = "pub-a"
	}
	dir := trace
	if !filepath.IsAbs(dir) {
		dir = publicDir(t, trace)
	}
	from, to, nodes, _ := naive(t, dir)
	var s Score
	s.Add(trace, readLabels(t, dir), readEvents(t, file), nodes, from, to)
	t.Log(s.String())
}
