package procfs

import (
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"fairway/collector"
)

// How busy the processors were and how much memory is used is known every ten seconds, and absent where the kernel's
// files do not say it.
func TestLoad(t *testing.T) {
	const none = -1.0 // absent
	const before = "cpu  100 0 50 1000 20 3 4 5 90 0\ncpu0 1 2\n"
	const of = "MemTotal:       4000 kB\nMemFree:        100 kB\nMemAvailable:   3000 kB\n"
	for name, c := range map[string]struct {
		before, after string // stat
		memory        string
		busy, used    float64
		resets        int
		wrong         string
	}{
		"half": {before, "cpu  540 0 90 1400 120 3 4 25 500 0\n", of, 0.5, 0.25, 0, ""},
		// Waiting for I/O is not work, and what guests took is the host's user time, too.
		"waits":              {before, "cpu  100 0 50 1000 820 103 104 5 900 0\n", of, 0.2, 0.25, 0, ""},
		"busy":               {before, "cpu  1100 0 50 1000 20 3 4 5 90 0\n", of, 1, 0.25, 0, ""},
		"idle":               {before, "cpu  100 0 50 2000 20 3 4 5 90 0\n", of, 0, 0.25, 0, ""},
		"older, no guests":   {before, "cpu  200 0 50 1000 320 3 4 5\n", of, 0.25, 0.25, 0, ""},
		"stands":             {before, before, of, none, 0.25, 0, ""},
		"began anew":         {before, "cpu  1 0 5 10 2 0 0 0 0 0\n", of, none, 0.25, 1, ""},
		"idle went back":     {before, "cpu  900 0 50 900 20 3 4 5 90 0\n", of, none, 0.25, 1, ""},
		"too few":            {before, "cpu  900 0 50 900\n", of, none, 0.25, 0, "proc/stat: line 1: want cpu"},
		"another line":       {before, "intr 5\n", of, none, 0.25, 0, "proc/stat: line 1: want cpu"},
		"not a number":       {before, "cpu  900 0 50 9e3 20 3 4 5 90 0\n", of, none, 0.25, 0, "is not a number"},
		"no stat":            {"", "", of, none, 0.25, 0, ""},
		"no meminfo":         {before, before, "", none, none, 0, ""},
		"before 3.14":        {before, before, "MemTotal: 4000 kB\nMemFree: 100 kB\n", none, none, 0, ""},
		"more than there is": {before, before, "MemTotal: 4 kB\nMemAvailable: 5 kB\n", none, none, 0, "no MemTotal"},
		"cut off":            {before, before, "MemTotal: 4000 kB\nMemAvailable: 3", none, none, 0, "line 2"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				proc := fstest.MapFS{"diskstats": {}}
				put := func(file, text string) {
					if text != "" {
						proc[file] = &fstest.MapFile{Data: []byte(text)}
					}
				}
				put("stat", c.before)
				put("meminfo", of)
				s := New(Options{Root: "proc", Files: proc, Sys: fstest.MapFS{}})
				var r collector.Reading
				var err error
				for second := range 11 {
					if second == 10 {
						delete(proc, "meminfo")
						put("stat", c.after)
						put("meminfo", c.memory)
					}
					r = collector.Reading{Now: time.Now()}
					if err = s.Read(t.Context(), &r); err != nil && second < 10 {
						t.Fatal(err)
					}
					if n := len(r.Samples); second > 0 && second < 10 && n > 0 {
						t.Errorf("%d samples in second %d", n, second)
					}
					time.Sleep(time.Second)
				}
				if c.wrong == "" && err != nil ||
					c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
					t.Errorf("%v, want %q", err, c.wrong)
				}
				for m, want := range map[collector.Metric]float64{collector.CPUBusyRatio: c.busy,
					collector.MemoryUsedRatio: c.used} {
					if v, ok := collector.SampleOf(r.Samples, m); ok != (want != none) || ok && !near(v, want) {
						t.Errorf("%v: %v, known %v; want %v", m, v, ok, want)
					}
				}
				if int(r.Resets) != c.resets {
					t.Errorf("%d resets, want %d", r.Resets, c.resets)
				}
			})
		})
	}
}
