package archive

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"fairway/tsdb/history/iolog"
)

// servers is what two targets moved every five seconds of an hour and five minutes: 100 and 300 bytes,
// and once 5000 over a gap.
func servers(start time.Time) iolog.Log {
	l := iolog.Log{Kind: "lmt"}
	for k := range 780 {
		at := start.Add(time.Duration(k) * 5 * time.Second)
		l.OSTs = append(l.OSTs, iolog.OST{Time: at, Target: "big-OST0005", FS: "big", Seconds: 5, BytesRead: 100,
			BytesWritten: nan, CPUPercent: nan})
		l.OSTs = append(l.OSTs, iolog.OST{Time: at, Target: "big-OST0006", FS: "big", Seconds: 5, BytesRead: 100,
			BytesWritten: 200, CPUPercent: nan})
	}
	l.OSTs[0].Seconds, l.OSTs[0].BytesRead = 5000, 5e6
	l.OSTs = append(l.OSTs, iolog.OST{Time: start, Target: "new-OST0005", FS: "new", Seconds: 5, BytesRead: 9e9})
	return l
}

func TestAround(t *testing.T) {
	start := testDay.Add(55 * time.Minute)
	run := func(log int64, job string, start time.Time, files ...iolog.JobFile) iolog.Log {
		l := iolog.Log{Jobs: []iolog.Job{{Log: log, JobID: job, App: "app" + job, Start: start,
			End: start.Add(10 * time.Minute)}}}
		for _, f := range files {
			f.Log, f.JobID, f.ReadStart, f.ReadEnd = log, job, nan, nan
			l.JobFiles = append(l.JobFiles, f)
			l.Files = append(l.Files, iolog.File{ID: f.File, Path: fmt.Sprint(f.File),
				Mount: fmt.Sprintf("/lus/%d", f.File%10)})
		}
		return l
	}
	file := func(id int64, from, to float64, bytes int64, osts ...int32) iolog.JobFile {
		return iolog.JobFile{File: id, WriteStart: from, WriteEnd: to, BytesWritten: bytes, OSTs: osts}
	}
	dir := archiveOf(t, servers(testDay),
		run(1, "10", start, file(1, 0, 60, 1000, 5, 6)),
		// another program of the same job is not a neighbour
		run(2, "10", start, file(2, 0, 60, 9000, 5)),
		run(3, "11", start.Add(-5*time.Minute), file(13, 0, 400, 600, 6, 7)), // 100 s into it
		run(4, "12", start.Add(-5*time.Minute), file(14, 0, 200, 5000, 6)),   // it wrote before
		run(5, "13", start.Add(time.Minute), file(15, 0, 9, 400, 6), file(25, 0, 9, 90, 6, 5), file(35, 0, 9, 4, 8)),
		run(6, "14", start.Add(-20*time.Minute), file(16, 0, 5000, 7000, 6)), // the job had ended
		// not among the first three
		run(7, "15", start, file(17, 1, 2, 1, 6)), run(8, "16", start, file(18, 1, 2, 2, 6)),
	)
	j := iolog.Job{Log: 1, JobID: "10", Start: start, End: start.Add(10 * time.Minute)}
	a, err := NewReader(dir, Limits{}, nil).Around(t.Context(), &j)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(a.OSTs); n != 240+1 { // and the row over the gap, which reaches into the job
		t.Errorf("%d rows", n)
	}
	i := slices.IndexFunc(a.OSTs, func(o iolog.OST) bool { return o.Target == "big-OST0006" })
	if o := a.OSTs[i]; !o.Time.Equal(start) || o.Seconds != 5 || o.BytesRead != 300 {
		t.Errorf("%+v", o)
	}
	// not what lies over a gap, nor of too short a record
	if len(a.PeakBytesPerSec) != 1 || a.PeakBytesPerSec["big"] != 60 {
		t.Errorf("peaks %v", a.PeakBytesPerSec)
	}
	got := fmt.Sprint(a.Neighbours)
	want := "[{13 app13 /lus/5 5 45} {13 app13 /lus/5 6 445} {11 app11 /lus/3 6 300} {16 app16 /lus/8 6 2}]"
	if got != want {
		t.Errorf("neighbours\n%s, want\n%s", got, want)
	}
	j.Start, j.End = start.AddDate(0, 1, 0), start.AddDate(0, 1, 1)
	if a, err := NewReader(dir, Limits{}, nil).Around(t.Context(), &j); err != nil || len(a.OSTs) != 0 {
		t.Errorf("a job of another time: %v %v", a, err)
	}
}

// A long job gets fewer and longer intervals, with every byte.
func TestLoadsOfALongJob(t *testing.T) {
	dir := archiveOf(t, servers(testDay))
	rows, bytes, seconds := 0, 0.0, 0.0
	when := map[string]any{"from": testDay, "to": testDay.Add(time.Hour), "rows": 100}
	err := Each(t.Context(), dir, loadsSQL, when, func(row []any) error {
		if rows++; row[1] == "big-OST0006" {
			seconds += row[3].(float64)
			bytes += row[4].(float64)
		}
		return nil
	})
	if err != nil || rows > 130 || rows < 60 || bytes != 720*300 || seconds != 3600 {
		t.Errorf("%d rows, %v bytes in %v s, %v", rows, bytes, seconds, err)
	}
}
