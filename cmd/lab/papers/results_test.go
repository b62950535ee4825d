package papers

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/cmd/lab/programs"
	"fairway/cmd/lab/testbed"
)

func TestMain(m *testing.M) { os.Exit(programs.Run(m.Run)) }

// TestExperiments runs each experiment small and once: it ends, what was written is what is read, the policies answered
// as they should, and every effect has a figure. How large the effects are is `make results`' to say.
func TestExperiments(t *testing.T) {
	if os.Getenv("FAIRWAY_LONG") == "" {
		t.Skip("skipped: measures, which needs a quiet machine: make prove")
	}
	if os.Geteuid() != 0 {
		t.Skip("skipped: namespaces need root")
	}
	if missing := testbed.Missing(testbed.Config{Slurm: true}); len(missing) > 0 {
		t.Skipf("skipped: not installed: %s", strings.Join(missing, " "))
	}
	for _, e := range Experiments {
		t.Run(e.Name, func(t *testing.T) {
			if _, err := exec.LookPath("mpicc.mpich"); err != nil && e.Name == "filedomain" {
				t.Skip("skipped: not installed: mpich libmpich-dev")
			}
			t.Parallel() // they mostly wait for links
			bin, err := programs.Dir("fairway", "fairway-agent", "fairway-demo", "fairway-mount", "fairway-queue",
				"fairwayd")
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			l := &Lab{Programs: bin, Self: filepath.Join(bin, "fairway-demo"), Quick: true, Out: &out}
			rows, err := e.run(ctx, l)
			if err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			measured := 0
			for _, r := range rows {
				measured += len(r.Values)
			}
			if measured == 0 {
				t.Errorf("nothing was measured:\n%s", out.String())
			}
			t.Logf("\n%s", section(&e, rows, condition{at: time.Now(), busy: -1}))
		})
	}
}

// TestPage: every experiment has its place in the page, a table goes there and nowhere else, and a page without the
// place is left alone.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("../../../docs/results.md")
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(t.TempDir(), "results.md")
	if err := os.WriteFile(page, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range Experiments {
		e := &Experiments[i]
		if err := replace(page, e.Name, "the table of "+e.Name+"\n"); err != nil {
			t.Error(err)
		}
	}
	now, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range Experiments {
		want := fmt.Sprintf("<!-- %s: measured -->\nthe table of %s\n<!-- %s: end -->\n", e.Name, e.Name, e.Name)
		if strings.Count(string(now), want) != 1 {
			t.Errorf("the page has no %q", want)
		}
	}
	if err := replace(page, "astrology", "x"); err == nil || !strings.Contains(err.Error(), "has no place for") {
		t.Errorf("a table without a place: %v", err)
	}
}

func TestMeasured(t *testing.T) {
	for _, c := range []struct {
		row  Row
		want string
	}{
		{Row{}, "not measured"},
		{Row{Values: []float64{3.999}, Unit: "x"}, "4.00x"},
		{Row{Values: []float64{3, 1, 2}, Unit: " %"}, "2.00 % (1.00..3.00, 3)"},
		{Row{Values: []float64{1, 104, 12.34, 250}}, "58.2 (1.00..250, 4)"},
	} {
		if got := c.row.measured(); got != c.want {
			t.Errorf("%v is %q, expected %q", c.row.Values, got, c.want)
		}
	}
}
