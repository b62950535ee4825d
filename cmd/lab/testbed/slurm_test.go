package testbed

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSlurmRunsJobsOnTheNodes(t *testing.T) {
	tb := start(t, Config{Forwarders: 2, ComputeNodes: 4, Slurm: true})
	id, err := tb.Submit(t.Context(), Job{Name: "who", Nodes: 3, Argv: []string{"sh", "-c", `echo "it's $(hostname)"`}})
	if err != nil {
		t.Fatal(err)
	}
	state, err := tb.WaitJob(t.Context(), id)
	out, _ := os.ReadFile(filepath.Join(tb.LogDir(), fmt.Sprintf("job.%s.log", id)))
	if err != nil || state != "COMPLETED" {
		t.Fatalf("job %s is %s, %v:\n%s", id, state, err, out)
	}
	for _, want := range []string{"it's cn000", "it's cn001", "it's cn002"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the job printed %q, without %q", out, want)
		}
	}
}
