package main

import (
	"strings"
	"testing"
	"time"

	"fairway/anomaly/rootcause"
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
	if err := printCause(&plain{to: &out}, v); err != nil {
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
