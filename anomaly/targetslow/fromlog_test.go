package targetslow

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"fairway/anomaly"
	"fairway/collector/topology"
	"fairway/tsdb/history/iolog"
)

// logOf is a job that writes files of 64 KiB requests and reads files of 1 MiB requests, each on one of
// sixteen targets; OST0005 takes slow times as long.
func logOf(r *rand.Rand, slow float64) *iolog.Log {
	l := &iolog.Log{}
	speed := math.Exp(r.NormFloat64()) // the job's own
	for i := range 64 {
		ost := int32(i % 16)
		took := speed * math.Exp(0.3*r.NormFloat64())
		if ost == 5 {
			took *= slow
		}
		f := iolog.JobFile{File: int64(i), OSTs: []int32{ost}}
		if i%3 == 0 {
			f.BytesWritten, f.Writes, f.WriteSeconds = 64<<20, 1024, 5*took
		} else {
			f.BytesRead, f.Reads, f.ReadSeconds = 64<<20, 64, took
		}
		l.JobFiles = append(l.JobFiles, f)
		l.Files = append(l.Files, iolog.File{ID: f.File, Mount: "/scratch"})
	}
	// Neither of these says anything of one target: a striped file, one too small.
	l.JobFiles = append(l.JobFiles, iolog.JobFile{File: 1000, OSTs: []int32{5, 6}, BytesRead: 1 << 30, Reads: 1024,
		ReadSeconds: 1e4},
		iolog.JobFile{File: 1001, OSTs: []int32{6}, BytesRead: 10, Reads: 1, ReadSeconds: 1e4})
	return l
}

func TestSlowTargetInLogsOfJobs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	d := New(DefaultRules(), every, time.Minute)
	at := map[topology.NodeID]int64{}
	class := ""
	for s := int64(0); s < 2000*60; s += 60 {
		slow := 1.0
		if s > 1000*60 {
			slow = 2
		}
		verdicts := d.Take(time.Unix(s, 0), FromLog(logOf(r, slow)))
		accused(at, s/60, verdicts)
		for _, v := range verdicts {
			if v.Level == anomaly.Alarm {
				class = v.Class
			}
		}
	}
	if when := at["OST0005"]; len(at) != 1 || when < 1000 || when > 1500 {
		t.Errorf("accused after so many logs: %v", at)
	}
	if class != "reads on /scratch" && class != "writes on /scratch" {
		t.Error(class)
	}
}

func TestLogsOfFewTargetsSayNothing(t *testing.T) {
	l := &iolog.Log{}
	for i := range int32(3) {
		l.JobFiles = append(l.JobFiles, iolog.JobFile{File: int64(i), OSTs: []int32{i}, BytesRead: 1 << 30, Reads: 1024,
			ReadSeconds: float64(1 + i)})
	}
	if got := FromLog(l); len(got) != 0 {
		t.Error(fmt.Sprint(got))
	}
}
