package logs

import (
	"strings"
	"testing"
	"time"

	"fairway/anomaly/rootcause"
	"fairway/cmd/program"
	"fairway/webui/api"
)

func TestWhyIsPrinted(t *testing.T) {
	unknown := rootcause.Unknown()
	job := rootcause.Job{Procs: 64}
	for _, f := range []struct {
		name       string
		start, end float64
	}{{"/scratch/a\x1b[2J", 0, 10}, {"b", 6, 12}, {"c", 16, 18}} {
		job.Files = append(job.Files, rootcause.File{Name: f.name, Start: f.start, End: f.end, Small: unknown,
			Nonconsec: unknown, Collective: unknown, Procs: unknown, OSTs: unknown})
	}
	a := rootcause.Explain(job, rootcause.Defaults())
	var out strings.Builder
	v := api.JobCause{Job: "9", Logs: []api.LogCause{{App: "roms", Procs: 64, Start: time.Unix(0, 0),
		Write: &a}}}
	if err := printCause(program.Plain(&out), v); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"no reads", "0.0 s [" + strings.Repeat("a", 40) + strings.Repeat("b", 8) +
		strings.Repeat(".", 16) + strings.Repeat("c", 8) + "] 18.0 s",
		"   I/O took 14 s", "!! The critical path takes 3 of 3 files", "/scratch/a?[2J", "10.0"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("an escape sequence reached the terminal")
	}
}

// TestWhyAsAPage: the page has the verdict with what helps, and what a log says stays text.
func TestWhyAsAPage(t *testing.T) {
	unknown := rootcause.Unknown()
	j := rootcause.Job{Procs: 64, Files: []rootcause.File{{Name: "/scratch/<script>x</script>", End: 10, Bytes: 1e9,
		Small: .9, Nonconsec: .9, Collective: 0, Procs: 64, OSTs: unknown, Written: true}}}
	a := rootcause.Explain(j, rootcause.Defaults())
	v := api.JobCause{Job: "9", Logs: []api.LogCause{{App: "<b>roms", Procs: 64, Start: time.Unix(0, 0), Write: &a,
		Main: rootcause.Main(&a)}}}
	var out strings.Builder
	if err := writeCausePage(&out, v); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<!DOCTYPE html>", "90 % of the requests were small.", "gather in a buffer of 1 MiB",
		`<rect x="0" width="1000"`, "100 %", "/scratch/&lt;script&gt;"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	for _, bad := range []string{"<script", "<b>roms", "http:", "https:", "src="} {
		if strings.Contains(out.String(), bad) {
			t.Errorf("%q in the page", bad)
		}
	}
}
