package dispatch

import (
	"maps"

	"fairway/collector"
	"fairway/collector/topology"
	"fairway/tsdb/history"
)

// nodeFiles says which files a job moved much of on one node: how many, and the least hash of them.
type nodeFiles struct{ read, written fileUse }

type fileUse struct{ count, least float64 }

// addFiles takes what a node says of the files of the job.
func (s *seen) addFiles(n topology.NodeID, samples []collector.Sample) {
	var f nodeFiles
	for _, v := range samples {
		switch v.Metric {
		case collector.FilesRead:
			f.read.count = v.Value
		case collector.LeastFileRead:
			f.read.least = v.Value
		case collector.FilesWritten:
			f.written.count = v.Value
		case collector.LeastFileWritten:
			f.written.least = v.Value
		}
	}
	if f == (nodeFiles{}) {
		return
	}
	if s.files == nil {
		s.files = map[topology.NodeID]nodeFiles{}
	}
	s.files[n] = f
}

// noteFiles keeps the newest report of each node: it is about the whole run.
func (j *job) noteFiles(v *seen) {
	if j.files == nil {
		j.files = map[topology.NodeID]nodeFiles{}
	}
	maps.Copy(j.files, v.files)
}

// modeOf is how a run's nodes shared the files of its main direction; "" where fewer than half of those
// that did I/O report files, or only one does. Nodes that share a file have the same least one, nodes
// with files of their own have not; of nodes that share some only part may have it, which is N-M too.
func modeOf(files map[topology.NodeID]nodeFiles, p *history.Profile) topology.Mode {
	nodes, most := 0, 0.0
	least := map[float64]bool{}
	for _, f := range files {
		use := f.written
		if p.ReadBytes > p.WriteBytes {
			use = f.read
		}
		if use.count > 0 {
			nodes++
			most = max(most, use.count)
			least[use.least] = true
		}
	}
	switch {
	case nodes < 2 || 2*nodes < p.IONodes:
		return ""
	case len(least) == 1 && most == 1:
		return topology.ModeN1
	case len(least) == nodes:
		return topology.ModeNN
	}
	return topology.ModeNM
}
