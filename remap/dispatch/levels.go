package dispatch

import (
	"cmp"
	"slices"
	"time"

	"fairway/remap/policy/dfra"
	"fairway/tsdb/history"
)

// Levels are what is loud and what is quiet at a site, learned from the peaks of its own runs.
type Levels struct {
	Runs     int     `json:"runs"` // with a profile
	HighBW   float64 `json:"high_bw"`
	HighIOPS float64 `json:"high_iops"`
	LowBW    float64 `json:"low_bw"`
	LowIOPS  float64 `json:"low_iops"`
	LowMeta  float64 `json:"low_meta"`
}

const (
	// learnRuns is how many of the newest runs levels are learned from, learnFrom how many there must be.
	learnRuns  = 1000
	learnFrom  = 20
	learnAgain = 10 * time.Minute
	// A run is loud from this part of the site's runs on, and quiet up to that.
	loudPart  = 0.9
	quietPart = 0.25
)

// levelsOf learns the levels of runs; nil where there are too few.
func levelsOf(runs []history.Run) *Levels {
	var bw, iops, meta []float64
	for i := range runs {
		p := runs[i].Profile
		if p == nil || p.VolumeBytes() == 0 && p.MetaOps == 0 {
			continue
		}
		bw, iops = append(bw, p.PeakBytesPerSec), append(iops, p.PeakOpsPerSec)
		if p.MetaQueue != nil {
			meta = append(meta, *p.MetaQueue)
		}
	}
	if len(bw) < learnFrom {
		return nil
	}
	return &Levels{Runs: len(bw), HighBW: partOf(bw, loudPart), HighIOPS: partOf(iops, loudPart),
		LowBW: partOf(bw, quietPart), LowIOPS: partOf(iops, quietPart), LowMeta: partOf(meta, quietPart)}
}

// partOf is the value up to which a part of the values lies; 0 without values.
func partOf(values []float64, part float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[int(part*float64(len(values)-1))]
}

// fill puts the levels where the site has set none.
func (l *Levels) fill(c dfra.Config) dfra.Config {
	if l == nil {
		return c
	}
	for _, f := range []struct {
		set     *float64
		learned float64
	}{{&c.HighBW, l.HighBW}, {&c.HighIOPS, l.HighIOPS}, {&c.LowBW, l.LowBW}, {&c.LowIOPS, l.LowIOPS},
		{&c.LowMeta, l.LowMeta}} {
		*f.set = cmp.Or(*f.set, f.learned)
	}
	return c
}

// learn learns the levels anew where those at hand are old. Errors are those of the history.
func (d profiler) learn(now time.Time) error {
	if now.Sub(d.learned) < learnAgain {
		return nil
	}
	runs, err := d.cfg.History.Recent(learnRuns)
	if err == nil {
		d.learned = now
		d.levels.Store(levelsOf(runs))
	}
	return err
}
