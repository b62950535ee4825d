package recorded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fairway/anomaly/targetslow"
	"fairway/collector/topology"
)

// diskColumns are those of a day of a host's disks. How much a disk moved is not among them: of disks of one host,
// latency at equal throughput differs as much as latency does.
var diskColumns = [...]string{"ts", "disk_id", "latency"}

// mostDiskRows bounds what one file of a host's disks may hold: it is sorted by time in memory.
const mostDiskRows = 5_000_000

// diskHosts finds the folders at or below dir, at most two levels down, whose CSV files hold disks; the files of each
// are in the order of their names, which are days. A folder is a host.
func diskHosts(dir string) (hosts []string, days map[string][]string) {
	days = map[string][]string{}
	for _, pattern := range []string{"*.csv*", "*/*.csv*", "*/*/*.csv*"} {
		paths, err := fs.Glob(os.DirFS(dir), pattern)
		if err != nil {
			return nil, nil // of a bad pattern alone
		}
		for _, path := range paths {
			path = filepath.Join(dir, path)
			host, name := filepath.Dir(path), strings.TrimSuffix(filepath.Base(path), ".gz")
			if !slices.Contains(days[host], name) && holdsDisks(host, name) {
				days[host] = append(days[host], name)
			}
		}
	}
	for host := range days {
		hosts = append(hosts, host)
		slices.Sort(days[host])
	}
	slices.Sort(hosts)
	return hosts, days
}

func holdsDisks(dir, name string) bool {
	t, err := openTable(dir, name, diskColumns[:], func(*RowError) {})
	return err == nil && t.close() == nil
}

// detectDisks judges the disks of the hosts at or below dir: files with ts, disk_id and latency, in any unit that is
// the same for a host, a file for each stretch of time. ok is false without one.
func detectDisks(ctx context.Context, dir string, set Settings, emit func(Event) error, sum *Summary,
	bad func(*RowError)) (ok bool, err error) {
	hosts, days := diskHosts(dir)
	for _, host := range hosts {
		name, err := filepath.Rel(dir, host)
		if err != nil || name == "." {
			name = filepath.Base(filepath.Clean(dir))
		}
		r := newTargetReplay(set, emit)
		for _, day := range days[host] {
			rows, err := readDisks(host, day, name, sum, bad)
			if err != nil {
				bad(&RowError{filepath.Join(host, day), 0, "", err.Error()})
			}
			for _, row := range rows {
				if row.at < r.at {
					why := fmt.Sprintf("a row of %d comes after %d", row.at, r.at)
					bad(&RowError{filepath.Join(host, day), 0, "", why})
					continue
				}
				if err := r.take(ctx, sum, row.at, row.point); err != nil {
					return true, err
				}
			}
		}
		if err := r.finish(); err != nil {
			return true, err
		}
	}
	return len(hosts) > 0, nil
}

// diskRow is what one disk did until a time.
type diskRow struct {
	at    int64
	point targetslow.Point
}

// readDisks reads one file in the order of time. Rows without a latency say nothing: the disk did nothing.
func readDisks(dir, name, host string, sum *Summary, bad func(*RowError)) (rows []diskRow, err error) {
	t, err := openTable(dir, name, diskColumns[:], bad)
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, t.close())
		slices.SortStableFunc(rows, func(a, b diskRow) int { return cmp.Compare(a.at, b.at) })
	}()
	ids := map[string]topology.NodeID{}
	for len(rows) < mostDiskRows {
		if err := t.next(); errors.Is(err, io.EOF) {
			return rows, nil
		} else if err != nil {
			return rows, err
		}
		if string(t.text(2)) == "NA" {
			continue
		}
		at, badAt := t.seconds(0)
		latency, badLatency := t.number(2)
		if badAt != nil || badLatency != nil {
			t.bad(cmp.Or(badAt, badLatency))
			continue
		}
		if sum.Rows++; math.IsNaN(latency) {
			continue
		}
		id, known := ids[string(t.text(1))]
		if !known {
			id = topology.NodeID(host + "/" + string(t.text(1)))
			ids[string(t.text(1))] = id
		}
		rows = append(rows, diskRow{at, targetslow.Point{Target: id, Group: host, Cost: latency}})
	}
	return rows, fmt.Errorf("it holds more than %d rows; split it by time", mostDiskRows)
}
