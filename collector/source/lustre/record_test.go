package lustre

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"fairway/cmd/lab/conform/recorded"
	"fairway/collector"
)

// playRecord reads a node's log second by second.
func playRecord(t *testing.T, file string, each func(s *Source, r *collector.Reading)) {
	tree := fstest.MapFS{}
	s := New(tree)
	s.ReportWaiting = true
	s.rates.MaxGap = time.Minute // seconds are missing where the guest had no processor
	var at time.Time
	for _, f := range recorded.FramesOf(t, file) {
		if strings.HasSuffix(f.Name, "/lnet/stats") { // a second's first file
			if !at.IsZero() {
				r := collector.Reading{Now: at}
				if err := s.Read(t.Context(), &r); err != nil {
					t.Fatalf("%v: %v", at, err)
				}
				each(s, &r)
			}
			at = f.At
		}
		if f.Err == "" && strings.Contains(f.Name, "/") {
			tree[f.Name] = &fstest.MapFile{Data: f.Text}
		}
	}
}

// truthOf sums what a load counted by its own log between two times.
func truthOf(t *testing.T, file string, from, to float64, into map[string]float64) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var first, last map[string]json.RawMessage
	for line := range strings.Lines(string(b)) {
		var row map[string]json.RawMessage
		var at float64
		if json.Unmarshal([]byte(line), &row) != nil || json.Unmarshal(row["t"], &at) != nil {
			continue
		}
		if first == nil || at <= from {
			first = row
		}
		if at <= to {
			last = row
		}
	}
	for op, text := range last {
		var a, b [4]float64 // count, microseconds, bytes, errors
		if op == "t" || json.Unmarshal(text, &b) != nil || json.Unmarshal(first[op], &a) != nil {
			continue
		}
		into[op+" bytes"] += b[2] - a[2]
		if op != "read" && op != "write" {
			into["metadata"] += b[0] - a[0]
		}
	}
}

// TestRecordOfLustre: on a record of a real file system a client's bytes and metadata operations are those of its
// load's own log, a metadata server's times are its operations', and a target that answers late has requests that wait.
func TestRecordOfLustre(t *testing.T) {
	const from, to = 1795768260, 1795768660 // calm
	logs := []string{"cn1.log", "cn2.log", "cn3.log", "mds1.log"}
	var truths []string
	for _, cn := range []string{"cn1", "cn2", "cn3"} {
		for _, load := range []string{"direct", "cached", "meta"} {
			truths = append(truths, "truth/"+cn+"."+load)
		}
	}
	files := recorded.Open(t, "lustre-2.18", append(logs, truths...)...)
	for _, log := range logs {
		got, oldest := map[string]float64{}, 0.0
		var served, took float64
		playRecord(t, files[log], func(s *Source, r *collector.Reading) {
			if age, _ := collector.SampleOf(r.Samples, collector.RequestAge); r.Now.Unix() > 1795768690 {
				oldest = max(oldest, age)
			}
			if r.Now.Unix() <= from || r.Now.Unix() > to {
				return
			}
			for name, m := range map[string]collector.Metric{"read bytes": collector.ReadBytes,
				"write bytes": collector.WriteBytes, "metadata": collector.MetaOps} {
				v, _ := collector.SampleOf(r.Samples, m)
				got[name] += v * s.rates.Seconds()
			}
			n, _ := collector.SampleOf(r.Samples, collector.MetaOps)
			exec, _ := collector.SampleOf(r.Samples, collector.MetaExec)
			served, took = served+n, took+n*exec
		})
		if log == "mds1.log" {
			if mean := took / served; mean < .003 || mean > .012 {
				t.Errorf("a metadata operation took %.4f s, md_stats says 0.0075", mean)
			}
			continue
		}
		want := map[string]float64{}
		for _, load := range []string{"direct", "cached", "meta"} {
			truthOf(t, files["truth/"+strings.TrimSuffix(log, "log")+load], from, to, want)
		}
		for name, v := range got {
			if r := v / want[name]; math.Abs(r-1) > .03 {
				t.Errorf("%s: %s %.0f, its load counted %.0f (%.3f)", log, name, v, want[name], r)
			}
		}
		if oldest < 1.5 {
			t.Errorf("%s: the oldest request waited %g s, and each one for OST0000 took two", log, oldest)
		}
		t.Logf("%s: %v, its load %v; the oldest waited %.1f s", log, got, want, oldest)
	}
}

// TestRecordOfJobs: on the record of a real file system what jobs, programs of users and nobody did is what its servers
// did in all, and nearly nothing is nobody's.
func TestRecordOfJobs(t *testing.T) {
	logs := []string{"oss1.log", "oss2.log", "mds1.log"}
	files := recorded.Open(t, "lustre-2.18", logs...)
	for _, log := range logs {
		var server, rows, named [3]float64
		metrics := [3]collector.Metric{collector.ReadBytes, collector.WriteBytes, collector.MetaOps}
		playRecord(t, files[log], func(s *Source, r *collector.Reading) {
			for i, m := range metrics {
				if v, ok := collector.SampleOf(r.Samples, m); ok {
					server[i] += v * s.rates.Seconds()
				}
				for _, j := range r.Jobs {
					v, _ := collector.SampleOf(j.Samples, m)
					v *= s.jobs.newest.seconds
					if rows[i] += v; j.Job != collector.UncountedWork {
						named[i] += v
					}
				}
			}
		})
		for i, m := range metrics {
			if log != "mds1.log" && m == collector.MetaOps {
				continue // an object server's are no metadata operations of its own
			}
			if math.Abs(rows[i]-server[i]) > .001*server[i] {
				t.Errorf("%s: the rows have %s %.0f, the server %.0f", log, m, rows[i], server[i])
			}
			if named[i] < .98*server[i] {
				t.Errorf("%s: %.1f %% of %s are named", log, 100*named[i]/server[i], m)
			}
			t.Logf("%s: %s %.0f, of all rows %.0f, named %.0f", log, m, server[i], rows[i], named[i])
		}
	}
}
