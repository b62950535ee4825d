package recorded

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDisksOfHosts: a host's disks have hours that are a third slower, each its own, and accuse nobody by them; the
// disk that is half as slow again all the time is found. Rows lie by disk, some hold nothing, one is bad.
func TestDisksOfHosts(t *testing.T) {
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(1, 1))
	var busyUntil [12]int
	for day := range 4 {
		var files [2]strings.Builder
		for host := range files {
			fmt.Fprintf(&files[host], "\"ts\",\"disk_id\",\"throughput\",\"latency\"\n")
			for disk := range 12 {
				for i := range 24 * 240 {
					at := day*24*240 + i
					if at > busyUntil[disk] && r.IntN(5*240) == 0 {
						busyUntil[disk] = at + 240
					}
					x := 0.2 * r.NormFloat64()
					if at < busyUntil[disk] {
						x += 0.3
					}
					if host == 1 && disk == 7 {
						x += 0.5
					}
					latency := fmt.Sprintf("%.3g", 300*math.Exp(x))
					switch {
					case i%100 == 0:
						latency = "NA"
					case day == 1 && disk == 3 && i == 77:
						latency = "slow"
					}
					fmt.Fprintf(&files[host], "%d,\"disk%d\",1e6,%s\n", 1_700_000_000+15*at, disk, latency)
				}
			}
			busyUntil = [12]int{}
		}
		for host := range files {
			name := filepath.Join(fmt.Sprint("host_", host), fmt.Sprint("day", day, ".csv"))
			if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, dir, name, files[host].String())
		}
	}
	accused, bad, sum := judgedDisks(t, dir)
	if !slices.Equal(accused, []string{"host_1/disk7"}) {
		t.Error("accused are", accused)
	}
	if len(bad) != 2 || !strings.Contains(bad[0], "field latency") || sum.Seconds != 2*4*(24*240-58) {
		t.Error(bad, sum)
	}
	if accused, _, _ = judgedDisks(t, filepath.Join(dir, "host_1")); !slices.Equal(accused, []string{"host_1/disk7"}) {
		t.Error("of one host accused are", accused)
	}
}

// judgedDisks are those that Detect accuses.
func judgedDisks(t *testing.T, dir string) (accused, bad []string, sum Summary) {
	t.Helper()
	sum, err := Detect(context.Background(), dir, DefaultSettings(), func(e Event) error {
		accused = append(accused, string(e.Node))
		return nil
	}, func(e *RowError) { bad = append(bad, e.Error()) })
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(accused)
	return accused, bad, sum
}

// TestDisksOfTheField judges disks of clouds in production that a field study published with labels (Perseus, FAST'23):
// every slow one is found, and no other is accused. FAIRWAY_LONG=1 judges all hosts, else it is every third.
func TestDisksOfTheField(t *testing.T) {
	hosts, err := filepath.Glob(filepath.Join("..", "..", "..", "shared", "data", "traces", "*", "cluster_*", "host_*"))
	if err != nil || len(hosts) == 0 {
		t.Skip("skipped: the disks of the field study are not beside the repository")
	}
	every, found := 3, 0
	if os.Getenv("FAIRWAY_LONG") != "" {
		every = 1
	}
	for i := 0; i < len(hosts); i += every {
		cluster, name := filepath.Dir(hosts[i]), filepath.Base(hosts[i])
		labels, err := os.ReadFile(filepath.Join(filepath.Dir(cluster), "slow_drive_info.csv"))
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for line := range strings.Lines(string(labels)) {
			if f := strings.Split(line, ","); f[0] == filepath.Base(cluster) && f[1] == name {
				want = append(want, f[1]+"/"+f[3])
			}
		}
		slices.Sort(want)
		got, bad, sum := judgedDisks(t, hosts[i])
		t.Logf("%s: accused are %v, of %d rows", hosts[i], got, sum.Rows)
		if got = slices.Compact(got); !slices.Equal(got, want) || len(bad) > 0 {
			t.Errorf("%s: accused are %v, slow %v, unread %v", hosts[i], got, want, bad)
		}
		found += len(want)
	}
	if found == 0 {
		t.Error("no host has a slow disk: the labels were not read")
	}
}
