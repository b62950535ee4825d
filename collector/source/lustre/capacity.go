package lustre

import (
	"path"
	"strings"
	"time"

	"fairway/collector"
	"fairway/collector/topology"
)

// capacityEvery is how often a server's targets are asked how full they are: a minute fills no target.
const capacityEvery = time.Minute

// fill is how full a server's targets were when they were asked last, and who has what of those that fill.
type fill struct {
	at       time.Time
	targets  []collector.TargetSamples
	tables   []accountTable
	accounts accounts
}

// reportCapacity reports how full each target of a server is, and the fullest as the node's.
func reportCapacity(s *Source) {
	if age := s.into.Now.Sub(s.full.at); age < 0 || age >= capacityEvery {
		s.full.at, s.full.targets, s.full.tables = s.into.Now, s.full.targets[:0:0], s.full.tables[:0:0]
		for _, name := range s.files("osd-*/*/filestotal") {
			folder := path.Dir(name)
			id := path.Base(folder)
			if !strings.Contains(id, "-OST") && !strings.Contains(id, "-MDT") {
				continue // the management server's
			}
			var of collector.Reading
			addUsed(s, &of, collector.SpaceUsedRatio, folder+"/kbytestotal", folder+"/kbytesfree",
				folder+"/kbytesavail")
			addUsed(s, &of, collector.InodesUsedRatio, name, folder+"/filesfree", folder+"/filesfree")
			for _, used := range of.Samples {
				if used.Value >= watchedFrom {
					s.full.tables = append(s.full.tables, accountTable{file: folder + "/quota_slave/acct_user", of: id,
						used: used.Value, inodes: used.Metric == collector.InodesUsedRatio})
				}
			}
			if len(of.Samples) > 0 {
				s.full.targets = append(s.full.targets,
					collector.TargetSamples{Target: topology.TargetID(id), Samples: of.Samples})
			}
		}
	}
	for _, m := range []collector.Metric{collector.SpaceUsedRatio, collector.InodesUsedRatio} {
		fullest := float64(notKnown)
		for _, t := range s.full.targets {
			if used, ok := collector.SampleOf(t.Samples, m); ok {
				fullest = max(fullest, used)
			}
		}
		s.addKnown(m, fullest)
	}
	s.seen = s.seen || len(s.full.targets) > 0
	s.into.Targets = append(s.into.Targets, s.full.targets...)
}

// addUsed adds which share is used of what can be used, as df has it: what only root may use is left out.
func addUsed(s *Source, to *collector.Reading, m collector.Metric, total, free, available string) {
	all, ok := s.number(total)
	left, freeKnown := s.number(free)
	open, openKnown := s.number(available)
	if !ok || !freeKnown || !openKnown || left > all {
		return
	}
	if used := float64(all - left); used+float64(open) > 0 {
		to.Add(m, used/(used+float64(open)))
	}
}
