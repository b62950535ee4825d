package darshan

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTracesAreTheUpstreamParsers compares every traced operation with darshan-dxt-parser.
func TestTracesAreTheUpstreamParsers(t *testing.T) {
	for _, want := range sampleLogs(t, "darshan/expected/*.dxt.txt.gz") {
		base := strings.TrimSuffix(filepath.Base(want), ".dxt.txt.gz")
		f, err := os.Open(want)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		var upstream []string
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) >= 8 && strings.HasPrefix(f[0], "X_") {
				upstream = append(upstream, strings.Join(f[:8], " "))
			}
		}
		got := traced(t, filepath.Join(filepath.Dir(want), "..", base+".darshan"))
		if len(got) != len(upstream) || len(got) == 0 {
			t.Errorf("%s: %d operations, want %d", base, len(got), len(upstream))
			continue
		}
		for i := range got {
			if got[i] != upstream[i] {
				t.Errorf("%s, operation %d: %s, want %s", base, i, got[i], upstream[i])
				break
			}
		}
		t.Logf("%s: %d operations", base, len(got))
	}
}

// traced prints a log's traced operations as the upstream program does, without its columns' padding.
func traced(t *testing.T, name string) []string {
	t.Helper()
	var out []string
	err := openFile(t, name).Each(func(rec *Record) error {
		if rec.Trace == nil {
			return nil
		}
		api := map[Module]string{DXTPOSIX: "X_POSIX", DXTMPIIO: "X_MPIIO"}[rec.Module]
		for _, side := range []struct {
			name string
			ops  []Segment
		}{{"write", rec.Trace.Writes}, {"read", rec.Trace.Reads}} {
			for i, s := range side.ops {
				out = append(out, fmt.Sprintf("%s %d %s %d %d %d %.4f %.4f", api, rec.Rank, side.name, i, s.Offset,
					s.Length, s.Start, s.End))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
