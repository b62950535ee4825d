package targetslow

import (
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"fairway/anomaly"
	"fairway/collector/topology"
)

const every = 500 * 24 * time.Hour

// accused notes when each target was first accused.
func accused(at map[topology.NodeID]int64, now int64, verdicts []anomaly.Verdict) {
	for _, v := range verdicts {
		if _, was := at[v.Node]; v.Level == anomaly.Alarm && !was {
			at[v.Node] = now
		}
	}
}

// TestOnlyTheSlowTarget: of twelve targets with habits of up to a tenth, whose noise lasts for minutes and
// whose back end comes and goes for all, the one that gets slow is accused, and is cleared when it is well.
func TestOnlyTheSlowTarget(t *testing.T) {
	for seed := range uint64(2) {
		factor, within := 2.5, int64(900)
		if seed%2 == 1 {
			factor, within = 1.5, 2*3600
		}
		r := rand.New(rand.NewPCG(seed, 1))
		d := New(every, time.Second)
		at := map[topology.NodeID]int64{}
		var drift [12]float64
		level := anomaly.Unseen
		for s := range int64(14 * 3600) {
			var points []Point
			common := math.Sin(float64(s) / 900)
			for i := range 12 {
				drift[i] += -drift[i]/300 + 0.006*r.NormFloat64()
				x := common + 0.01*float64(i) + drift[i] + 0.3*r.NormFloat64()
				if i == 3 && s >= 6*3600 && s < 9*3600 {
					x += math.Log(factor)
				}
				points = append(points, Point{topology.NodeID(fmt.Sprint("ost", i)), "reads", 1e-3 * math.Exp(x)})
			}
			verdicts := d.Take(time.Unix(s, 0), points)
			accused(at, s, verdicts)
			for _, v := range verdicts {
				if v.Node == "ost3" {
					level = v.Level
				}
			}
		}
		if first, ok := at["ost3"]; !ok || len(at) != 1 || first > 6*3600+within || level != anomaly.Clean {
			t.Errorf("seed %d: accused %v, at the end it is %d", seed, at, level)
		}
	}
}

func TestFewPeersSayNothing(t *testing.T) {
	d := New(every, time.Second)
	for s := range int64(5000) {
		if v := d.Take(time.Unix(s, 0), []Point{{"a", "g", 1}, {"b", "g", 1}, {"c", "g", 9},
			{"d", "h", 9}}); len(v) > 0 {
			t.Fatal(v)
		}
	}
}

// TestPerseusDisks judges disks of three hosts of the field study Perseus (FAST'23), labelled by its authors:
// every slow one is found, and none of its healthy peers.
func TestPerseusDisks(t *testing.T) {
	root := filepath.Join("..", "..", "..", "shared", "data", "traces", "perseus")
	if _, err := os.Stat(root); err != nil {
		t.Skipf("skipped: the disks of the Perseus study are not beside the repository: %v", err)
	}
	labels, err := os.ReadFile(filepath.Join(root, "slow_drive_info.csv"))
	if err != nil {
		t.Fatal(err)
	}
	hosts, err := filepath.Glob(filepath.Join(root, "cluster_*", "host_*"))
	if err != nil || len(hosts) != 3 {
		t.Fatal(hosts, err)
	}
	for _, host := range hosts {
		cluster, name := filepath.Base(filepath.Dir(host)), filepath.Base(host)
		var want []string
		for line := range strings.Lines(string(labels)) {
			if f := strings.Split(line, ","); f[0] == cluster && f[1] == name {
				want = append(want, f[3])
			}
		}
		at, begun := perseus(t, host)
		var got []string
		for id, when := range at {
			got = append(got, string(id))
			t.Logf("%s %s %s: accused after %.1f h", cluster, name, id, float64(when-begun)/3600)
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s %s: accused %v, slow are %v", cluster, name, got, want)
		}
	}
}

func perseus(t *testing.T, host string) (at map[topology.NodeID]int64, begun int64) {
	t.Helper()
	days, err := filepath.Glob(filepath.Join(host, "*.csv.gz"))
	if err != nil || len(days) == 0 {
		t.Fatal(days, err)
	}
	at = map[topology.NodeID]int64{}
	d := New(every, 15*time.Second)
	for _, day := range days {
		f, err := os.Open(day)
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(z).ReadAll()
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		byTime := map[int64][]Point{}
		for _, r := range rows[1:] {
			second, err := strconv.ParseInt(r[0], 10, 64)
			latency, bad := strconv.ParseFloat(r[3], 64)
			if err != nil {
				t.Fatal(err)
			}
			if bad == nil { // some are NA
				byTime[second] = append(byTime[second], Point{topology.NodeID(r[1]), "disks of " + filepath.Base(host),
					latency})
			}
		}
		var times []int64
		for s := range byTime {
			times = append(times, s)
		}
		slices.Sort(times)
		if begun == 0 {
			begun = times[0]
		}
		for _, s := range times {
			accused(at, s, d.Take(time.Unix(s, 0), byTime[s]))
		}
	}
	return at, begun
}
