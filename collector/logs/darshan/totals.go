package darshan

// Totals are one interface's figures over the whole job.
type Totals struct {
	Module                  Module
	Files                   int64
	BytesRead, BytesWritten int64
	// SlowestRank is the process that spent most time on files of its own, SlowestRankSeconds that time,
	// SharedSeconds the time of the slowest rank of every file that all processes opened, summed.
	SlowestRank        int64
	SlowestRankSeconds float64
	SharedSeconds      float64
}

// IOSeconds is the time the job spent in I/O as the darshan tools estimate it: the slowest rank's own
// files, then the shared files one after the other.
func (t *Totals) IOSeconds() float64 { return t.SlowestRankSeconds + t.SharedSeconds }

// BytesPerSec is the bandwidth over IOSeconds (the tools' agg_perf_by_slowest, there in MiB/s); ok is
// false where there was no I/O time.
func (t *Totals) BytesPerSec() (v float64, ok bool) {
	if s := t.IOSeconds(); s > 0 {
		return float64(t.BytesRead+t.BytesWritten) / s, true
	}
	return 0, false
}

// totaller adds up the records of each interface, which count per rank while files count all ranks.
type totaller struct {
	totals Totals
	ranks  map[int64]float64
}

func (t *totaller) add(rank int64, o *IO, newFile bool) {
	if newFile {
		t.totals.Files++
	}
	t.totals.BytesRead += max(o.BytesRead, 0)
	t.totals.BytesWritten += max(o.BytesWritten, 0)
	if o.Shared {
		t.totals.SharedSeconds += max(o.SlowestSeconds, 0)
		return
	}
	if t.ranks == nil {
		t.ranks = map[int64]float64{}
	}
	t.ranks[rank] += o.ReadSeconds + o.WriteSeconds + o.MetaSeconds
}

// close finds the slowest rank; of equal ones the first.
func (t *totaller) close() Totals {
	for rank, s := range t.ranks {
		slowest := t.totals.SlowestRankSeconds
		if s > slowest || s == slowest && s > 0 && rank < t.totals.SlowestRank {
			t.totals.SlowestRank, t.totals.SlowestRankSeconds = rank, s
		}
	}
	return t.totals
}
