package targetslow

import (
	"fmt"
	"math"
	"slices"
	"time"

	"fairway/anomaly/compare"
	"fairway/collector/topology"
	"fairway/tsdb/history/iolog"
)

const (
	// leastBytes and leastTime of a file say something of its target.
	leastBytes = 1 << 20
	leastTime  = time.Millisecond
	// fewestPeers is how many other targets in a log make a median.
	fewestPeers = 3
)

// FromLog makes one interval of points of one job's log: for each storage target the time that a byte took
// in files that lie on it alone, against files of the same job whose requests are about as large (within an
// octave). A file over several targets is theirs together and says nothing of one. The points are ratios to
// the median of those, so that jobs can follow each other in one group; fewer than four targets are not compared.
func FromLog(l *iolog.Log) []Point {
	mounts := map[int64]string{}
	for i := range l.Files {
		mounts[l.Files[i].ID] = l.Files[i].Mount
	}
	var out []Point
	for _, dir := range []struct {
		name string
		of   func(*iolog.JobFile) (bytes, requests int64, seconds float64)
	}{
		{"reads", func(f *iolog.JobFile) (int64, int64, float64) { return f.BytesRead, f.Reads, f.ReadSeconds }},
		{"writes", func(f *iolog.JobFile) (int64, int64, float64) { return f.BytesWritten, f.Writes, f.WriteSeconds }},
	} {
		kinds := map[alike]map[topology.NodeID]spent{}
		for i := range l.JobFiles {
			f := &l.JobFiles[i]
			bytes, requests, seconds := dir.of(f)
			if len(f.OSTs) != 1 || bytes < leastBytes || requests < 1 || !(seconds >= leastTime.Seconds()) ||
				math.IsInf(seconds, 1) {
				continue
			}
			k := alike{mounts[f.File], int(math.Log2(float64(bytes) / float64(requests)))}
			if kinds[k] == nil {
				kinds[k] = map[topology.NodeID]spent{}
			}
			id := topology.NodeID(fmt.Sprintf("OST%04x", f.OSTs[0]))
			s := kinds[k][id]
			kinds[k][id] = spent{s.bytes + float64(bytes), s.seconds + seconds}
		}
		out = append(out, ratios(dir.name, kinds)...)
	}
	return out
}

// alike are files of one file system whose requests are about as large.
type alike struct {
	mount  string
	octave int
}

type spent struct{ bytes, seconds float64 }

// ratios joins the kinds of files of each target: the mean of its log ratios, weighted by seconds.
func ratios(direction string, kinds map[alike]map[topology.NodeID]spent) (out []Point) {
	type sum struct{ log, weight float64 }
	byGroup := map[string]map[topology.NodeID]sum{}
	for k, targets := range kinds {
		if len(targets) <= fewestPeers {
			continue
		}
		var logs []float64
		for _, s := range targets {
			logs = append(logs, math.Log(s.seconds/s.bytes))
		}
		slices.Sort(logs)
		group := direction + " on " + k.mount
		if byGroup[group] == nil {
			byGroup[group] = map[topology.NodeID]sum{}
		}
		for id, s := range targets {
			x := math.Log(s.seconds / s.bytes)
			t := byGroup[group][id]
			byGroup[group][id] = sum{t.log + s.seconds*(x-compare.MedianOfOthers(logs, x)), t.weight + s.seconds}
		}
	}
	for group, targets := range byGroup {
		for id, s := range targets {
			out = append(out, Point{Target: id, Group: group, Cost: math.Exp(s.log / s.weight)})
		}
	}
	return out
}
