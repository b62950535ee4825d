package procfs

import (
	"io/fs"

	"fairway/collector"
)

// listPackages finds a processor of each package whose throttling the kernel counts: those of one package all have
// the package's count, and a processor that is offline serves none.
func (c *sysClass) listPackages(s *Source) {
	c.packages = nil
	found := map[string]bool{}
	cpus, _ := fs.Glob(c.files, "devices/system/cpu/cpu[0-9]*") // the pattern is good
	for _, cpu := range cpus {
		id := s.says(cpu + "/topology/physical_package_id")
		if id == "" || found[id] || s.says(cpu+"/thermal_throttle/package_throttle_count") == "" {
			continue
		}
		found[id] = true
		c.packages = append(c.packages, cpu+"/thermal_throttle")
	}
}

// throttling reads how often the packages began to be throttled, and, since Linux 5.5, for how long they were. The time
// of a throttling is counted when it ends.
func (s *Source) throttling(into *collector.Reading) error {
	if len(s.sys.packages) == 0 {
		return fs.ErrNotExist
	}
	const began, lasted = 0, 1 // the fields of a package
	const milli = 1e-3
	var events collector.Total
	hottest, timed := 0.0, false
	for _, p := range s.sys.packages {
		n, there, err := s.number(p + "/package_throttle_count")
		if err != nil {
			return err
		}
		if there {
			s.rates.AddTo(&events, key{kind: processor, name: p, field: began}, n)
		}
		ms, there, err := s.number(p + "/package_throttle_total_time_ms")
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		if perSec, ok := s.rates.Rate(key{kind: processor, name: p, field: lasted}, ms); ok {
			hottest, timed = max(hottest, min(1, milli*perSec)), true
		}
	}
	into.AddTotal(collector.ThrottleEvents, &events)
	if timed {
		into.Add(collector.ThrottledRatio, hottest)
	}
	return nil
}
