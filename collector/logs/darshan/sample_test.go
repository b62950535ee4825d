package darshan

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// realSamples is the folder of real logs with the upstream parser's output beside them, where there is one.
const realSamples = "../../../../shared/data"

// sampleLogs are the samples of our own and the real ones.
func sampleLogs(t *testing.T, pattern string) []string {
	t.Helper()
	logs, _ := filepath.Glob(filepath.Join("testdata", pattern))
	if len(logs) == 0 {
		t.Fatalf("no samples in testdata/%s", pattern)
	}
	real, _ := filepath.Glob(filepath.Join(realSamples, pattern))
	return append(logs, real...)
}

// expected is the folder with what upstream's parsers print of a log.
func expected(log string) string { return filepath.Join(filepath.Dir(log), "expected") }

func openFile(t *testing.T, name string) *Reader {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}

// counterLines returns the counter lines of a parser's output.
func counterLines(t *testing.T, name string) []string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return onlyCounters(string(b))
}

func onlyCounters(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && line[0] != '#' {
			out = append(out, line)
		}
	}
	return out
}

func printed(t *testing.T, r *Reader) []string {
	t.Helper()
	var b bytes.Buffer
	if err := PrintCounters(&b, r); err != nil {
		t.Fatal(err)
	}
	return onlyCounters(b.String())
}

func TestCountersAreTheUpstreamParsers(t *testing.T) {
	for _, log := range sampleLogs(t, "darshan/*.darshan") {
		base := strings.TrimSuffix(filepath.Base(log), ".darshan")
		t.Run(base, func(t *testing.T) {
			dir := expected(log)
			want := counterLines(t, filepath.Join(dir, base+".parser35.txt.gz"))
			right := map[string]string{}
			if _, err := os.Stat(filepath.Join(dir, base+".parser316.txt.gz")); err == nil {
				for _, line := range counterLines(t, filepath.Join(dir, base+".parser316.txt.gz")) {
					right[key(line)] = line
				}
			}
			got := printed(t, openFile(t, log))
			compare(t, got, want, right)
		})
	}
}

// key names a counter: module, rank, record and counter.
func key(line string) string { return strings.Join(strings.SplitN(line, "\t", 5)[:4], "\t") }

// compare takes the line of the older upstream parser where there is one: the newer one loses some
// floats of old records (byte order, variances).
func compare(t *testing.T, got, want []string, right map[string]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d lines, want %d", len(got), len(want))
	}
	older, wrong := 0, 0
	for i := range min(len(got), len(want)) {
		if got[i] == want[i] {
			continue
		}
		if line, ok := right[key(got[i])]; ok && got[i] == line && strings.Contains(got[i], "POSIX_F_") {
			older++
			continue
		}
		if wrong++; wrong < 5 {
			t.Errorf("line %d:\n got %s\nwant %s", i+1, got[i], want[i])
		}
	}
	t.Logf("%d lines, %d as the 3.1.6 parser has them", len(got), older)
}

func TestCountersOfOldLogsAreTheUpstreamParsers(t *testing.T) {
	for _, log := range sampleLogs(t, "darshan_1x_2x/*.darshan.gz") {
		base := strings.TrimSuffix(filepath.Base(log), ".darshan.gz")
		t.Run(base, func(t *testing.T) {
			want := counterLines(t, filepath.Join(expected(log), base+".parser2.txt.gz"))
			compare(t, printed(t, openFile(t, log)), want, nil)
		})
	}
}

// perfFigures reads what darshan-parser --perf prints, per module.
func perfFigures(t *testing.T, name string) map[string]map[string]float64 {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out, module := map[string]map[string]float64{}, ""
	for s := bufio.NewScanner(z); s.Scan(); {
		if m, ok := strings.CutSuffix(s.Text(), " module data"); ok {
			module = strings.TrimPrefix(m, "# ")
			out[module] = map[string]float64{}
		}
		text := strings.Replace(strings.TrimPrefix(s.Text(), "# "), " files: ", " ", 1)
		if name, value, ok := strings.Cut(text, ": "); ok && module != "" {
			if v, err := strconv.ParseFloat(strings.Fields(value + " x")[0], 64); err == nil {
				out[module][name] = v
			}
		}
	}
	return out
}

func TestTotalsAreTheUpstreamParsers(t *testing.T) {
	checked, logs := 0, sampleLogs(t, "darshan/*.darshan")
	for _, log := range logs {
		base := strings.TrimSuffix(filepath.Base(log), ".darshan")
		perf := filepath.Join(expected(log), base+".perf.txt.gz")
		if _, err := os.Stat(perf); err != nil {
			continue
		}
		b, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Read(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		want := perfFigures(t, perf)
		for _, total := range got.Totals {
			w := want[total.Module.String()]
			// Old big-endian POSIX records lose their metadata time in the upstream program.
			if got.BigEndian && total.Module == POSIX && got.Modules[0].Version < 4 {
				continue
			}
			rate, _ := total.BytesPerSec()
			for name, v := range map[string]float64{"total_bytes": float64(total.BytesRead + total.BytesWritten),
				"unique slowest_rank_io_time": total.SlowestRankSeconds,
				"unique slowest_rank":         float64(total.SlowestRank),
				"shared time_by_slowest":      total.SharedSeconds, "agg_perf_by_slowest": rate / (1 << 20)} {
				if math.Abs(v-w[name]) > 1e-6+1e-9*math.Abs(v) {
					t.Errorf("%s: %s: %s is %v, want %v", base, total.Module, name, v, w[name])
				}
				checked++
			}
		}
	}
	t.Logf("%d figures", checked)
	if checked < 10*len(logs) {
		t.Errorf("only %d figures checked", checked)
	}
}

// TestOldLogsThatSomebodyDecompressed are read like those that are still compressed.
func TestOldLogsThatSomebodyDecompressed(t *testing.T) {
	for _, name := range sampleLogs(t, "darshan_1x_2x/*.darshan.gz") {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		r, err := NewReader(bytes.NewReader(plain), int64(len(plain)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, want := printed(t, r), printed(t, openFile(t, name)); !slices.Equal(got, want) {
			t.Errorf("%s: %d lines, want %d", name, len(got), len(want))
		}
	}
}
