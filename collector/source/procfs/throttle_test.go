package procfs

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"fairway/collector"
)

// cpuFiles are a processor's, of a package that began to be throttled some times, for some ms; below 0: its kernel has
// no such file.
func cpuFiles(cpu int, pkg string, began, lasted int) map[string]string {
	dir := fmt.Sprintf("devices/system/cpu/cpu%d/", cpu)
	files := map[string]string{dir + "topology/physical_package_id": pkg + "\n",
		dir + "cpufreq/scaling_cur_freq": "800000\n"}
	for name, n := range map[string]int{"package_throttle_count": began, "package_throttle_total_time_ms": lasted,
		"core_throttle_count": 7 * began} {
		if n >= 0 {
			files[dir+"thermal_throttle/"+name] = fmt.Sprintf("%d\n", n)
		}
	}
	return files
}

// cpus are four processors of two packages: all of a package have its counts.
func cpus(began, lasted [2]int) map[string]string {
	files := map[string]string{"devices/system/cpu/cpuidle/current_driver": "intel_idle\n"}
	for i := range 4 {
		maps.Copy(files, cpuFiles(i, fmt.Sprint(i/2), began[i/2], lasted[i/2]))
	}
	return files
}

// A package counts once however many processors it has; the hottest one's time counts, a kernel without times has none.
func TestThrottling(t *testing.T) {
	const none = -1.0 // absent
	offline := cpus([2]int{9, 0}, [2]int{900, 0})
	offline["devices/system/cpu/cpu0/thermal_throttle/package_throttle_count"] = ""
	offline["devices/system/cpu/cpu0/thermal_throttle/package_throttle_total_time_ms"] = ""
	for name, c := range map[string]struct {
		before, after map[string]string
		ratio, events float64
		wrong         bool
	}{
		"one is hot": {cpus([2]int{3, 5}, [2]int{100, 900}), cpus([2]int{7, 5}, [2]int{500, 900}), 0.4, 4, false},
		"both are":   {cpus([2]int{0, 0}, [2]int{0, 0}), cpus([2]int{2, 3}, [2]int{300, 250}), 0.3, 5, false},
		"a throttling of a minute ends": {cpus([2]int{1, 0}, [2]int{0, 0}), cpus([2]int{1, 0}, [2]int{60000, 0}), 1, 0,
			false},
		"no times": {cpus([2]int{3, 5}, [2]int{-1, -1}), cpus([2]int{7, 6}, [2]int{-1, -1}), none, 5, false},
		"no package's counts": {cpus([2]int{-1, -1}, [2]int{-1, -1}), cpus([2]int{-1, -1}, [2]int{-1, -1}), none, none,
			false},
		"no such processors":         {nil, nil, none, none, false},
		"the first processor is off": {offline, offline, 0, 0, false},
		"not a count":                {cpus([2]int{1, 1}, [2]int{1, 1}), notACount(), none, none, true},
		"counters that began anew": {cpus([2]int{9, 9}, [2]int{9, 9}), cpus([2]int{0, 9}, [2]int{0, 9}), 0,
			none, false},
		"a package whose processors went": {cpus([2]int{1, 1}, [2]int{0, 0}), cpuFiles(0, "0", 2, 100), 0.1, 1, false},
		"a package that came since it began": {cpuFiles(0, "0", 1, 0), cpus([2]int{2, 99}, [2]int{50, 999}), 0.05, 1,
			false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				proc, sys := fstest.MapFS{"diskstats": {Data: nil}}, fstest.MapFS{}
				s := New(Options{Root: "proc", Files: proc, Sys: sys})
				var r collector.Reading
				for i, files := range []map[string]string{c.before, c.after} {
					clear(sys)
					for name, text := range files {
						sys[name] = &fstest.MapFile{Data: []byte(text)}
					}
					r = collector.Reading{Now: time.Now()}
					if err := s.Read(t.Context(), &r); (err != nil) != (c.wrong && i > 0) {
						t.Fatal(err)
					}
					time.Sleep(time.Second)
				}
				for m, want := range map[collector.Metric]float64{collector.ThrottledRatio: c.ratio,
					collector.ThrottleEvents: c.events} {
					if v, ok := collector.SampleOf(r.Samples, m); ok != (want != none) || ok && !near(v, want) {
						t.Errorf("%v = %v, known %v; want %v", m, v, ok, want)
					}
				}
			})
		})
	}
}

func notACount() map[string]string {
	files := cpus([2]int{1, 1}, [2]int{1, 1})
	files["devices/system/cpu/cpu0/thermal_throttle/package_throttle_count"] = "many\n"
	return files
}

// BenchmarkManyProcessors is a second of a node of two packages with 256 processors, on a real folder; looking for them
// comes once a minute.
func BenchmarkManyProcessors(b *testing.B) {
	root := b.TempDir()
	for i := range 256 {
		for name, text := range cpuFiles(i, fmt.Sprint(i/128), 3, 100) {
			file := filepath.Join(root, "sys", name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				b.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	s := New(Options{Root: filepath.Join(root, "proc")})
	b.Run("second", func(b *testing.B) {
		for range b.N {
			s.rates.Begin(time.Now())
			s.listSys(time.Now())
			r := collector.Reading{Now: time.Now()}
			if err := s.throttling(&r); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("looking", func(b *testing.B) {
		for range b.N {
			s.sys.listPackages(s)
		}
		if len(s.sys.packages) != 2 {
			b.Fatal(s.sys.packages)
		}
	})
}
