package scenariotest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fairway/anomaly/recorded"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Each testdata/*.scenario is played and what was reported of it compared with *.golden: kind, node, when
// and, of accusations, the sentence.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.scenario")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".scenario"), func(t *testing.T) {
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			s, err := Parse(f)
			if err != nil {
				t.Fatal(file, err)
			}
			events, _ := Play(s, recorded.DefaultSettings())
			got := findings(events)
			golden := strings.TrimSuffix(file, ".scenario") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("found\n%s\nwant (-update writes it)\n%s", got, want)
			}
		})
	}
}

func findings(events []recorded.Event) string {
	var lines []string
	for _, e := range events {
		if e.Type == "probe" {
			continue
		}
		end := "open"
		if e.End != 0 {
			end = fmt.Sprint(e.End - epoch)
		}
		line := fmt.Sprintf("%05d %s %s %s", e.Start-epoch, end, e.Type, e.Node)
		switch {
		case e.Type == "fail_slow":
			line += ": " + e.Detail
		case len(e.Jobs) > 0:
			line += fmt.Sprint(" ", e.Detail, " ", e.Jobs)
		default:
			line += " " + e.Detail
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

func TestParseSaysWhichLine(t *testing.T) {
	for text, want := range map[string]string{
		"layer 4 100":                   "line 1: layer: too short",
		"# nothing\nfault 1 hard a b c": "line 2: fault",
		"layer 1 2 3\nearthquake":       "line 2: earthquake: unknown word",
		"restart 1 2 3":                 "line 1: restart: too much",
	} {
		if _, err := Parse(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
